package sftpfs

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"github.com/pkg/sftp"

	"github.com/workberth/workberth/fsbridge"
)

// notCurrentError is the guard's refusal. It matches fsbridge.ErrNotCurrent and the guard's own error.
type notCurrentError struct{ err error }

func (e *notCurrentError) Error() string {
	return fsbridge.ErrNotCurrent.Error() + ": " + e.err.Error()
}
func (e *notCurrentError) Unwrap() []error { return []error{fsbridge.ErrNotCurrent, e.err} }

// protocolError is an answer that breaks the protocol.
type protocolError struct{ what string }

func (e *protocolError) Error() string { return "the server breaks the protocol: " + e.what }

// errNoAnswer is a server's "success" where something was asked for. The client passes it on as nothing.
func errNoAnswer() error { return &protocolError{"success, and not what was asked for"} }

// something refuses such an answer.
func something[T any](value *T, err error) (*T, error) {
	if value == nil && err == nil {
		return nil, errNoAnswer()
	}
	return value, err
}

// silenceError is a request that was not answered in time.
type silenceError struct{ after time.Duration }

func (e *silenceError) Error() string { return fmt.Sprintf("no answer within %s", e.after) }

// failureError is a refusal for which SFTP has no code of its own.
type failureError struct{ err *sftp.StatusError }

func (e *failureError) Error() string {
	return fmt.Sprintf("the server refuses without a reason (SFTP status %d)", e.err.Code)
}
func (e *failureError) Unwrap() error { return e.err }

// isFailure tells whether the server has refused without a reason.
func isFailure(err error) bool {
	var status *sftp.StatusError
	return errors.As(err, &status)
}

// reason is what an error of the client means to callers. Keeps FSB-11.
func (c *call) reason(err error) error {
	var status *sftp.StatusError
	changed := c.changed.Load()
	switch {
	case known(err):
		return err
	case c.ctx.Err() != nil && errors.Is(err, c.ctx.Err()):
		if c.decided.Load() {
			return fmt.Errorf("%w: %w", fsbridge.ErrOutcomeUnknown, c.ctx.Err())
		}
		return c.ctx.Err()
	case errors.As(err, &status):
		switch status.FxCode() {
		case sftp.ErrSSHFxOpUnsupported:
			return fmt.Errorf("the server does not offer this: %w", fsbridge.ErrUnsupported)
		case sftp.ErrSSHFxConnectionLost, sftp.ErrSSHFxNoConnection:
			return lost(changed, err)
		}
		return &failureError{status}
	}
	return lost(changed, err)
}

// known tells whether an error is one of this side's, or of the codes SFTP has.
func known(err error) bool {
	var (
		current  *notCurrentError
		conflict *fsbridge.ConflictError
		limit    *fsbridge.LimitError
		missing  *fsbridge.UnsupportedError
		errno    syscall.Errno
		caller   *callerError
	)
	if errors.As(err, &current) || errors.As(err, &conflict) || errors.As(err, &limit) || errors.As(err, &missing) ||
		errors.As(err, &caller) {
		return true
	}
	// The transport's own errors are numbers too.
	if errors.As(err, &errno) {
		switch errno {
		case syscall.EPIPE, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.ETIMEDOUT:
			return false
		}
		return true
	}
	for _, is := range []error{
		fs.ErrNotExist, fs.ErrExist, fs.ErrPermission, fsbridge.ErrOutsideRoot, fsbridge.ErrReadOnly, fsbridge.ErrNotRegular,
		fsbridge.ErrInvalid, fsbridge.ErrUnsupported, fsbridge.ErrCrossDevice, fsbridge.ErrUnavailable, fsbridge.ErrOutcomeUnknown,
	} {
		if errors.Is(err, is) {
			return true
		}
	}
	return false
}

// callerError is an error of the reader a write takes its content from.
type callerError struct{ err error }

func (e *callerError) Error() string { return "the content cannot be read: " + e.err.Error() }
func (e *callerError) Unwrap() error { return e.err }

// lost is the meaning of a connection that gives no answer.
func lost(changed bool, err error) error {
	if changed {
		return fmt.Errorf("%w: %w", fsbridge.ErrOutcomeUnknown, err)
	}
	return fmt.Errorf("%w: %w", fsbridge.ErrUnavailable, err)
}

// fail makes the error that callers see.
func (c *call) fail(op, p string, err error) error {
	if err == nil {
		return nil
	}
	err = c.reason(err)
	return &fsbridge.PathError{Op: op, Path: p, Err: err, Hint: hint(err)}
}

// hint says what to do next.
func hint(err error) string {
	switch {
	case errors.Is(err, fsbridge.ErrOutcomeUnknown):
		return "read it again before deciding; do not repeat blindly"
	case errors.Is(err, fsbridge.ErrUnavailable):
		return "nothing was changed; connect again"
	case errors.Is(err, fsbridge.ErrOutsideRoot):
		return "use a path inside the mounts"
	case errors.Is(err, fsbridge.ErrReadOnly):
		return "choose a writable mount"
	case errors.Is(err, fsbridge.ErrTooLarge):
		return "read the file in parts, or raise the limit"
	case errors.Is(err, fsbridge.ErrCrossDevice):
		return "copy it and remove the source"
	}
	return ""
}
