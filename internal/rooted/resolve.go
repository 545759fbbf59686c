//go:build linux

package rooted

import (
	"strings"

	"golang.org/x/sys/unix"
)

// Flags direct Open.
type Flags uint8

const (
	// NoFollow describes a final link itself instead of what it points to.
	NoFollow Flags = 1 << iota
	// Directory demands a directory (ENOTDIR otherwise).
	Directory
	// noStat leaves Handle.Stat empty.
	noStat
)

// Maker is called for each missing directory of a path, with the handle of the directory it is
// missing in. It makes the directory or refuses; fs.ErrExist counts as made.
type Maker func(dir *Handle, name string) error

// Open resolves a path to a handle. Errors are errnos, *EscapeError, NoWorkspaceError or ErrBusy.
func (t *Tree) Open(p string, f Flags) (Handle, error) {
	asked, rest, err := t.start(p)
	if err != nil {
		return Handle{}, err
	}
	return t.open(asked, rest, f)
}

func (t *Tree) open(asked *Root, rest string, f Flags) (Handle, error) {
	dir, elem, mustDir := last(rest)
	core := rest[:len(dir)+len(elem)]
	if core == "" {
		core = "."
	}
	if mustDir {
		f = f&^NoFollow | Directory
	}
	if t.kernel {
		h, err := t.kernelOpen(asked, core, f)
		if !undecided(err) {
			return h, err
		}
	}
	for range Attempts {
		h, err := t.carefulOpen(asked, rest, f)
		if err != errChanged {
			return h, err
		}
	}
	return Handle{}, ErrBusy
}

// kernelOpen resolves in one system call.
func (t *Tree) kernelOpen(asked *Root, core string, f Flags) (Handle, error) {
	flags := unix.O_PATH
	if f&NoFollow != 0 {
		flags |= unix.O_NOFOLLOW
	}
	if f&Directory != 0 {
		flags |= unix.O_DIRECTORY
	}
	fd, err := beneath(asked.fd, core, flags, resolveBeneath)
	if err != nil {
		return Handle{}, err
	}
	return t.adopt(fd, asked, f)
}

// undecided reports whether the kernel's way gave no final answer: the path may leave (EXDEV), may
// lead through a kernel-made or a looping link (ELOOP), or the handle does not know its mount.
func undecided(err error) bool {
	return err == unix.EXDEV || err == unix.ELOOP || err == errUnlocated
}

// carefulOpen resolves with the careful walk.
func (t *Tree) carefulOpen(asked *Root, rest string, f Flags) (Handle, error) {
	w := t.walker(asked, rest)
	defer w.close()
	end, err := w.walk(f&NoFollow == 0, true)
	if err != nil {
		return Handle{}, err
	}
	if end.name == "" {
		h := w.take()
		err := t.fstat(h.FD, &h.Stat)
		return h, err
	}
	if end.child < 0 {
		return Handle{}, unix.ENOENT
	}
	if (end.mustDir || f&Directory != 0) && !end.stat.IsDir() {
		Close(end.child)
		return Handle{}, unix.ENOTDIR
	}
	if err := w.down(end.name, end.child); err != nil {
		return Handle{}, err
	}
	h := w.take()
	h.Stat = end.stat
	return h, nil
}

// Parent resolves everything but the final element of a path: the final element is not looked at.
// Missing directories are made by mk when it is set.
func (t *Tree) Parent(p string, mk Maker) (Place, error) {
	asked, rest, err := t.start(p)
	if err != nil {
		return Place{}, err
	}
	dir, elem, mustDir := last(rest)
	if t.kernel {
		place, err := t.kernelParent(asked, rest, dir, elem)
		place.MustDir = mustDir
		if !undecided(err) && !(mk != nil && err == unix.ENOENT) {
			return place, err
		}
	}
	return t.carefulPlace(asked, rest, false, mk)
}

func (t *Tree) kernelParent(asked *Root, rest, dir, elem string) (Place, error) {
	if elem == "" || elem == ".." {
		h, err := t.kernelOpen(asked, rest, Directory|noStat)
		return Place{Dir: h}, err
	}
	if dir == "" {
		return Place{Dir: Handle{FD: asked.fd, Root: asked, known: true}, Name: elem}, nil
	}
	h, err := t.kernelOpen(asked, dir, Directory|noStat)
	return Place{Dir: h, Name: elem}, err
}

// Target resolves a path to the place where a file is, or would be created: a final link is
// followed, so that the place is where its target is, which need not exist.
func (t *Tree) Target(p string, mk Maker) (Place, error) {
	place, err := t.Parent(p, mk)
	if err != nil || place.Name == "" {
		return place, err
	}
	place.Child, err = t.Lstat(place.Dir.FD, place.Name)
	switch {
	case err == unix.ENOENT:
		return place, nil
	case err != nil:
		place.Close()
		return Place{}, err
	}
	if place.Child.Type != "symlink" {
		place.Exists = true
		return place, nil
	}
	place.Close()
	asked, rest, err := t.start(p)
	if err != nil {
		return Place{}, err
	}
	return t.carefulPlace(asked, rest, true, mk)
}

// carefulPlace resolves a place with the careful walk; follow looks at the final element.
func (t *Tree) carefulPlace(asked *Root, rest string, follow bool, mk Maker) (Place, error) {
	for range Attempts {
		place, err := t.carefulPlaceOnce(asked, rest, follow, mk)
		if err != errChanged {
			return place, err
		}
	}
	return Place{}, ErrBusy
}

func (t *Tree) carefulPlaceOnce(asked *Root, rest string, follow bool, mk Maker) (Place, error) {
	w := t.walker(asked, rest)
	w.mk = mk
	defer w.close()
	end, err := w.walk(follow, follow)
	if err != nil {
		return Place{}, err
	}
	place := Place{Name: end.name, MustDir: end.mustDir, Child: end.stat}
	if end.child >= 0 {
		place.Exists = true
		Close(end.child)
	}
	place.Dir = w.take()
	return place, nil
}

// Named is Parent with a directory that knows its names below the mount, whatever its depth.
func (t *Tree) Named(p string, mk Maker) (Place, error) {
	asked, rest, err := t.start(p)
	if err != nil {
		return Place{}, err
	}
	return t.carefulPlace(asked, rest, false, mk)
}

// Stays reports whether a link in dir with this text would lead to a place inside the mounts, which
// need not exist. The error is an *EscapeError that names the link when it leaves.
func (t *Tree) Stays(dir *Handle, link, text string) error {
	for range Attempts {
		w, err := t.walkerAt(dir, text)
		if err != nil {
			return err
		}
		w.link, w.text = link, text
		if err = nil; text != "" && text[0] == '/' {
			err = w.jump(text)
		}
		if err == nil {
			err = w.stays()
		}
		w.close()
		if err != errChanged {
			return err
		}
	}
	return ErrBusy
}

// walkerAt starts a careful walk in a directory that is already held.
func (t *Tree) walkerAt(dir *Handle, rest string) (*walker, error) {
	w := t.walker(dir.Root, rest)
	w.names = append(w.names, dir.names...)
	if !dir.known {
		real, err := t.Location(dir)
		if err != nil {
			return nil, err
		}
		root, below, ok := t.locate(real)
		if !ok {
			return nil, &EscapeError{}
		}
		w.root = root
		if below != "" {
			w.names = strings.Split(below, "/")
		}
	}
	w.fd = dir.FD
	return w, nil
}
