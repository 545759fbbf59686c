package sshclient

import (
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/workberth/workberth/internal/sshtest"
)

// A server that means harm, or is none, ends an attempt within its time, with an error of
// ours, and costs no memory. C105
func TestHostileServers(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	defer wg.Wait() // they wait all at the same time
	key := sshtest.NewKey(t, "ed25519")
	config := func() *ssh.ServerConfig {
		c := &ssh.ServerConfig{PublicKeyCallback: func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) { return nil, errors.New("no") }}
		c.AddHostKey(key.Signer)
		return c
	}
	for name, serve := range map[string]func(net.Conn){
		"says nothing":     func(c net.Conn) { _, _ = io.Copy(io.Discard, c) },
		"hangs up":         func(net.Conn) {},
		"endless lines":    func(c net.Conn) { endless(c, "this is a banner and not a version\r\n") },
		"endless line":     func(c net.Conn) { endless(c, "x") },
		"web server":       func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n") },
		"stops after that": func(c net.Conn) { _, _ = io.WriteString(c, "SSH-2.0-x\r\n"); _, _ = io.Copy(io.Discard, c) },
		"garbage after":    func(c net.Conn) { _, _ = io.WriteString(c, "SSH-2.0-x\r\n"); endless(c, "garbage\xff\x00") },
		"a huge packet":    func(c net.Conn) { _, _ = io.WriteString(c, "SSH-2.0-x\r\n\x7f\xff\xff\xff"); endless(c, "\x00") },
		"old protocol":     func(c net.Conn) { _, _ = io.WriteString(c, "SSH-1.5-x\r\n"); _, _ = io.Copy(io.Discard, c) },
		"stops in the keys": func(c net.Conn) {
			stuck := config()
			stuck.PublicKeyCallback = func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) {
				_, err := io.Copy(io.Discard, c) // until the client goes
				return nil, err
			}
			_, _, _, _ = ssh.NewServerConn(c, stuck)
		},
		"a banner of escapes": func(c net.Conn) {
			rude := config()
			rude.BannerCallback = func(ssh.ConnMetadata) string { return strings.Repeat("\x1b]0;owned\a", 10_000) }
			_, _, _, _ = ssh.NewServerConn(c, rude)
		},
	} {
		address := listen(t, serve)
		p := newPlace(t, fmt.Sprintf("Host box\n HostName 127.0.0.1\n Port %d\n User me\n ConnectTimeout 1\n UserKnownHostsFile ~/known\n GlobalKnownHostsFile none\n IdentityFile ~/key", address.Port))
		p.write("key", key)
		p.file("known", fmt.Sprintf("[127.0.0.1]:%d %s", address.Port, ssh.MarshalAuthorizedKey(key.Public())))
		wg.Go(func() {
			begun := time.Now()
			err := p.connect("box", Options{})
			if took := time.Since(begun); took > 4*time.Second {
				t.Errorf("%s: it took %v", name, took)
			}
			want := ErrUnreachable
			if strings.Contains(name, "escapes") {
				want = ErrAuthentication
			}
			refused(t, err, want)
			if text := fmt.Sprint(err); len(text) > 1000 || strings.ContainsAny(text, "\x1b\n\x00") {
				t.Errorf("%s: the error is %q", name, text)
			}
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			if m.HeapAlloc > 100<<20 {
				t.Errorf("%s: the heap has %d MiB", name, m.HeapAlloc>>20)
			}
		})
	}
}

// endless writes a text until the connection ends.
func endless(c net.Conn, text string) {
	block := []byte(strings.Repeat(text, 1000))
	for {
		if _, err := c.Write(block); err != nil {
			return
		}
	}
}

// listen serves connections on a port of this machine until the end of the test.
func listen(t *testing.T, serve func(net.Conn)) *net.TCPAddr {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				serve(c)
			}()
		}
	}()
	address, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatal(l.Addr())
	}
	return address
}

func TestNobodyListens(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "Host box\n HostName 127.0.0.1\n Port 1\nHost lost\n HostName nowhere.invalid")
	for _, name := range []string{"box", "lost"} {
		begun := time.Now()
		refused(t, p.connect(name, Options{}), ErrUnreachable)
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("%s: %v", name, took)
		}
	}
}
