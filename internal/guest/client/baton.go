package client

import (
	"context"
	"errors"
	"io"
	"os"
	"time"
)

// baton says who reads the connection: a goroutine of its own, or, while it waits for
// the answer to a call that takes no time, the caller itself, which saves waking one
// goroutine to read and another to take the answer. Most of the time of a short
// call would go into that.
//
// As long as calls are open somebody reads. When none is, the connection's goroutine
// leaves the baton to callers for a while, and comes back when they stop coming, so
// that the end of an idle connection is noticed. A caller gives the baton back to
// it when it has its answer and others still wait.
//
// A caller must be able to stop reading when its ctx ends, so all this is only for
// transports with a read deadline.
type baton struct {
	deadline func(t time.Time) error // nil: the connection's goroutine reads always
	wake     chan struct{}           // a token: it should take the baton

	// Guarded by Conn.mu.
	held  bool   // somebody reads
	turns uint64 // how often a caller took the baton
}

const (
	// linger is how long the connection's goroutine leaves reading to callers after
	// the last one.
	linger = 2 * time.Millisecond
	// maxLinger is how long it does so while one and the same caller reads.
	maxLinger = 64 * time.Millisecond
)

func newBaton(conn io.ReadWriteCloser) *baton {
	b := &baton{wake: make(chan struct{}, 1)}
	if d, ok := conn.(interface{ SetReadDeadline(t time.Time) error }); ok && d.SetReadDeadline(time.Time{}) == nil {
		b.deadline = d.SetReadDeadline
	}
	return b
}

// readAll is the connection's goroutine.
func (c *Conn) readAll() {
	defer close(c.read)
	timer := time.NewTimer(linger)
	defer timer.Stop()
	for c.take(timer) {
		for {
			err := c.next()
			if errors.Is(err, os.ErrDeadlineExceeded) && c.baton.deadline != nil {
				err = c.baton.deadline(time.Time{}) // meant for a caller that has left
			}
			if err != nil {
				c.fail(err)
				return
			}
			if c.leave() {
				break
			}
		}
	}
}

// take waits until the connection's goroutine is needed, and takes the baton. It
// reports false when the connection is over.
func (c *Conn) take(timer *time.Timer) bool {
	b := c.baton
	seen := uint64(0)
	if b.deadline == nil {
		seen-- // callers never take it
	}
	for wait := linger; ; {
		c.mu.Lock()
		idle := b.turns == seen
		seen = b.turns
		if !b.held && (idle || b.deadline == nil || len(c.calls) > 0) {
			b.held = true
			c.mu.Unlock()
			return true
		}
		c.mu.Unlock()
		if idle { // a caller reads for long
			wait = min(2*wait, maxLinger)
		} else {
			wait = linger
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-b.wake:
		case <-c.over:
			return false
		}
	}
}

// leave gives the baton up when nobody waits for a frame.
func (c *Conn) leave() bool {
	if c.baton.deadline == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.calls) > 0 {
		return false
	}
	c.baton.held = false
	c.baton.turns++ // not idle: wait for callers first
	return true
}

// ensureReader wakes the connection's goroutine when nobody reads.
func (c *Conn) ensureReader() {
	c.mu.Lock()
	held := c.baton.held
	c.mu.Unlock()
	if !held {
		c.wakeReader()
	}
}

func (c *Conn) wakeReader() {
	select {
	case c.baton.wake <- struct{}{}:
	default:
	}
}

// Await reads the connection until something has come for the call, if it is one
// that takes no time and nobody else reads. Otherwise, and when ctx ends, it returns
// at once, and the caller waits as others do.
func (call *Call) Await(ctx context.Context) {
	if call.short && !call.awaited {
		call.awaited = true
		call.c.readFor(ctx, call)
	}
}

func (c *Conn) readFor(ctx context.Context, call *Call) {
	b := c.baton
	if b.deadline == nil {
		return
	}
	c.mu.Lock()
	if b.held || c.err != nil {
		c.mu.Unlock()
		return
	}
	b.held = true
	b.turns++
	c.mu.Unlock()

	stop := func() bool { return true }
	if ctx.Done() != nil {
		stop = context.AfterFunc(ctx, func() { _ = b.deadline(time.Unix(1, 0)) })
	}
	err := c.readUntil(ctx, call)
	stop()
	if err != nil {
		c.fail(err)
	}
	c.mu.Lock()
	b.held = false
	others := len(c.calls) > 0
	c.mu.Unlock()
	if others {
		c.wakeReader()
	}
}

// readUntil reads until something has come for the call or ctx ends.
func (c *Conn) readUntil(ctx context.Context, call *Call) error {
	for !call.arrived { // an earlier reader may have had it
		err := c.next()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			if err = c.baton.deadline(time.Time{}); err == nil && ctx.Err() != nil {
				return nil
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
