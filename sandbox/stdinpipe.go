package sandbox

import (
	"context"
	"errors"
	"io"
	"sync"
)

// stdinBuffer bounds what is written ahead of a command that does not read, in bytes.
const stdinBuffer = 64 << 10

// errStdinClosed: the command's standard input was closed, by its owner or by its end.
var errStdinClosed = errors.New("standard input is closed")

// stdinPipe is a pipe whose writer can give up: io.Pipe with a bounded buffer and a
// context. Safe for concurrent use; concurrent writes do not mix within one write
// of at most stdinBuffer bytes.
type stdinPipe struct {
	writing chan struct{} // holds one token: writers take turns

	mu      sync.Mutex
	data    []byte
	closed  bool
	changed chan struct{} // closed and replaced at every change
}

func newStdinPipe() *stdinPipe {
	p := &stdinPipe{writing: make(chan struct{}, 1), changed: make(chan struct{})}
	p.writing <- struct{}{}
	return p
}

// change wakes everybody; p.mu is held.
func (p *stdinPipe) change() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// Read waits for data or the end.
func (p *stdinPipe) Read(b []byte) (int, error) {
	for {
		p.mu.Lock()
		if len(p.data) > 0 {
			n := copy(b, p.data)
			p.data = p.data[n:]
			p.change()
			p.mu.Unlock()
			return n, nil
		}
		if p.closed {
			p.mu.Unlock()
			return 0, io.EOF
		}
		changed := p.changed
		p.mu.Unlock()
		<-changed
	}
}

// write hands all of b over to the buffer, or as much as it could until ctx ended or
// the pipe was closed.
func (p *stdinPipe) write(ctx context.Context, b []byte) (int, error) {
	select {
	case <-p.writing:
		defer func() { p.writing <- struct{}{} }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	n := 0
	for {
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			return n, errStdinClosed
		}
		if k := min(len(b)-n, stdinBuffer-len(p.data)); k > 0 {
			p.data = append(p.data, b[n:n+k]...)
			n += k
			p.change()
		}
		changed := p.changed
		p.mu.Unlock()
		if n == len(b) {
			return n, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return n, ctx.Err()
		}
	}
}

// close ends the input after what was written. drop forgets what nobody read.
func (p *stdinPipe) close(drop bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if drop {
		p.data = nil
	}
	if !p.closed {
		p.closed = true
	}
	p.change()
}
