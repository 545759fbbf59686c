# Sourced by engines.sh: a Docker engine with its own containerd, data, socket and settings. No
# bridge, and no rule for packets, is made.
# shellcheck shell=bash

engine_docker() {
	local dir=$ENGINES_DIR/docker server client reason
	if ! reason=$(engines_need root dockerd containerd docker); then
		echo "no docker: $reason"
		return 1
	fi
	mkdir -p "$dir"
	echo '{}' >"$dir/daemon.json"
	printf 'version = 2\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n' >"$dir/containerd.toml"
	engines_spawn docker containerd --config "$dir/containerd.toml" --root "$dir/containerd" \
		--state "$dir/containerd-state" --address "$dir/containerd.socket"
	engines_spawn docker dockerd --config-file "$dir/daemon.json" --containerd "$dir/containerd.socket" \
		--host "unix://$dir/socket" --data-root "$dir/data" --exec-root "$dir/exec" --pidfile "$dir/pid" \
		--bridge none --iptables=false --ip-forward=false --ip-masq=false
	client=(docker --host "unix://$dir/socket")
	if ! reason=$(engines_await "$server" docker "${client[@]}" version && engines_try "${client[@]}"); then
		echo "no docker: $reason"
		return 1
	fi
	echo "docker works: $("${client[@]}" version --format 'engine {{.Server.Version}}, client {{.Client.Version}}')"
}
