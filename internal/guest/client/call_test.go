package client_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/guest/client"
	"github.com/workberth/workberth/internal/guest/guesttest"
	"github.com/workberth/workberth/internal/guest/server"
	"github.com/workberth/workberth/internal/guest/wire"
)

func TestEcho(t *testing.T) {
	conn := connect(t, server.Config{}, client.Options{})
	for _, n := range []int{0, 1, 16, 4096, 100_000, wire.MaxFrame - 100} {
		in := bytes.Repeat([]byte{'e'}, n)
		out, err := conn.Echo(t.Context(), in)
		if err != nil || !bytes.Equal(in, out) {
			t.Errorf("%d bytes: %d, %v", n, len(out), err)
		}
	}
	if _, err := conn.Echo(t.Context(), make([]byte, wire.MaxFrame)); err == nil {
		t.Error("a message beyond the largest frame was sent")
	}
	if conn.Err() != nil {
		t.Errorf("connection: %v", conn.Err())
	}
}

// Many calls at once share the connection, also over pipes.
func TestPipelining(t *testing.T) {
	for name, pair := range map[string]func(t testing.TB) (a, b io.ReadWriteCloser){
		"socket": func(t testing.TB) (a, b io.ReadWriteCloser) { return sockets(t) },
		"pipes":  guesttest.Pipes,
	} {
		t.Run(name, func(t *testing.T) {
			host, guest := pair(t)
			conn := connectOver(t, host, guest, server.Config{}, client.Options{})
			var wg sync.WaitGroup
			for i := range 64 {
				wg.Go(func() {
					for j := range 200 {
						in := bytes.Repeat([]byte{byte(i), byte(j)}, 1+i*j%5000)
						if out, err := conn.Echo(t.Context(), in); err != nil || !bytes.Equal(in, out) {
							t.Errorf("echo: %v", err)
							return
						}
					}
				})
			}
			wg.Wait()
		})
	}
}

func sockets(t testing.TB) (a, b io.ReadWriteCloser) {
	t.Helper()
	return guesttest.SocketPair(t)
}

type question struct{ Name string }

type answer struct{ Text string }

