package sshhost

import (
	"io"
	"net"
	"sync"
	"testing"
)

// proxy stands between a client and the server, and can drop everything without a word.
type proxy struct {
	addr string
	mu   sync.Mutex
	dead bool
}

func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{addr: l.Addr().String()}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			a, err := l.Accept()
			if err != nil {
				return
			}
			b, err := net.Dial("tcp", to)
			if err != nil {
				a.Close()
				return
			}
			t.Cleanup(func() { a.Close(); b.Close() })
			wg.Go(func() { p.copy(a, b) })
			wg.Go(func() { p.copy(b, a) })
		}
	})
	t.Cleanup(wg.Wait) // after those that close
	t.Cleanup(func() { l.Close() })
	return p
}

// copy passes on what comes, until it drops.
func (p *proxy) copy(to io.Writer, from io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		p.mu.Lock()
		dead := p.dead
		p.mu.Unlock()
		if n > 0 && !dead {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// cut drops everything from now on.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = true
}
