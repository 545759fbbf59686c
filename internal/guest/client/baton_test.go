package client_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/workberth/workberth/internal/guest/client"
	"github.com/workberth/workberth/internal/guest/guesttest"
	"github.com/workberth/workberth/internal/guest/proc"
	"github.com/workberth/workberth/internal/guest/server"
	"github.com/workberth/workberth/internal/guest/wire"
)

// A caller that reads the connection itself stops when its ctx ends, in the middle
// of a frame too, and whoever reads next goes on where it stopped.
func TestInterruptedReader(t *testing.T) {
	answer := frames(frame{wire.KindDone, 2, bytes.Repeat([]byte("x"), 100_000)}, frame{wire.KindDone, 3, []byte("third")})
	for _, cut := range []int{0, 1, 4, wire.HeaderSize, wire.HeaderSize + 1, 50_000, 100_000 + wire.HeaderSize, 100_000 + wire.HeaderSize + 3} {
		given, resume := make(chan struct{}), make(chan struct{})
		conn := withPeer(t, client.Options{}, func(p *guesttest.Peer) {
			stream, payload := p.Until(wire.KindOpen)
			p.Send(wire.KindDone, stream, payload[1:])
			p.Until(wire.KindOpen)
			p.Write(answer[:cut])
			close(given)
			<-resume
			p.Until(wire.KindOpen)
			p.Write(answer[cut:])
			stream, payload = p.Until(wire.KindOpen)
			p.Send(wire.KindDone, stream, payload[1:])
			p.Drain()
		})
		if _, err := conn.Echo(t.Context(), []byte("first")); err != nil { // now callers read
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-given
			cancel()
		}()
		if f, err := conn.Do(ctx, request(wire.OpStat)); err == nil {
			if cut < 100_000 {
				t.Errorf("cut at %d: answered", cut)
			}
			f.Release()
		} else if !errors.Is(err, context.Canceled) {
			t.Errorf("cut at %d: %v", cut, err)
		}
		close(resume)
		if got, err := conn.Echo(t.Context(), []byte("third")); err != nil || string(got) != "third" {
			t.Errorf("cut at %d: then %q, %v", cut, got, err)
		}
		if _, err := conn.Echo(t.Context(), []byte("fourth")); err != nil {
			t.Errorf("cut at %d: at last: %v", cut, err)
		}
	}
}

// The end of a connection on which nobody calls any more is noticed.
func TestIdleConnectionEnds(t *testing.T) {
	hangUp := make(chan struct{})
	conn := withPeer(t, client.Options{}, func(p *guesttest.Peer) {
		for range 20 {
			stream, payload := p.Until(wire.KindOpen)
			p.Send(wire.KindDone, stream, payload[1:])
		}
		<-hangUp
	})
	for range 20 {
		if _, err := conn.Echo(t.Context(), []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	close(hangUp)
	guesttest.Within(t, "the end is noticed", conn.Done())
}

// While one caller reads for long, what comes for others reaches them; and when it
// leaves, somebody else reads.
func TestReaderServesOthers(t *testing.T) {
	hold := make(chan struct{})
	files := &guesttest.Files{Hook: func(_ context.Context, _, p string) error {
		if p == "f" {
			<-hold
		}
		return nil
	}}
	files.Put("f", "x")
	runner := &guesttest.Runner{Commands: guesttest.Commands()}
	conn := connect(t, server.Config{Files: files, Runner: runner}, client.Options{})
	for range 20 {
		if _, err := conn.Echo(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	slow := make(chan error, 1)
	go func() {
		f, err := conn.Do(t.Context(), request(wire.OpStat))
		if err == nil {
			f.Release()
		}
		slow <- err
	}()
	for range 50 {
		in := strings.Repeat("in", 100_000)
		var out bytes.Buffer
		p, err := conn.Runner().Start(t.Context(), proc.Spec{Argv: []string{"cat"}, Stdin: true},
			proc.IO{Stdin: strings.NewReader(in), Stdout: &out})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Wait(t.Context()); err != nil || out.String() != in {
			t.Fatalf("%d bytes, %v", out.Len(), err)
		}
		if _, err := conn.Echo(t.Context(), []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	close(hold)
	if err := guesttest.Within(t, "the slow call", slow); err != nil {
		t.Error(err)
	}
}

// Callers of every kind come and go, many under a ctx that ends at any moment.
// Nobody hangs and no answer gets lost.
func TestBatonStorm(t *testing.T) {
	runner := &guesttest.Runner{Commands: guesttest.Commands()}
	files := &guesttest.Files{}
	files.Put("f", "x")
	for name, pair := range map[string]func(t testing.TB) (a, b io.ReadWriteCloser){"socket": sockets, "pipes": guesttest.Pipes} {
		t.Run(name, func(t *testing.T) {
			host, guest := pair(t)
			conn := connectOver(t, host, guest, server.Config{Files: files, Runner: runner}, client.Options{})
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			var wg sync.WaitGroup
			for i := range uint64(8) {
				r := rand.New(rand.NewPCG(seed, i)) //nolint:gosec // a test's choices
				wg.Go(func() {
					for range 300 {
						ctx, cancel := t.Context(), context.CancelFunc(func() {})
						if r.IntN(3) == 0 {
							ctx, cancel = context.WithTimeout(ctx, time.Duration(r.IntN(200))*time.Microsecond)
						}
						err := oneCall(ctx, conn, r.IntN(10))
						if err != nil && ctx.Err() == nil {
							t.Errorf("error %v", err)
						}
						cancel()
						if r.IntN(20) == 0 { // longer than the connection's goroutine lingers
							<-time.After(5 * time.Millisecond)
						}
					}
				})
			}
			wg.Wait()
			if conn.Err() != nil {
				t.Errorf("connection: %v", conn.Err())
			}
		})
	}
}

func oneCall(ctx context.Context, conn *client.Conn, kind int) error {
	switch kind {
	case 0:
		p, err := conn.Runner().Start(ctx, proc.Spec{Argv: []string{"cat"}, Stdin: true},
			proc.IO{Stdin: strings.NewReader("in"), Stdout: io.Discard})
		if err != nil {
			return err
		}
		_, err = p.Wait(context.WithoutCancel(ctx))
		return err
	case 1, 2, 3:
		f, err := conn.Do(ctx, request(wire.OpStat))
		if err == nil {
			f.Release()
		}
		return err
	case 4:
		f, err := conn.Do(ctx, request(wire.OpHash))
		if err == nil {
			f.Release()
		}
		return err
	}
	_, err := conn.Echo(ctx, bytes.Repeat([]byte("e"), kind*1000))
	return err
}
