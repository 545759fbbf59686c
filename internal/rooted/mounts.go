//go:build linux

package rooted

import "golang.org/x/sys/unix"

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
	fd, err := retryOpen(dir.FD, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return Handle{}, err
	}
	h := Handle{FD: fd, Root: dir.Root, owned: true}
	if dir.known {
		h.names, h.known = append(dir.names[:len(dir.names):len(dir.names)], name), true
	}
	if err := t.fstat(fd, &h.Stat); err != nil {
		h.Close()
		return Handle{}, err
	}
	return h, nil
}
