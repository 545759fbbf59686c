package guesttest

import (
	"io"
	"sync"
)

// MemoryPair is two connected ends without the operating system, for tests under
// testing/synctest. Writes never wait.
func MemoryPair() (a, b io.ReadWriteCloser) {
	left, right := newStream(), newStream()
	return &memory{left, right}, &memory{right, left}
}

type memory struct{ r, w *stream }

func (m *memory) Read(p []byte) (int, error)  { return m.r.Read(p) }
func (m *memory) Write(p []byte) (int, error) { return m.w.Write(p) }

func (m *memory) Close() error {
	m.r.close()
	m.w.close()
	return nil
}

// stream is a queue of bytes without a bound.
type stream struct {
	mu     sync.Mutex
	some   *sync.Cond
	bytes  []byte
	closed bool
}

func newStream() *stream {
	s := &stream{}
	s.some = sync.NewCond(&s.mu)
	return s
}

func (s *stream) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.bytes) == 0 {
		if s.closed {
			return 0, io.EOF
		}
		s.some.Wait()
	}
	n := copy(p, s.bytes)
	s.bytes = s.bytes[n:]
	return n, nil
}

func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, io.ErrClosedPipe
	}
	s.bytes = append(s.bytes, p...)
	s.some.Broadcast()
	return len(p), nil
}

func (s *stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.some.Broadcast()
}
