package client_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workberth/workberth/internal/guest/client"
	"github.com/workberth/workberth/internal/guest/guesttest"
	"github.com/workberth/workberth/internal/guest/wire"
)

// hello is the bytes of a greeting, magic included.
func hello(h wire.Hello) string {
	f := wire.NewFrame(wire.KindHello, 0, 1024)
	f.B = h.Append(f.B)
	b, _ := f.Bytes()
	return wire.Magic + string(b)
}

// A login shell prints what it likes before the helper starts. C105
func TestBannersAreSkipped(t *testing.T) {
	for name, banner := range map[string]string{
		"none":                  "",
		"a line":                "Welcome to the box\n",
		"no line end":           "Session is recorded.",
		"five lines":            strings.Repeat("line\r\n", 5),
		"100 KiB":               strings.Repeat("motd ", 20<<10),
		"parts of the magic":    wire.Magic[:7] + wire.Magic[:1] + "x" + wire.Magic[:4],
		"the first byte, twice": wire.Magic[:1] + wire.Magic[:1],
		"just the limit":        strings.Repeat("b", wire.MaxBanner),
		"binary":                "\x00\xff\x1b[2J",
	} {
		t.Run(name, func(t *testing.T) {
			host, guest := guesttest.SocketPair(t)
			go func() {
				_, _ = io.WriteString(guest, banner+hello(guesttest.FullHello()))
				guesttest.NewPeer(t, guest).Drain()
			}()
			conn, err := client.New(t.Context(), host, client.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if h := conn.Hello(); h.Pid != 4242 || h.Build != "v1.2.3-test" || h.Tag != "tag" || len(h.Mounts) != 2 {
				t.Errorf("greeting %+v", h)
			}
		})
	}
}

// Whatever a peer says instead of a greeting is quoted, and bounded.
func TestNoGreeting(t *testing.T) {
	valid := hello(guesttest.FullHello())
	twice := guesttest.FullHello()
	twice.Mounts = append(twice.Mounts, twice.Mounts[0])
	unclean := guesttest.FullHello()
	unclean.Mounts[0].Path = "/ws/../etc"
	for name, c := range map[string]struct {
		says string
		skip int
		want string // in the error
		is   error
	}{
		"nothing":            {"", 0, "closed the connection", nil},
		"a message":          {"bash: berth-guest: No such file or directory\n", 0, `"bash: berth-guest: No such file or directory"`, nil},
		"control characters": {"\x1b]0;evil\x07\nbye", 0, `\\x1b]0;evil\\x07 bye`, nil},
		"too long":           {strings.Repeat("z", wire.MaxBanner+1) + valid, 0, "no greeting within 262144 bytes", nil},
		"own limit":          {"0123456789" + valid, 5, "no greeting within 5 bytes", nil},
		"none allowed":       {"\n" + valid, -1, "no greeting within 0 bytes", nil},
		"translated lines":   {strings.ReplaceAll(valid, "\r\n", "\n"), 0, "no greeting", nil},
		"cut short":          {valid[:20], 0, "unexpected EOF", io.ErrUnexpectedEOF},
		"another frame":      {wire.Magic + "\x00\x00\x00\x09\x06\x00\x00\x00\x00\x00\x00\x00\x00", 0, "data frame where hello was due", wire.ErrProtocol},
		"endless frame":      {wire.Magic + "\xff\xff\xff\xff\x01", 0, "", nil},
		"large frame":        {wire.Magic + "\x00\x02\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00", 0, "at most 65536 are allowed", wire.ErrProtocol},
		"garbage frame":      {wire.Magic + "\x00\x00\x00\x0b\x01\x00\x00\x00\x00\x00\x00\x00\x00\x01\xff", 0, "malformed number", wire.ErrProtocol},
		"a mount twice":      {hello(twice), 0, "two mounts", wire.ErrProtocol},
		"a mount unclean":    {hello(unclean), 0, `mount at "/ws/../etc"`, wire.ErrProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			host, guest := guesttest.SocketPair(t)
			go func() {
				_, _ = io.WriteString(guest, c.says)
				_ = guest.Close()
			}()
			_, err := client.New(t.Context(), host, client.Options{SkipLimit: c.skip})
			var failed *client.HandshakeError
			if !errors.As(err, &failed) {
				t.Fatalf("error %v is no *HandshakeError", err)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %q does not say %q", err, c.want)
			}
			if c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("error %v matches not %v", err, c.is)
			}
			if len(failed.Said) > wire.MaxQuote+3 {
				t.Errorf("%d bytes are quoted", len(failed.Said))
			}
			if _, err := host.Write([]byte{0}); err == nil {
				t.Error("the connection was left open")
			}
		})
	}
}

// A peer of another version is sent away, and both sides name both versions.
func TestOtherVersions(t *testing.T) {
	for _, version := range []int{0, wire.Version + 1, 1 << 30} {
		host, guest := guesttest.SocketPair(t)
		said := make(chan wire.Hello, 1)
		go func() {
			p := guesttest.NewPeer(t, guest)
			// What another version puts behind the two first fields is its own business.
			payload := wire.Hello{Protocol: version, Build: "v9.9.9"}.Append(nil)
			f := wire.NewFrame(wire.KindHello, 0, 64)
			f.B = append(append(f.B, payload[:len(payload)-5]...), "a layout of another time \xff\xff\xff"...)
			b, _ := f.Bytes()
			p.Write(append([]byte(wire.Magic), b...))
			said <- p.Hello()
		}()
		_, err := client.New(t.Context(), host, client.Options{Build: "v1.0.0"})
		var other *client.VersionError
		if !errors.As(err, &other) {
			t.Fatalf("version %d: error %v is no *VersionError", version, err)
		}
		want := client.VersionError{
			Host: wire.Peer{Protocol: wire.Version, Build: "v1.0.0"}, Guest: wire.Peer{Protocol: version, Build: "v9.9.9"},
		}
		if *other != want {
			t.Errorf("version %d: %+v, want %+v", version, *other, want)
		}
		for _, part := range []string{"v9.9.9", "v1.0.0"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("error %q does not name %q", err, part)
			}
		}
		if h := guesttest.Within(t, "hello", said); h.Protocol != wire.Version || h.Build != "v1.0.0" {
			t.Errorf("version %d: the client answered %+v", version, h)
		}
	}
}

// A silent peer is given up after the timeout.
func TestSilentPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, guest := net.Pipe()
		go func() {
			_, _ = io.WriteString(guest, "Last login: today")
			_, _ = io.Copy(io.Discard, guest)
		}()
		start := time.Now()
		_, err := client.New(t.Context(), host, client.Options{HandshakeTimeout: 7 * time.Second})
		if took := time.Since(start); took != 7*time.Second {
			t.Errorf("took %v", took)
		}
		if err == nil || !strings.Contains(err.Error(), "silent") || !strings.Contains(err.Error(), "Last login: today") {
			t.Errorf("error %v", err)
		}
	})
}

// stuck is a transport whose Read is interrupted by nothing.
type stuck struct{ release chan struct{} }

func (s stuck) Read([]byte) (int, error)    { <-s.release; return 0, io.EOF }
func (s stuck) Write(p []byte) (int, error) { return len(p), nil }
func (s stuck) Close() error                { return nil }

// New obeys its ctx also when the transport does not.
func TestHandshakeObeysContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stuck{make(chan struct{})}
		defer close(s.release)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := client.New(ctx, s, client.Options{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
	})
}
