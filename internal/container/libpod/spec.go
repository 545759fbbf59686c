package libpod

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/workberth/workberth/internal/container"
)

const (
	// maxLog bounds the file with a container's output, in bytes.
	maxLog = 4 << 20
	// cpuPeriod is the time over which processor time is counted, in microseconds.
	cpuPeriod = 100_000
	// unconfined is the seccomp profile that permits everything.
	unconfined = "unconfined"
)

// surroundings is what a container's description depends on beside its Spec.
type surroundings struct {
	// network is the mode of the engine's usual network.
	network string
	// seccomp is the file of the profile, on the engine's machine; empty for the engine's default.
	seccomp string
	peer    peerLimits
	// bound: the limits of peer are named in any case.
	bound bool
}

// generator writes a Spec in Podman's words.
func generator(s container.Spec, around surroundings) (*SpecGenerator, error) {
	if len(s.Argv) == 0 || s.Argv[0] == "" {
		return nil, fmt.Errorf("create container %s: no command", s.Name)
	}
	g := &SpecGenerator{
		Name: s.Name, Image: s.Image, Labels: s.Labels,
		// An entrypoint takes the place of the image's, and its command goes with it.
		Entrypoint: s.Argv, Command: []string{},
		User: s.User, WorkDir: s.Workdir, Hostname: s.Hostname,
		// This driver's files belong to the container, can be read on every engine, and are bounded.
		LogConfiguration: LogConfig{Driver: "k8s-file", Size: maxLog},
		RestartPolicy:    "no", Systemd: "false", SdNotifyMode: "ignore",
		HealthConfig:    Schema2HealthConfig{Test: []string{"NONE"}},
		ImageVolumeMode: "ignore", ReadOnlyFilesystem: s.ReadOnlyRoot,
		PidNS: private(), UtsNS: private(), IpcNS: private(), CgroupNS: private(),
		UserNS:          Namespace{NSMode: "host"},
		NoNewPrivileges: true, Privileged: s.Privileged,
		SeccompProfilePath: around.seccomp,
		// An init needs a process tree of its own.
		Init:           s.PidMode == "" && !s.Attached,
		ResourceLimits: resources(s.Limits), Rlimits: rlimits(s.Limits, around.peer, around.bound),
	}
	if !s.Privileged {
		g.CapDrop, g.CapAdd = []string{"ALL"}, s.CapAdd
	}
	if s.KeepID {
		g.UserNS.NSMode = "keep-id"
	}
	switch s.PidMode {
	case "":
	case "host":
		g.PidNS.NSMode = "host"
	default:
		return nil, fmt.Errorf("create container %s: %q is no process namespace", s.Name, s.PidMode)
	}
	var err error
	if g.Env, err = environment(s); err != nil {
		return nil, err
	}
	g.NetNS, g.Networks = network(s.Network, around.network)
	if s.Attached {
		g.Stdin, g.LogConfiguration = true, LogConfig{Driver: "none"}
	}
	for _, m := range s.Mounts {
		if m.Volume != "" {
			g.Volumes = append(g.Volumes, volume(m))
			continue
		}
		g.Mounts = append(g.Mounts, mount(m))
	}
	if s.ReadOnlyRoot && !slices.ContainsFunc(s.Mounts, func(m container.Mount) bool { return m.Target == "/dev/shm" }) {
		g.Mounts = append(g.Mounts, sharedMemory())
	}
	g.Devices, err = gpus(s)
	return g, err
}

func private() Namespace { return Namespace{NSMode: "private"} }

// environment makes a table of NAME=VALUE; the last of a name counts.
func environment(s container.Spec) (map[string]string, error) {
	env := make(map[string]string, len(s.Env))
	for _, entry := range s.Env {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("create container %s: the entry %q of its environment is not NAME=VALUE", s.Name, entry)
		}
		env[name] = value
	}
	return env, nil
}

// network says which network a container is in.
func network(asked, usual string) (Namespace, map[string]PerNetworkOptions) {
	switch asked {
	case "", "none":
		return Namespace{NSMode: "none"}, nil
	case "host":
		return Namespace{NSMode: "host"}, nil
	case "bridge":
		return Namespace{NSMode: usual}, nil
	default:
		return Namespace{NSMode: "bridge"}, map[string]PerNetworkOptions{asked: {}}
	}
}

