# Sourced: starts what the tests run against, in a private directory, and stops it again.
#
#   engines_start [NAME...]   checks or starts engines, all of them or these, at the same time
#   engines_stop              ends them with everything that they left, and removes the directory
#
#   bubblewrap        needs no server; engines_start fails when it does not work
#   docker            BERTH_TEST_DOCKER=unix://SOCKET
#   podman            BERTH_TEST_PODMAN=unix://SOCKET, this machine's Podman
#   podman5           BERTH_TEST_PODMAN5=unix://SOCKET, Debian 13's Podman in a root file system of its
#                     own. It sees /proc, /sys, /dev, /tmp, $TMPDIR and this repository where they are
#   podman_rootless   BERTH_TEST_PODMAN_ROOTLESS=unix://SOCKET and BERTH_TEST_PODMAN_ROOTLESS_USER=UID, this
#                     machine's Podman as an ordinary user
#   images            BERTH_TEST_IMAGES=DIR, see scripts/images.sh
#
# An engine that cannot be had here is told with the reason, and its variable is not set: a test that
# needs it is skipped, or fails where BERTH_REQUIRE_ENGINES=1. In every engine there is an image
# $ENGINES_IMAGE with busybox, which has been run once.
#
# No engine sees or changes anything of another one on this machine: data, sockets and
# settings are below $ENGINES_DIR, no network is set up, and only what belongs to that directory is
# ever signalled.
# shellcheck shell=bash

PATH=$PATH:/usr/sbin:/sbin # an ordinary user's may lack them

# shellcheck source=scripts/engine_docker.sh
. "$ROOT/scripts/engine_docker.sh"
# shellcheck source=scripts/engine_podman.sh
. "$ROOT/scripts/engine_podman.sh"

ENGINES_IMAGE=berth-busybox
ENGINES_JOBS=()
ENGINES_MISSING=() # what does not run, with the reason

engines_start() {
	local name
	[ $# -gt 0 ] || set -- bubblewrap docker podman podman5 podman_rootless images
	if [ -z "${ENGINES_DIR:-}" ]; then
		ENGINES_DIR=$(mktemp -d "${TMPDIR:-/tmp}/berth-engines.XXXXXX")
		chmod 711 "$ENGINES_DIR" # one of the engines runs as somebody else
	fi
	case " $* " in
	*' podman5 '* | *' images '*)
		[ -e "$ROOT/.cache/images/debian.tar" ] || echo "making root file systems in .cache, once: a minute or two"
		;;
	esac
	# A group of processes for each, so that one that is still being prepared ends as a whole.
	set -m
	for name in "$@"; do
		engines_job "$name" </dev/null >"$ENGINES_DIR/$name.log" 2>&1 &
		ENGINES_JOBS+=($!)
	done
	set +m
	for name in "$@"; do
		until [ -e "$ENGINES_DIR/$name.state" ]; do sleep 0.1; done
		cat "$ENGINES_DIR/$name.said"
		case $(cat "$ENGINES_DIR/$name.state") in
		up) engines_export "$name" ;;
		*) ENGINES_MISSING+=("$(cat "$ENGINES_DIR/$name.said")") ;;
		esac
	done
	[ "$(cat "$ENGINES_DIR/bubblewrap.state" 2>/dev/null)" != down ]
}

engines_export() {
	local socket=unix://$ENGINES_DIR/$1/socket
	case $1 in
	docker) export BERTH_TEST_DOCKER=$socket ;;
	podman) export BERTH_TEST_PODMAN=$socket ;;
	podman5) export BERTH_TEST_PODMAN5=$socket ;;
	podman_rootless)
		export BERTH_TEST_PODMAN_ROOTLESS=$socket
		BERTH_TEST_PODMAN_ROOTLESS_USER=$(cat "$ENGINES_DIR/$1/uid")
		export BERTH_TEST_PODMAN_ROOTLESS_USER
		;;
	images) export BERTH_TEST_IMAGES=$ROOT/.cache/images ;;
	esac
}

# engines_job NAME is a background process: it starts an engine, notes how that went, and stays
# until the engine's servers have ended.
engines_job() {
	local state=down begin=$SECONDS
	set +m +e
	! "engine_$1" >"$ENGINES_DIR/$1.said" || state=up
	sed -i "1s/\$/ ($(seconds_since "$begin"))/" "$ENGINES_DIR/$1.said"
	echo $state >"$ENGINES_DIR/$1.part"
	mv "$ENGINES_DIR/$1.part" "$ENGINES_DIR/$1.state"
	wait
}

