package mux

import (
	"context"
	"io"
	"sync"

	"github.com/workberth/workberth/internal/guest/wire"
)

// smallData is the largest content that is copied to the frame before it.
const smallData = 4 << 10

// Inflow is the receiving half of one channel. The goroutine that reads the
// connection calls Deliver, Grow and End; one consumer at a time calls Next, Read
// or WriteTo.
type Inflow struct {
	// grant sends credit to the peer. It is called by the consumer, without the
	// lock, and must not wait.
	grant func(n int)
	ready chan struct{} // a token when the state has changed

	mu     sync.Mutex
	queue  []*wire.Frame // data frames; the payload's first byte is the channel
	window int           // what the peer may send when the consumer has taken everything
	credit int           // what the peer may send now
	owed   int           // taken by the consumer and not granted again
	ended  bool
	err    error // after the queue, with ended; nil means io.EOF

	cur *wire.Frame // the consumer's: the frame it is reading
	off int         // the consumer's: how much of cur it has read
}

// NewInflow makes a channel on which the peer may send window bytes. grant sends
// n bytes of credit.
func NewInflow(window int, grant func(n int)) *Inflow {
	return &Inflow{grant: grant, window: window, credit: window, ready: make(chan struct{}, 1)}
}

// Grow raises the window; the caller tells the peer of the n further bytes.
func (in *Inflow) Grow(n int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.window += n
	in.credit += n
}

// Deliver takes over a data frame. It is a violation to send more than there is
// credit, or after the end.
func (in *Inflow) Deliver(f *wire.Frame) error {
	n := len(f.Payload()) - 1
	in.mu.Lock()
	switch {
	case in.ended && in.err != nil: // we ended it; the peer may not know yet
		in.mu.Unlock()
		f.Release()
		return nil
	case in.ended:
		in.mu.Unlock()
		f.Release()
		return wire.Violation("data after the end of a channel")
	case n > in.credit:
		credit := in.credit
		in.mu.Unlock()
		f.Release()
		return wire.Violation("%d bytes of data with a credit of %d", n, credit)
	case n == 0:
		in.mu.Unlock()
		f.Release()
		return nil
	}
	in.credit -= n
	if !in.joinLocked(f) {
		in.queue = append(in.queue, f)
	}
	in.mu.Unlock()
	in.signal()
	return nil
}

// joinLocked adds a small frame to the one before it, so that a peer that sends
// its data byte by byte cannot make us hold a buffer for each.
func (in *Inflow) joinLocked(f *wire.Frame) bool {
	if len(in.queue) == 0 {
		return false
	}
	last, data := in.queue[len(in.queue)-1], f.Payload()[1:]
	if len(data) > smallData || len(last.Space(len(data))) < len(data) {
		return false
	}
	last.B = append(last.B, data...)
	f.Release()
	return true
}

// End ends the channel: the consumer gets what was delivered and then err, or
// io.EOF where err is nil. Only the first End counts.
func (in *Inflow) End(err error) {
	in.mu.Lock()
	if !in.ended {
		in.ended, in.err = true, err
	}
	in.mu.Unlock()
	in.signal()
}

// Drop ends the channel with err and throws away what the consumer has not taken.
func (in *Inflow) Drop(err error) {
	in.mu.Lock()
	in.ended, in.err = true, err
	for _, f := range in.queue {
		f.Release()
	}
	in.queue = nil
	in.mu.Unlock()
	in.signal()
}

func (in *Inflow) signal() {
	select {
	case in.ready <- struct{}{}:
	default:
	}
}

// Next returns the next data frame, which the caller then owns; its content is
// the payload without the first byte. It waits for one, under ctx. Credit is
// returned at once: one more frame than the window may be in the consumer's hands.
func (in *Inflow) Next(ctx context.Context) (*wire.Frame, error) {
	for {
		in.mu.Lock()
		if len(in.queue) > 0 {
			f := in.queue[0]
			in.queue[0] = nil
			if in.queue = in.queue[1:]; len(in.queue) == 0 {
				in.queue = nil
			}
			grant := in.takenLocked(len(f.Payload()) - 1)
			in.mu.Unlock()
			if grant > 0 {
				in.grant(grant)
			}
			return f, nil
		}
		if in.ended {
			err := in.err
			in.mu.Unlock()
			in.signal() // for the next call
			if err == nil {
				err = io.EOF
			}
			return nil, err
		}
		in.mu.Unlock()
		select {
		case <-in.ready:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// takenLocked counts bytes the consumer took and returns the credit to send now:
// in portions, so that small reads do not each cost a frame.
func (in *Inflow) takenLocked(n int) int {
	in.owed += n
	if in.ended || in.owed < in.window/4 {
		return 0
	}
	grant := in.owed
	in.owed = 0
	in.credit += grant
	return grant
}

// Reader returns a reader of the channel whose waiting ends with ctx.
func (in *Inflow) Reader(ctx context.Context) *Reader { return &Reader{in: in, ctx: ctx} }

// Reader reads a channel as a stream of bytes. It is used by one goroutine.
type Reader struct {
	in  *Inflow
	ctx context.Context
}

// Read fills p with what has arrived, and waits for something to arrive.
func (r *Reader) Read(p []byte) (int, error) {
	in := r.in
	if len(p) == 0 {
		return 0, nil
	}
	if in.cur == nil {
		f, err := in.Next(r.ctx)
		if err != nil {
			return 0, err
		}
		in.cur, in.off = f, 1
	}
	n := copy(p, in.cur.Payload()[in.off:])
	if in.off += n; in.off == len(in.cur.Payload()) {
		in.cur.Release()
		in.cur = nil
	}
	return n, nil
}

// WriteTo writes everything to w, without copying it first.
func (r *Reader) WriteTo(w io.Writer) (int64, error) {
	in := r.in
	var total int64
	for {
		if in.cur == nil {
			f, err := in.Next(r.ctx)
			if err == io.EOF { //nolint:errorlint // the sentinel itself, as io.Reader demands
				return total, nil
			}
			if err != nil {
				return total, err
			}
			in.cur, in.off = f, 1
		}
		rest := in.cur.Payload()[in.off:]
		n, err := w.Write(rest)
		total += int64(n)
		if in.off += n; in.off == len(in.cur.Payload()) {
			in.cur.Release()
			in.cur = nil
		}
		if err != nil {
			return total, err
		}
		if n < len(rest) {
			return total, io.ErrShortWrite
		}
	}
}