// mount writes a mount in the words of the OCI. What can be left to a default of the engine, and
// is not, has changed between its versions.
func mount(m container.Mount) Mount {
	// What is mounted below a source comes along, but not read-only: there it must stay outside.
	bind, access := "rbind", "rw"
	if m.ReadOnly {
		bind, access = "bind", "ro"
	}
	if m.Source != "" {
		options := []string{bind, access, "rprivate"}
		switch {
		case m.Relabel && m.Private:
			options = append(options, "Z")
		case m.Relabel:
			options = append(options, "z")
		}
		return Mount{Destination: m.Target, Type: "bind", Source: m.Source, Options: options}
	}
	// notmpcopyup: without what the image has at this place.
	options := []string{access, "nosuid", "nodev", "exec", "notmpcopyup"}
	if m.Size > 0 {
		options = append(options, "size="+strconv.FormatInt(m.Size, 10))
	}
	if m.UID != 0 || m.GID != 0 {
		options = append(options, "U") // it belongs to the container's user, in these engines' words
	}
	if m.Mode != 0 {
		options = append(options, fmt.Sprintf("mode=%04o", m.Mode))
	}
	return Mount{Destination: m.Target, Type: "tmpfs", Source: "tmpfs", Options: options}
}

// volume writes the mount of a volume. It takes nothing over from the image.
func volume(m container.Mount) NamedVolume {
	access := "rw"
	if m.ReadOnly {
		access = "ro"
	}
	return NamedVolume{Name: m.Volume, Dest: m.Target, Options: []string{access, "nocopy"}}
}

// sharedMemory is where programs share memory. Podman 5 makes its own one read-only when it is to
// add nothing writable to a read-only root.
func sharedMemory() Mount {
	return Mount{
		Destination: "/dev/shm", Type: "tmpfs", Source: "tmpfs",
		Options: []string{"rw", "nosuid", "nodev", "noexec", "notmpcopyup", "size=67108864", "mode=1777"},
	}
}

// maxGPUs bounds how many are asked for by number.
const maxGPUs = 64

// gpus names graphics processors as the Container Device Interface does.
func gpus(s container.Spec) ([]LinuxDevice, error) {
	const vendor = "nvidia.com/gpu="
	switch s.GPUs {
	case "":
		return nil, nil
	case "all":
		return []LinuxDevice{{Path: vendor + "all"}}, nil
	}
	n, err := strconv.Atoi(s.GPUs)
	if err != nil || n < 1 || n > maxGPUs {
		return nil, fmt.Errorf("create container %s: %q is no number of GPUs: use all, or 1 to %d", s.Name, s.GPUs, maxGPUs)
	}
	devices := make([]LinuxDevice, n)
	for i := range devices {
		devices[i].Path = vendor + strconv.Itoa(i)
	}
	return devices, nil
}

// resources are the limits that control groups keep.
func resources(l container.Limits) LinuxResources {
	r := LinuxResources{Pids: LinuxPids{Limit: -1}}
	if l.Pids > 0 {
		r.Pids.Limit = l.Pids
	}
	if l.MemoryBytes > 0 {
		r.Memory = &LinuxMemory{Limit: l.MemoryBytes, Swap: l.MemoryBytes}
	}
	if l.CPUs > 0 {
		// The kernel takes no quota below a millisecond.
		r.CPU = &LinuxCPU{Quota: max(int64(l.CPUs*cpuPeriod), 1000), Period: cpuPeriod}
	}
	return r
}

// What Podman sets where nothing else is said.
const (
	podmanOpenFiles = 1 << 20
	podmanProcesses = 1 << 22
)

// rlimits are the limits of each process. Podman sets fixed numbers for open files and processes,
// which an engine without the right to raise its own limits cannot: they are named, no higher than the
// engine's own, where one of ours is given or always.
func rlimits(l container.Limits, peer peerLimits, always bool) []POSIXRlimit {
	if l.OpenFiles <= 0 && l.FileSizeBytes <= 0 && !always {
		return nil
	}
	var limits []POSIXRlimit
	add := func(kind string, n uint64) {
		if n > 0 {
			limits = append(limits, POSIXRlimit{Type: kind, Hard: n, Soft: n})
		}
	}
	if l.FileSizeBytes > 0 {
		add("fsize", uint64(l.FileSizeBytes))
	}
	if l.OpenFiles > 0 {
		add("nofile", uint64(l.OpenFiles))
	} else {
		add("nofile", min(peer.openFiles, podmanOpenFiles))
	}
	add("nproc", min(peer.processes, podmanProcesses))
	return limits
}
