package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"sync"
	"time"

	"github.com/workberth/workberth/internal/guest/proc"
	"github.com/workberth/workberth/internal/guest/wire"
)

// process is a command on the other side.
type process struct {
	call *Call
	spec proc.Spec
	pid  int
	over chan struct{} // closed with status and err

	status proc.Status
	err    error

	mu     sync.Mutex
	broken error // what a stream of the caller failed with
}

var _ proc.Process = (*process)(nil)

// startProcess waits for the server to say that the command has started.
func startProcess(ctx context.Context, call *Call, spec proc.Spec, streams proc.IO) (proc.Process, error) {
	first, done, err := call.First(ctx)
	if err != nil || done && ctx.Err() != nil {
		return nil, call.notStarted(ctx, first, err)
	}
	defer first.Release()
	if done {
		return nil, &LostError{Sent: true, Err: call.c.Violated(wire.Violation("a command ended before it started"))}
	}
	d := wire.NewDecoder(first.Payload())
	pid := int(d.Upto(math.MaxInt32))
	if err := d.Finish(); err != nil {
		return nil, &LostError{Sent: true, Err: call.c.Violated(err)}
	}
	p := &process{call: call, spec: spec, pid: pid, over: make(chan struct{})}
	if spec.Stdin {
		// It may be stuck in a Read when the command is over; nobody waits for it.
		go func() { p.broke(call.feed(streams.Stdin), call.Cancel) }()
	}
	var outputs sync.WaitGroup
	for channel, w := range map[uint8]io.Writer{wire.ChannelOut: streams.Stdout, wire.ChannelErr: streams.Stderr} {
		if w == nil {
			w = io.Discard
		}
		outputs.Go(func() { p.broke(drain(call.Output(channel), w, call.Cancel), nil) })
	}
	go func() {
		defer close(p.over)
		outputs.Wait() // the outputs end with the call
		p.status, p.err = p.ended(call.Answer(context.Background()))
	}()
	return p, nil
}

// notStarted is the error of a start that failed, or whose ctx ended first. In
// that case the server is ending the command; what it still writes is thrown away.
func (call *Call) notStarted(ctx context.Context, last *wire.Frame, err error) error {
	for _, in := range call.out {
		go func() { _ = drain(in, io.Discard, nil) }()
	}
	if last != nil {
		last.Release()
	}
	var lost *LostError
	if ctx.Err() == nil || errors.As(err, &lost) {
		return err
	}
	return ctx.Err()
}

// broke remembers that a stream of the caller failed, which ends the command.
func (p *process) broke(err error, cancel func()) {
	if err == nil {
		return
	}
	p.mu.Lock()
	p.broken = errors.Join(p.broken, err)
	p.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// ended makes the status of the call's last frame.
func (p *process) ended(f *wire.Frame, err error) (proc.Status, error) {
	p.mu.Lock()
	broken := p.broken
	p.mu.Unlock()
	if err != nil {
		return proc.Status{Unknown: true, Reason: err.Error()}, broken
	}
	defer f.Release()
	d := wire.NewDecoder(f.Payload())
	status := d.Status()
	if err := d.Finish(); err != nil {
		return proc.Status{Unknown: true, Reason: p.call.c.Violated(err).Error()}, broken
	}
	return status, broken
}

// Pid is the process id inside the environment.
func (p *process) Pid() int { return p.pid }

// Wait returns how the command ended; Unknown when the connection was lost. Its
// error is ctx's, or that of a stream of the caller that failed, which ended the
// command; then the status is told as well.
func (p *process) Wait(ctx context.Context) (proc.Status, error) {
	select {
	case <-p.over:
		return p.status, p.err
	default:
	}
	select {
	case <-p.over:
		return p.status, p.err
	case <-ctx.Done():
		return proc.Status{}, ctx.Err()
	}
}

// Signal sends a signal; os.ErrProcessDone when the command is over.
func (p *process) Signal(ctx context.Context, signal int) error {
	f := wire.NewOpen(wire.OpSignal, 16)
	f.B = wire.SignalRequest{Stream: p.call.id, Signal: signal}.Append(f.B)
	return p.control(ctx, "signal", f)
}

// Resize sets the terminal's size.
func (p *process) Resize(ctx context.Context, size proc.Size) error {
	f := wire.NewOpen(wire.OpResize, 16)
	f.B = wire.ResizeRequest{Stream: p.call.id, Size: size}.Append(f.B)
	err := p.control(ctx, "resize", f)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

func (p *process) control(ctx context.Context, what string, f *wire.Frame) error {
	f, err := p.call.c.Do(ctx, f)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	defer f.Release()
	if len(f.Payload()) > 0 {
		return &LostError{Sent: true, Err: p.call.c.Violated(wire.Violation("answer to %s is not empty", what))}
	}
	return nil
}

// Terminate ends the whole tree, also when the direct child is gone.
func (p *process) Terminate(ctx context.Context, grace time.Duration) (proc.TerminateResult, error) {
	return p.call.c.terminate(ctx, wire.TerminateRequest{
		Stream: p.call.id, Marker: p.spec.Marker, Grace: grace,
	})
}
