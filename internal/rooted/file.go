//go:build linux

package rooted

import (
	"fmt"
	"strings"

	"github.com/workberth/workberth/fsbridge"
	"golang.org/x/sys/unix"
)

// NotRegularError refuses the content of something that is not a regular file. It matches
// fsbridge.ErrNotRegular, and EISDIR for a directory.
type NotRegularError struct{ Type fsbridge.FileType }

// Error names the type.
func (e *NotRegularError) Error() string {
	return fmt.Sprintf("is a %s, not a regular file", typeName(e.Type))
}

// Is matches fsbridge.ErrNotRegular.
func (e *NotRegularError) Is(target error) bool { return target == fsbridge.ErrNotRegular }

// Unwrap gives EISDIR for a directory.
func (e *NotRegularError) Unwrap() error {
	if e.Type == fsbridge.TypeDir {
		return unix.EISDIR
	}
	return nil
}

func typeName(t fsbridge.FileType) string {
	switch t {
	case fsbridge.TypeDir:
		return "directory"
	case fsbridge.TypeSymlink:
		return "symbolic link"
	case fsbridge.TypeChar:
		return "character device"
	case fsbridge.TypeBlock:
		return "block device"
	case fsbridge.TypeUnknown:
		return "file of unknown type"
	}
	return string(t)
}

// File is a regular file open for content.
type File struct {
	FD   int
	Root *Root
	// Stat describes the file as it was just before it was opened.
	Stat Stat
}

// Close gives the descriptor back.
func (f *File) Close() { Close(f.FD) }

// Access decides whether a mount may be used, before anything is opened for content.
type Access func(*Root) error

// OpenFile opens the regular file at a path, following links. What is not a regular file is refused
// without being opened. flags are O_RDONLY, O_WRONLY or O_RDWR, with O_APPEND where wanted.
func (t *Tree) OpenFile(p string, flags int, allow Access) (File, error) {
	for range Attempts {
		h, err := t.Open(p, 0)
		if err != nil {
			return File{}, err
		}
		f, err := t.openHandle(p, &h, flags, allow)
		h.Close()
		if err != errChanged {
			return f, err
		}
	}
	return File{}, ErrBusy
}

func (t *Tree) openHandle(p string, h *Handle, flags int, allow Access) (File, error) {
	if allow != nil {
		if err := allow(h.Root); err != nil {
			return File{}, err
		}
	}
	if !h.Stat.IsRegular() {
		return File{}, &NotRegularError{Type: h.Stat.Type}
	}
	if t.proc != nil {
		fd, err := t.proc.open(h.FD, flags|unix.O_NONBLOCK)
		return File{FD: fd, Root: h.Root, Stat: h.Stat}, err
	}
	place, err := t.Target(p, nil)
	if err != nil {
		return File{}, err
	}
	defer place.Close()
	if !place.Exists {
		return File{}, errChanged
	}
	fd, err := t.OpenChild(place.Dir.FD, place.Name, flags, &h.Stat)
	return File{FD: fd, Root: h.Root, Stat: h.Stat}, err
}

// OpenChild opens the regular file want under its name in a directory, for content. A name that
// stands for another file by now gives an error for which IsBusy holds.
func (t *Tree) OpenChild(dir int, name string, flags int, want *Stat) (int, error) {
	if t.proc != nil {
		h, err := t.childAt(dir, name)
		if err != nil {
			return -1, err
		}
		defer h.Close()
		if !h.Stat.Same(want) {
			return -1, errChanged
		}
		return t.proc.open(h.FD, flags|unix.O_NONBLOCK)
	}
	fd, err := retryOpen(dir, name, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	switch err {
	case nil:
	case unix.ELOOP, unix.ENXIO:
		return -1, errChanged
	default:
		return -1, err
	}
	got, err := t.Fstat(fd)
	if err == nil && !got.Same(want) {
		err = errChanged
	}
	if err != nil {
		Close(fd)
		return -1, err
	}
	return fd, nil
}

// IsBusy reports whether an error says that a name changed under the operation: trying the whole
// operation again may help.
func IsBusy(err error) bool { return err == errChanged || err == ErrBusy }

// Spot is a location in terms of the mounts.
type Spot struct {
	Root *Root
	// Below is the path below the root, empty for the root itself.
	Below string
}

// Path is the location as an absolute path of the environment.
func (s Spot) Path() string {
	switch {
	case s.Below == "":
		return s.Root.Mount.Path
	case s.Root.Mount.Path == "/":
		return "/" + s.Below
	}
	return s.Root.Mount.Path + "/" + s.Below
}

// Where tells the location of an open file from its descriptor. A file that has been removed, or
// replaced, since it was opened has none: the error is then unix.ENOENT.
func (t *Tree) Where(f *File) (Spot, error) {
	if t.proc == nil {
		return Spot{}, errUnlocated
	}
	real, err := t.proc.path(f.FD)
	if err != nil {
		return Spot{}, err
	}
	root, below, ok := t.locate(real)
	if !ok {
		return Spot{}, &EscapeError{}
	}
	if looksDeleted(real) && !t.stillNamed(root, below, &f.Stat) {
		return Spot{}, unix.ENOENT
	}
	return Spot{Root: root, Below: below}, nil
}

// stillNamed reports whether a file whose location looks like that of a removed one really has
// such a name.
func (t *Tree) stillNamed(root *Root, below string, want *Stat) bool {
	w := t.walker(root, strings.TrimLeft(below, "/"))
	defer w.close()
	e, err := w.walk(false, true)
	if err != nil || e.child < 0 {
		return false
	}
	Close(e.child)
	return e.stat.Same(want)
}

// OpenDir opens a directory for reading its entries.
func (t *Tree) OpenDir(h *Handle) (int, error) {
	return retryOpen(h.FD, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

// Readlink reads the link name in a directory.
func Readlink(dir int, name string) (string, error) { return readlinkat(dir, name) }

// ProcName returns a path that stands for the file behind a descriptor, for system calls that take
// neither a directory nor a descriptor; false without /proc.
func (t *Tree) ProcName(fd int) (string, bool) {
	if t.proc == nil {
		return "", false
	}
	return t.proc.name(fd), true
}

// Chmod changes the mode of the file behind a handle, which is not a link.
func (t *Tree) Chmod(h *Handle, mode fsbridge.Mode) error {
	if t.proc != nil {
		return retryStat(func() error {
			return unix.Fchmodat(t.proc.dir, fdName(h.FD), uint32(mode), 0)
		})
	}
	fd, err := retryOpen(h.FD, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == nil {
		defer Close(fd)
		return unix.Fchmod(fd, uint32(mode))
	}
	return unix.Fchmodat(h.FD, "", uint32(mode), unix.AT_EMPTY_PATH)
}
