package local

import (
	"fmt"

	"github.com/workberth/workberth/sandbox"
)

// The only values of these settings that can be kept without walls.
const (
	networkHost = "host"
	unconfined  = "unconfined"
)

// refuse says what cannot be kept, before anything is created.
func refuse(c sandbox.Config) error {
	no := func(field, what, rule string) error {
		return &sandbox.Problem{
			Field: field, What: what, Rule: rule + ", and local confines nothing",
			Remedy: "leave it out for local, or use --backend bubblewrap", Err: sandbox.ErrRefused,
		}
	}
	l := c.Limits
	switch {
	case c.Access != sandbox.AccessReadWrite:
		return no("access", fmt.Sprintf("access %q", c.Access), "only walls can hide or protect the workspace")
	case c.Network != networkHost:
		return no("network", fmt.Sprintf("network %q", c.Network), "commands have this machine's network")
	case c.SeccompProfile != unconfined:
		return no("seccompProfile", fmt.Sprintf("profile %q", c.SeccompProfile), "there is no system call filter")
	case c.ReadOnlyRoot:
		return no("readOnlyRoot", "a read-only root", "commands see this machine's files")
	case len(c.Tmpfs) > 0:
		return no("tmpfs", fmt.Sprintf("a tmpfs at %q", c.Tmpfs[0].Path), "commands see this machine's files")
	case len(c.Binds) > 0:
		return no("binds", fmt.Sprintf("a bind to %q", c.Binds[0].Target), "commands see this machine's files")
	case c.User != "":
		return no("user", fmt.Sprintf("user %q", c.User), "commands run as the user of this process")
	case l.Pids > 0:
		return no("limits", fmt.Sprintf("pids %d", l.Pids), "nothing counts the processes")
	case l.MemoryBytes > 0:
		return no("limits", fmt.Sprintf("memory %d", l.MemoryBytes), "nothing counts the memory")
	case l.CPUs > 0:
		return no("limits", fmt.Sprintf("cpus %v", l.CPUs), "nothing counts the processor time")
	case c.Engine != "", c.Image != "", c.Privileged, c.PidMode != "", len(c.CapAdd) > 0, c.GPUs != "":
		return no("image", "a setting of containers", "there is none")
	}
	return nil
}
