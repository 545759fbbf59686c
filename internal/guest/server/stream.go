package server

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/workberth/workberth/internal/guest/mux"
	"github.com/workberth/workberth/internal/guest/wire"
)

// stream is one call. Its goroutine answers it with exactly one done or fail
// frame, after which nothing is sent on it any more.
type stream struct {
	s  *session
	id uint64
	op wire.Op

	ctx    context.Context // ends with the call, when it is cancelled or the connection ends
	cancel context.CancelFunc

	request *wire.Frame     // until it is released
	in      *mux.Inflow     // ChannelIn; nil for operations without content
	outs    [2]*mux.Outflow // ChannelOut and ChannelErr

	turn     uint64       // of the goroutine that reads the connection, while it runs the call
	reserved int64        // guarded by session.mu
	grace    atomic.Int64 // of the command, for the end of the session

	// sending is held for reading while a frame of the stream is sent, and for
	// writing to end it.
	sending sync.RWMutex
	ended   bool
}

func newStream(s *session, id uint64, op wire.Op, request *wire.Frame) *stream {
	st := &stream{s: s, id: id, op: op, request: request}
	st.ctx, st.cancel = context.WithCancel(s.ctx)
	if op.TakesContent() {
		st.in = mux.NewInflow(wire.InitialWindow, st.grant)
	}
	for i := range st.outs {
		st.outs[i] = mux.NewOutflow(wire.InitialWindow)
	}
	return st
}

// quick tells a call whose answer can be expected at once: it neither takes long nor waits for content.
func (st *stream) quick() bool { return !st.op.Long() && !st.op.TakesContent() }

// serve runs the call.
func (st *stream) serve() {
	answer, err := st.run()
	if err != nil {
		if answer != nil {
			answer.Release()
		}
		answer = failFrame(st.id, err)
	}
	st.finish(answer)
}

// run calls the operation's function and turns a panic into an error: one
// broken call must not end every other, nor the commands beside it.
func (st *stream) run() (answer *wire.Frame, err error) {
	defer func() {
		if r := recover(); r != nil {
			st.s.cfg.Logger.Error("a call panicked", "op", st.op.String(), "panic", fmt.Sprint(r),
				"stack", string(debug.Stack()))
			answer, err = nil, errors.New("the server failed in this call; its log has the details")
		}
	}()
	if !st.op.Valid() {
		return nil, fmt.Errorf("%w: unknown operation", errors.ErrUnsupported)
	}
	return operations[st.op](st, wire.NewDecoder(st.request.Payload()[1:]))
}

// finish sends the last frame of the stream.
func (st *stream) finish(answer *wire.Frame) {
	st.cancel()
	if st.in != nil {
		st.in.Drop(errCallOver)
	}
	st.releaseRequest()
	st.sending.Lock()
	st.ended = true
	st.sending.Unlock()
	// Before the answer: the peer may open as many calls as it has answers for.
	st.s.forget(st)
	if st.quick() {
		st.s.working.Add(-1)
	}
	if err := st.s.out.Send(st.s.ctx, answer); errors.Is(err, wire.ErrProtocol) {
		// A message of ours that is too large; the caller must not wait forever.
		_ = st.s.out.Send(st.s.ctx, failFrame(st.id, fmt.Errorf("the answer does not fit the protocol: %w", err)))
	}
}

// errCallOver is what late users of a call's streams get.
var errCallOver = errors.New("the call is over")

// detach lets another goroutine read the connection while this call goes on. A
// call does it before it waits for the peer.
func (st *stream) detach() { st.s.role.pass(st.turn) }

// releaseRequest gives the open frame's buffer back.
func (st *stream) releaseRequest() {
	if st.request != nil {
		st.request.Release()
		st.request = nil
	}
}

// send sends a frame of the stream that is not its last.
func (st *stream) send(ctx context.Context, f *wire.Frame) error {
	st.sending.RLock()
	defer st.sending.RUnlock()
	if st.ended {
		f.Release()
		return errCallOver
	}
	return st.s.out.Send(ctx, f)
}

// grant gives the peer credit for content.
func (st *stream) grant(n int) {
	st.sending.RLock()
	defer st.sending.RUnlock()
	if !st.ended {
		_ = st.s.out.Post(wire.NewCredit(st.id, wire.ChannelIn, n))
	}
}

// widen allows the peer to send up to window bytes ahead, if there is memory.
func (st *stream) widen(window int) {
	if extra := window - wire.InitialWindow; st.s.reserve(st, extra) {
		st.in.Grow(extra)
		st.grant(extra)
	}
}

// credit handles a credit frame.
func (st *stream) credit(payload []byte) error {
	d := wire.NewDecoder(payload)
	channel, n := d.Byte(), d.Upto(wire.MaxWindow)
	if err := d.Finish(); err != nil {
		return err
	}
	if channel != wire.ChannelOut && channel != wire.ChannelErr {
		return wire.Violation("credit for channel %d", channel)
	}
	return st.outs[channel-1].Grant(int(n))
}

// allow sets the credit of the output channels to what the request said.
func (st *stream) allow(window int) error {
	for _, o := range st.outs {
		if extra := window - wire.InitialWindow; extra > 0 {
			if err := o.Grant(extra); err != nil {
				return err
			}
		}
	}
	return nil
}

// interrupt tells the call that its caller lost interest.
func (st *stream) interrupt() {
	if st.in != nil {
		st.in.Drop(context.Canceled)
	}
	st.cancel()
}

// abandon tells the call that its caller is gone.
func (st *stream) abandon() {
	if st.in != nil {
		st.in.Drop(errPeerGone)
	}
	for _, o := range st.outs {
		o.Fail(errPeerGone)
	}
	st.cancel()
}

// done begins the frame that ends the call well.
func (st *stream) done(size int) *wire.Frame { return wire.NewFrame(wire.KindDone, st.id, size) }

// empty is the answer of an operation without a result.
func (st *stream) empty(err error) (*wire.Frame, error) {
	if err != nil {
		return nil, err
	}
	return st.done(0), nil
}

// failFrame is the frame that ends a call with an error.
func failFrame(id uint64, err error) *wire.Frame {
	f := wire.NewFrame(wire.KindFail, id, 256)
	f.B = wire.AppendError(f.B, err)
	return f
}
