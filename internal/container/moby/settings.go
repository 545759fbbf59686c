package moby

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	dockercontainer "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"

	"github.com/workberth/workberth/internal/container"
)

// logBytes bounds what the engine keeps of what a container's first process writes.
const logBytes = "1m"

// settings are a container in Docker's words.
func settings(s container.Spec) (*dockercontainer.Config, *dockercontainer.HostConfig, error) {
	withInit := !s.Attached
	config := &dockercontainer.Config{
		Image: s.Image, Labels: s.Labels, Env: s.Env, User: s.User, WorkingDir: s.Workdir, Hostname: s.Hostname,
		Entrypoint: s.Argv[:1], Cmd: s.Argv[1:],
		// Those of the image would have it probed, or mount what we did not ask for.
		Healthcheck: &dockercontainer.HealthConfig{Test: []string{"NONE"}},
	}
	host := &dockercontainer.HostConfig{
		LogConfig:      dockercontainer.LogConfig{Type: "json-file", Config: map[string]string{"max-size": logBytes, "max-file": "1"}},
		NetworkMode:    dockercontainer.NetworkMode(s.Network),
		RestartPolicy:  dockercontainer.RestartPolicy{Name: dockercontainer.RestartPolicyDisabled},
		CapDrop:        []string{"ALL"},
		CapAdd:         s.CapAdd,
		IpcMode:        "private",
		PidMode:        dockercontainer.PidMode(s.PidMode),
		Privileged:     s.Privileged,
		ReadonlyRootfs: s.ReadOnlyRoot,
		SecurityOpt:    security(s),
		Init:           &withInit,
		Tmpfs:          map[string]string{},
	}
	if s.Privileged {
		host.CapDrop = nil
	}
	if s.Attached {
		config.OpenStdin, config.StdinOnce = true, true
		config.AttachStdin, config.AttachStdout, config.AttachStderr = true, true, true
		host.LogConfig = dockercontainer.LogConfig{Type: "none"}
	}
	if s.Network == "none" {
		config.NetworkDisabled = false // "none" has a loopback of its own
	}
	for _, m := range s.Mounts {
		if err := addMount(host, m); err != nil {
			return nil, nil, err
		}
	}
	host.Resources = resources(s.Limits)
	if s.GPUs != "" {
		request, err := gpus(s.GPUs)
		if err != nil {
			return nil, nil, err
		}
		host.DeviceRequests = append(host.DeviceRequests, request)
	}
	return config, host, nil
}

// security are the options of confinement.
func security(s container.Spec) []string {
	var opts []string
	if !s.Privileged {
		opts = append(opts, "no-new-privileges")
	}
	switch {
	case s.Seccomp == nil: // the engine's own
	case *s.Seccomp == "":
		opts = append(opts, "seccomp=unconfined")
	default:
		opts = append(opts, "seccomp="+*s.Seccomp)
	}
	return opts
}

// addMount adds one mount.
func addMount(host *dockercontainer.HostConfig, m container.Mount) error {
	switch {
	case m.Volume != "":
		host.Mounts = append(host.Mounts, mount.Mount{
			Type: mount.TypeVolume, Source: m.Volume, Target: m.Target, ReadOnly: m.ReadOnly, VolumeOptions: &mount.VolumeOptions{NoCopy: true},
		})
	case m.Source == "":
		// The API's mounts permit no execution in memory on older engines; these do.
		host.Tmpfs[m.Target] = fmt.Sprintf("rw,nosuid,nodev,exec,size=%d,mode=%o,uid=%d,gid=%d", m.Size, m.Mode, m.UID, m.GID)
	case m.Relabel:
		if strings.Contains(m.Source+m.Target, ":") {
			return fmt.Errorf("bind %q to %q: a path with a colon cannot be given a label for SELinux", m.Source, m.Target)
		}
		mode := "rw"
		if m.ReadOnly {
			mode = "ro"
		}
		label := "z"
		if m.Private {
			label = "Z"
		}
		host.Binds = append(host.Binds, m.Source+":"+m.Target+":"+mode+","+label)
	default:
		host.Mounts = append(host.Mounts, mount.Mount{
			Type: mount.TypeBind, Source: m.Source, Target: m.Target, ReadOnly: m.ReadOnly,
			// What is mounted below a source would be writable there: it stays outside.
			BindOptions: &mount.BindOptions{Propagation: mount.PropagationRPrivate, NonRecursive: m.ReadOnly},
		})
	}
	return nil
}

// resources are the limits.
func resources(l container.Limits) dockercontainer.Resources {
	r := dockercontainer.Resources{Memory: l.MemoryBytes, MemorySwap: l.MemoryBytes, NanoCPUs: int64(l.CPUs * 1e9)}
	if l.Pids > 0 {
		r.PidsLimit = &l.Pids
	}
	for name, value := range map[string]int64{"nofile": l.OpenFiles, "fsize": l.FileSizeBytes} {
		if value > 0 {
			r.Ulimits = append(r.Ulimits, &dockercontainer.Ulimit{Name: name, Soft: value, Hard: value})
		}
	}
	return r
}

// gpus asks for graphics processors: all, or a number of them.
func gpus(want string) (dockercontainer.DeviceRequest, error) {
	r := dockercontainer.DeviceRequest{Count: -1, Capabilities: [][]string{{"gpu"}}}
	if want != "all" {
		n, err := strconv.Atoi(want)
		if err != nil || n <= 0 {
			return r, fmt.Errorf("gpus %q: write all, or a number", want)
		}
		r.Count = n
	}
	return r, nil
}

// kernelPaths are those that the engine makes read-only where it is not told which.
func kernelPaths() []string {
	return []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
}

// closeVolumes makes the volumes that the image declares read-only below a read-only root. The engine
// makes them for every container, where nothing else is mounted, and takes no mode for them.
func closeVolumes(host *dockercontainer.HostConfig, s container.Spec, places []string) {
	if !s.ReadOnlyRoot || s.Privileged {
		return
	}
	var open []string
	for _, place := range places {
		place = path.Clean("/" + place)
		if !slices.ContainsFunc(s.Mounts, func(m container.Mount) bool { return m.Target == place }) {
			open = append(open, place)
		}
	}
	if len(open) > 0 {
		host.ReadonlyPaths = append(kernelPaths(), open...)
	}
}
