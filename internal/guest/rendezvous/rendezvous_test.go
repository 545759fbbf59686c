//go:build unix

package rendezvous_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/workberth/workberth/internal/guest/guesttest"
	"github.com/workberth/workberth/internal/guest/rendezvous"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func listen(t *testing.T, opts rendezvous.Options) *rendezvous.Listener {
	t.Helper()
	l, err := rendezvous.Listen(shortDir(t), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// shortDir is a directory whose name fits into a socket address.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "rv")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

type accepted struct {
	conn *net.UnixConn
	err  error
}

func accept(ctx context.Context, l *rendezvous.Listener) <-chan accepted {
	c := make(chan accepted, 1)
	go func() {
		conn, err := l.Accept(ctx)
		c <- accepted{conn, err}
	}()
	return c
}

// gone fails the test when something of the rendezvous is left.
func gone(t *testing.T, l *rendezvous.Listener) {
	t.Helper()
	if _, err := os.Lstat(l.Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", l.Dir(), err)
	}
	if c, err := net.Dial("unix", l.Path()); err == nil {
		_ = c.Close()
		t.Error("somebody still listens")
	}
}

// The peer with the token is admitted, and the socket is gone before anything is
// said.
func TestMeet(t *testing.T) {
	l := listen(t, rendezvous.Options{PeerUIDs: []int{os.Getuid()}})
	dir, err := os.Stat(l.Dir())
	if err != nil || dir.Mode().Perm() != 0o700 {
		t.Errorf("directory: %v, %v", dir.Mode(), err)
	}
	if sock, err := os.Stat(l.Path()); err != nil || sock.Mode().Perm() != 0o600 {
		t.Errorf("socket: %v, %v", sock.Mode(), err)
	}
	host := accept(t.Context(), l)
	guest, err := rendezvous.Dial(t.Context(), l.Path(), l.Token())
	if err != nil {
		t.Fatal(err)
	}
	defer guest.Close()
	got := guesttest.Within(t, "accept", host)
	if got.err != nil {
		t.Fatal(got.err)
	}
	defer got.conn.Close()
	gone(t, l)
	if _, err := io.WriteString(guest, "hello"); err != nil {
		t.Error(err)
	}
	buf := make([]byte, 5)
	if _, err := io.ReadFull(got.conn, buf); err != nil || string(buf) != "hello" {
		t.Errorf("%q, %v", buf, err)
	}
	_ = l.Close() // leaves the connection alone
	if _, err := io.WriteString(got.conn, "hello"); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadFull(guest, buf); err != nil {
		t.Error(err)
	}
}

// Tokens are random and never the same.
func TestTokens(t *testing.T) {
	a, b := listen(t, rendezvous.Options{}), listen(t, rendezvous.Options{})
	if a.Token() == b.Token() || len(a.Token()) != 64 || strings.Trim(a.Token(), "0123456789abcdef") != "" {
		t.Errorf("tokens %q and %q", a.Token(), b.Token())
	}
}

// Peers without the token, silent ones, garrulous ones and dead ones are refused,
// each and all together, and keep the right one out not at all.
func TestHostilePeers(t *testing.T) {
	const greeting = "BERTHRV1"
	wrong := strings.Repeat("0", 64)
	for name, hostile := range map[string]func(l *rendezvous.Listener, c net.Conn){
		"silent":       func(*rendezvous.Listener, net.Conn) {},
		"hangs up":     func(_ *rendezvous.Listener, c net.Conn) { _ = c.Close() },
		"wrong token":  func(_ *rendezvous.Listener, c net.Conn) { _, _ = io.WriteString(c, greeting+wrong) },
		"almost right": func(l *rendezvous.Listener, c net.Conn) { _, _ = io.WriteString(c, greeting+l.Token()[:63]+"x") },
		"half a token": func(l *rendezvous.Listener, c net.Conn) { _, _ = io.WriteString(c, greeting+l.Token()[:32]) },
		"no greeting":  func(l *rendezvous.Listener, c net.Conn) { _, _ = io.WriteString(c, l.Token()+l.Token()) },
		"another one":  func(l *rendezvous.Listener, c net.Conn) { _, _ = io.WriteString(c, "BERTHRV2"+l.Token()) },
		"http": func(_ *rendezvous.Listener, c net.Conn) {
			_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		},
		"a megabyte":     func(_ *rendezvous.Listener, c net.Conn) { _, _ = c.Write(make([]byte, 1<<20)) },
		"right and dead": func(l *rendezvous.Listener, c net.Conn) { _, _ = io.WriteString(c, greeting+l.Token()); _ = c.Close() },
		"right and wrong": func(l *rendezvous.Listener, c net.Conn) {
			_, _ = io.WriteString(c, greeting+l.Token()+"?")
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := listen(t, rendezvous.Options{TokenWait: guesttest.Patience})
			host := accept(t.Context(), l)
			var wg sync.WaitGroup
			for range 3 {
				c, err := net.Dial("unix", l.Path())
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				wg.Go(func() { hostile(l, c) })
			}
			guest, err := rendezvous.Dial(t.Context(), l.Path(), l.Token())
			if err != nil {
				t.Fatalf("the right peer was refused: %v", err)
			}
			defer guest.Close()
			got := guesttest.Within(t, "accept", host)
			if got.err != nil {
				t.Fatal(got.err)
			}
			defer got.conn.Close()
			wg.Wait()
			if _, err := io.WriteString(guest, "it is me"); err != nil {
				t.Error(err)
			}
			buf := make([]byte, 8)
			if _, err := io.ReadFull(got.conn, buf); err != nil || string(buf) != "it is me" {
				t.Errorf("%q, %v", buf, err)
			}
			gone(t, l)
		})
	}
}

// Silent peers cannot use up the places: those who have been silent longest are
// dropped.
func TestManySilentPeers(t *testing.T) {
	l := listen(t, rendezvous.Options{TokenWait: time.Hour})
	host := accept(t.Context(), l)
	var oldest net.Conn
	for i := range 100 {
		c, err := net.Dial("unix", l.Path())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if i == 0 {
			oldest = c
		}
	}
	if err := oldest.SetReadDeadline(time.Now().Add(guesttest.Patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := oldest.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the oldest silent peer: %v", err)
	}
	guest, err := rendezvous.Dial(t.Context(), l.Path(), l.Token())
	if err != nil {
		t.Fatal(err)
	}
	defer guest.Close()
	got := guesttest.Within(t, "accept", host)
	if got.err != nil {
		t.Fatal(got.err)
	}
	_ = got.conn.Close()
}

// Of many peers with the token one is admitted.
func TestOnlyOne(t *testing.T) {
	l := listen(t, rendezvous.Options{})
	host := accept(t.Context(), l)
	var wg sync.WaitGroup
	var mu sync.Mutex
	heard := 0
	for range 10 {
		wg.Go(func() {
			c, err := rendezvous.Dial(t.Context(), l.Path(), l.Token())
			if err != nil {
				return
			}
			defer c.Close()
			buf := make([]byte, 1)
			if _, err := io.ReadFull(c, buf); err == nil {
				mu.Lock()
				heard++
				mu.Unlock()
			}
		})
	}
	got := guesttest.Within(t, "accept", host)
	if got.err != nil {
		t.Fatal(got.err)
	}
	if _, err := io.WriteString(got.conn, "x"); err != nil {
		t.Error(err)
	}
	wg.Wait()
	_ = got.conn.Close()
	if heard != 1 {
		t.Errorf("%d peers were admitted", heard)
	}
}

func TestRefusals(t *testing.T) {
	l := listen(t, rendezvous.Options{PeerUIDs: []int{os.Getuid() + 12345}})
	ctx, cancel := context.WithCancel(t.Context())
	host := accept(ctx, l)
	if _, err := rendezvous.Dial(t.Context(), l.Path(), l.Token()); !errors.Is(err, rendezvous.ErrRefused) {
		t.Errorf("another user: %v", err)
	}
	if _, err := rendezvous.Dial(t.Context(), l.Path(), strings.Repeat("f", 64)); !errors.Is(err, rendezvous.ErrRefused) {
		t.Errorf("wrong token: %v", err)
	}
	if _, err := rendezvous.Dial(t.Context(), l.Path(), "short"); err == nil {
		t.Error("a short token was sent")
	}
	if _, err := rendezvous.Dial(t.Context(), filepath.Join(l.Dir(), "absent"), l.Token()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no socket: %v", err)
	}
	cancel()
	got := guesttest.Within(t, "accept", host)
	if !errors.Is(got.err, context.Canceled) || got.conn != nil {
		t.Errorf("accept: %v", got.err)
	}
	gone(t, l)
}

// A token must come in time.
func TestTokenWait(t *testing.T) {
	l := listen(t, rendezvous.Options{TokenWait: 10 * time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	host := accept(ctx, l)
	c, err := net.Dial("unix", l.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.ReadFull(c, make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("a silent peer: %v", err)
	}
	cancel()
	<-host
}

// Closing ends a waiting Accept; a host that says nothing ends Dial with its ctx.
func TestClose(t *testing.T) {
	l := listen(t, rendezvous.Options{})
	host := accept(t.Context(), l)
	_ = l.Close()
	if got := guesttest.Within(t, "accept", host); !errors.Is(got.err, rendezvous.ErrClosed) {
		t.Errorf("accept: %v", got.err)
	}
	gone(t, l)
	if _, err := l.Accept(t.Context()); !errors.Is(err, rendezvous.ErrClosed) {
		t.Errorf("accept after close: %v", err)
	}

	silent := listen(t, rendezvous.Options{}) // nobody accepts
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := rendezvous.Dial(ctx, silent.Path(), silent.Token()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("dial: %v", err)
	}
}

// A directory that is deeper than a socket address is long serves all the same; inside the
// environment it is mounted elsewhere.
func TestDeepDirectory(t *testing.T) {
	top := shortDir(t)
	deep := top
	for i := range 10 {
		deep = filepath.Join(deep, fmt.Sprintf("directory-%d", i))
	}
	if err := os.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := rendezvous.Listen(deep, rendezvous.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := l.Invite(deep, "0123456789abcdef", 0o027); err != nil {
		t.Fatal(err)
	}
	near := filepath.Join(top, "near")
	if err := os.Symlink(deep, near); err != nil {
		t.Fatal(err)
	}
	inv, err := rendezvous.ReadInvitation(near)
	if err != nil || inv.Tag != "0123456789abcdef" || inv.Umask != 0o027 || inv.Token != l.Token() {
		t.Fatalf("invitation %+v, %v", inv, err)
	}
	dialled := make(chan error, 1)
	go func() {
		c, err := rendezvous.Dial(t.Context(), inv.Socket, inv.Token)
		if err == nil {
			err = c.Close()
		}
		dialled <- err
	}()
	c, err := l.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	if err := <-dialled; err != nil {
		t.Error(err)
	}
	if err := rendezvous.Uninvite(deep); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(deep); len(left) > 0 {
		t.Errorf("%d entries are left", len(left))
	}
}

// What lies in the place of an invitation and is none.
func TestBadInvitations(t *testing.T) {
	token := strings.Repeat("0", 64)
	for name, text := range map[string]string{
		"nothing": "", "no JSON": "hello", "another place": `{"socket":"../s","token":"` + token + `","tag":""}`,
		"absolute": `{"socket":"/s","token":"` + token + `","tag":""}`, "no token": `{"socket":"s","tag":""}`,
		"strange umask": `{"socket":"s","token":"` + token + `","umask":4096}`,
		"strange tag":   `{"socket":"s","token":"` + token + `","tag":"; rm"}`, "long": strings.Repeat(" ", 1<<16),
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "call"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if inv, err := rendezvous.ReadInvitation(dir); err == nil {
			t.Errorf("%s: %+v", name, inv)
		}
	}
	if _, err := rendezvous.ReadInvitation(t.TempDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

func TestListenErrors(t *testing.T) {
	if _, err := rendezvous.Listen(filepath.Join(shortDir(t), "absent"), rendezvous.Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
	if os.Getuid() != 0 {
		t.Skip("only root can give the socket away")
	}
	l := listen(t, rendezvous.Options{UID: 1234, GID: 1234})
	for _, p := range []string{l.Dir(), l.Path()} {
		if uid := owner(t, p); uid != 1234 {
			t.Errorf("%s belongs to %d", p, uid)
		}
	}
}
