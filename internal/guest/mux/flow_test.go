package mux_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/workberth/workberth/internal/guest/mux"
	"github.com/workberth/workberth/internal/guest/wire"
)

func content(s string) *wire.Frame {
	f := wire.NewData(1, wire.ChannelOut, len(s))
	f.B = append(f.B, s...)
	return f
}

// Whatever is sent, in whatever pieces, within the credit given back, arrives in
// order; and no more is ever under way than the window.
func TestFlowControl(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		window := rapid.IntRange(1, 5000).Draw(t, "window")
		total := rapid.IntRange(0, 20_000).Draw(t, "total")
		step := rapid.IntRange(1, 3000).Draw(t, "step")
		take := rapid.IntRange(1, 3000).Draw(t, "take")
		sent := make([]byte, total)
		for i := range sent {
			sent[i] = byte(i * 31)
		}
		out := mux.NewOutflow(window)
		in := mux.NewInflow(window, func(n int) {
			if err := out.Grant(n); err != nil {
				t.Error(err)
			}
		})
		var wg sync.WaitGroup
		wg.Go(func() {
			defer in.End(nil)
			for rest := sent; len(rest) > 0; {
				n, err := out.Acquire(context.Background(), min(step, len(rest)))
				if err != nil || n < 1 || n > step || n > window {
					t.Errorf("acquired %d, %v", n, err)
					return
				}
				if err := in.Deliver(content(string(rest[:n]))); err != nil {
					t.Error(err)
					return
				}
				rest = rest[n:]
			}
		})
		var got []byte
		r := in.Reader(context.Background())
		buf := make([]byte, take)
		for {
			n, err := r.Read(buf)
			got = append(got, buf[:n]...)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		wg.Wait()
		if !bytes.Equal(got, sent) {
			t.Fatalf("%d bytes arrived as %d", len(sent), len(got))
		}
	})
}

func TestInflowRefusals(t *testing.T) {
	none := func(int) {}
	in := mux.NewInflow(10, none)
	for _, s := range []string{"12345", "", "67890"} {
		if err := in.Deliver(content(s)); err != nil {
			t.Error(err)
		}
	}
	if err := in.Deliver(content("x")); !errors.Is(err, wire.ErrProtocol) || !strings.Contains(err.Error(), "credit of 0") {
		t.Errorf("beyond credit: %v", err)
	}
	in.Grow(1)
	if err := in.Deliver(content("x")); err != nil {
		t.Errorf("after growing: %v", err)
	}
	in.End(nil)
	in.End(errors.New("too late"))
	if err := in.Deliver(content("")); !errors.Is(err, wire.ErrProtocol) {
		t.Errorf("after the end: %v", err)
	}
	got, err := io.ReadAll(in.Reader(t.Context()))
	if string(got) != "1234567890x" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	for range 2 { // the end stays
		if _, err := in.Next(t.Context()); err != io.EOF {
			t.Errorf("after the end: %v", err)
		}
	}
}

// An end with an error comes after what was delivered; dropping comes at once, and
// what still arrives is thrown away.
func TestInflowEndAndDrop(t *testing.T) {
	broken := errors.New("broken")
	in := mux.NewInflow(100, func(int) {})
	_ = in.Deliver(content("abc"))
	in.End(broken)
	if got, err := io.ReadAll(in.Reader(t.Context())); string(got) != "abc" || !errors.Is(err, broken) {
		t.Errorf("end: %q, %v", got, err)
	}
	in = mux.NewInflow(100, func(int) { t.Error("credit for a dropped channel") })
	_ = in.Deliver(content("abc"))
	in.Drop(broken)
	if err := in.Deliver(content(strings.Repeat("x", 1000))); err != nil {
		t.Errorf("after dropping: %v", err)
	}
	if got, err := io.ReadAll(in.Reader(t.Context())); len(got) > 0 || !errors.Is(err, broken) {
		t.Errorf("drop: %q, %v", got, err)
	}
}

func TestInflowWaitsUnderContext(t *testing.T) {
	in := mux.NewInflow(100, func(int) {})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := in.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("next: %v", err)
	}
	_ = in.Deliver(content("abc"))
	if f, err := in.Next(ctx); err != nil || string(f.Payload()[1:]) != "abc" { // what is there is there
		t.Errorf("next: %v", err)
	}
}

// Data sent byte by byte does not cost a buffer for each byte.
func TestInflowJoinsSmallFrames(t *testing.T) {
	in := mux.NewInflow(wire.BulkWindow, func(int) {})
	for range 10_000 {
		if err := in.Deliver(content("x")); err != nil {
			t.Fatal(err)
		}
	}
	in.End(nil)
	frames, total := 0, 0
	for {
		f, err := in.Next(t.Context())
		if err != nil {
			break
		}
		frames++
		total += len(f.Payload()) - 1
		f.Release()
	}
	if total != 10_000 || frames > 100 {
		t.Errorf("%d bytes in %d frames", total, frames)
	}
}

// WriteTo copies everything, and stops where the writer does.
func TestReaderWriteTo(t *testing.T) {
	in := mux.NewInflow(100, func(int) {})
	_ = in.Deliver(content("abcdef"))
	r := in.Reader(t.Context())
	if _, err := r.Read(make([]byte, 2)); err != nil {
		t.Error(err)
	}
	in.End(nil)
	var out bytes.Buffer
	if n, err := r.WriteTo(&out); n != 4 || err != nil || out.String() != "cdef" {
		t.Errorf("%d, %v, %q", n, err, out.String())
	}
	in = mux.NewInflow(100, func(int) {})
	_ = in.Deliver(content("abcdef"))
	if n, err := in.Reader(t.Context()).WriteTo(&short{}); n != 1 || !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("short writer: %d, %v", n, err)
	}
	if n, err := in.Reader(t.Context()).WriteTo(brokenWriter{}); n != 0 || err == nil {
		t.Errorf("broken writer: %d, %v", n, err)
	}
}

type short struct{}

func (*short) Write([]byte) (int, error) { return 1, nil }

func TestOutflow(t *testing.T) {
	o := mux.NewOutflow(10)
	if n, err := o.Acquire(t.Context(), 100); n != 10 || err != nil {
		t.Errorf("acquire: %d, %v", n, err)
	}
	o.Return(3)
	o.Return(0)
	if n, err := o.Acquire(t.Context(), 2); n != 2 || err != nil {
		t.Errorf("acquire: %d, %v", n, err)
	}
	for _, n := range []int{wire.MaxWindow, 1 << 40} {
		if err := o.Grant(n); !errors.Is(err, wire.ErrProtocol) {
			t.Errorf("grant of %d: %v", n, err)
		}
	}
	if err := o.Grant(wire.MaxWindow - 1); err != nil {
		t.Errorf("grant up to the limit: %v", err)
	}
	o = mux.NewOutflow(0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := o.Acquire(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("acquire: %v", err)
	}
	broken := errors.New("broken")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if _, err := o.Acquire(t.Context(), 1); !errors.Is(err, broken) {
				t.Errorf("acquire: %v", err)
			}
		})
	}
	o.Fail(broken)
	o.Fail(io.EOF)
	wg.Wait()
}
