package guestbox

import (
	"context"
	"fmt"
	"sync"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/guestfs"
	"github.com/workberth/workberth/sandbox"
)

// Handle is a caller's view of a box. It implements sandbox.Sandbox with custody of
// process trees. Keeps SBX-02, SBX-04 to SBX-13, FSB-10, FSB-12.
type Handle struct {
	box *Box

	mu      sync.Mutex
	closed  bool
	revoked *sandbox.RevokedError
	tokens  map[*token]struct{}
}

var (
	_ sandbox.Sandbox        = (*Handle)(nil)
	_ sandbox.ProcessCleaner = (*Handle)(nil)
	_ sandbox.Asserter       = (*Handle)(nil)
)

func newHandle(b *Box) *Handle { return &Handle{box: b, tokens: make(map[*token]struct{})} }

// Info describes the sandbox as it is now.
func (h *Handle) Info() sandbox.Info { return h.box.info() }

// Done is closed when the generation has ended. A closed handle's too, when the
// others have been closed.
func (h *Handle) Done() <-chan struct{} { return h.box.done }

// Err says why the generation ended.
func (h *Handle) Err() error { return h.box.Err() }

// Revoke withdraws this handle's authority for good. The first reason counts.
func (h *Handle) Revoke(reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.revoked == nil {
		h.revoked = &sandbox.RevokedError{Reason: reason}
	}
}

// errHandleClosed is the reason of a handle that was given back.
var errHandleClosed = fmt.Errorf("%w: this handle was closed", sandbox.ErrGone)

// AssertCurrent tells, without I/O, whether commands may be started through this
// handle. Keeps SBX-04.
func (h *Handle) AssertCurrent() error {
	if err := h.execution(); err != nil {
		return err
	}
	return h.box.gone()
}

// execution is the part of the live check that concerns this handle's authority.
func (h *Handle) execution() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.revoked != nil:
		return h.revoked
	case h.closed:
		return errHandleClosed
	}
	return nil
}

// open tells whether the handle may still be used to read.
func (h *Handle) open() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return errHandleClosed
	}
	return nil
}

// Bridge makes a guarded bridge. Changes through it are refused once this handle is
// revoked, everything once it is closed. Keeps FSB-10, FSB-12, FSB-13.
func (h *Handle) Bridge(ctx context.Context, assertCurrent fsbridge.AssertFunc) (fsbridge.Bridge, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := h.open(); err != nil {
		return nil, err
	}
	if err := h.box.gone(); err != nil {
		return nil, err
	}
	return guestfs.New(h.box.conn, guestfs.Options{
		Assert: func() error {
			if err := h.open(); err != nil {
				return err
			}
			if assertCurrent != nil {
				return assertCurrent()
			}
			return nil
		},
		Revoked: h.execution,
		Mounts:  h.box.opts.Info.Mounts,
	}), nil
}

// Close gives the handle back. The last one to be closed ends the generation with
// all its processes, and returns when that is done. Closing again does nothing.
func (h *Handle) Close() error {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil
	}
	h.closed = true
	h.mu.Unlock()
	h.box.release()
	select {
	case <-h.box.ending:
		<-h.box.done
	default: // somebody else still uses it
	}
	return nil
}
