package mux

import (
	"context"
	"io"
	"runtime"
	"sync"

	"github.com/workberth/workberth/internal/guest/wire"
)

// Bounds of what waits to be written, in bytes of buffers.
const (
	// softQueue is where Send begins to wait.
	softQueue = 1 << 20
	// hardQueue is where Post gives the connection up: the peer makes us answer
	// and does not read the answers.
	hardQueue = 16 << 20
	// gather is the most that is copied together for one write.
	gather = 64 << 10
)

// Sender writes frames to a connection, each with one write and several small
// ones together when they pile up. Where the connection is a descriptor that
// does not block, the goroutine that sends also writes, as long as nothing waits;
// all else is written by a goroutine of the Sender. So no caller ever waits in a
// system call for a peer that does not read: it waits in Send, under its ctx.
type Sender struct {
	// More, when it is set before the first frame, reports that other frames are about
	// to be sent. Then the one that is sent waits a moment for them, to be written with
	// them. It is called with the Sender locked.
	More func() bool

	w      io.Writer
	direct *direct
	failed func(error) // called once, with no lock held
	wake   chan struct{}
	done   chan struct{} // closed when the writing goroutine has ended

	mu     sync.Mutex
	busy   bool          // someone writes
	queue  []*wire.Frame // what waits
	skip   int           // bytes of queue[0] already written
	queued int           // size of the buffers in queue
	room   chan struct{} // closed when the queue shrinks; nil when nobody waits
	err    error         // why nothing can be sent any more
	gone   chan struct{} // closed with err
}

// NewSender starts a Sender on w. failed is told the first error of a write.
// Close ends it.
func NewSender(w io.Writer, failed func(error)) *Sender {
	s := &Sender{
		w: w, direct: newDirect(w), failed: failed,
		wake: make(chan struct{}, 1), done: make(chan struct{}), gone: make(chan struct{}),
	}
	go s.run()
	return s
}

// Send sends a frame and takes it over, in every case. It waits while too much is
// waiting to be written. After an error nothing of the frame was sent or will be;
// after success it is written sooner or later, unless the connection fails.
func (s *Sender) Send(ctx context.Context, f *wire.Frame) error {
	return s.SendOrdered(ctx, f, nil)
}

// SendOrdered is Send that calls enter, when it is not nil, once nothing but the
// connection itself can keep the frame from being sent: frames are written in the
// order of these calls. enter may change the frame's header. It is called with
// the Sender locked and must not call it. Its error is returned, and nothing sent.
func (s *Sender) SendOrdered(ctx context.Context, f *wire.Frame, enter func() error) error {
	b, ok := f.Bytes()
	if !ok {
		defer f.Release()
		return wire.Violation("message of %d bytes, at most %d are possible", len(f.B)-4, wire.MaxFrame)
	}
	s.mu.Lock()
	for s.err == nil && s.queued > softQueue {
		if s.room == nil {
			s.room = make(chan struct{})
		}
		room := s.room
		s.mu.Unlock()
		select {
		case <-room:
		case <-s.gone:
		case <-ctx.Done():
			f.Release()
			return ctx.Err()
		}
		s.mu.Lock()
	}
	if s.err == nil && enter != nil {
		if err := enter(); err != nil {
			s.mu.Unlock()
			f.Release()
			return err
		}
	}
	return s.put(f, b)
}

// Post is Send for what must not wait: answers of the goroutine that reads the
// connection. It fails when absurdly much is waiting.
func (s *Sender) Post(f *wire.Frame) error {
	b, ok := f.Bytes()
	s.mu.Lock()
	if s.err == nil && (!ok || s.queued > hardQueue) {
		s.mu.Unlock()
		f.Release()
		err := wire.Violation("the peer does not read its answers")
		s.fail(err)
		return err
	}
	return s.put(f, b)
}

// put writes or queues a frame. It is called with the lock and gives it up.
func (s *Sender) put(f *wire.Frame, b []byte) error {
	if s.err != nil {
		err := s.err
		s.mu.Unlock()
		f.Release()
		return err
	}
	if s.busy || len(s.queue) > 0 || s.direct == nil || s.More != nil && s.More() {
		s.queue = append(s.queue, f)
		s.queued += cap(f.B)
		wake := !s.busy
		s.mu.Unlock()
		if wake {
			s.wakeUp()
		}
		return nil
	}
	s.busy = true
	s.mu.Unlock()
	n, err := s.direct.write(b)
	s.mu.Lock()
	s.busy = false
	if err == nil && n < len(b) {
		// The rest goes first; nothing overtook it, as busy was set.
		s.queue = append([]*wire.Frame{f}, s.queue...)
		s.skip = n
		s.queued += cap(f.B)
		f = nil
	}
	wake := len(s.queue) > 0
	s.mu.Unlock()
	if f != nil {
		f.Release()
	}
	if err != nil {
		s.fail(err)
		return nil // it may have been sent, in part
	}
	if wake {
		s.wakeUp()
	}
	return nil
}

func (s *Sender) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run writes what is queued until the Sender fails or is closed.
func (s *Sender) run() {
	defer close(s.done)
	scratch := make([]byte, 0, gather)
	var batch []*wire.Frame
	for {
		select {
		case <-s.wake:
		case <-s.gone:
			return
		}
		runtime.Gosched() // whoever is about to send goes first, and is written with it
		for {
			s.mu.Lock()
			if s.busy || s.err != nil || len(s.queue) == 0 {
				s.mu.Unlock() // whoever is busy wakes us when he is done
				break
			}
			batch, s.queue = s.queue, batch[:0]
			skip, size := s.skip, s.queued
			s.skip, s.busy = 0, true
			s.mu.Unlock()

			err := s.writeAll(batch, skip, scratch)

			s.mu.Lock()
			s.busy = false
			s.queued -= size
			if s.room != nil {
				close(s.room)
				s.room = nil
			}
			s.mu.Unlock()
			if err != nil {
				s.fail(err)
				return
			}
		}
	}
}

// writeAll writes and releases frames: small ones together, large ones as they are.
func (s *Sender) writeAll(batch []*wire.Frame, skip int, scratch []byte) error {
	var err error
	flush := func() {
		if err == nil && len(scratch) > 0 {
			_, err = s.w.Write(scratch)
		}
		scratch = scratch[:0]
	}
	for i, f := range batch {
		b := f.B
		if i == 0 {
			b = b[skip:]
		}
		if len(scratch)+len(b) > cap(scratch) {
			flush()
		}
		switch {
		case err != nil:
		case len(b) > cap(scratch)/2 || len(batch) == 1:
			flush()
			if err == nil {
				_, err = s.w.Write(b)
			}
		default:
			scratch = append(scratch, b...)
		}
		f.Release()
		batch[i] = nil
	}
	flush()
	return err
}

func (s *Sender) fail(err error) {
	if s.stop(err) {
		s.failed(err)
	}
}

// stop makes the Sender refuse everything with err and drops what waits.
func (s *Sender) stop(err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return false
	}
	s.err = err
	for _, f := range s.queue {
		f.Release()
	}
	s.queue, s.queued, s.skip = nil, 0, 0
	close(s.gone)
	return true
}

// Close refuses everything from now on, with err, and drops what waits. It does
// not interrupt a write; closing the connection does.
func (s *Sender) Close(err error) { s.stop(err) }

// Done is closed when the Sender's goroutine has ended.
func (s *Sender) Done() <-chan struct{} { return s.done }