# engines_stop may be called at any time, also twice.
engines_stop() {
	local - job jobs tries path left
	[ -n "${ENGINES_DIR:-}" ] || return 0
	set +e
	trap : HUP INT TERM # a second signal must not stop this halfway
	engines_clear
	# Only a group whose first process is still there is certain to be ours.
	jobs -pr >"$ENGINES_DIR/running"
	mapfile -t jobs < <(printf '%s\n' "${ENGINES_JOBS[@]}" | grep -Fx -f "$ENGINES_DIR/running")
	for job in "${jobs[@]}"; do kill -TERM -- "-$job" || true; done
	for job in "${jobs[@]}"; do
		for ((tries = 0; tries < 100; tries++)); do
			kill -0 -- "-$job" || break
			sleep 0.1
		done
		[ "$tries" -lt 100 ] || kill -KILL -- "-$job" || true
		wait "$job" || true
	done
	ENGINES_JOBS=()
	for ((tries = 0; tries < 50; tries++)); do
		mapfile -t left < <(engines_left)
		[ ${#left[@]} -gt 0 ] || break
		kill -KILL "${left[@]}" || true
		sleep 0.1
	done
	# What an engine has mounted below its data must not stop the removal, nor be reached by it.
	while read -r path; do
		umount -- "$path" || umount --lazy -- "$path" || true
	done < <(awk -v dir="$ENGINES_DIR/" 'index($2, dir) == 1 { print $2 }' /proc/mounts | sort -r)
	rm -rf --one-file-system "$ENGINES_DIR"
	ENGINES_DIR=
	trap - HUP INT TERM
} 2>/dev/null

# engines_clear has the engines remove their containers, which also gives back their control groups.
engines_clear() {
	local socket name client clearing=()
	for socket in "$ENGINES_DIR"/*/socket; do
		[ -S "$socket" ] || continue
		name=$(basename "$(dirname "$socket")")
		case $name in
		docker) docker -H "unix://$socket" ps -aq | timeout 20 xargs -r docker -H "unix://$socket" rm -f ;;
		*)
			podman_client "$name"
			timeout 20 "${client[@]}" rm --all --force --time 0
			;;
		esac >/dev/null &
		clearing+=($!)
	done
	[ ${#clearing[@]} -eq 0 ] || wait "${clearing[@]}" || true
}

# engines_left prints the processes that belong to our engines: their servers and helpers, whose
# command line names our directory; what rootless Podman keeps its namespaces with; and whatever has
# its root directory, or its user file, from there, in a mount namespace other than this one.
engines_left() {
	local process ours
	ours=$(readlink /proc/self/ns/mnt)
	for process in /proc/[0-9]*; do
		case $(cat "$process/comm") in
		dockerd | containerd* | runc* | crun | conmon | podman)
			! tr '\0' '\n' <"$process/cmdline" | grep -qF -- "$ENGINES_DIR/" || echo "${process#/proc/}"
			;;
		catatonit)
			! grep -qsxF "${process#/proc/}" "$ENGINES_DIR"/*/state/pause.pid || echo "${process#/proc/}"
			;;
		esac
		if [ "$(readlink "$process/ns/mnt")" != "$ours" ] &&
			awk -v dir="$ENGINES_DIR/" '($5 == "/" || $5 == "/etc/passwd") && index($0, dir) { found = 1 } END { exit !found }' "$process/mountinfo"; then
			echo "${process#/proc/}"
		fi
	done | sort -u
}

# engines_need root|NAME... says which of these programs, or rights, are missing.
engines_need() {
	local what
	for what in "$@"; do
		case $what in
		root) [ "$(id -u)" -eq 0 ] || {
			echo "it needs root"
			return 1
		} ;;
		*) command -v "$what" >/dev/null || {
			echo "there is no $what"
			return 1
		} ;;
		esac
	done
}

# engines_spawn NAME COMMAND... starts a server in the background and sets server, its process id.
engines_spawn() {
	local name=$1
	shift
	# What an engine leaves where it stands must not be the project.
	(cd -- "$ENGINES_DIR" && exec "$@") </dev/null >>"$ENGINES_DIR/$name.log" 2>&1 &
	server=$!
}

# engines_await SERVER LOG COMMAND... waits until a command succeeds, which asks a server whether it
# is ready. It gives up when the server has ended, or after a minute.
engines_await() {
	local server=$1 log=$ENGINES_DIR/$2.log end=$((SECONDS + 60))
	shift 2
	until timeout 10 "$@" >/dev/null 2>&1; do
		if ! kill -0 "$server" 2>/dev/null; then
			echo "it ended: $(tail -n 3 "$log")"
			return 1
		elif [ $SECONDS -gt $end ]; then
			echo "it did not answer within a minute: $(tail -n 3 "$log")"
			return 1
		fi
		sleep 0.1
	done
}

# engines_try CLIENT... imports the busybox image by a client program and runs it, hardened and with
# the engine's own init: a container that sees no process but its own.
engines_try() {
	local said
	scripts/images.sh busybox || return
	if ! said=$("$@" import "$ROOT/.cache/images/busybox.tar" "$ENGINES_IMAGE" 2>&1) ||
		! said=$("$@" run --rm --init --network none --read-only --cap-drop ALL "$ENGINES_IMAGE" \
			sh -c 'set -- /proc/[0-9]*; [ $# -lt 5 ] || { echo "it sees $# processes"; exit 1; }' 2>&1); then
		echo "it cannot run a container: $said"
		return 1
	fi
}

# bubblewrap needs only a kernel that lets this user make namespaces.
engine_bubblewrap() {
	local out
	if ! out=$(bwrap --unshare-all --die-with-parent --ro-bind / / --proc /proc --dev /dev true 2>&1 </dev/null); then
		echo "bubblewrap does not work here: $out"
		echo "It needs user namespaces. On Debian see sysctl kernel.unprivileged_userns_clone and user.max_user_namespaces; on Ubuntu kernel.apparmor_restrict_unprivileged_userns; in a container the seccomp profile."
		return 1
	fi
	echo "bubblewrap works: $(bwrap --version)"
}

engine_images() {
	local names=(busybox scratch musl distroless)
	[ "$(id -u)" -ne 0 ] || names+=(debian)
	if ! scripts/images.sh "${names[@]}" 2>&1; then
		echo "no images"
		return 1
	fi
	echo "images: ${names[*]}"
}
