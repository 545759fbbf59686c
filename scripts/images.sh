#!/usr/bin/env bash
# Makes the root file systems that the tests run, out of Debian packages and each only once.
#
#   scripts/images.sh            every image, as .cache/images/NAME.tar
#   scripts/images.sh NAME...    only these
#
#   busybox      a static busybox with a link for each of its programs
#   scratch      nothing but an empty /tmp
#   musl         musl's dynamic loader with a program that needs it, and a static busybox as shell
#   distroless   glibc with a program that needs it, CA certificates, time zones, users; no shell
#   debian       Debian 12, the smallest, with git
#   podman5      Debian 13 with Podman, as the directory .cache/podman5: no image, but an engine
#
# The last two need root, debootstrap and the mirror that apt uses. A change of this file makes
# them anew.
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

images=$ROOT/.cache/images
recipe=$(sha256sum <"$ROOT/scripts/images.sh" | cut -d' ' -f1)

# An image made by an ordinary user belongs to root all the same.
owner=(--numeric-owner)
[ "$(id -u)" -eq 0 ] || owner=(--owner=0 --group=0 --numeric-owner)

# users DIR [NAME:UID]... writes the user and group files.
users() {
	local dir=$1 user
	shift
	mkdir -p "$dir/etc"
	for user in root:0 nobody:65534 "$@"; do
		echo "${user%:*}:x:${user#*:}:${user#*:}::/:/sbin/nologin" >>"$dir/etc/passwd"
		echo "${user%:*}:x:${user#*:}:" >>"$dir/etc/group"
	done
}

# static_busybox DIR puts busybox and its links into DIR/bin, and env where scripts look for it.
static_busybox() {
	local program
	mkdir -p "$1/bin" "$1/usr/bin" "$1/root"
	cp /bin/busybox "$1/bin/busybox"
	if ldd "$1/bin/busybox" >/dev/null 2>&1; then
		die "/bin/busybox is not a static program; Debian's busybox-static has one"
	fi
	for program in $("$1/bin/busybox" --list); do
		[ "$program" = busybox ] || ln -s busybox "$1/bin/$program"
	done
	ln -s ../../bin/busybox "$1/usr/bin/env"
}

# hello COMPILER OUTPUT makes a dynamic program that says which C library it runs on and as whom.
hello() {
	"$1" -O2 -o "$2" -x c - <<'C'
#include <pwd.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

int main(void) {
#ifdef __GLIBC__
    const char *library = "glibc";
#else
    const char *library = "musl";
#endif
    const struct passwd *user = getpwuid(getuid());
    time_t now = time(NULL);
    char zone[16];

    strftime(zone, sizeof zone, "%Z", localtime(&now));
    printf("hello from %s as %s, %s\n", library, user ? user->pw_name : "nobody known", zone);
    return 0;
}
C
}

make_busybox() {
	users "$1"
	static_busybox "$1"
}

make_scratch() { :; }

make_musl() {
	local loader
	users "$1"
	static_busybox "$1"
	hello musl-gcc "$1/bin/hello"
	loader=$(grep -ao '/lib/ld-musl-[a-z0-9_]*\.so\.1' "$1/bin/hello" | head -n 1)
	install -D "$loader" "$1$loader"
}

make_distroless() {
	local file
	users "$1" nonroot:65532
	mkdir -p "$1/usr/bin" "$1/home/nonroot"
	hello gcc "$1/usr/bin/hello"
	for file in $(dpkg -L libc6 | grep -E '^(/usr)?/lib(64)?/([^/]*/)?[^/]*\.so\.[0-9]+$') \
		/etc/ssl/certs/ca-certificates.crt; do
		install -D -m "$(stat -L -c %a "$file")" "$file" "$1$file"
	done
	echo 'passwd: files' >"$1/etc/nsswitch.conf"
	mkdir -p "$1/usr/share"
	cp -a /usr/share/zoneinfo "$1/usr/share/"
}

make_debian() {
	debian bookworm "$1" ca-certificates,git
	rm -rf "$1"/usr/share/{doc,info,locale,man}/*
}

make_podman5() { debian trixie "$1" catatonit,crun,podman,runc; }

# debian SUITE DIR PACKAGES makes the smallest Debian with some packages. What debootstrap mounts,
# also when it is interrupted, is seen by nobody else.
debian() {
	local mirror proxy said
	[ "$(id -u)" -eq 0 ] || die "making a Debian root file system needs root"
	command -v debootstrap >/dev/null || die "there is no debootstrap"
	mirror=$(debian_mirror)
	[ -n "$mirror" ] || die "apt's configuration names no Debian mirror"
	eval "$(apt-config shell proxy Acquire::http::Proxy)"
	[ -z "${proxy:-}" ] || export http_proxy=$proxy
	said=$2.log
	if ! timeout --foreground 600 unshare --mount --propagation private \
		debootstrap --variant=minbase --include="$3" "$1" "$2" "$mirror" >"$said" 2>&1 </dev/null; then
		tail -n 5 "$said" >&2
		die "debootstrap could not make a Debian $1 within ten minutes; its log is $2/debootstrap/debootstrap.log"
	fi
	rm -rf "${2:?}"/var/cache/apt/archives/*.deb "${2:?}"/var/lib/apt/lists/* "${2:?}"/dev/* "${2:?}"/etc/{hostname,resolv.conf}
	rm -f "$said"
}

# debian_mirror prints where apt gets Debian's packages from. A cloud image names a file that lists
# the mirrors.
debian_mirror() {
	local uri
	# shellcheck disable=SC2016 # apt fills these in
	uri=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' |
		awk '$1 ~ /debian\/?$/ && $2 !~ /security/ { print $1; exit }')
	case $uri in
	mirror+file:*) grep -v '^#' "${uri#mirror+file:}" | awk 'NF { print $1; exit }' ;;
	*) printf '%s\n' "$uri" ;;
	esac
}

# need NAME makes an image that is not there yet, or was made by another recipe; one at a time.
need() {
	local name=$1 made=$images/$1.tar part=$images/$1.part start=$SECONDS
	[ "$name" != podman5 ] || made=$ROOT/.cache/podman5
	(
		flock 9
		if [ -e "$made" ] && [ "$(cat "$images/$name.recipe" 2>/dev/null)" = "$recipe" ]; then
			exit 0
		fi
		rm -rf --one-file-system "$part" "$made"
		mkdir -m 0755 "$part"
		"make_$name" "$part"
		if [ "$name" = podman5 ]; then
			mv "$part" "$made"
		else
			mkdir -p "$part/tmp"
			chmod 1777 "$part/tmp"
			tar -C "$part" "${owner[@]}" --sort=name -cf "$made.part" .
			mv "$made.part" "$made"
			rm -rf --one-file-system "$part"
		fi
		echo "$recipe" >"$images/$name.recipe"
		echo "made $name in $(seconds_since "$start")"
	) 9>"$images/$name.lock"
}

mkdir -p "$images"
[ $# -gt 0 ] || set -- busybox scratch musl distroless debian
for name in "$@"; do
	case $name in
	busybox | scratch | musl | distroless | debian | podman5) need "$name" ;;
	*) die "there is no image $name" ;;
	esac
done
