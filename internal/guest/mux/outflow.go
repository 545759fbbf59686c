package mux

import (
	"context"
	"sync"

	"github.com/workberth/workberth/internal/guest/wire"
)

// Outflow is the sending half of one channel: the credit the peer has given. The
// goroutine that reads the connection calls Grant; senders call Acquire.
type Outflow struct {
	mu    sync.Mutex
	avail int
	err   error
	ready chan struct{} // closed when the state changes; nil when nobody waits
}

// NewOutflow makes a channel with window bytes of credit.
func NewOutflow(window int) *Outflow { return &Outflow{avail: window} }

// Grant adds credit. More than wire.MaxWindow in all is a violation.
func (o *Outflow) Grant(n int) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if n > wire.MaxWindow-o.avail {
		return wire.Violation("credit of %d bytes on top of %d, at most %d are allowed", n, o.avail, wire.MaxWindow)
	}
	o.avail += n
	o.changedLocked()
	return nil
}

// Fail makes every Acquire fail with err. Only the first Fail counts.
func (o *Outflow) Fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = err
		o.changedLocked()
	}
}

func (o *Outflow) changedLocked() {
	if o.ready != nil {
		close(o.ready)
		o.ready = nil
	}
}

// Acquire takes up to n bytes of credit, at least one, and waits for some.
func (o *Outflow) Acquire(ctx context.Context, n int) (int, error) {
	for {
		o.mu.Lock()
		if o.err != nil {
			err := o.err
			o.mu.Unlock()
			return 0, err
		}
		if o.avail > 0 {
			n = min(n, o.avail)
			o.avail -= n
			o.mu.Unlock()
			return n, nil
		}
		if o.ready == nil {
			o.ready = make(chan struct{})
		}
		ready := o.ready
		o.mu.Unlock()
		select {
		case <-ready:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// Return gives back credit that was acquired and not used.
func (o *Outflow) Return(n int) {
	if n == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.avail += n
	o.changedLocked()
}
