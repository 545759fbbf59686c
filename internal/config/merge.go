package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/workberth/workberth/sandbox"
)

// merger applies layers to an Effective and records sources.
type merger struct {
	file *File
	eff  *Effective
}

func (m *merger) set(name string, v any, source string) {
	m.eff.values[name] = v
	m.eff.sources[name] = source
}

// at is the source of a value of the file.
func (m *merger) at(keys ...string) string {
	return fmt.Sprintf("%s:%d", m.file.Path, m.file.line(keys...))
}

// str takes a string of the file. where are the keys of the enclosing map.
func (m *merger) str(dst, src *string, name string, where ...string) {
	take(m, dst, src, name, where)
}

// outer takes a value of the environment or of a flag; empty says nothing.
func (m *merger) outer(dst *string, v, name, source string) {
	if v == "" {
		return
	}
	*dst = v
	m.set(name, v, source)
}

// take copies *src to *dst when src is set.
func take[T any](m *merger, dst, src *T, name string, where []string) {
	if src == nil {
		return
	}
	*dst = *src
	m.set(name, *src, m.at(append(slices.Clone(where), strings.Split(name, ".")...)...))
}

// defaults records the built-in configuration.
func (m *merger) defaults(c sandbox.Config) {
	m.eff.Config = c
	for name, v := range map[string]any{
		"workdir": c.Workdir, "access": c.Access, "readOnlyRoot": c.ReadOnlyRoot, "tmpfs": c.Tmpfs, "network": c.Network,
		"setupCommand": c.SetupCommand, "binds": c.Binds, "seccompProfile": c.SeccompProfile, "user": c.User,
		"limits.pids": c.Limits.Pids, "limits.memory": c.Limits.MemoryBytes, "limits.cpus": c.Limits.CPUs,
		"limits.openFiles": c.Limits.OpenFiles, "limits.fileSize": c.Limits.FileSizeBytes,
		"prune.idleHours": c.Prune.IdleHours, "prune.maxAgeDays": c.Prune.MaxAgeDays, "allowDangerous": c.AllowDangerous,
	} {
		m.set(name, v, SourceDefault)
	}
	m.eff.Config.Env = maps.Clone(c.Env)
	for k, v := range c.Env {
		m.set("env."+k, v, SourceDefault)
	}
}

// layer applies one layer of the file. where are the keys that lead to it.
func (m *merger) layer(l Layer, where ...string) {
	c := &m.eff.Config
	take(m, &c.Workdir, l.Workdir, "workdir", where)
	take(m, &c.Access, (*sandbox.Access)(l.Access), "access", where)
	take(m, &c.ReadOnlyRoot, l.ReadOnlyRoot, "readOnlyRoot", where)
	take(m, &c.Network, l.Network, "network", where)
	take(m, &c.SetupCommand, l.SetupCommand, "setupCommand", where)
	take(m, &c.SeccompProfile, l.SeccompProfile, "seccompProfile", where)
	take(m, &c.User, l.User, "user", where)
	take(m, &c.Engine, l.Engine, "engine", where)
	take(m, &c.Image, l.Image, "image", where)
	take(m, &c.Privileged, l.Privileged, "privileged", where)
	take(m, &c.PidMode, l.PidMode, "pidMode", where)
	take(m, &c.GPUs, l.GPUs, "gpus", where)
	take(m, &c.SSH, l.SSH, "ssh", where)
	take(m, &c.SSHConfig, l.SSHConfig, "sshConfig", where)
	take(m, &c.Seed, l.Seed, "seed", where)
	take(m, &c.CapAdd, l.CapAdd, "capAdd", where)
	take(m, &c.AllowDangerous, l.AllowDangerous, "allowDangerous", where)
	if l.Tmpfs != nil {
		mounts := make([]sandbox.Tmpfs, 0, len(*l.Tmpfs))
		for _, t := range *l.Tmpfs {
			mounts = append(mounts, sandbox.Tmpfs{Path: t.Path, SizeBytes: int64(deref(t.Size))})
		}
		take(m, &c.Tmpfs, &mounts, "tmpfs", where)
	}
	if l.Binds != nil {
		binds := make([]sandbox.Bind, 0, len(*l.Binds))
		for _, b := range *l.Binds {
			binds = append(binds, sandbox.Bind{Source: b.Source, Target: b.Target, ReadOnly: b.ReadOnly == nil || *b.ReadOnly})
		}
		take(m, &c.Binds, &binds, "binds", where)
	}
	for _, k := range slices.Sorted(maps.Keys(l.Env)) {
		if c.Env == nil {
			c.Env = map[string]string{}
		}
		c.Env[k] = l.Env[k]
		m.set("env."+k, l.Env[k], m.at(append(slices.Clone(where), "env", k)...))
	}
	if x := l.Limits; x != nil {
		take(m, &c.Limits.Pids, x.Pids, "limits.pids", where)
		take(m, &c.Limits.MemoryBytes, (*int64)(x.Memory), "limits.memory", where)
		take(m, &c.Limits.CPUs, x.CPUs, "limits.cpus", where)
		take(m, &c.Limits.OpenFiles, x.OpenFiles, "limits.openFiles", where)
		take(m, &c.Limits.FileSizeBytes, (*int64)(x.FileSize), "limits.fileSize", where)
	}
	if x := l.Prune; x != nil {
		take(m, &c.Prune.IdleHours, x.IdleHours, "prune.idleHours", where)
		take(m, &c.Prune.MaxAgeDays, x.MaxAgeDays, "prune.maxAgeDays", where)
	}
}

func deref[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
