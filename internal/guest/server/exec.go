package server

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/workberth/workberth/internal/guest/proc"
	"github.com/workberth/workberth/internal/guest/wire"
)

// exec starts a command and answers with how it ended. A caller that cancels, and
// a connection that ends, terminate the command.
func (st *stream) exec(d *wire.Decoder) (*wire.Frame, error) {
	r := d.ExecRequest()
	if err := d.Finish(); err != nil {
		return nil, malformed(err)
	}
	if st.s.cfg.Runner == nil {
		return nil, fmt.Errorf("%w: this server runs no commands", errors.ErrUnsupported)
	}
	if err := st.allow(r.Window); err != nil {
		return nil, err
	}
	st.releaseRequest()
	grace := r.Spec.Grace
	if grace <= 0 {
		grace = proc.DefaultGrace
	}
	st.grace.Store(int64(grace))

	// Not the call's ctx: the output of a command that is being ended is still
	// delivered, for a while.
	outputs, stopOutputs := context.WithCancel(st.s.ctx)
	defer stopOutputs()
	streams := proc.IO{
		Stdout: st.output(outputs, wire.ChannelOut, r.Stdout),
		Stderr: st.output(outputs, wire.ChannelErr, r.Stderr),
	}
	if r.Spec.Stdin {
		st.widen(wire.StreamWindow)
		// Nor here: what ends the input is the peer, or cancelling,
		// which drops the channel.
		streams.Stdin = st.in.Reader(st.s.waits)
	}
	p, err := st.s.cfg.Runner.Start(st.ctx, r.Spec, streams)
	if err != nil {
		return nil, err
	}
	st.s.addCommand(st.id, p)
	started := wire.NewFrame(wire.KindReply, st.id, 8)
	started.B = binary.AppendUvarint(started.B, uint64(max(p.Pid(), 0)))
	_ = st.send(st.s.ctx, started) // fails with the connection only, which is looked at below

	status, err := p.Wait(st.ctx)
	if err != nil && st.ctx.Err() != nil {
		if st.s.ctx.Err() != nil && r.Spec.KeepDescendants {
			return nil, errPeerGone // it goes on without us
		}
		status, err = st.putDown(p, r.Spec, stopOutputs)
	}
	if err != nil {
		return nil, err
	}
	f := st.done(32)
	f.B = wire.AppendStatus(f.B, status)
	return f, nil
}

// putDown terminates a command whose caller cancelled or is gone. A caller who
// does not take the last of the output cannot hold this up.
func (st *stream) putDown(p proc.Process, spec proc.Spec, stopOutputs func()) (proc.Status, error) {
	timer := time.AfterFunc(st.s.cfg.Limits.Drain+time.Duration(st.grace.Load()), stopOutputs)
	defer timer.Stop()
	if _, err := p.Terminate(st.s.waits, spec.Grace); err != nil {
		st.s.cfg.Logger.Warn("cannot terminate an abandoned command", "pid", p.Pid(), "error", err)
	}
	return p.Wait(st.s.waits)
}

func (st *stream) signal(d *wire.Decoder) (*wire.Frame, error) {
	r := d.SignalRequest()
	if err := d.Finish(); err != nil {
		return nil, malformed(err)
	}
	p, ok := st.s.command(r.Stream)
	if !ok {
		return nil, os.ErrProcessDone
	}
	return st.empty(p.Signal(st.ctx, r.Signal))
}

func (st *stream) resize(d *wire.Decoder) (*wire.Frame, error) {
	r := d.ResizeRequest()
	if err := d.Finish(); err != nil {
		return nil, malformed(err)
	}
	p, ok := st.s.command(r.Stream)
	if !ok {
		return st.done(0), nil
	}
	return st.empty(p.Resize(st.ctx, r.Size))
}

// terminate runs to its end even when the caller cancels: half a termination
// helps nobody.
func (st *stream) terminate(d *wire.Decoder) (*wire.Frame, error) {
	r := d.TerminateRequest()
	if err := d.Finish(); err != nil {
		return nil, malformed(err)
	}
	if st.s.cfg.Runner == nil {
		return nil, fmt.Errorf("%w: this server runs no commands", errors.ErrUnsupported)
	}
	grace := r.Grace
	if grace <= 0 {
		grace = proc.DefaultGrace
	}
	st.grace.Store(int64(grace))
	var (
		res proc.TerminateResult
		err error
	)
	if p, ok := st.s.command(r.Stream); ok {
		res, err = p.Terminate(st.s.waits, r.Grace)
	} else {
		res, err = st.s.cfg.Runner.Terminate(st.s.waits, r.Marker, r.Grace)
	}
	if err != nil {
		return nil, err
	}
	f := st.done(16 + 5*len(res.Pids))
	f.B = wire.AppendTerminateResult(f.B, res)
	return f, nil
}

func (st *stream) sweep(d *wire.Decoder) (*wire.Frame, error) {
	r := d.SweepRequest()
	if err := d.Finish(); err != nil {
		return nil, malformed(err)
	}
	if st.s.cfg.Sweep == nil {
		return nil, fmt.Errorf("%w: this server sweeps nothing", errors.ErrUnsupported)
	}
	n, err := st.s.cfg.Sweep(context.WithoutCancel(st.ctx), r.Tag)
	if err != nil {
		return nil, err
	}
	f := st.done(10)
	f.B = binary.AppendUvarint(f.B, uint64(max(n, 0)))
	return f, nil
}
