package client

import (
	"context"

	"github.com/workberth/workberth/internal/guest/mux"
	"github.com/workberth/workberth/internal/guest/wire"
)

// Shape says what a call consists of beside its request and its last frame.
type Shape struct {
	// Reply: a reply frame may come.
	Reply bool
	// Content: the caller sends on ChannelIn.
	Content bool
	// Out and Err are the credit of the output channels as the request told the
	// server; zero means that nothing may come on them.
	Out, Err int
}

// Do makes a call that is answered with one frame, which the caller then owns.
// The frame f, made with wire.NewOpen, is taken over. Errors:
//
//   - a *LostError when there was no answer;
//   - ctx's error when ctx ended before the request was sent, or the call changes
//     nothing;
//   - otherwise what the server answered.
func (c *Conn) Do(ctx context.Context, f *wire.Frame) (*wire.Frame, error) {
	call, err := c.Start(ctx, f, Shape{})
	if err != nil {
		return nil, err
	}
	return call.Answer(ctx)
}

// Start sends the request of a call. Its errors mean that nothing was sent: ctx's
// error, or a *LostError whose Sent is false.
func (c *Conn) Start(ctx context.Context, f *wire.Frame, shape Shape) (*Call, error) {
	call := &Call{c: c, op: wire.Op(f.Payload()[0]), result: make(chan *wire.Frame, 1)}
	call.short = !shape.Content && !call.op.Long()
	if shape.Reply {
		call.reply = make(chan *wire.Frame, 1)
	}
	if shape.Content {
		call.in = mux.NewOutflow(wire.InitialWindow)
	}
	for i, window := range []int{shape.Out, shape.Err} {
		if window > 0 {
			call.out[i] = mux.NewInflow(max(window, wire.InitialWindow), call.grant(uint8(i)+wire.ChannelOut))
		}
	}
	if err := c.slot(ctx); err != nil {
		f.Release()
		return nil, err
	}
	if err := c.out.SendOrdered(ctx, f, func() error { return c.enter(call, f) }); err != nil {
		<-c.slots
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, &LostError{Err: err}
	}
	if !call.short {
		c.ensureReader()
	}
	return call, nil
}

// slot takes one of the places for open calls.
func (c *Conn) slot(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case c.slots <- struct{}{}:
		return nil
	default:
	}
	select {
	case c.slots <- struct{}{}:
		return nil
	case <-c.over:
		return &LostError{Err: c.Err()}
	case <-ctx.Done():
		return ctx.Err()
	}
}

// enter gives the call its stream. It runs in the order in which requests are
// sent, so that the numbers rise on the wire.
func (c *Conn) enter(call *Call, f *wire.Frame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	c.last++
	call.id = c.last
	c.calls[call.id] = call
	f.SetStream(call.id)
	return nil
}

// Echo sends data and returns what comes back, which is the same. It shows that
// the connection lives, and what a round trip costs.
func (c *Conn) Echo(ctx context.Context, data []byte) ([]byte, error) {
	f := wire.NewOpen(wire.OpEcho, len(data))
	f.B = append(f.B, data...)
	f, err := c.Do(ctx, f)
	if err != nil {
		return nil, err
	}
	defer f.Release()
	if string(f.Payload()) != string(data) {
		return nil, &LostError{Sent: true, Err: c.Violated(wire.Violation("echo differs from what was sent"))}
	}
	return append([]byte(nil), data...), nil
}
