package mux_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/workberth/workberth/internal/guest/guesttest"
	"github.com/workberth/workberth/internal/guest/mux"
	"github.com/workberth/workberth/internal/guest/wire"
)

// data is a frame of n bytes of content, all of them the low byte of stream.
func data(stream uint64, n int) *wire.Frame {
	f := wire.NewData(stream, wire.ChannelOut, n)
	f.B = append(f.B, bytes.Repeat([]byte{byte(stream)}, n)...)
	return f
}

// checkData fails the test when a frame is not as data made it.
func checkData(t *testing.T, f *wire.Frame) {
	t.Helper()
	p := f.Payload()
	if f.Kind() != wire.KindData || len(p) == 0 || !bytes.Equal(p[1:], bytes.Repeat([]byte{byte(f.Stream())}, len(p)-1)) {
		t.Errorf("frame of stream %d arrived torn", f.Stream())
	}
}

// Frames of many senders arrive whole and in the order of their numbering, over
// transports that can be written directly and over those that cannot.
func TestSenderKeepsFramesWholeAndInOrder(t *testing.T) {
	type pair func(t testing.TB) (w io.WriteCloser, r io.Reader)
	for name, connect := range map[string]pair{
		"socket": func(t testing.TB) (io.WriteCloser, io.Reader) { return guesttest.SocketPair(t) },
		"pipes":  func(t testing.TB) (io.WriteCloser, io.Reader) { return guesttest.Pipes(t) },
		"memory": func(testing.TB) (io.WriteCloser, io.Reader) { return guesttest.MemoryPair() },
	} {
		t.Run(name, func(t *testing.T) {
			w, r := connect(t)
			s := mux.NewSender(w, func(err error) { t.Errorf("failed: %v", err) })
			const senders, each = 16, 60
			var last atomic.Uint64
			s.More = func() bool { return last.Load()%2 == 0 }
			var wg sync.WaitGroup
			for i := range senders {
				wg.Go(func() {
					for j := range each {
						size := []int{0, 1, 100, 5000, 70_000}[(i+j)%5]
						f := data(1, size)
						err := s.SendOrdered(t.Context(), f, func() error {
							n := last.Add(1)
							f.SetStream(n)
							for k := range size {
								f.B[wire.HeaderSize+1+k] = byte(n)
							}
							return nil
						})
						if err != nil {
							t.Errorf("send: %v", err)
						}
					}
				})
			}
			frames := wire.NewReader(r)
			for want := uint64(1); want <= senders*each; want++ {
				f, err := frames.Next()
				if err != nil {
					t.Fatal(err)
				}
				if f.Stream() != want {
					t.Fatalf("stream %d, want %d", f.Stream(), want)
				}
				checkData(t, f)
				f.Release()
			}
			wg.Wait()
			s.Close(io.ErrClosedPipe)
			guesttest.Within(t, "the sender ends", s.Done())
			if err := s.Send(t.Context(), data(1, 1)); !errors.Is(err, io.ErrClosedPipe) {
				t.Errorf("send after close: %v", err)
			}
			if err := s.Post(data(1, 1)); !errors.Is(err, io.ErrClosedPipe) {
				t.Errorf("post after close: %v", err)
			}
		})
	}
}

// A peer that takes nothing holds up Send under its ctx, never Post, and Post ends
// the connection before it has filled the memory.
func TestSenderAgainstDeafPeer(t *testing.T) {
	a, _ := guesttest.SocketPair(t)
	failed := make(chan error, 1)
	s := mux.NewSender(a, func(err error) { failed <- err })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	sent := 0
	var err error
	for err == nil {
		if err = s.Send(ctx, data(1, 100_000)); err == nil {
			sent += 100_000
		}
	}
	if !errors.Is(err, context.DeadlineExceeded) || sent > 4<<20 {
		t.Errorf("%d bytes were taken, then %v", sent, err)
	}
	posted := 0
	for err = nil; err == nil; posted += 100_000 {
		err = s.Post(data(1, 100_000))
	}
	if !errors.Is(err, wire.ErrProtocol) || posted < 8<<20 || posted > 32<<20 {
		t.Errorf("%d bytes were posted, then %v", posted, err)
	}
	if got := guesttest.Within(t, "failed", failed); got != err {
		t.Errorf("failed with %v", got)
	}
	_ = a.Close()
	guesttest.Within(t, "the sender ends", s.Done())
}