func TestControlCalls(t *testing.T) {
	conn := connect(t, server.Config{Call: func(ctx context.Context, method string, body []byte, s server.Streams) ([]byte, error) {
		switch method {
		case "greet":
			return []byte(`{"Text":"hello ` + string(body[9:len(body)-2]) + `"}`), nil
		case "copy":
			if _, err := io.Copy(s.Out, s.In); err != nil {
				return nil, err
			}
			_, err := io.WriteString(s.Err, "copied")
			return nil, err
		case "fail":
			return nil, &wire.RemoteError{Code: "busy", Text: "somebody else has it", Hint: "wait a little"}
		case "sentinel":
			return nil, fsbridge.ErrNotCurrent
		case "much":
			return bytes.Repeat([]byte{'1'}, wire.MaxBody+1), nil
		case "nonsense":
			return []byte(`{`), nil
		case "wait":
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return nil, errors.ErrUnsupported
	}}, client.Options{})
	ctx := t.Context()

	var a answer
	if err := conn.Call(ctx, "greet", question{"you"}, &a, client.Streams{}); err != nil || a.Text != "hello you" {
		t.Errorf("greet: %q, %v", a.Text, err)
	}
	in := strings.Repeat("stream", 200_000)
	var out, info bytes.Buffer
	err := conn.Call(ctx, "copy", nil, nil, client.Streams{In: strings.NewReader(in), Out: &out, Err: &info})
	if err != nil || out.String() != in || info.String() != "copied" {
		t.Errorf("copy: %d bytes, %q, %v", out.Len(), info.String(), err)
	}
	if err := conn.Call(ctx, "copy", nil, nil, client.Streams{}); err != nil {
		t.Errorf("copy without streams: %v", err)
	}
	var remote *wire.RemoteError
	err = conn.Call(ctx, "fail", nil, nil, client.Streams{})
	if !errors.As(err, &remote) || remote.Code != "busy" || remote.Hint != "wait a little" || err.Error() != "fail: somebody else has it" {
		t.Errorf("fail: %v", err)
	}
	if err := conn.Call(ctx, "sentinel", nil, nil, client.Streams{}); !errors.Is(err, fsbridge.ErrNotCurrent) {
		t.Errorf("sentinel: %v", err)
	}
	if err := conn.Call(ctx, "much", nil, nil, client.Streams{}); !errors.Is(err, fsbridge.ErrTooLarge) {
		t.Errorf("result beyond the limit: %v", err)
	}
	if err := conn.Call(ctx, "greet", strings.Repeat("x", wire.MaxBody), nil, client.Streams{}); !errors.Is(err, fsbridge.ErrTooLarge) {
		t.Errorf("body beyond the limit: %v", err)
	}
	if err := conn.Call(ctx, strings.Repeat("m", 300), nil, nil, client.Streams{}); err == nil {
		t.Error("a method of 300 bytes was called")
	}
	if err := conn.Call(ctx, "greet", func() {}, nil, client.Streams{}); err == nil {
		t.Error("a body that is no JSON was sent")
	}
	if err := conn.Call(ctx, "nonsense", nil, &a, client.Streams{}); err == nil || !strings.Contains(err.Error(), "malformed") {
		t.Errorf("nonsense: %v", err)
	}
	if err := conn.Call(ctx, "other", nil, nil, client.Streams{}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("other: %v", err)
	}
	err = conn.Call(ctx, "copy", nil, nil, client.Streams{In: strings.NewReader(in), Out: &limitedWriter{left: 100_000}})
	if !errors.Is(err, errBroken) {
		t.Errorf("copy to a broken writer: %v", err)
	}
	err = conn.Call(ctx, "copy", nil, nil, client.Streams{In: brokenReader{}, Out: io.Discard})
	if !errors.Is(err, errBroken) {
		t.Errorf("copy from a broken reader: %v", err)
	}
	short, cancel := context.WithCancel(ctx)
	time.AfterFunc(time.Millisecond, cancel)
	if err := conn.Call(short, "wait", nil, nil, client.Streams{Out: io.Discard}); !errors.Is(err, context.Canceled) {
		t.Errorf("wait: %v", err)
	}
	if conn.Err() != nil {
		t.Errorf("connection: %v", conn.Err())
	}
}

func TestSweep(t *testing.T) {
	conn := connect(t, server.Config{Sweep: func(_ context.Context, tag string) (int, error) {
		return len(tag), nil
	}}, client.Options{})
	if n, err := conn.Sweep(t.Context(), "seven77"); n != 7 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := conn.Sweep(t.Context(), strings.Repeat("x", 1000)); !errors.Is(err, fsbridge.ErrInvalid) {
		t.Errorf("long tag: %v", err)
	}
	none := connect(t, server.Config{}, client.Options{})
	if _, err := none.Sweep(t.Context(), "x"); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("without a sweeper: %v", err)
	}
}

// request is the open frame of an operation on a path.
func request(op wire.Op) *wire.Frame {
	f := wire.NewOpen(op, 16)
	f.B = wire.PathRequest{Path: "f"}.Append(f.B)
	return f
}

// When ctx ends, a call that only reads returns at once; one that changes something
// waits for the truth, for a while. What comes later harms nobody. FSB-11
func TestCancelledCalls(t *testing.T) {
	const wait = 3 * time.Second
	for name, c := range map[string]struct {
		op     wire.Op
		answer func(p *guesttest.Peer, stream uint64)
		took   time.Duration
		check  func(err error) bool
	}{
		"read": {wire.OpStat, nil, 0, func(err error) bool { return err == context.Canceled }},
		"change without an answer": {wire.OpRemove, nil, wait, func(err error) bool {
			var lost *client.LostError
			return errors.As(err, &lost) && lost.Sent && errors.Is(err, context.Canceled)
		}},
		"change that happened": {
			wire.OpRemove, func(p *guesttest.Peer, s uint64) { p.Send(wire.KindDone, s, nil) }, 0,
			func(err error) bool { return err == nil },
		},
		"change that did not": {wire.OpRemove, func(p *guesttest.Peer, s uint64) {
			p.Send(wire.KindFail, s, wire.AppendError(nil, context.Canceled))
		}, 0, func(err error) bool {
			var remote *wire.RemoteError
			return errors.As(err, &remote) && errors.Is(err, context.Canceled)
		}},
		"helper gone": {wire.OpRemove, func(p *guesttest.Peer, _ uint64) { p.Close() }, 0, func(err error) bool {
			var lost *client.LostError
			return errors.As(err, &lost) && lost.Sent && errors.Is(err, context.Canceled)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				host, guest := guesttest.MemoryPair()
				ctx, cancel := context.WithCancel(t.Context())
				told := make(chan struct{})
				go func() {
					p := guesttest.NewPeer(t, guest)
					p.Greet(guesttest.FullHello())
					stream, _ := p.Until(wire.KindOpen)
					cancel()
					if got, _ := p.Until(wire.KindCancel); got != stream {
						t.Errorf("stream %d was cancelled, not %d", got, stream)
					}
					close(told)
					if c.answer != nil {
						c.answer(p, stream)
					}
					p.Drain()
				}()
				conn, err := client.New(t.Context(), host, client.Options{CancelWait: wait})
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				start := time.Now()
				f, err := conn.Do(ctx, request(c.op))
				if f != nil {
					f.Release()
				}
				if took := time.Since(start); took != c.took {
					t.Errorf("took %v, want %v", took, c.took)
				}
				if !c.check(err) {
					t.Errorf("error %v", err)
				}
				<-told
			})
		})
	}
}

