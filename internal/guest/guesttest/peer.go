package guesttest

import (
	"io"
	"testing"
	"time"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/guest/wire"
)

// Peer is one side of the protocol that does exactly as it is told, right or wrong.
type Peer struct {
	t      testing.TB
	conn   io.ReadWriteCloser
	frames *wire.Reader
}

// NewPeer speaks on conn.
func NewPeer(t testing.TB, conn io.ReadWriteCloser) *Peer {
	return &Peer{t: t, conn: conn, frames: wire.NewReader(conn)}
}

// FullHello is the greeting of a helper that offers everything.
func FullHello() wire.Hello {
	return wire.Hello{
		Protocol: wire.Version, Build: "v1.2.3-test", Pid: 4242, Tag: "tag",
		Features:     []wire.Feature{wire.FeatureExec, wire.FeatureSweep, wire.FeatureCall},
		Capabilities: fsbridge.AllCapabilities(),
		Mounts:       (&Files{}).Mounts(),
	}
}

// Greet sends the magic and a greeting, and takes the other side's.
func (p *Peer) Greet(h wire.Hello) wire.Hello {
	p.t.Helper()
	f := wire.NewFrame(wire.KindHello, 0, 1024)
	f.B = h.Append(f.B)
	b, _ := f.Bytes()
	p.Write(append([]byte(wire.Magic), b...))
	return p.Hello()
}

// Hello takes the other side's greeting.
func (p *Peer) Hello() wire.Hello {
	p.t.Helper()
	f := p.Next()
	defer f.Release()
	h, err := wire.DecodeHello(f.Payload())
	if err != nil || f.Kind() != wire.KindHello {
		p.t.Errorf("%v frame instead of hello: %v", f.Kind(), err)
	}
	return h
}

// Greeting takes a server's greeting, magic included.
func (p *Peer) Greeting() wire.Hello {
	p.t.Helper()
	if _, err := p.frames.SkipTo(wire.Magic, 0); err != nil {
		p.t.Errorf("no magic: %v", err)
	}
	return p.Hello()
}

// SayHello greets as a client does.
func (p *Peer) SayHello() wire.Hello {
	p.t.Helper()
	h := p.Greeting()
	p.Send(wire.KindHello, 0, wire.Hello{Protocol: wire.Version, Build: "v1.2.3-test", Pid: 4242}.Append(nil))
	return h
}

// Write sends bytes. That the other side has hung up is no error: tests look at it.
func (p *Peer) Write(b []byte) bool {
	_, err := p.conn.Write(b)
	return err == nil
}

// Send sends a frame.
func (p *Peer) Send(kind wire.Kind, stream uint64, payload []byte) bool {
	f := wire.NewFrame(kind, stream, len(payload))
	defer f.Release()
	f.B = append(f.B, payload...)
	b, _ := f.Bytes()
	return p.Write(b)
}

// Next takes the next frame, which the caller then owns.
func (p *Peer) Next() *wire.Frame {
	p.t.Helper()
	f, err := p.frames.Next()
	if err != nil {
		p.t.Errorf("the other side hung up: %v", err)
		return wire.NewFrame(wire.KindHello, 0, 0)
	}
	return f
}

// Until takes frames until one of that kind, and returns its stream and payload.
func (p *Peer) Until(kind wire.Kind) (stream uint64, payload []byte) {
	p.t.Helper()
	for {
		f, err := p.frames.Next()
		if err != nil {
			p.t.Errorf("no %v frame: %v", kind, err)
			return 0, nil
		}
		if f.Kind() == kind {
			stream, payload = f.Stream(), append([]byte(nil), f.Payload()...)
			f.Release()
			return stream, payload
		}
		f.Release()
	}
}

// Drain throws away what comes until the other side hangs up.
func (p *Peer) Drain() {
	for {
		f, err := p.frames.Next()
		if err != nil {
			return
		}
		f.Release()
	}
}

// Patience bounds what a test waits for that happens at once or never.
const Patience = 20 * time.Second

// Within fails the test when done is not closed in time.
func Within[T any](t testing.TB, what string, done <-chan T) T {
	t.Helper()
	timer := time.NewTimer(Patience)
	defer timer.Stop()
	select {
	case v := <-done:
		return v
	case <-timer.C:
		t.Fatalf("%s: nothing within %v", what, Patience)
		panic("unreachable")
	}
}

// Close hangs up.
func (p *Peer) Close() { _ = p.conn.Close() }
