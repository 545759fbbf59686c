package attachments

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/workberth/workberth/fsbridge"
)

// Sentinels for errors.Is. What a bridge or the media store refused stays in the chain:
// fsbridge.ErrTooLarge, fsbridge.ErrOutsideRoot, fsbridge.ErrUnsupported and so on.
var (
	// ErrDispatchBlocked: files could not be prepared, so the input must not be sent.
	ErrDispatchBlocked = errors.New("dispatch blocked")
	// ErrNotCurrent: the guard or the host's authority refused.
	ErrNotCurrent = fsbridge.ErrNotCurrent
	// ErrPlacement: the caller has not confirmed that it runs unconfined on this machine.
	ErrPlacement = errors.New("the harness has not confirmed that it runs unconfined on this machine")
	// ErrUnprepared: a file that had to be prepared has no path.
	ErrUnprepared = errors.New("the file has no path the harness could open")
	// ErrNoProvider: there are files, they must be prepared, and nobody can.
	ErrNoProvider = errors.New("this workspace has no attachment provider")
	// ErrTaken: other files have every name under which the file could be staged.
	ErrTaken = errors.New("every name is taken by another file")
	// ErrTooLong: an attachment does not fit the room in the native context.
	ErrTooLong = errors.New("it does not fit the native context")
	// ErrInvalid: an argument is malformed.
	ErrInvalid = fsbridge.ErrInvalid
)

// BlockedError tells which file blocks an input, and why. It matches ErrDispatchBlocked.
// Keeps ATT-25, ATT-30.
type BlockedError struct {
	// Name is the file as its sender called it; empty when no single one is the reason.
	Name string
	// Path is where it was to be staged, empty where it did not come to that.
	Path string
	Err  error
	// Hint says what to do next; it may be empty.
	Hint string
}

// Error gives one line: `dispatch blocked: attachment "a.pdf": file size 9 is larger than
// the limit of 8`.
func (e *BlockedError) Error() string {
	s := ErrDispatchBlocked.Error()
	if e.Name != "" {
		s += ": attachment " + quote(e.Name)
	}
	if e.Path != "" {
		s += " at " + fsbridge.DisplayPath(e.Path)
	}
	return s + ": " + e.Err.Error()
}

// Unwrap gives the reason.
func (e *BlockedError) Unwrap() error { return e.Err }

// Is matches ErrDispatchBlocked.
func (e *BlockedError) Is(target error) bool { return target == ErrDispatchBlocked }

// blocked makes err a BlockedError, unless it is one.
func blocked(name string, err error) error {
	var known *BlockedError
	if err == nil || errors.As(err, &known) {
		return err
	}
	return &BlockedError{Name: name, Err: err, Hint: hintFor(err)}
}

func hintFor(err error) string {
	var path *fsbridge.PathError
	var unsupported *fsbridge.UnsupportedError
	switch {
	case errors.Is(err, fsbridge.ErrTooLarge):
		return "attach a smaller file, or raise the configured media limit"
	case errors.Is(err, fsbridge.ErrOutcomeUnknown), errors.Is(err, fsbridge.ErrUnavailable):
		return "attach again when the workspace can be reached; what has arrived is not sent twice"
	case errors.Is(err, context.DeadlineExceeded):
		return "allow more time, or attach less at once; what has arrived is not sent twice"
	case errors.As(err, &unsupported):
		return "use a bridge that has it; nothing is substituted"
	case errors.Is(err, ErrTaken):
		return "remove what lies in media/inbound of the workspace and is not needed"
	case errors.Is(err, ErrNoProvider):
		return "bind the workspace with an access that prepares attachments, or do not require preparation"
	case errors.Is(err, ErrUnprepared):
		return "send the file itself, so that the media store has a copy"
	case errors.As(err, &path):
		return path.Hint
	}
	return ""
}

// notCurrent makes a guard's error match ErrNotCurrent.
func notCurrent(err error) error {
	if errors.Is(err, ErrNotCurrent) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrNotCurrent, err)
}

// overtime says that the total time of a preparation is over, where that is the reason.
func overtime(ctx context.Context, limit time.Duration, err error) error {
	if err == nil || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the preparation may take %v in total: %w", limit, err)
	}
	return fmt.Errorf("the preparation may take %v in total: %w: %w", limit, context.DeadlineExceeded, err)
}
