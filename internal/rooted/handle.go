//go:build linux

package rooted

import (
	"errors"
	"strings"
)

// Handle is an O_PATH descriptor of a file that lies inside a mount. Close it when done.
type Handle struct {
	// FD is the descriptor. It gives no access to content: see Tree.Reopen and Tree.OpenDir.
	FD int
	// Root is the mount the file really lies in, whose policy counts.
	Root *Root
	// Stat describes the file as it was when the handle was made. It is not filled for the
	// directory of a Place.
	Stat Stat

	names []string // elements below Root, where known
	known bool
	owned bool // FD is closed by Close
}

// Close gives the descriptor back. It may be called twice.
func (h *Handle) Close() {
	if h.owned {
		Close(h.FD)
		h.owned = false
	}
}

// Place is a name in a directory: what the system calls that end in "at" take.
type Place struct {
	Dir Handle
	// Name is the final element. It is empty when the path ends in "..", or names a mount itself:
	// then there is no name to create, replace, rename or remove, and Dir is what the path names.
	Name string
	// MustDir is set when the path ends in a slash or in "/.": it demands a directory.
	MustDir bool
	// Exists and Child describe the present file. They are filled by Target only.
	Exists bool
	Child  Stat
}

// Close gives the directory's descriptor back.
func (p *Place) Close() { p.Dir.Close() }

// errUnlocated means that the handle could not tell where it is, so that the careful walk must.
var errUnlocated = errors.New("unlocated")

// adopt takes over a descriptor that the kernel resolved beneath asked, and finds the mount it is in.
// Its description is left out where it is not wanted and not needed for that.
func (t *Tree) adopt(fd int, asked *Root, f Flags) (Handle, error) {
	h := Handle{FD: fd, Root: asked, owned: true}
	if f&noStat != 0 && !asked.nested {
		return h, nil
	}
	if err := t.fstat(fd, &h.Stat); err != nil {
		h.Close()
		return Handle{}, err
	}
	if !asked.nested || !asked.blurred && h.Stat.Mount == asked.stat.Mount {
		return h, nil
	}
	root, err := t.rootOf(fd)
	if err == nil && root.System() && !asked.System() {
		err = &EscapeError{System: true}
	}
	if err != nil {
		h.Close()
		return Handle{}, err
	}
	h.Root = root
	return h, nil
}

// rootOf finds the mount of a handle by its real location.
func (t *Tree) rootOf(fd int) (*Root, error) {
	if t.proc == nil {
		return nil, errUnlocated
	}
	real, err := t.proc.path(fd)
	if err != nil {
		return nil, errUnlocated
	}
	root, _, ok := t.locate(real)
	if !ok {
		return nil, errUnlocated
	}
	return root, nil
}

// Location returns where a handle really lies, as an absolute path in this process's view. It is a
// statement about the moment of the call.
func (t *Tree) Location(h *Handle) (string, error) {
	if t.proc != nil {
		return t.proc.path(h.FD)
	}
	if !h.known {
		return "", errUnlocated
	}
	return join(h.Root.Real(), h.names), nil
}

// join appends elements to a clean absolute path.
func join(base string, names []string) string {
	if len(names) == 0 {
		return base
	}
	if base == "/" {
		base = ""
	}
	return base + "/" + strings.Join(names, "/")
}
