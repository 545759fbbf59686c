package guestfs_test

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/guestfs"
	"github.com/workberth/workberth/internal/guest/client"
	"github.com/workberth/workberth/internal/guest/guesttest"
	"github.com/workberth/workberth/internal/guest/server"
)

// connect serves cfg in this process and connects to it.
func connect(t testing.TB, cfg server.Config) (*client.Conn, net.Conn) {
	t.Helper()
	host, guest := guesttest.SocketPair(t)
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
