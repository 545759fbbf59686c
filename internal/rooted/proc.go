//go:build linux

package rooted

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// proc is the directory /proc/self/fd, held open so that nothing mounted over /proc later matters.
// Through it a handle can be opened again, located, linked and changed without a second look at
// any name.
type proc struct{ dir int }

// openProc returns nil where /proc is missing or is not procfs.
func openProc() *proc {
	fd, err := retryOpen(unix.AT_FDCWD, "/proc/self/fd", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	var fs unix.Statfs_t
	p := &proc{dir: fd}
	if err := unix.Fstatfs(fd, &fs); err != nil || fs.Type != unix.PROC_SUPER_MAGIC {
		p.close()
		return nil
	}
	if _, err := p.path(fd); err != nil {
		p.close()
		return nil
	}
	return p
}

func (p *proc) close() { Close(p.dir) }

// open opens the very file behind a handle.
func (p *proc) open(fd, flags int) (int, error) {
	return retryOpen(p.dir, fdName(fd), flags|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
}

// name is a path that leads to the file behind a handle, for calls that take no directory.
func (p *proc) name(fd int) string { return "/proc/self/fd/" + fdName(fd) }

// path returns the present location of the file behind a handle. A removed file's location ends
// in deletedSuffix.
func (p *proc) path(fd int) (string, error) {
	s, err := readlinkat(p.dir, fdName(fd))
	if err != nil {
		return "", err
	}
	if s == "" || s[0] != '/' {
		return "", fmt.Errorf("the handle has no location: %w", unix.ENOENT)
	}
	return s, nil
}

// deletedSuffix is what the kernel adds to the location of a removed file.
const deletedSuffix = " (deleted)"

func looksDeleted(location string) bool { return strings.HasSuffix(location, deletedSuffix) }

// readlinkat reads a link of any length.
func readlinkat(dir int, name string) (string, error) {
	var small [256]byte
	for buf := small[:]; ; buf = make([]byte, 4*len(buf)) {
		n, err := ignoringEINTR(func() (int, error) { return unix.Readlinkat(dir, name, buf) })
		if err != nil {
			return "", err
		}
		if n < len(buf) {
			return string(buf[:n]), nil
		}
	}
}
