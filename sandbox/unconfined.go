package sandbox

import "fmt"

// Unconfined is a backend that puts no walls around what runs, in the words of its refusals.
type Unconfined struct {
	// Backend is its name; Machine is where things run, as "this machine".
	Backend, Machine string
	// Binds and User say why there are no binds and no other user.
	Binds, User string
	// Instead is what to use for what is refused.
	Instead string
}

// The only values of these settings that can be kept without walls.
const (
	// NetworkHost is the network of the machine itself.
	NetworkHost = "host"
	// SeccompUnconfined is no filter of system calls.
	SeccompUnconfined = "unconfined"
)

// Refuse says what cannot be kept without walls, before anything is created.
func (u Unconfined) Refuse(c Config) error {
	no := func(field, what, rule string) error {
		return &Problem{
			Field: field, What: what, Rule: rule + ", and " + u.Backend + " confines nothing",
			Remedy: "leave it out for " + u.Backend + ", or " + u.Instead, Err: ErrRefused,
		}
	}
	files := "commands see " + u.Machine + "'s files"
	l := c.Limits
	switch {
	case c.Access != AccessReadWrite:
		return no("access", fmt.Sprintf("access %q", c.Access), "only walls can hide or protect the workspace")
	case c.Network != NetworkHost:
		return no("network", fmt.Sprintf("network %q", c.Network), "commands have "+u.Machine+"'s network")
	case c.SeccompProfile != SeccompUnconfined:
		return no("seccompProfile", fmt.Sprintf("profile %q", c.SeccompProfile), "there is no system call filter")
	case c.ReadOnlyRoot:
		return no("readOnlyRoot", "a read-only root", files)
	case len(c.Tmpfs) > 0:
		return no("tmpfs", fmt.Sprintf("a tmpfs at %q", c.Tmpfs[0].Path), files)
	case len(c.Binds) > 0:
		return no("binds", fmt.Sprintf("a bind to %q", c.Binds[0].Target), u.Binds)
	case c.User != "":
		return no("user", fmt.Sprintf("user %q", c.User), u.User)
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
