package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/guestfs"
	"github.com/workberth/workberth/internal/config"
	"github.com/workberth/workberth/internal/owner"
	"github.com/workberth/workberth/remoteworkspace"
	"github.com/workberth/workberth/sandbox"
)

// ownedBridge is a bridge with the connection to the owner process that it belongs to.
type ownedBridge struct {
	*guestfs.Bridge
	handle *owner.Handle
}

// Close gives the connection back; the sandbox stays warm.
func (b ownedBridge) Close() error { return b.handle.Close() }

// bridgeFactory connects to the sandbox of an effective configuration, starting it on
// demand, by way of its owner process.
func (a *app) bridgeFactory(eff *config.Effective) fsbridge.Factory {
	return func(ctx context.Context, assert fsbridge.AssertFunc) (fsbridge.Bridge, error) {
		backend, res, err := a.resolveEffective(eff)
		if err != nil {
			return nil, err
		}
		h, err := a.connect(ctx, &target{}, backend, res)
		if err != nil {
			return nil, err
		}
		b, ok := h.Bridge().(*guestfs.Bridge)
		if !ok {
			_ = h.Close()
			return nil, fmt.Errorf("the owner process gives a bridge that cannot be guarded: %w", fsbridge.ErrUnsupported)
		}
		return ownedBridge{Bridge: b.Guarded(assert), handle: h}, nil
	}
}

// workspaceError gives an error of the workspace calls its exit code and remedy, and
// leaves out what the person has typed.
func workspaceError(err error) error {
	var doc *remoteworkspace.DocumentError
	if !errors.As(err, &doc) {
		return err
	}
	text := doc.Err
	if doc.Name != "" {
		text = fmt.Errorf("%s: %w", fsbridge.DisplayPath(doc.Name), doc.Err)
	}
	var (
		unavailable *remoteworkspace.UnavailableError
		problem     *sandbox.Problem
		path        *fsbridge.PathError
	)
	switch {
	case errors.Is(err, remoteworkspace.ErrOutcomeUnknown):
		return withHint(exitFailure, text, doc.Hint)
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &unavailable) && errors.As(err, &problem):
		return withHint(exitRefused, fmt.Errorf("the workspace cannot be reached: %w", unavailable.Err), problem.Remedy)
	case errors.As(err, &unavailable) && unavailable.Err != nil:
		return withHint(exitRefused, fmt.Errorf("the workspace cannot be reached: %w", unavailable.Err), "run the command again to connect anew; see: berth sandbox ls")
	case errors.Is(err, remoteworkspace.ErrNotAllowed), errors.Is(err, remoteworkspace.ErrInvalid):
		return withHint(exitRefused, text, doc.Hint)
	case errors.Is(err, fsbridge.ErrTooLarge) && doc.Hint == "":
		return withHint(exitFailure, text, "raise maxDocumentSize of the workspace in the configuration")
	case errors.As(err, &path):
		return withHint(exitFailure, path, pathRemedy(path))
	}
	return withHint(exitFailure, text, doc.Hint)
}
