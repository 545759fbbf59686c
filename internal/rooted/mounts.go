//go:build linux

package rooted

import (
	"slices"

	"golang.org/x/sys/unix"
)

// MountBelow returns a root that is the file name in dir, or lies below it, nil when there is none:
// what must not be renamed or removed. An empty name stands for dir itself.
func (t *Tree) MountBelow(dir *Handle, name string) (*Root, error) {
	if name == "" {
		return dir.Root, nil
	}
	if !dir.Root.nested {
		return nil, nil
	}
	at, err := t.Location(dir)
	if err != nil {
		return nil, err
	}
	at = join(at, []string{name})
	for _, r := range t.roots {
		if _, ok := Below(at, r.Real()); ok {
			return r, nil
		}
	}
	return nil, nil
}

// Child opens a handle of one name in a directory, without following it.
func (t *Tree) Child(dir *Handle, name string) (Handle, error) {
	h, err := t.childAt(dir.FD, name)
	if err != nil {
		return Handle{}, err
	}
	h.Root = dir.Root
	if dir.known {
		h.names, h.known = append(slices.Clip(dir.names), name), true
	}
	return h, nil
}

func (t *Tree) childAt(dir int, name string) (Handle, error) {
	fd, err := retryOpen(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return Handle{}, err
	}
	h := Handle{FD: fd, owned: true}
	if err := t.fstat(fd, &h.Stat); err != nil {
		h.Close()
		return Handle{}, err
	}
	return h, nil
}

// Handle returns the handle of the root itself, which lives as long as the tree.
func (r *Root) Handle() Handle {
	return Handle{FD: r.fd, Root: r, Stat: r.stat, known: true}
}

// OtherRoot reports whether a directory that was reached by names from its root is where another
// root lies.
func (t *Tree) OtherRoot(h *Handle) bool {
	if !h.known || !h.Root.nested {
		return false
	}
	at := join(h.Root.Real(), h.names)
	for _, r := range t.roots {
		if r != h.Root && r.Real() == at {
			return true
		}
	}
	return false
}

// OpenBelow opens the directory at a relative path without links below another one, for reading
// its entries.
func (t *Tree) OpenBelow(dir int, rel string) (int, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC
	if rel == "" {
		return retryOpen(dir, ".", flags, 0)
	}
	if t.openat2 {
		fd, err := beneath(dir, rel, flags, resolveBeneath|unix.RESOLVE_NO_SYMLINKS)
		if err != unix.ENAMETOOLONG {
			return fd, err
		}
	}
	fd := -1
	for rest := rel; rest != ""; {
		var elem string
		elem, rest = next(rest)
		from := dir
		if fd >= 0 {
			from = fd
		}
		child, err := retryOpen(from, elem, flags|unix.O_NOFOLLOW, 0)
		if fd >= 0 {
			Close(fd)
		}
		if err != nil {
			return -1, err
		}
		fd = child
	}
	return fd, nil
}
