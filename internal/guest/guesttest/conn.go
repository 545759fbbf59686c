package guesttest

import (
	"io"
	"net"
	"os"
	"testing"

	"github.com/workberth/workberth/internal/guest/mux"
)

// SocketPair is two connected Unix sockets, closed with the test.
func SocketPair(t testing.TB) (a, b *net.UnixConn) {
	t.Helper()
	fds, err := socketpair()
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*net.UnixConn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "socket")
		c, err := net.FileConn(f)
		_ = f.Close()
		if err != nil {
			t.Fatal(err)
		}
		ends[i] = c.(*net.UnixConn) //nolint:forcetypeassert // what a Unix socket is
		t.Cleanup(func() { _ = c.Close() })
	}
	return ends[0], ends[1]
}

// Pipes is two connections made of two pipes, as between a program and its child.
func Pipes(t testing.TB) (a, b io.ReadWriteCloser) {
	t.Helper()
	ar, bw, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	br, aw, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	a, b = mux.Join(ar, aw), mux.Join(br, bw)
	t.Cleanup(func() {
		_ = a.Close()
		_ = b.Close()
	})
	return a, b
}
