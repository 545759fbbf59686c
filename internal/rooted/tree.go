//go:build linux

package rooted

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/workberth/workberth/fsbridge"
	"golang.org/x/sys/unix"
)

// Options tune a Tree. The zero value uses everything the kernel offers; the switches exist so
// that tests can prove the substitutes equal.
type Options struct {
	// NoOpenat2 resolves every name with the careful walk.
	NoOpenat2 bool
	// NoProc does without /proc: locations are then known only from the careful walk.
	NoProc bool
	// NoTmpfile makes temporary files by name instead of with O_TMPFILE.
	NoTmpfile bool
	// NoStatx uses fstatat, which does not tell mounts apart.
	NoStatx bool
}

// Root is one mount of a Tree: its description and the handle of its directory.
type Root struct {
	// Mount is the entry of the table, with a clean path.
	Mount fsbridge.Mount

	fd   int
	stat Stat
	// real is the location the handle itself tells; it is read again when a look-up misses, because
	// the directory may be renamed while it is open.
	real atomic.Pointer[string]
	// nested is set when another root lies below this one; blurred when such a root is on the same
	// kernel mount, so that the mount id alone cannot tell the two apart.
	nested, blurred bool
}

// System reports whether the root is reached only by an absolute path that names it.
func (r *Root) System() bool { return r.Mount.Kind == fsbridge.MountSystem }

// ReadOnly reports whether the mount refuses changes. System mounts always do.
func (r *Root) ReadOnly() bool { return r.Mount.ReadOnly || r.System() }

// Real returns the location of the root in this process's view.
func (r *Root) Real() string { return *r.real.Load() }

// MountError reports a mount that cannot be opened.
type MountError struct {
	Mount fsbridge.Mount
	Err   error
}

// Error names the mount.
func (e *MountError) Error() string {
	return fmt.Sprintf("%s mount %s: %v", e.Mount.Kind, fsbridge.DisplayPath(e.Mount.Path), e.Err)
}

// Unwrap returns the reason.
func (e *MountError) Unwrap() error { return e.Err }

// Tree is a set of mount roots held open. It is safe for concurrent use and immutable apart from
// Close, which must not run while an operation does.
type Tree struct {
	roots     []*Root
	workspace *Root
	proc      *proc // nil where /proc cannot be used
	openat2   bool
	kernel    bool // resolve with openat2: a handle must then be able to tell its location
	statx     bool
	tmpfile   bool
	buffers   sync.Pool
}

// Open opens the directory of every mount. A mount whose directory is missing or is not a
// directory is an error that names it.
func Open(table fsbridge.MountTable, opts Options) (*Tree, error) {
	if len(table) == 0 {
		return nil, fmt.Errorf("no mounts: %w", fsbridge.ErrInvalid)
	}
	t := &Tree{tmpfile: !opts.NoTmpfile}
	t.buffers.New = func() any { b := make([]byte, BufferSize); return &b }
	if !opts.NoProc {
		t.proc = openProc()
	}
	t.statx = !opts.NoStatx && probeStatx()
	for _, m := range table {
		r, err := t.openRoot(m)
		if err != nil {
			t.Close()
			return nil, err
		}
		t.roots = append(t.roots, r)
		if m.Kind == fsbridge.MountWorkspace {
			if t.workspace != nil {
				t.Close()
				return nil, &MountError{Mount: r.Mount, Err: fmt.Errorf("a second workspace besides %s: %w",
					fsbridge.DisplayPath(t.workspace.Mount.Path), fsbridge.ErrInvalid)}
			}
			t.workspace = r
		}
	}
	if err := t.relate(); err != nil {
		t.Close()
		return nil, err
	}
	t.openat2 = !opts.NoOpenat2 && probeOpenat2(t.roots[0].fd)
	t.kernel = t.openat2 && t.proc != nil
	return t, nil
}

// Close closes every handle.
func (t *Tree) Close() {
	for _, r := range t.roots {
		Close(r.fd)
	}
	t.roots = nil
	if t.proc != nil {
		t.proc.close()
	}
}

// Roots returns the mounts in the order of the table. The slice must not be changed.
func (t *Tree) Roots() []*Root { return t.roots }

// Workspace returns the workspace mount, nil where there is none.
func (t *Tree) Workspace() *Root { return t.workspace }

// Kernel reports whether openat2 is in use.
func (t *Tree) Kernel() bool { return t.openat2 }

// HasProc reports whether /proc can be used: without it a handle cannot tell its own location.
func (t *Tree) HasProc() bool { return t.proc != nil }

// openRoot opens the directory of one mount.
func (t *Tree) openRoot(m fsbridge.Mount) (*Root, error) {
	clean, err := cleanRoot(m.Path)
	if err != nil {
		return nil, &MountError{Mount: m, Err: err}
	}
	m.Path = clean
	fd, err := retryOpen(unix.AT_FDCWD, clean, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &MountError{Mount: m, Err: fmt.Errorf("open the directory: %w", err)}
	}
	r := &Root{Mount: m, fd: fd}
	if err := t.fstat(fd, &r.stat); err != nil {
		Close(fd)
		return nil, &MountError{Mount: m, Err: fmt.Errorf("stat: %w", err)}
	}
	real, err := t.realOf(r)
	if err != nil {
		Close(fd)
		return nil, &MountError{Mount: m, Err: fmt.Errorf("find its location: %w", err)}
	}
	r.real.Store(&real)
	return r, nil
}

// realOf finds where the root's directory lies: from the handle, or by name without /proc.
func (t *Tree) realOf(r *Root) (string, error) {
	if t.proc != nil {
		return t.proc.path(r.fd)
	}
	return filepath.EvalSymlinks(r.Mount.Path)
}

// relate notes which roots lie inside others and refuses two roots with one path.
func (t *Tree) relate() error {
	for i, a := range t.roots {
		for j, b := range t.roots {
			if i == j {
				continue
			}
			if i < j && a.Mount.Path == b.Mount.Path {
				return &MountError{Mount: b.Mount, Err: fmt.Errorf("another mount is at the same path: %w", fsbridge.ErrInvalid)}
			}
			if _, ok := Below(a.Real(), b.Real()); ok && a.Real() != b.Real() {
				a.nested = true
				if !a.stat.HasMount() || a.stat.Mount == b.stat.Mount {
					a.blurred = true
				}
			}
		}
	}
	return nil
}

// cleanRoot accepts any spelling of an absolute path without "..".
func cleanRoot(p string) (string, error) {
	if err := fsbridge.ValidPath(p); err != nil {
		return "", err
	}
	if p[0] != '/' {
		return "", fmt.Errorf("the path must be absolute: %w", fsbridge.ErrInvalid)
	}
	if slices.Contains(strings.Split(p, "/"), "..") {
		return "", fmt.Errorf(`the path must not contain "..": %w`, fsbridge.ErrInvalid)
	}
	return path.Clean(p), nil
}
