package fsbridge

import (
	"fmt"
	"path"
	"strings"
)

// MountKind says what a mount is.
type MountKind string

// The kinds of mounts.
const (
	// MountWorkspace holds the agent's workspace. There is at most one.
	MountWorkspace MountKind = "workspace"
	// MountBind is a further directory made available by configuration.
	MountBind MountKind = "bind"
	// MountTmpfs is scratch space that ends with the environment.
	MountTmpfs MountKind = "tmpfs"
	// MountSystem holds the files of the image or of the system. It is read-only
	// through a bridge and reached only by an absolute path that names it.
	MountSystem MountKind = "system"
)

// Mount is one permitted root in an environment.
type Mount struct {
	// Path is where the mount appears in the environment: absolute, clean.
	Path string    `json:"path"`
	Kind MountKind `json:"kind"`
	// ReadOnly refuses every change with ErrReadOnly.
	ReadOnly bool `json:"readOnly"`
	// HostPath is where the content lies on the host, empty where it has no
	// place there. It is for people (explain, inspect) and is never sent into
	// the environment.
	HostPath string `json:"hostPath,omitempty"`
}

// MountTable is the set of permitted roots, the one truth for files and
// commands. The order carries no meaning: the longest matching path wins.
type MountTable []Mount

// Workspace returns the workspace mount.
func (t MountTable) Workspace() (Mount, bool) {
	for _, m := range t {
		if m.Kind == MountWorkspace {
			return m, true
		}
	}
	return Mount{}, false
}

// Find returns the mount that holds the absolute path p, compared by whole
// path elements, and the rest of p below it ("." for the mount itself). It is
// lexical and says nothing about links: p is taken as it is, with ".." elements
// left in the rest. A relative p lies in no mount, and a mount whose path is not
// absolute holds nothing. Repeated and trailing slashes make no difference, in p
// and in the table.
func (t MountTable) Find(p string) (m Mount, rest string, ok bool) {
	if !strings.HasPrefix(p, "/") {
		return Mount{}, "", false
	}
	p = squeeze(p)
	best, root := -1, ""
	for i, c := range t {
		if !strings.HasPrefix(c.Path, "/") {
			continue
		}
		if r := squeeze(c.Path); within(r, p) && (best < 0 || len(r) > len(root)) {
			best, root = i, r
		}
	}
	if best < 0 {
		return Mount{}, "", false
	}
	rest = strings.TrimPrefix(strings.TrimPrefix(p, root), "/")
	if rest == "" {
		rest = "."
	}
	return t[best], rest, true
}

// within reports whether p equals root or lies below it, by path elements. Both
// are absolute and squeezed.
func within(root, p string) bool {
	if root == "/" {
		return true
	}
	return strings.HasPrefix(p, root) && (len(p) == len(root) || p[len(root)] == '/')
}

// squeeze removes empty and "." elements of an absolute path and keeps "..".
func squeeze(p string) string {
	if squeezed(p) {
		return p
	}
	var b strings.Builder
	for e := range strings.SplitSeq(p, "/") {
		if e != "" && e != "." {
			b.WriteByte('/')
			b.WriteString(e)
		}
	}
	if b.Len() == 0 {
		return "/"
	}
	return b.String()
}

// squeezed reports whether squeeze would change nothing.
func squeezed(p string) bool {
	if p == "/" {
		return true
	}
	if !strings.HasPrefix(p, "/") {
		return false
	}
	for e := range strings.SplitSeq(p[1:], "/") {
		if e == "" || e == "." {
			return false
		}
	}
	return true
}

// Holds reports whether p, which is absolute and clean, is a mount point or has one below it.
func (t MountTable) Holds(p string) bool {
	for _, m := range t {
		if m.Path == p || strings.HasPrefix(m.Path, strings.TrimSuffix(p, "/")+"/") {
			return true
		}
	}
	return false
}

// Complete returns a copy in which system mounts are read-only. It refuses, with an error that
// matches [ErrInvalid], a mount whose path is not absolute and clean, and one that is given twice.
func (t MountTable) Complete() (MountTable, error) {
	mounts := make(MountTable, len(t))
	seen := make(map[string]bool, len(t))
	for i, m := range t {
		if !path.IsAbs(m.Path) || path.Clean(m.Path) != m.Path {
			return nil, fmt.Errorf("mount %q is not an absolute, clean path: %w", m.Path, ErrInvalid)
		}
		if seen[m.Path] {
			return nil, fmt.Errorf("mount %q is given twice: %w", m.Path, ErrInvalid)
		}
		seen[m.Path] = true
		m.ReadOnly = m.ReadOnly || m.Kind == MountSystem
		mounts[i] = m
	}
	return mounts, nil
}
