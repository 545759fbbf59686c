package guestfs

import (
	"context"
	"errors"
	"fmt"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/guest/client"
)

// notCurrentError is a refusal by the guard or by revocation. It matches
// fsbridge.ErrNotCurrent and the error of who refused.
type notCurrentError struct{ err error }

func (e *notCurrentError) Error() string {
	return fsbridge.ErrNotCurrent.Error() + ": " + e.err.Error()
}

func (e *notCurrentError) Unwrap() []error { return []error{fsbridge.ErrNotCurrent, e.err} }

// fail makes the error of a request from whatever ended it. The path is always
// one the caller named, whatever the server says.
func (r *request) fail(err error) error {
	out := &fsbridge.PathError{Op: r.op.String(), Path: r.path, Err: err}
	var (
		lost   *client.LostError
		remote *fsbridge.PathError
	)
	switch {
	case errors.As(err, &lost):
		out.Hint, out.Err = r.lost(lost)
	case r.ctx.Err() != nil && errors.Is(err, r.ctx.Err()):
		out.Err = r.ctx.Err()
	case errors.As(err, &remote):
		if remote.Op != "" {
			out.Op = remote.Op
		}
		if remote.Path == r.also && r.also != "" {
			out.Path = r.also
		}
		out.Err, out.Hint = r.foreign(remote.Err), remote.Hint
	default:
		out.Err = r.foreign(err)
	}
	return out
}

// refuse makes the error of a request that this side ends, for reasons of its
// caller.
func (r *request) refuse(err error) error {
	return &fsbridge.PathError{Op: r.op.String(), Path: r.path, Err: err}
}

// lost says what a call without an answer means. Keeps FSB-11.
func (r *request) lost(lost *client.LostError) (hint string, err error) {
	if lost.Sent && r.op.Mutates() {
		return "read it again before deciding; do not repeat blindly", fmt.Errorf("%w: %w", fsbridge.ErrOutcomeUnknown, lost.Err)
	}
	return "nothing was changed; connect again", fmt.Errorf("%w: %w", fsbridge.ErrUnavailable, lost.Err)
}

// foreign keeps an error of the server from being taken for one of the caller's
// ctx, which has not ended: the server gave the call up for reasons of its own.
func (r *request) foreign(err error) error {
	if !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if r.op.Mutates() {
		return fmt.Errorf("%w: the helper gave up: %s", fsbridge.ErrOutcomeUnknown, err.Error())
	}
	return fmt.Errorf("%w: the helper gave up: %s", fsbridge.ErrUnavailable, err.Error())
}
