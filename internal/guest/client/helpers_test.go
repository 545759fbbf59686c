package client_test

import (
	"context"
	"io"
	"testing"

	"go.uber.org/goleak"

	"github.com/workberth/workberth/internal/guest/client"
	"github.com/workberth/workberth/internal/guest/guesttest"
	"github.com/workberth/workberth/internal/guest/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// connect serves cfg in this process and connects to it.
func connect(t testing.TB, cfg server.Config, opts client.Options) *client.Conn {
	t.Helper()
	host, guest := guesttest.SocketPair(t)
	return connectOver(t, host, guest, cfg, opts)
}

func connectOver(t testing.TB, host, guest io.ReadWriteCloser, cfg server.Config, opts client.Options) *client.Conn {
	t.Helper()
	served := make(chan error, 1)
	go func() { served <- server.Serve(context.WithoutCancel(t.Context()), guest, cfg) }()
	conn, err := client.New(t.Context(), host, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		if err := guesttest.Within(t, "the server ends", served); err != nil {
			t.Errorf("server: %v", err)
		}
	})
	return conn
}

// withPeer connects to a scripted helper that has greeted well. The script runs on
// a goroutine of its own, and the connection is closed when it returns.
func withPeer(t testing.TB, opts client.Options, script func(p *guesttest.Peer)) *client.Conn {
	t.Helper()
	host, guest := guesttest.SocketPair(t)
	over := make(chan struct{})
	go func() {
		defer close(over)
		defer guest.Close()
		p := guesttest.NewPeer(t, guest)
		p.Greet(guesttest.FullHello())
		script(p)
	}()
	conn, err := client.New(t.Context(), host, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		<-over
	})
	return conn
}
