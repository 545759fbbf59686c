package client

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/workberth/workberth/internal/guest/proc"
	"github.com/workberth/workberth/internal/guest/wire"
)

// Runner returns the runner of commands on the other side.
func (c *Conn) Runner() proc.Runner { return &runner{c} }

type runner struct{ c *Conn }

var _ proc.Runner = (*runner)(nil)

// Start starts a command. A spec without a marker gets one, so that its tree can
// be terminated also when its direct child is gone. When ctx ends before the
// command has started the server ends it.
func (r *runner) Start(ctx context.Context, spec proc.Spec, streams proc.IO) (proc.Process, error) {
	if !r.c.hello.Has(wire.FeatureExec) {
		return nil, fmt.Errorf("%w: this helper runs no commands", errors.ErrUnsupported)
	}
	if spec.Marker == "" {
		var b [16]byte
		_, _ = rand.Read(b[:]) // never fails
		spec.Marker = hex.EncodeToString(b[:])
	}
	spec.Stdin = spec.Stdin && streams.Stdin != nil
	request := wire.ExecRequest{
		Spec: spec, Stdout: streams.Stdout != nil, Stderr: streams.Stderr != nil && spec.TTY == nil,
		Window: wire.StreamWindow,
	}
	f := wire.NewOpen(wire.OpExec, 4096)
	f.B = request.Append(f.B)
	if err := checkSpec(spec, f); err != nil {
		f.Release()
		return nil, err
	}
	// Output of a channel nobody asked for is no reason to end the connection.
	call, err := r.c.Start(ctx, f, Shape{
		Reply: true, Content: spec.Stdin, Out: request.Window, Err: request.Window,
	})
	if err != nil {
		return nil, err
	}
	return startProcess(ctx, call, spec, streams)
}

// checkSpec refuses what does not fit into a frame, before anything is sent.
func checkSpec(spec proc.Spec, f *wire.Frame) error {
	what := ""
	if len(spec.Argv) > 0 {
		what = wire.Printable(spec.Argv[0], wire.MaxWord)
	}
	_, fits := f.Bytes()
	switch {
	case len(spec.Dir) > wire.MaxPath:
		return &proc.StartError{
			Reason: proc.BadSpec, What: fmt.Sprintf("working directory of %d bytes", len(spec.Dir)),
			Err: syscall.ENAMETOOLONG,
		}
	case len(spec.Marker) > wire.MaxWord:
		return &proc.StartError{Reason: proc.BadSpec, What: fmt.Sprintf("marker of %d bytes", len(spec.Marker))}
	case !fits || len(spec.Argv) > wire.MaxArgs || len(spec.Env) > wire.MaxArgs:
		return &proc.StartError{Reason: proc.LimitReached, What: what, Err: syscall.E2BIG}
	}
	return nil
}

// Terminate ends the tree that carries the marker.
func (r *runner) Terminate(ctx context.Context, marker string, grace time.Duration) (proc.TerminateResult, error) {
	return r.c.terminate(ctx, wire.TerminateRequest{Marker: marker, Grace: grace})
}

// terminate asks the server to end a tree. Without an answer the outcome is
// proc.Unknown, and the error says why.
func (c *Conn) terminate(ctx context.Context, r wire.TerminateRequest) (proc.TerminateResult, error) {
	unknown := proc.TerminateResult{Outcome: proc.Unknown}
	if len(r.Marker) > wire.MaxWord {
		return unknown, fmt.Errorf("terminate: marker of %d bytes: %w", len(r.Marker), syscall.EINVAL)
	}
	f := wire.NewOpen(wire.OpTerminate, 64)
	f.B = r.Append(f.B)
	f, err := c.Do(ctx, f)
	if err != nil {
		return unknown, fmt.Errorf("terminate: %w", err)
	}
	defer f.Release()
	d := wire.NewDecoder(f.Payload())
	res := d.TerminateResult()
	if err := d.Finish(); err != nil {
		return unknown, &LostError{Sent: true, Err: c.Violated(err)}
	}
	return res, nil
}
