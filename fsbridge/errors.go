package fsbridge

import (
	"errors"
	"fmt"
	"io/fs"
)

// Sentinels for errors.Is. fs.ErrNotExist, fs.ErrExist and fs.ErrPermission keep
// their standard meaning, and the errno of the environment's kernel
// (syscall.ENOSPC, syscall.ENOTDIR, ...) is kept in the chain where there is one.
var (
	// ErrOutsideRoot: the path, or a link on it, leaves the permitted mounts.
	ErrOutsideRoot = errors.New("outside the permitted directories")
	// ErrReadOnly: the mount does not permit changes.
	ErrReadOnly = errors.New("read-only")
	// ErrNotRegular: content was asked of something that is not a regular file.
	ErrNotRegular = errors.New("not a regular file")
	// ErrTooLarge: a limit was exceeded; nothing was cut or changed.
	ErrTooLarge = errors.New("larger than the limit")
	// ErrConflict: a precondition did not hold.
	ErrConflict = errors.New("changed by someone else")
	// ErrUnsupported: the bridge lacks the capability.
	ErrUnsupported = errors.ErrUnsupported
	// ErrNotCurrent: the guard or the environment's revocation refused the
	// command; it was not sent.
	ErrNotCurrent = errors.New("authority is gone")
	// ErrOutcomeUnknown: the transport failed after a change may have reached
	// the environment. Read again before deciding; never repeat blindly.
	ErrOutcomeUnknown = errors.New("outcome unknown: the connection failed after the change may have been made")
	// ErrUnavailable: the transport failed before the command was sent, or a
	// read was cut; the environment was not changed by this call.
	ErrUnavailable = errors.New("environment is unavailable")
	// ErrInvalidPath: an empty path, a NUL byte, or more than MaxPath bytes. It
	// also matches ErrOutsideRoot, since such a path lies in no mount.
	ErrInvalidPath = fmt.Errorf("invalid path (%w)", ErrOutsideRoot)
	// ErrCrossDevice: a directory cannot be renamed to another file system.
	ErrCrossDevice = errors.New("on another file system")
	// ErrInvalid: an option or argument is malformed.
	ErrInvalid = fs.ErrInvalid
)

// PathError reports a failed operation: what was asked, of which path, and the
// rule or reason. Path is the path as the caller asked for it.
type PathError struct {
	Op   string
	Path string
	Err  error
	// Hint says what to do next; it may be empty.
	Hint string
}

// Error gives one line: "read notes.txt: outside the permitted directories".
func (e *PathError) Error() string {
	p := DisplayPath(e.Path)
	if p == "" {
		p = `""`
	}
	return e.Op + " " + p + ": " + e.Err.Error()
}

// Unwrap returns the reason.
func (e *PathError) Unwrap() error { return e.Err }

// ConflictError reports a precondition that did not hold. It matches ErrConflict.
type ConflictError struct {
	// Current is the digest of the present content; empty when the file does
	// not exist (or is not a regular file).
	Current Digest
	// Expected is what the caller demanded; empty for Precondition.Absent.
	Expected Digest
}

// Error tells both digests.
func (e *ConflictError) Error() string {
	expected, found := "no file", "no regular file"
	if e.Expected != "" {
		expected = "sha256 " + string(e.Expected)
	}
	if e.Current != "" {
		found = "sha256 " + string(e.Current)
	} else if e.Expected == "" {
		found = "something that is not a regular file"
	}
	return fmt.Sprintf("changed by someone else: expected %s, found %s", expected, found)
}

// Is matches ErrConflict.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// LimitError reports an exceeded limit. It matches ErrTooLarge.
type LimitError struct {
	// What was limited ("file size", "directory entries", "matches").
	What string
	// Limit is the bound that was exceeded, in bytes or entries.
	Limit int64
	// Actual is the real size where it is known, zero otherwise.
	Actual int64
}

// Error tells the limit and, where known, the size.
func (e *LimitError) Error() string {
	if e.Actual > 0 {
		return fmt.Sprintf("%s %d is larger than the limit of %d", e.What, e.Actual, e.Limit)
	}
	return fmt.Sprintf("%s is larger than the limit of %d", e.What, e.Limit)
}

// Is matches ErrTooLarge.
func (e *LimitError) Is(target error) bool { return target == ErrTooLarge }

// UnsupportedError names the missing capability. It matches ErrUnsupported.
type UnsupportedError struct{ Capability Capability }

// Error names the capability.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("this environment's bridge does not support %q", e.Capability)
}

// Is matches ErrUnsupported (and so errors.ErrUnsupported).
func (e *UnsupportedError) Is(target error) bool { return target == ErrUnsupported }
