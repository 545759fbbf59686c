package guestfs_test

import (
	"context"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/guestfs"
	"github.com/workberth/workberth/internal/guest/client"
	"github.com/workberth/workberth/internal/guest/server"
)

// socketPair is a connected pair of Unix sockets, as the helper and its host have.
func socketPair(t testing.TB) (host, guest net.Conn) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]net.Conn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "socket")
		ends[i], err = net.FileConn(f)
		_ = f.Close()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ends[i].Close() })
	}
	return ends[0], ends[1]
}

// connect serves cfg in this process and connects to it.
func connect(t testing.TB, cfg server.Config) (*client.Conn, net.Conn) {
	t.Helper()
	host, guest := socketPair(t)
	serve(t, guest, cfg)
	conn, err := client.New(t.Context(), host, client.Options{Build: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn, host
}

// serve serves cfg until the connection ends, which the test waits for.
func serve(t testing.TB, conn io.ReadWriteCloser, cfg server.Config) {
	t.Helper()
	var wg sync.WaitGroup
	wg.Go(func() { _ = server.Serve(context.WithoutCancel(t.Context()), conn, cfg) })
	t.Cleanup(wg.Wait)
}

// bridge is a bridge to files served in this process.
func bridge(t testing.TB, files fsbridge.Bridge, opts guestfs.Options) *guestfs.Bridge {
	t.Helper()
	conn, _ := connect(t, server.Config{Files: files})
	return guestfs.New(conn, opts)
}
