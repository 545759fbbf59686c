package sandbox

import (
	"maps"
	"slices"
)

// DefaultPids is the process limit of DefaultConfig.
const DefaultPids = 2048

// DefaultTmpfsBytes is the size of a scratch mount that names none.
const DefaultTmpfsBytes = 64 << 20

// DefaultConfig is the hardened configuration everything starts from: the
// workspace read-write, no network, a read-only root, the default system call
// filter, at most DefaultPids processes, scratch space at /tmp, /var/tmp and
// /run, and nothing else of this machine.
//
// It has no memory or processor limit: without cgroups a memory limit is one on
// address space, which breaks programs that reserve much and use little. A
// backend whose engine accounts memory adds its own default to it.
//
// Whoever wants less (a writable root, no process limit) starts from it and
// clears what is not wanted; see ApplyDefaults.
func DefaultConfig() Config {
	return Config{
		Access:         AccessReadWrite,
		ReadOnlyRoot:   true,
		Tmpfs:          []Tmpfs{{Path: "/tmp", SizeBytes: 512 << 20}, {Path: "/var/tmp", SizeBytes: 256 << 20}, {Path: "/run", SizeBytes: DefaultTmpfsBytes}},
		Network:        "none",
		Limits:         Limits{Pids: DefaultPids},
		SeccompProfile: "default",
	}
}

// ApplyDefaults completes a configuration; applying it twice changes nothing.
//
// A configuration in which Access, Network or SeccompProfile is empty is
// incomplete: nobody has decided about it. Every zero field of it that
// DefaultConfig fills, ReadOnlyRoot and the process limit included, gets the
// hardened value. In a complete one a false ReadOnlyRoot, an empty Tmpfs and a
// zero limit are decisions and stay; only the size of a scratch mount is filled in.
// The argument and what it refers to are not changed.
func ApplyDefaults(c Config) Config {
	c.Tmpfs = slices.Clone(c.Tmpfs)
	c.Binds = slices.Clone(c.Binds)
	c.CapAdd = slices.Clone(c.CapAdd)
	c.AllowDangerous = slices.Clone(c.AllowDangerous)
	c.Env = maps.Clone(c.Env)
	if c.Access == "" || c.Network == "" || c.SeccompProfile == "" {
		d := DefaultConfig()
		fill(&c.Access, d.Access)
		fill(&c.Network, d.Network)
		fill(&c.SeccompProfile, d.SeccompProfile)
		fill(&c.ReadOnlyRoot, d.ReadOnlyRoot)
		fill(&c.Limits.Pids, d.Limits.Pids)
		if c.Tmpfs == nil {
			c.Tmpfs = d.Tmpfs
		}
	}
	for i := range c.Tmpfs {
		fill(&c.Tmpfs[i].SizeBytes, DefaultTmpfsBytes)
	}
	return c
}

// fill sets what is zero.
func fill[T comparable](v *T, to T) {
	var zero T
	if *v == zero {
		*v = to
	}
}
