#!/usr/bin/env bash
# Installs the system packages that a profile needs and this machine lacks.
#
#   scripts/setup.sh demo    what `make demo` needs
#   scripts/setup.sh test    what `make test` needs
#   scripts/setup.sh bench   what `make bench` compares with, which it can do without
#
# On Debian and its relatives the packages are installed with apt-get, as root or with a sudo that
# asks nothing. Elsewhere the list is printed and the script fails. When nothing is missing it
# changes nothing, asks the network nothing, and takes a few milliseconds.
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

PATH=$PATH:/usr/sbin:/sbin # an ordinary user's may lack them

# One line per need: what to look for (a program on PATH, or a file) and the Debian package with it.
demo_needs='
bwrap                                bubblewrap
git                                  git
jq                                   jq
ps                                   procps
setsid                               util-linux
/etc/ssl/certs/ca-certificates.crt   ca-certificates
gcc                                  gcc
/usr/include/stdlib.h                libc6-dev
make                                 make
'
bench_needs=$demo_needs'
dockerd                              docker.io
/bin/busybox                         busybox-static
podman                               podman
conmon                               conmon
runc                                 runc
catatonit                            catatonit
'
test_needs=$bench_needs'
newuidmap                            uidmap
debootstrap                          debootstrap
musl-gcc                             musl-tools
/usr/share/zoneinfo/UTC              tzdata
npm                                  npm
sshd                                 openssh-server
ssh                                  openssh-client
/usr/lib/openssh/sftp-server         openssh-sftp-server
dropbear                             dropbear-bin
fish                                 fish
tcsh                                 tcsh
zsh                                  zsh
rsync                                rsync
sshfs                                sshfs
tc                                   iproute2
'

# missing NEEDS prints the packages that are not there.
missing() {
	local what package
	while read -r what package; do
		case $what in
		'') ;;
		/*) [ -e "$what" ] || echo "$package" ;;
		*) command -v "$what" >/dev/null || echo "$package" ;;
		esac
	done <<<"$1"
}

case ${1:-} in
demo) needs=$demo_needs ;;
test) needs=$test_needs ;;
bench) needs=$bench_needs ;;
*) die "usage: scripts/setup.sh demo|test|bench" ;;
esac

mapfile -t packages < <(missing "$needs")
[ ${#packages[@]} -gt 0 ] || exit 0

by_hand="please install by hand (Debian's names): ${packages[*]}"
command -v apt-get >/dev/null || die "this is no Debian-like system; $by_hand"
if [ "$(id -u)" -eq 0 ]; then
	root=()
elif sudo -n true 2>/dev/null; then
	root=(sudo -n)
else
	die "installing needs root; $by_hand"
fi

# Some packages bring a service, and starting that would change this machine's network. Debian's
# own switch keeps services from starting while a package is installed.
policy=/usr/sbin/policy-rc.d
said=$(mktemp)
cleanup() {
	[ -z "${policy_is_ours:-}" ] || "${root[@]}" rm -f "$policy"
	rm -f -- "$said"
}
trap cleanup EXIT
if [ ! -e "$policy" ]; then
	policy_is_ours=1
	printf '#!/bin/sh\nexit 101\n' | "${root[@]}" install -m 0755 /dev/stdin "$policy"
fi

say "installing: ${packages[*]}"
apt() {
	"${root[@]}" env DEBIAN_FRONTEND=noninteractive \
		apt-get -q -y -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@" </dev/null >"$said" 2>&1
}
install() { apt install --no-install-recommends "${packages[@]}"; }

# The package lists may never have been fetched, or be too old to fetch from. A repository of
# somebody else that fails to update is no reason to stop: the installation decides.
if ! install; then
	apt update || true
	if ! install; then
		tail -n 20 "$said" >&2
		die "apt-get could not install; $by_hand"
	fi
fi

mapfile -t packages < <(missing "$needs")
[ ${#packages[@]} -eq 0 ] || die "still missing after the installation; $by_hand"
