package guestbox

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/workberth/workberth/internal/guest/client"
	"github.com/workberth/workberth/internal/guest/proc"
	"github.com/workberth/workberth/sandbox"
)

// custody ends the tree of one command. It is pinned to a box, so it can act on no
// other generation, and independent of the handle it was made by, so it outlives
// that one's revocation and end.
type custody struct {
	box    *Box
	marker string
}

// PrepareProcessCleanup makes custody for one command. Keeps SBX-07, SBX-08.
func (h *Handle) PrepareProcessCleanup(ctx context.Context, env sandbox.Env) (sandbox.Prepared, error) {
	if err := ctx.Err(); err != nil {
		return sandbox.Prepared{}, err
	}
	if err := h.AssertCurrent(); err != nil {
		return sandbox.Prepared{}, err
	}
	c := &custody{box: h.box, marker: sandbox.NewMarker()}
	return sandbox.Prepared{
		Env: sandbox.WithMarker(env, c.marker), Marker: c.marker,
		Terminate: c.terminate,
		Interrupt: func(ctx context.Context) error {
			if err := h.AssertCurrent(); err != nil {
				return err
			}
			return c.interrupt(ctx)
		},
	}, nil
}

// terminate ends the tree; see sandbox.Prepared. Keeps SBX-09 to SBX-12.
func (c *custody) terminate(ctx context.Context, grace time.Duration) (sandbox.TerminateResult, error) {
	if grace <= 0 {
		grace = sandbox.DefaultGrace
	}
	b := c.box
	select {
	case <-b.done:
		return b.opts.Runtime.TerminateAfter(ctx, c.marker, grace)
	default:
	}
	r, err := b.runner.Terminate(ctx, c.marker, grace)
	var lost *client.LostError
	if errors.As(err, &lost) && ctx.Err() == nil {
		// The helper cannot be asked any more: the generation is ending.
		select {
		case <-b.done:
			return b.opts.Runtime.TerminateAfter(ctx, c.marker, grace)
		case <-ctx.Done():
		}
	}
	if r.Outcome == proc.Survivors {
		b.taint(fmt.Sprintf("processes %v of a command do not end", r.Pids))
	}
	return sandbox.TerminateResult{Outcome: sandbox.Termination(r.Outcome), Pids: r.Pids}, err
}

// interrupt sends SIGINT to the command's process group.
func (c *custody) interrupt(ctx context.Context) error {
	p, ok := c.box.find(c.marker)
	if !ok {
		return fmt.Errorf("nothing to interrupt, the command was not launched or is over: %w", sandbox.ErrNotFound)
	}
	return p.Signal(ctx, int(syscall.SIGINT))
}
