package bubblewrap

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

// mount is a mount that the configuration asks for.
type mount struct {
	// path inside, absolute and clean.
	path string
	kind fsbridge.MountKind
	// source on this machine; empty for scratch space in memory.
	source   string
	readOnly bool
	// size of scratch space, in bytes.
	size int64
	// file is true for a bind of something that is no directory.
	file bool
}

// mountsOf lists the mounts of a resolved spec, parents before what lies below
// them. scratch is the directory that stands in for a hidden workspace.
func mountsOf(spec sandbox.Spec, scratch string) ([]mount, error) {
	c := spec.Config
	ws := mount{path: sandbox.WorkspacePath, kind: fsbridge.MountWorkspace, source: spec.Workspace}
	switch c.Access {
	case sandbox.AccessReadOnly:
		ws.path, ws.readOnly = sandbox.ReadOnlyWorkspacePath, true
	case sandbox.AccessNone:
		ws.source = scratch
	}
	out := []mount{ws}
	for _, t := range c.Tmpfs {
		out = append(out, mount{path: path.Clean(t.Path), kind: fsbridge.MountTmpfs, size: t.SizeBytes})
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
		out = append(out, mount{
			path: path.Clean(b.Target), kind: fsbridge.MountBind, source: b.Source,
			readOnly: b.ReadOnly, file: !info.IsDir(),
		})
	}
	slices.SortFunc(out, func(a, b mount) int { return cmp.Compare(a.path, b.path) })
	return out, nil
}

// tableOf is the mount table that files and commands share. A bind of a single file
// is no root of its own: it is a file of the mount it lies in.
func tableOf(mounts []mount) fsbridge.MountTable {
	t := fsbridge.MountTable{{Path: "/", Kind: fsbridge.MountSystem, ReadOnly: true}}
	for _, m := range mounts {
		if m.file {
			continue
		}
		t = append(t, fsbridge.Mount{Path: m.path, Kind: m.kind, ReadOnly: m.readOnly, HostPath: m.source})
	}
	return t
}

// above finds the mount that the place of m lies in, and the rest of the path
// below it. Where it lies in the root directory, ok is false.
func above(mounts []mount, m mount) (parent mount, rest string, ok bool) {
	for _, p := range mounts {
		r, below := strings.CutPrefix(m.path, p.path+"/")
		if below && len(p.path) > len(parent.path) {
			parent, rest, ok = p, r, true
		}
	}
	return parent, rest, ok
}

// find returns the mount at a path.
func find(mounts []mount, p string) (mount, bool) {
	for _, m := range mounts {
		if m.path == p {
			return m, true
		}
	}
	return mount{}, false
}

// workdirOf is the default working directory inside.
func workdirOf(c sandbox.Config, workspace string) string {
	if path.IsAbs(c.Workdir) {
		return path.Clean(c.Workdir)
	}
	return path.Join(workspace, c.Workdir)
}

// workspacePath is where the workspace appears inside.
func workspacePath(c sandbox.Config) string {
	if c.Access == sandbox.AccessReadOnly {
		return sandbox.ReadOnlyWorkspacePath
	}
	return sandbox.WorkspacePath
}