// An error of the transport is told once and refuses everything after it.
func TestSenderTellsFailure(t *testing.T) {
	for name, w := range map[string]io.Writer{
		"memory": brokenWriter{},
		"socket": closedSocket(t),
	} {
		failed := make(chan error, 2)
		s := mux.NewSender(w, func(err error) { failed <- err })
		if err := s.Send(t.Context(), data(1, 1)); err != nil {
			t.Errorf("%s: the first send knows already: %v", name, err)
		}
		err := guesttest.Within(t, "failed", failed)
		if got := s.Send(t.Context(), data(1, 1)); got != err {
			t.Errorf("%s: %v, want %v", name, got, err)
		}
		guesttest.Within(t, "the sender ends", s.Done())
		if len(failed) > 0 {
			t.Errorf("%s: told twice", name)
		}
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("the cable is cut") }

func closedSocket(t *testing.T) io.Writer {
	t.Helper()
	a, b := guesttest.SocketPair(t)
	_ = b.Close()
	return a
}

// What enter refuses is not sent, and what is too large never is.
func TestSenderRefuses(t *testing.T) {
	a, b := guesttest.MemoryPair()
	s := mux.NewSender(a, func(error) {})
	refusal := errors.New("no")
	if err := s.SendOrdered(t.Context(), data(1, 10), func() error { return refusal }); !errors.Is(err, refusal) {
		t.Errorf("refused: %v", err)
	}
	if err := s.Send(t.Context(), data(1, wire.MaxFrame)); !errors.Is(err, wire.ErrProtocol) {
		t.Errorf("too large: %v", err)
	}
	if err := s.Send(t.Context(), data(7, 10)); err != nil {
		t.Error(err)
	}
	f, err := wire.NewReader(b).Next()
	if err != nil || f.Stream() != 7 {
		t.Errorf("stream %d, %v", f.Stream(), err)
	}
	s.Close(io.EOF)
	guesttest.Within(t, "the sender ends", s.Done())
}

// What waits is dropped with the connection, and who waits is let go.
func TestSenderCloseFreesWaiters(t *testing.T) {
	a, _ := guesttest.SocketPair(t)
	s := mux.NewSender(a, func(error) {})
	waiting := make(chan error, 8)
	for range 8 {
		go func() {
			for {
				if err := s.Send(context.WithoutCancel(t.Context()), data(1, 500_000)); err != nil {
					waiting <- err
					return
				}
			}
		}()
	}
	s.Close(io.ErrClosedPipe)
	_ = a.Close()
	for range 8 {
		if err := guesttest.Within(t, "send", waiting); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("send: %v", err)
		}
	}
	guesttest.Within(t, "the sender ends", s.Done())
}

// A frame that fits only in part goes on where it stopped.
func TestSenderPartialWrites(t *testing.T) {
	a, b := guesttest.SocketPair(t)
	if err := a.SetWriteBuffer(4096); err != nil {
		t.Fatal(err)
	}
	s := mux.NewSender(a, func(err error) { t.Errorf("failed: %v", err) })
	const n = 50
	go func() {
		for i := range uint64(n) {
			_ = s.Send(context.WithoutCancel(t.Context()), data(i, 100_000))
		}
	}()
	frames := wire.NewReader(b)
	for i := range uint64(n) {
		f, err := frames.Next()
		if err != nil || f.Stream() != i || binary.BigEndian.Uint32(f.B) != 100_000+1+wire.HeaderSize-4 {
			t.Fatalf("frame %d: %v", i, err)
		}
		checkData(t, f)
		f.Release()
	}
	s.Close(io.EOF)
	_ = a.Close()
	guesttest.Within(t, "the sender ends", s.Done())
}
