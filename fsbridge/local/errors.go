//go:build linux

package local

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/rooted"
)

// The operations as errors name them.
const (
	opStat    = "stat"
	opLstat   = "lstat"
	opRead    = "read"
	opWrite   = "write"
	opCreate  = "create"
	opAppend  = "append to"
	opMkdir   = "mkdir"
	opRemove  = "remove"
	opRename  = "rename"
	opCopy    = "copy"
	opLink    = "readlink"
	opSymlink = "symlink"
	opChmod   = "chmod"
	opList    = "list"
	opWalk    = "walk"
	opHash    = "hash"
	opGlob    = "glob"
	opWatch   = "watch"
	opSweep   = "sweep"
)

// notCurrentError is a guard's refusal. It matches fsbridge.ErrNotCurrent and the guard's error.
type notCurrentError struct{ err error }

func (e *notCurrentError) Error() string {
	return fsbridge.ErrNotCurrent.Error() + ": " + e.err.Error()
}

func (e *notCurrentError) Unwrap() []error { return []error{fsbridge.ErrNotCurrent, e.err} }

// hinted is an error with advice.
type hinted struct {
	err  error
	hint string
}

func (e *hinted) Error() string { return e.err.Error() }
func (e *hinted) Unwrap() error { return e.err }

// hint attaches advice to an error.
func hint(err error, format string, args ...any) error {
	return &hinted{err: err, hint: fmt.Sprintf(format, args...)}
}

// both is an errno, or another cause, together with the sentinel that says what it means here.
type both struct{ sentinel, cause error }

func (e *both) Error() string {
	if e.cause.Error() == e.sentinel.Error() {
		return e.cause.Error()
	}
	return e.sentinel.Error() + " (" + e.cause.Error() + ")"
}

func (e *both) Unwrap() []error { return []error{e.sentinel, e.cause} }

// pathError makes the error of an operation from its cause: sentinels are added to errnos that
// have one, and advice goes where people find it.
func pathError(op, path string, err error) error {
	if err == nil {
		return nil
	}
	pe := &fsbridge.PathError{Op: op, Path: path, Err: err}
	var h *hinted
	if errors.As(err, &h) {
		pe.Hint = h.hint
		if h == err {
			pe.Err = h.err
		}
	}
	var escape *rooted.EscapeError
	var errno syscall.Errno
	switch {
	case errors.As(err, &escape):
		pe.Err = fsbridge.ErrOutsideRoot
		pe.Hint = escape.Hint()
	case errors.As(err, new(*readerError)):
	case errors.As(err, &errno):
		explain(pe, errno)
	}
	return pe
}

// explain adds the sentinel and the advice that belong to an errno.
func explain(pe *fsbridge.PathError, errno syscall.Errno) {
	add := func(sentinel error, advice string) {
		if sentinel != nil && !errors.Is(pe.Err, sentinel) {
			pe.Err = &both{sentinel, pe.Err}
		}
		if pe.Hint == "" {
			pe.Hint = advice
		}
	}
	switch errno {
	case syscall.EROFS:
		add(fsbridge.ErrReadOnly, "the file system is mounted read-only")
	case syscall.EINVAL:
		add(fsbridge.ErrInvalid, "")
	case syscall.ENOSPC, syscall.EDQUOT:
		add(nil, "free some space or raise the quota, then try again")
	case syscall.ENOTEMPTY:
		if pe.Op == opRemove {
			add(nil, "set Recursive to remove a directory with its content")
		}
	case syscall.EAGAIN:
		add(nil, "others are changing the same names; try again")
	case syscall.ELOOP:
		add(nil, "links lead in a circle, or through a link the kernel makes up, which is not followed")
	case syscall.EMFILE, syscall.ENFILE:
		add(nil, "too many files are open; raise the limit (ulimit -n) or do less at once")
	}
}

// readOnlyError refuses a change in a mount.
func readOnlyError(r *rooted.Root) error {
	why := "is read-only"
	if r.System() {
		why = "holds system files, which no bridge changes"
	}
	return hint(fsbridge.ErrReadOnly, "the mount %s %s", fsbridge.DisplayPath(r.Mount.Path), why)
}

// writable refuses mounts that do not permit changes.
func writable(r *rooted.Root) error {
	if r.ReadOnly() {
		return readOnlyError(r)
	}
	return nil
}
