package config

import (
	"maps"
	"slices"

	"github.com/workberth/workberth/sandbox"
)

// check refuses values whose fault can be seen without knowing a backend.
func (f *File) check() error {
	if err := f.checkLayer(f.doc.Defaults, "defaults"); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(f.doc.Backends)) {
		l := f.doc.Backends[name]
		if err := f.checkLayer(&l, "backends", name); err != nil {
			return err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(f.doc.Agents)) {
		a := f.doc.Agents[id]
		if s := a.Scope; s != nil {
			switch sandbox.Scope(*s) {
			case sandbox.ScopeSession, sandbox.ScopeAgent, sandbox.ScopeShared:
			default:
				return f.errorAt("must be session, agent or shared", "agents", id, "scope")
			}
		}
		if err := f.checkLayer(&a.Layer, "agents", id); err != nil {
			return err
		}
	}
	if err := f.checkSkills(); err != nil {
		return err
	}
	return f.checkWorkspaces()
}

// checkLayer checks one layer found under where.
func (f *File) checkLayer(l *Layer, where ...string) error {
	if l == nil {
		return nil
	}
	at := func(keys ...string) []string { return append(slices.Clone(where), keys...) }
	if l.Access != nil {
		switch sandbox.Access(*l.Access) {
		case sandbox.AccessNone, sandbox.AccessReadOnly, sandbox.AccessReadWrite:
		default:
			return f.errorAt("must be none, ro or rw", at("access")...)
		}
	}
	if l.Binds != nil {
		for _, b := range *l.Binds {
			if b.Source == "" || b.Target == "" {
				return f.errorAt("every bind needs a source and a target", at("binds")...)
			}
		}
	}
	if l.Tmpfs != nil {
		for _, t := range *l.Tmpfs {
			if t.Path == "" {
				return f.errorAt("every tmpfs needs a path", at("tmpfs")...)
			}
		}
	}
	if x := l.Limits; x != nil {
		for name, v := range map[string]*int64{"pids": x.Pids, "openFiles": x.OpenFiles} {
			if v != nil && *v < 0 {
				return f.errorAt("must not be negative; 0 means no limit", at("limits", name)...)
			}
		}
		if x.CPUs != nil && !(*x.CPUs >= 0) {
			return f.errorAt("must not be negative; 0 means no limit", at("limits", "cpus")...)
		}
	}
	if x := l.Prune; x != nil {
		for name, v := range map[string]*float64{"idleHours": x.IdleHours, "maxAgeDays": x.MaxAgeDays} {
			if v != nil && !(*v >= 0) {
				return f.errorAt("must not be negative; 0 means never", at("prune", name)...)
			}
		}
	}
	return nil
}
