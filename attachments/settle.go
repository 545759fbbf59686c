package attachments

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/workberth/workberth/fsbridge"
)

// settleTime bounds what is done about a file whose transfer failed.
const settleTime = 10 * time.Second

// settle finds out what a failed transfer has left, on a connection of its own where the
// first one is lost, and removes an incomplete file that this call began. A file that turns
// out to be complete is a success while the turn is current: that was proved, not assumed.
func (s *staging) settle(ctx context.Context, at string, cause error) (Outcome, error) {
	switch {
	case errors.Is(cause, fsbridge.ErrOutcomeUnknown):
	case errors.Is(cause, fsbridge.ErrUnavailable), errors.Is(cause, ErrNotCurrent):
		return "", cause // nothing was changed, or nothing may be sent any more
	}
	if s.guard() != nil {
		return "", cause
	}
	brief, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	complete, err := s.tidy(brief, at)
	if errors.Is(err, fsbridge.ErrUnavailable) || errors.Is(err, fs.ErrClosed) {
		if again := s.reconnect(brief); again == nil {
			complete, err = s.tidy(brief, at)
		}
	}
	switch {
	case err != nil:
		return "", fmt.Errorf("%w; an incomplete file may be left: %w", cause, err)
	case complete && errors.Is(cause, fsbridge.ErrOutcomeUnknown) && current(ctx, s.guard) == nil:
		return Staged, nil
	}
	return "", cause
}

// reconnect makes a new bridge in place of a lost one.
func (s *staging) reconnect(ctx context.Context) error {
	old := s.bridge
	if err := s.connect(ctx); err != nil {
		return err
	}
	closeBridge(old)
	return nil
}

// tidy removes what is at a path if it is an incomplete beginning of the file, by its bytes:
// anything else was not made by this call. It reports whether the file is there, complete.
func (s *staging) tidy(ctx context.Context, at string) (complete bool, err error) {
	info, err := s.describe(ctx, at)
	switch {
	case errors.Is(err, fs.ErrNotExist), isInTheWay(err):
		return false, nil
	case err != nil:
		return false, err
	case !info.IsRegular(), info.Size > s.item.ref.Size:
		return false, nil
	}
	is, err := s.hash(ctx, at, info.Size)
	if errors.Is(err, fs.ErrNotExist) || isInTheWay(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if is == s.item.ref.Digest {
		return true, nil
	}
	want, err := s.beginning(ctx, info.Size)
	if err != nil || is != want {
		return false, err
	}
	err = fsbridge.Remove(ctx, s.bridge, at, fsbridge.RemoveOptions{If: fsbridge.Precondition{Hash: is}, IgnoreMissing: true})
	if errors.Is(err, fsbridge.ErrConflict) {
		return false, nil // it has become something else
	}
	return false, err
}

// beginning is the hash of the first n bytes of the file.
func (s *staging) beginning(ctx context.Context, n int64) (fsbridge.Digest, error) {
	o, err := s.p.opts.Store.Open(ctx, s.item.ref)
	if err != nil {
		return "", err
	}
	defer o.Close()
	return digest(io.LimitReader(o, n))
}
