package sftpfs

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/workberth/workberth/fsbridge"
)

// maxGiven is how many requests may be given up without an answer before the connection counts as
// dead. Each of them holds a goroutine and perhaps a chunk.
const maxGiven = 1024

// call is one operation of the bridge.
type call struct {
	b   *Bridge
	ctx context.Context // lives for one call, or for a stream
	// changed is set when the first request that changes anything is sent, decided with the first
	// whose effect is what the caller asked for and no preparation.
	changed, decided atomic.Bool
	// silent is set when the server has left a request of this call unanswered for too long.
	silent atomic.Bool
}

func (b *Bridge) call(ctx context.Context) *call { return &call{b: b, ctx: ctx} }

// step looks at the context and the guard. Keeps FSB-10.
func (c *call) step() error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	if c.b.opts.Assert == nil {
		return nil
	}
	if err := c.b.opts.Assert(); err != nil {
		return &notCurrentError{err}
	}
	return nil
}

// begin is the start of every operation on a path: it is well formed and the authority holds.
func (c *call) begin(p string) error {
	if err := fsbridge.ValidPath(p); err != nil {
		return err
	}
	return c.step()
}

// The states of a request.
const (
	waiting = iota
	answered
	givenUp
)

// request is one that was sent.
type request[T any] struct {
	c     *call
	state atomic.Int32
	done  chan struct{} // closed with value and err set
	value T
	err   error
	// late receives the answer to a request that was given up; it may be nil.
	late func(T)
}

// send asks the server something by calling fn on a goroutine of its own, after a look at context and
// guard. fn must not touch memory of the caller: it may outlive the call.
func send[T any](c *call, fn func() (T, error), late func(T)) (*request[T], error) {
	if err := c.step(); err != nil {
		return nil, err
	}
	return sendUnasked(c, fn, late)
}

// sendUnasked is send for what takes back, without the look.
func sendUnasked[T any](c *call, fn func() (T, error), late func(T)) (*request[T], error) {
	if c.b.given.Load() >= maxGiven {
		return nil, fmt.Errorf("%w: the server leaves %d requests unanswered", fsbridge.ErrUnavailable, maxGiven)
	}
	r := &request[T]{c: c, done: make(chan struct{}), late: late}
	go func() {
		r.value, r.err = guarded(fn)
		if r.state.CompareAndSwap(waiting, answered) {
			close(r.done)
			return
		}
		c.b.given.Add(-1)
		if r.late != nil && r.err == nil {
			r.late(r.value)
		}
	}()
	return r, nil
}

// guarded turns a panic over a malformed answer into an error.
func guarded[T any](fn func() (T, error)) (value T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &protocolError{fmt.Sprintf("the answer cannot be understood (%v)", p)}
		}
	}()
	return fn()
}

// giveUp leaves the request to itself, unless it is answered already.
func (r *request[T]) giveUp() bool {
	r.c.b.given.Add(1)
	if r.state.CompareAndSwap(waiting, givenUp) {
		return true
	}
	r.c.b.given.Add(-1)
	return false
}

// wait waits for the answer, the context or the timeout, whichever is first.
func (r *request[T]) wait() (T, error) {
	timer := time.NewTimer(r.c.b.opts.RequestTimeout)
	defer timer.Stop()
	var why error
	select {
	case <-r.done:
		return r.value, r.err
	case <-r.c.ctx.Done():
		why = r.c.ctx.Err()
	case <-timer.C:
		why = &silenceError{r.c.b.opts.RequestTimeout}
		r.c.silent.Store(true)
	}
	if !r.giveUp() {
		<-r.done
		return r.value, r.err
	}
	var none T
	return none, why
}

// ask sends a request that changes nothing and waits for its answer.
func ask[T any](c *call, fn func() (T, error)) (T, error) {
	return askLate(c, fn, nil)
}

// askLate is ask for an answer that must not get lost.
func askLate[T any](c *call, fn func() (T, error), late func(T)) (T, error) {
	r, err := send(c, fn, late)
	if err != nil {
		var none T
		return none, err
	}
	return r.wait()
}

// change sends a request that does what the caller asked for and waits for its answer.
func change(c *call, fn func() error) error {
	return c.alter(fn, true)
}

// prepare sends a request that makes something on the way and waits for its answer.
func prepare(c *call, fn func() error) error {
	return c.alter(fn, false)
}

func (c *call) alter(fn func() error, decides bool) error {
	if err := c.step(); err != nil {
		return err
	}
	c.changed.Store(true)
	if decides {
		c.decided.Store(true)
	}
	r, err := sendUnasked(c, func() (struct{}, error) { return struct{}{}, fn() }, nil)
	if err != nil {
		return err
	}
	_, err = r.wait()
	return err
}

// takeBack sends a request that undoes something of this very call. It is sent even when the context has
// ended or the server is silent; then nobody waits for it.
func (c *call) takeBack(fn func() error) error {
	r, err := sendUnasked(c, func() (struct{}, error) { return struct{}{}, fn() }, nil)
	if err != nil {
		return err
	}
	if c.ctx.Err() != nil || c.silent.Load() {
		r.giveUp()
		return nil
	}
	_, err = r.wait()
	return err
}
