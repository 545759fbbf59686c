package hostmount

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/sandbox"
)

// Mount is a mount that a configuration asks for.
type Mount struct {
	// Path inside, absolute and clean.
	Path string
	Kind fsbridge.MountKind
	// Source on this machine; empty for scratch space in memory.
	Source   string
	ReadOnly bool
	// Size of scratch space, in bytes.
	Size int64
	// File is true for a bind of something that is no directory.
	File bool
}

// List lists the mounts of a resolved spec, parents before what lies below
// them. scratch is the directory that stands in for a hidden workspace.
func List(spec sandbox.Spec, scratch string) ([]Mount, error) {
	c := spec.Config
	ws := Mount{Path: sandbox.WorkspacePath, Kind: fsbridge.MountWorkspace, Source: spec.Workspace}
	switch c.Access {
	case sandbox.AccessReadOnly:
		ws.Path, ws.ReadOnly = sandbox.ReadOnlyWorkspacePath, true
	case sandbox.AccessNone:
		ws.Source = scratch
	}
	out := []Mount{ws}
	for _, t := range c.Tmpfs {
		out = append(out, Mount{Path: path.Clean(t.Path), Kind: fsbridge.MountTmpfs, Size: t.SizeBytes})
	}
	for i, b := range c.Binds {
		info, err := os.Stat(b.Source)
		if err != nil {
			return nil, &sandbox.Problem{
				Field: "binds", What: fmt.Sprintf("bind %q to %q", b.Source, b.Target),
				Rule:   fmt.Sprintf("the source must exist: %v", err),
				Remedy: fmt.Sprintf("create it, or remove bind %d", i+1), Err: fmt.Errorf("%w: %w", sandbox.ErrRefused, err),
			}
		}
		out = append(out, Mount{
			Path: path.Clean(b.Target), Kind: fsbridge.MountBind, Source: b.Source,
			ReadOnly: b.ReadOnly, File: !info.IsDir(),
		})
	}
	slices.SortFunc(out, func(a, b Mount) int { return cmp.Compare(a.Path, b.Path) })
	return out, nil
}

// Table is the mount table that files and commands share. A bind of a single file
// is no root of its own: it is a file of the mount it lies in.
func Table(mounts []Mount) fsbridge.MountTable {
	t := fsbridge.MountTable{{Path: "/", Kind: fsbridge.MountSystem, ReadOnly: true}}
	for _, m := range mounts {
		if m.File {
			continue
		}
		t = append(t, fsbridge.Mount{Path: m.Path, Kind: m.Kind, ReadOnly: m.ReadOnly, HostPath: m.Source})
	}
	return t
}

// Above finds the mount that the place of m lies in, and the rest of the path
// below it. Where it lies in the root directory, ok is false.
func Above(mounts []Mount, m Mount) (parent Mount, rest string, ok bool) {
	for _, p := range mounts {
		r, below := strings.CutPrefix(m.Path, p.Path+"/")
		if below && len(p.Path) > len(parent.Path) {
			parent, rest, ok = p, r, true
		}
	}
	return parent, rest, ok
}

// Find returns the mount at a path.
func Find(mounts []Mount, p string) (Mount, bool) {
	for _, m := range mounts {
		if m.Path == p {
			return m, true
		}
	}
	return Mount{}, false
}

// Workdir is the default working directory inside.
func Workdir(c sandbox.Config, workspace string) string {
	if path.IsAbs(c.Workdir) {
		return path.Clean(c.Workdir)
	}
	return path.Join(workspace, c.Workdir)
}

// WorkspacePath is where the workspace appears inside.
func WorkspacePath(c sandbox.Config) string {
	if c.Access == sandbox.AccessReadOnly {
		return sandbox.ReadOnlyWorkspacePath
	}
	return sandbox.WorkspacePath
}
