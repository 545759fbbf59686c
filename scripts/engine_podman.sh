# Sourced by engines.sh: three Podman services, each with its own storage, state, locks and settings.
# shellcheck shell=bash

# This machine's Podman, as root.
engine_podman() {
	local dir=$ENGINES_DIR/podman server podman reason
	if ! reason=$(engines_need root podman conmon runc); then
		echo "no podman: $reason"
		return 1
	fi
	podman_settings "$dir" runc "$(podman_driver)" file
	engines_spawn podman "${podman[@]}"
	podman_works podman
}

# Debian 13's Podman, as root: in its own root file system, and in a mount namespace, so that what is
# mounted for it is seen by nobody else and goes away with it. crun, its usual runtime, refuses control
# groups of both versions at once; without sight of the second it works.
engine_podman5() {
	local dir=$ENGINES_DIR/podman5 root=$ROOT/.cache/podman5 server podman reason runtime inside
	if ! reason=$(engines_need root podman debootstrap unshare && scripts/images.sh podman5 2>&1); then
		echo "no podman5: $reason"
		return 1
	fi
	# shellcheck disable=SC2016 # the other shell expands it
	inside='
		set -e
		root=$1 visible=$2
		shift 2
		mount --bind "$root" "$root"
		while read -r path; do
			mkdir -p "$root$path"
			mount --rbind "$path" "$root$path"
		done <<<"$visible"
		mount -t tmpfs tmpfs "$root/run"
		mount -t tmpfs tmpfs "$root/dev/shm"
		! mountpoint -q "$root/sys/fs/cgroup/unified" || umount "$root/sys/fs/cgroup/unified"
		cd "$root"
		pivot_root . mnt
		umount --lazy /mnt
		exec chroot / "$@"'
	for runtime in crun runc; do
		podman_settings "$dir" "$runtime" "$(podman_driver)" shm
		engines_spawn podman5 unshare --mount --propagation slave -- bash -c "$inside" podman5 "$root" \
			"$(podman_visible)" "${podman[@]}"
		! podman_works podman5 || return 0
		kill "$server"
		wait "$server"
	done
	return 1
}

# podman_visible prints the directories that Podman 5 sees at the same place as everybody.
podman_visible() {
	printf '%s\n' /tmp /var/tmp "${TMPDIR:-/tmp}" "$ROOT" | sort -u
	printf '%s\n' /proc /sys /dev
}

# This machine's Podman as an ordinary user. Root runs it as a user who exists only in the service's
# mount namespace, with user and group ids of its own for what is in the containers.
engine_podman_rootless() {
	local dir=$ENGINES_DIR/podman_rootless server podman reason uid inside
	if ! reason=$(engines_need podman conmon runc unshare setpriv newuidmap); then
		echo "no rootless podman: $reason"
		return 1
	fi
	uid=$(id -u)
	podman_settings "$dir" runc vfs "$([ "$uid" -eq 0 ] && echo shm || echo file)"
	mkdir -p "$dir/home"
	podman=(env -i "PATH=$PATH" "HOME=$dir/home" "XDG_RUNTIME_DIR=$dir/run" "${podman[@]}")
	mkdir -m 0700 "$dir/run"
	if [ "$uid" -ne 0 ]; then
		echo "$uid" >"$dir/uid"
		engines_spawn podman_rootless "${podman[@]}"
		podman_works podman_rootless
		return
	fi
	uid=54321
	while getent passwd "$uid" >/dev/null || [ -n "$(ps -o pid= -u "$uid")" ]; do uid=$((uid + 1)); done
	chown -R "$uid:$uid" "$dir"
	echo "$uid" >"$dir/uid"
	# The whole directory: a file that is mounted over another loses its place when somebody renames a
	# new one over that, as every program does that adds a user.
	cp -a /etc "$dir/etc"
	echo "berth-rootless:x:$uid:$uid::$dir/home:/bin/sh" >>"$dir/etc/passwd"
	echo "berth-rootless:x:$uid:" >>"$dir/etc/group"
	echo "berth-rootless:200000000:65536" | tee "$dir/etc/subuid" >"$dir/etc/subgid"
	# shellcheck disable=SC2016 # the other shell expands it
	inside='
		set -e
		dir=$1 uid=$2
		shift 2
		mount --bind "$dir/etc" /etc
		mount -t tmpfs tmpfs /dev/shm
		cd /
		exec setpriv --reuid "$uid" --regid "$uid" --clear-groups "$@"'
	engines_spawn podman_rootless unshare --mount --propagation slave -- bash -c "$inside" podman_rootless "$dir" "$uid" "${podman[@]}"
	podman_works podman_rootless
}

# podman_driver prints the storage driver for root: overlay cannot be stacked on itself.
podman_driver() {
	case $(stat -f -c %T "$ENGINES_DIR") in
	overlay*) echo vfs ;;
	*) echo overlay ;;
	esac
}

# podman_settings DIR RUNTIME DRIVER LOCKS writes the settings of a service and sets podman, its command line.
# Locks of kind shm are in /dev/shm under a name that all services share which see the same one.
podman_settings() {
	local dir=$1 files processes most
	# Podman's own defaults are above what this process may give.
	files=$(ulimit -Hn) processes=$(ulimit -Hu)
	[ "$files" != unlimited ] || files=1048576
	# A service does not keep more processes for itself than there can be.
	read -r most </proc/sys/kernel/pid_max
	[ "$processes" != unlimited ] && [ "$processes" -lt "$most" ] || processes=$most
	mkdir -p "$dir/tmp"
	cat >"$dir/containers.conf" <<-CONF
		[containers]
		default_ulimits = ["nofile=$files:$files", "nproc=$processes:$processes"]
		log_driver = "k8s-file"
		[engine]
		runtime = "$2"
		cgroup_manager = "cgroupfs"
		events_logger = "file"
		lock_type = "$4"
		image_copy_tmp_dir = "$dir/tmp"
		[network]
		network_config_dir = "$dir/networks"
	CONF
	printf '[storage]\ndriver = "%s"\ngraphroot = "%s"\nrunroot = "%s"\n' "$3" "$dir/root" "$dir/runroot" >"$dir/storage.conf"
	echo 'unqualified-search-registries = []' >"$dir/registries.conf"
	podman=(env "CONTAINERS_CONF=$dir/containers.conf" "CONTAINERS_STORAGE_CONF=$dir/storage.conf"
		"CONTAINERS_REGISTRIES_CONF=$dir/registries.conf" "TMPDIR=$dir/tmp"
		podman --root "$dir/root" --runroot "$dir/runroot" --tmpdir "$dir/state" --storage-driver "$3"
		system service --time=0 "unix://$dir/socket")
}

# podman_client NAME sets client to the command line that asks a service.
podman_client() {
	mkdir -p "$ENGINES_DIR/client"
	client=(env "HOME=$ENGINES_DIR/client" "XDG_RUNTIME_DIR=$ENGINES_DIR/client" "CONTAINERS_CONF=$ENGINES_DIR/$1/containers.conf"
		podman --remote --url "unix://$ENGINES_DIR/$1/socket")
}

# podman_works NAME waits for a service, whose process is server, and runs a container with it.
podman_works() {
	local client reason
	podman_client "$1"
	if ! reason=$(engines_await "$server" "$1" "${client[@]}" version && engines_try "${client[@]}"); then
		echo "no $1: $reason"
		return 1
	fi
	echo "$1 works: $("${client[@]}" version --format 'engine {{.Server.Version}}, client {{.Client.Version}}')"
}
