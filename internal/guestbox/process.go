package guestbox

import (
	"context"

	"github.com/workberth/workberth/internal/guest/proc"
	"github.com/workberth/workberth/sandbox"
)

// process is a launched command.
type process struct {
	h      *Handle
	marker string
	proc   proc.Process
}

var _ sandbox.Process = (*process)(nil)

// newProcess lists the command as running until it is over.
func newProcess(h *Handle, marker string, p proc.Process) *process {
	h.box.launched(marker, p)
	go func() {
		status, err := p.Wait(context.Background())
		h.box.over(marker, p)
		if err == nil && status.Unknown && h.box.alive() {
			// The helper lives and cannot tell: the command got at its reaper.
			h.box.taint("a command ended in an unknown way: " + status.Reason)
		}
	}()
	return &process{h, marker, p}
}

// Pid is the process id inside.
func (p *process) Pid() int { return p.proc.Pid() }

// Wait returns how the command ended. When the sandbox ended under it, or a stream
// of the caller failed, the reason says so.
func (p *process) Wait(ctx context.Context) (sandbox.ExitStatus, error) {
	s, err := p.proc.Wait(ctx)
	if err != nil && ctx.Err() != nil {
		return sandbox.ExitStatus{}, err
	}
	status := sandbox.ExitStatus{Code: s.Code, Signal: s.Signal, Unknown: s.Unknown, Reason: s.Reason, Leftover: s.Leftover}
	if err != nil { // a stream of the caller failed, which ended the command
		status.Reason = err.Error()
	}
	if status.Unknown && !p.h.box.alive() {
		if reason := p.h.box.settled(ctx); reason != nil {
			status.Reason = reason.Error()
		}
	}
	return status, nil
}

// Resize sets the terminal's size. It makes the kernel send a signal, so it is
// refused where signals are.
func (p *process) Resize(ctx context.Context, size sandbox.TTYSize) error {
	if err := p.h.AssertCurrent(); err != nil {
		return err
	}
	return p.proc.Resize(ctx, proc.Size{Rows: size.Rows, Cols: size.Cols})
}

// Signal sends a signal to the command's process group, refused after revocation.
func (p *process) Signal(ctx context.Context, signal int) error {
	if err := p.h.AssertCurrent(); err != nil {
		return err
	}
	return p.proc.Signal(ctx, signal)
}
