package bench

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// TestRelayIsLongAndWide: an answer takes both ways, and much goes through at the same time.
func TestRelayIsLongAndWide(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c); _ = c.Close() }()
		}
	}()
	const delay = 20 * time.Millisecond
	r, err := newRelay(t.Context(), l.Addr().String(), delay)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", r.l.Addr().String()) //nolint:noctx // it is there
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	sent := noise(1 << 20)
	begun := time.Now()
	go func() { _, _ = c.Write(sent) }()
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, sent) {
		t.Errorf("what came back is not what was sent: %v", err)
	}
	if took := time.Since(begun); took < 2*delay || took > 100*delay {
		t.Errorf("1 MiB there and back took %v over a line of %v", took, delay)
	}
	if got, want := r.traffic(), (traffic{connections: 1, sent: 1 << 20, received: 1 << 20}); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
	if got, want := r.traffic().since(traffic{sent: 1 << 10}), (traffic{1, 1<<20 - 1<<10, 1 << 20}); got != want {
		t.Errorf("since an earlier look %+v, want %+v", got, want)
	}
	if err := r.close(); err != nil {
		t.Error(err)
	}
	if _, err := c.Read(got); !errors.Is(err, io.EOF) && err == nil {
		t.Error("the line outlives its end")
	}
}
