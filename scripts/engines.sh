# Sourced: starts what the tests run against, in a private directory, and stops it again.
#
#   engines_start    checks or starts every engine; fails with the reason when one does not work
#   engine_docker    starts a Docker engine to compare with, which nothing else needs
#   engines_stop     stops what was started, by process id, and removes the directory
#
# A server is started with engines_spawn, which keeps its process id and its log in the directory,
# so that nothing but our own processes is ever signalled.
# shellcheck shell=bash

engines_start() {
	ENGINES_DIR=$(mktemp -d "${TMPDIR:-/tmp}/berth-engines.XXXXXX")
	engine_bubblewrap
}

# engines_spawn NAME COMMAND... starts a server in the background.
engines_spawn() {
	local name=$1
	shift
	"$@" </dev/null >"$ENGINES_DIR/$name.log" 2>&1 &
	echo $! >"$ENGINES_DIR/$name.pid"
}

engines_stop() {
	local file pid
	[ -n "${ENGINES_DIR:-}" ] || return 0
	for file in "$ENGINES_DIR"/*.pid; do
		[ -e "$file" ] || continue
		pid=$(cat "$file")
		kill "$pid" 2>/dev/null || continue
		wait "$pid" 2>/dev/null || true
	done
	# What an engine has mounted below its data must not stop the removal, nor be reached by it.
	while read -r file; do
		umount -- "$file" || true
	done < <(awk -v dir="$ENGINES_DIR/" 'index($2, dir) == 1 { print $2 }' /proc/mounts | sort -r)
	rm -rf --one-file-system "$ENGINES_DIR"
	ENGINES_DIR=
}

# bubblewrap needs no server, only a kernel that lets this user make namespaces.
engine_bubblewrap() {
	local out
	if ! out=$(bwrap --unshare-all --die-with-parent --ro-bind / / --proc /proc --dev /dev true 2>&1 </dev/null); then
		echo "bubblewrap does not work here: $out" >&2
		echo "It needs user namespaces. On Debian see sysctl kernel.unprivileged_userns_clone and user.max_user_namespaces; on Ubuntu kernel.apparmor_restrict_unprivileged_userns; in a container the seccomp profile." >&2
		return 1
	fi
	echo "bubblewrap works: $(bwrap --version)"
}

# Docker: a daemon with its own data, socket and network settings, so that it neither sees nor
# changes anything of another one on this machine, and an image that is made of a static busybox.
# Sets DOCKER_SOCKET and DOCKER_IMAGE; fails with the reason when it cannot.
engine_docker() {
	local dir=$ENGINES_DIR/docker pid tries name
	DOCKER_SOCKET=$dir/socket DOCKER_IMAGE=berth-bench
	if [ "$(id -u)" -ne 0 ]; then
		echo "no Docker engine: starting one needs root"
		return 1
	fi
	for name in dockerd docker /bin/busybox; do
		command -v "$name" >/dev/null || {
			echo "no Docker engine: there is no $name"
			return 1
		}
	done
	mkdir -p "$dir/root/bin" "$dir/root/workspace"
	engines_spawn docker dockerd --host "unix://$DOCKER_SOCKET" --data-root "$dir/data" --exec-root "$dir/exec" \
		--pidfile "$dir/pid" --bridge none --iptables=false --ip-forward=false --ip-masq=false
	pid=$(cat "$ENGINES_DIR/docker.pid")
	for ((tries = 0; tries < 150; tries++)); do
		! docker -H "unix://$DOCKER_SOCKET" version >/dev/null 2>&1 || break
		if ! kill -0 "$pid" 2>/dev/null; then
			tries=150
			break
		fi
		sleep 0.2
	done
	if [ "$tries" -ge 150 ]; then
		echo "no Docker engine: it did not start: $(tail -n 1 "$ENGINES_DIR/docker.log")"
		return 1
	fi
	cp /bin/busybox "$dir/root/bin/busybox"
	for name in $("$dir/root/bin/busybox" --list); do
		[ "$name" = busybox ] || ln -s busybox "$dir/root/bin/$name"
	done
	tar -C "$dir/root" -c . | docker -H "unix://$DOCKER_SOCKET" import - "$DOCKER_IMAGE" >/dev/null || return
	if ! docker -H "unix://$DOCKER_SOCKET" run --rm --network none "$DOCKER_IMAGE" /bin/true; then
		echo "no Docker engine: it cannot run a container from /bin/busybox, which has to be a static one"
		return 1
	fi
	echo "docker works: $(docker -H "unix://$DOCKER_SOCKET" version --format 'engine {{.Server.Version}}, client {{.Client.Version}}')"
}