// The answer to a call that was given up is dropped, data and all.
func TestLateAnswer(t *testing.T) {
	given := make(chan struct{})
	conn := withPeer(t, client.Options{}, func(p *guesttest.Peer) {
		stream, _ := p.Until(wire.KindOpen)
		close(given)
		_, _ = p.Until(wire.KindCancel)
		p.Send(wire.KindReply, stream, []byte{0})
		for range 16 {
			p.Send(wire.KindData, stream, data(1, 64<<10))
		}
		p.Send(wire.KindDone, stream, nil)
		stream, payload := p.Until(wire.KindOpen)
		p.Send(wire.KindDone, stream, payload[1:])
		p.Drain()
	})
	call, err := conn.Start(t.Context(), request(wire.OpOpenReader), client.Shape{Reply: true, Out: wire.BulkWindow})
	if err != nil {
		t.Fatal(err)
	}
	<-given
	call.Abandon()
	if _, err := conn.Echo(t.Context(), []byte("x")); err != nil {
		t.Errorf("after an abandoned call: %v", err)
	}
}

// Calls beyond what a connection carries wait for a place, under their ctx.
func TestPlacesForCalls(t *testing.T) {
	release := make(chan struct{})
	conn := withPeer(t, client.Options{}, func(p *guesttest.Peer) {
		var streams []uint64
		for range wire.MaxStreams {
			stream, _ := p.Until(wire.KindOpen)
			streams = append(streams, stream)
		}
		<-release
		for _, s := range streams {
			p.Send(wire.KindDone, s, nil)
		}
		stream, _ := p.Until(wire.KindOpen)
		p.Send(wire.KindDone, stream, nil)
		p.Drain()
	})
	calls := make([]*client.Call, wire.MaxStreams)
	for i := range calls {
		var err error
		if calls[i], err = conn.Start(t.Context(), request(wire.OpStat), client.Shape{}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := conn.Do(ctx, request(wire.OpStat)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("one call too many: %v", err)
	}
	close(release)
	for _, c := range calls {
		if _, err := c.Answer(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conn.Do(t.Context(), request(wire.OpStat)); err != nil {
		t.Errorf("after the others: %v", err)
	}
}

// A helper that takes nothing off the connection holds up callers no longer than
// their ctx.
func TestPeerThatDoesNotRead(t *testing.T) {
	over := make(chan struct{})
	conn := withPeer(t, client.Options{CancelWait: time.Millisecond}, func(*guesttest.Peer) { <-over })
	defer close(over)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			f := wire.NewOpen(wire.OpWrite, 200_000)
			f.B = append(f.B, make([]byte, 200_000)...)
			if _, err := conn.Do(ctx, f); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v", err)
			}
		})
	}
	wg.Wait()
}

// Calls on a connection that is over were not sent.
func TestAfterClose(t *testing.T) {
	conn := connect(t, server.Config{}, client.Options{})
	_ = conn.Close()
	_ = conn.Close()
	guesttest.Within(t, "done", conn.Done())
	_, err := conn.Echo(t.Context(), nil)
	var lost *client.LostError
	if !errors.As(err, &lost) || lost.Sent || !errors.Is(err, client.ErrClosed) {
		t.Errorf("echo: %v", err)
	}
}
