package client

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/workberth/workberth/internal/guest/mux"
	"github.com/workberth/workberth/internal/guest/wire"
)

// Call is one call on the wire.
type Call struct {
	c  *Conn
	id uint64
	op wire.Op
	// short: the call will probably be answered at once.
	short bool
	// awaited: its caller has waited before. Only the caller uses it.
	awaited bool
	// arrived: something has come. Only the holder of the baton uses it.
	arrived bool

	reply  chan *wire.Frame // takes one reply frame; nil where none may come
	result chan *wire.Frame // takes the done or fail frame

	in  *mux.Outflow   // ChannelIn: what we may send; nil where nothing is sent
	out [2]*mux.Inflow // ChannelOut and ChannelErr; nil where nothing may come
}

// finish takes the call's last frame.
func (call *Call) finish(f *wire.Frame) {
	if call.in != nil {
		call.in.Fail(errAnswered)
	}
	call.result <- f
	for _, in := range call.out {
		if in != nil {
			in.End(nil)
		}
	}
}

// errAnswered stops a sender of content whose call has its answer already.
var errAnswered = errors.New("the call is answered")

// cut ends the call with the connection.
func (call *Call) cut(err error) {
	if call.in != nil {
		call.in.Fail(err)
	}
	for _, in := range call.out {
		if in != nil {
			in.End(err)
		}
	}
}

// take takes over a frame that is not the call's last.
func (call *Call) take(f *wire.Frame) error {
	switch f.Kind() {
	case wire.KindReply:
		if call.reply == nil {
			f.Release()
			return wire.Violation("reply to a call that ends with its answer")
		}
		select {
		case call.reply <- f:
			return nil
		default:
			f.Release()
			return wire.Violation("second reply to a call")
		}
	case wire.KindData:
		p := f.Payload()
		if in := call.channel(p); in != nil {
			return in.Deliver(f)
		}
		f.Release()
		return wire.Violation("data on a channel that takes none")
	case wire.KindEnd:
		defer f.Release()
		p := f.Payload()
		in := call.channel(p)
		if in == nil || len(p) != 1 {
			return wire.Violation("end of a channel that does not exist")
		}
		in.End(nil)
		return nil
	case wire.KindCredit:
		defer f.Release()
		d := wire.NewDecoder(f.Payload())
		channel, n := d.Byte(), d.Upto(wire.MaxWindow)
		if err := d.Finish(); err != nil {
			return err
		}
		if call.in == nil || channel != wire.ChannelIn {
			return wire.Violation("credit for a channel that does not exist")
		}
		return call.in.Grant(int(n))
	default:
		defer f.Release()
		return wire.Violation("%v frame from a server", f.Kind())
	}
}

func (call *Call) channel(payload []byte) *mux.Inflow {
	if len(payload) == 0 || payload[0] < wire.ChannelOut || payload[0] > wire.ChannelErr {
		return nil
	}
	return call.out[payload[0]-1]
}

// Answer waits for the frame that ends the call, which the caller then owns, or
// the error that ends it. When ctx ends first the server is told; a call that may
// change something then waits a little longer for the truth, and is a *LostError
// if that does not come.
func (call *Call) Answer(ctx context.Context) (*wire.Frame, error) {
	call.Await(ctx)
	select {
	case f := <-call.result:
		return call.decode(f)
	case <-call.c.over:
		return call.lost()
	case <-ctx.Done():
		return call.Settle(ctx.Err())
	}
}

// Settle cancels the call because of cause and returns what became of it: cause
// for a call that changes nothing; otherwise the server's answer, if it comes
// within Options.CancelWait, and a *LostError that wraps cause if not.
func (call *Call) Settle(cause error) (*wire.Frame, error) {
	call.Cancel()
	if !call.op.Mutates() {
		return nil, cause
	}
	timer := time.NewTimer(call.c.cancelWait)
	defer timer.Stop()
	select {
	case f := <-call.result:
		return call.decode(f)
	case <-call.c.over:
		f, err := call.lost()
		if lost := (*LostError)(nil); errors.As(err, &lost) {
			lost.Err = errors.Join(cause, lost.Err)
		}
		return f, err
	case <-timer.C:
		return nil, &LostError{Sent: true, Err: cause}
	}
}

// lost is the end of a call whose connection is over. An answer that came before
// still counts.
func (call *Call) lost() (*wire.Frame, error) {
	select {
	case f := <-call.result:
		return call.decode(f)
	default:
		return nil, &LostError{Sent: true, Err: call.c.Err()}
	}
}

// decode returns a done frame as it is, and the error of a fail frame.
func (call *Call) decode(f *wire.Frame) (*wire.Frame, error) {
	if f.Kind() == wire.KindDone {
		return f, nil
	}
	defer f.Release()
	d := wire.NewDecoder(f.Payload())
	err := d.Error()
	if bad := d.Finish(); bad != nil {
		return nil, &LostError{Sent: true, Err: call.c.Violated(bad)}
	}
	return nil, err
}

// First waits for the reply to a call that goes on. A call that ended without one
// gives its last frame, or its error, and done.
func (call *Call) First(ctx context.Context) (f *wire.Frame, done bool, err error) {
	call.Await(ctx)
	select {
	case f := <-call.reply:
		return f, false, nil
	case <-ctx.Done():
	case <-call.c.over:
	case f := <-call.result:
		select {
		case reply := <-call.reply: // it came before; the end is for Answer
			call.result <- f
			return reply, false, nil
		default:
		}
		f, err := call.decode(f)
		return f, true, err
	}
	f, err = call.Answer(ctx)
	return f, true, err
}

// Cancel tells the server that nobody waits for the call any more.
func (call *Call) Cancel() {
	_ = call.c.out.Post(wire.NewFrame(wire.KindCancel, call.id, 0))
}

// Abandon is Cancel by a caller that will not look at the call again.
func (call *Call) Abandon() {
	call.Cancel()
	for _, in := range call.out {
		if in != nil {
			in.Drop(io.ErrClosedPipe)
		}
	}
}

// Output returns an output channel.
func (call *Call) Output(channel uint8) *mux.Inflow { return call.out[channel-1] }

// Room waits for credit to send content and takes up to n bytes of it. Its error
// says nothing about the call: Answer does.
func (call *Call) Room(ctx context.Context, n int) (int, error) { return call.in.Acquire(ctx, n) }

// Return gives back credit that was not used.
func (call *Call) Return(n int) { call.in.Return(n) }

// Data begins a frame of content.
func (call *Call) Data(size int) *wire.Frame { return wire.NewData(call.id, wire.ChannelIn, size) }

// Send sends a frame made by Data, whose content has its credit.
func (call *Call) Send(ctx context.Context, f *wire.Frame) error { return call.c.out.Send(ctx, f) }

// End says that the content is complete.
func (call *Call) End(ctx context.Context) error {
	return call.c.out.Send(ctx, wire.NewEnd(call.id, wire.ChannelIn))
}

// grant returns credit for an output channel.
func (call *Call) grant(channel uint8) func(n int) {
	return func(n int) { _ = call.c.out.Post(wire.NewCredit(call.id, channel, n)) }
}
