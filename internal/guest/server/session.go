package server

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/workberth/workberth/internal/guest/mux"
	"github.com/workberth/workberth/internal/guest/proc"
	"github.com/workberth/workberth/internal/guest/wire"
)

// session is one connection.
type session struct {
	cfg    Config
	conn   io.ReadWriteCloser
	frames *wire.Reader
	out    *mux.Sender
	work   *pool
	role   *role
	// working counts the quick calls that are not yet about to be answered.
	working atomic.Int32

	ctx    context.Context // ends with the connection
	cancel context.CancelFunc
	// waits is the ctx of waiting for commands; it ends when nobody may wait any
	// longer.
	waits    context.Context
	stopWait context.CancelFunc
	broken   chan struct{} // closed by breakOff

	mu       sync.Mutex
	err      error // with broken
	closed   bool  // no new calls
	streams  map[uint64]*stream
	last     uint64 // the highest stream opened so far
	commands map[uint64]proc.Process
	receive  int64 // what is left of Limits.Receive
}

func newSession(ctx context.Context, conn io.ReadWriteCloser, cfg Config) *session {
	s := &session{
		cfg: cfg, conn: conn, frames: wire.NewReader(conn), work: newPool(),
		broken: make(chan struct{}), streams: make(map[uint64]*stream),
		commands: make(map[uint64]proc.Process), receive: cfg.Limits.Receive,
	}
	s.ctx, s.cancel = context.WithCancel(ctx)
	s.waits, s.stopWait = context.WithCancel(context.WithoutCancel(ctx))
	s.out = mux.NewSender(conn, s.breakOff)
	s.out.More = func() bool { return s.working.Load() > 0 }
	s.role = newRole(func() { go s.read() })
	return s
}

// breakOff ends the session from within. Only the first error counts.
func (s *session) breakOff(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
		close(s.broken)
	}
}

func (s *session) brokenErr() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// read handles frames until the connection ends, or until a call that runs on this
// goroutine has been left behind by another one that reads.
func (s *session) read() {
	for {
		f, err := s.frames.Next()
		reading := true
		switch {
		case err != nil:
		case f.Kind() == wire.KindOpen:
			reading, err = s.open(f)
		default:
			err = s.handle(f)
		}
		if err != nil {
			s.breakOff(err)
			return
		}
		if !reading {
			return
		}
	}
}

// handle takes over a frame of a call. An error ends the connection. It never waits.
func (s *session) handle(f *wire.Frame) error {
	st, err := s.find(f.Stream())
	if err != nil || st == nil {
		f.Release()
		return err
	}
	switch f.Kind() {
	case wire.KindData:
		if p := f.Payload(); st.in == nil || len(p) == 0 || p[0] != wire.ChannelIn {
			f.Release()
			return wire.Violation("data on a channel that takes none")
		}
		return st.in.Deliver(f)
	case wire.KindEnd:
		defer f.Release()
		if p := f.Payload(); st.in == nil || len(p) != 1 || p[0] != wire.ChannelIn {
			return wire.Violation("end of a channel that does not exist")
		}
		st.in.End(nil)
		return nil
	case wire.KindCredit:
		defer f.Release()
		return st.credit(f.Payload())
	case wire.KindCancel:
		f.Release()
		st.interrupt()
		return nil
	default:
		defer f.Release()
		return wire.Violation("%v frame from a client", f.Kind())
	}
}

// find returns the open stream of that number, or nil when it is over: what the
// peer sent before it knew is no violation.
func (s *session) find(id uint64) (*stream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id > s.last {
		return nil, wire.Violation("frame on stream %d, which was never opened", id)
	}
	return s.streams[id], nil
}

// open starts a call: a short one, if nothing else has arrived, on this goroutine,
// which saves waking another one. reading is false when another goroutine reads the
// connection meanwhile.
func (s *session) open(f *wire.Frame) (reading bool, err error) {
	op, id := wire.OpNone, f.Stream()
	if p := f.Payload(); len(p) > 0 {
		op = wire.Op(p[0])
	}
	s.mu.Lock()
	switch {
	case id <= s.last:
		s.mu.Unlock()
		f.Release()
		return true, wire.Violation("stream %d opened after stream %d", id, s.last)
	case s.closed:
		s.mu.Unlock()
		f.Release()
		return true, nil
	}
	s.last = id
	if len(s.streams) >= s.cfg.Limits.Streams {
		s.mu.Unlock()
		f.Release()
		return true, s.out.Post(failFrame(id, &wire.RemoteError{
			Text: fmt.Sprintf("more than %d calls at a time", s.cfg.Limits.Streams),
		}))
	}
	st := newStream(s, id, op, f)
	s.streams[id] = st
	if st.quick() {
		s.working.Add(1)
	}
	// Under the lock, so that no work begins once closed is set.
	if op.Long() || s.frames.Buffered() > 0 {
		s.work.do(st.serve)
		s.mu.Unlock()
		return true, nil
	}
	s.work.all.Add(1)
	s.mu.Unlock()
	defer s.work.all.Done()
	st.turn = s.role.leave()
	st.serve()
	return s.role.resume(st.turn), nil
}

// forget ends the bookkeeping of a stream.
func (s *session) forget(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.streams, st.id)
	delete(s.commands, st.id)
	s.receive += st.reserved
}

// reserve takes n bytes of the memory for incoming content, when there are.
func (s *session) reserve(st *stream, n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.receive < int64(n) {
		return false
	}
	s.receive -= int64(n)
	st.reserved += int64(n)
	return true
}

func (s *session) addCommand(id uint64, p proc.Process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commands[id] = p
}

// command returns the running command of a stream.
func (s *session) command(id uint64) (proc.Process, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.commands[id]
	return p, ok
}
