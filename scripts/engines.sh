# Sourced: starts what the tests run against, in a private directory, and stops it again.
#
#   engines_start    checks or starts every engine; fails with the reason when one does not work
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
	rm -rf "$ENGINES_DIR"
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
