package server_test

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/workberth/workberth/internal/guest/client"
	"github.com/workberth/workberth/internal/guest/guesttest"
	"github.com/workberth/workberth/internal/guest/server"
	"github.com/workberth/workberth/internal/guest/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve serves cfg to a scripted client that has not greeted yet. What Serve returns
// comes on served.
func serve(t testing.TB, ctx context.Context, cfg server.Config) (p *guesttest.Peer, served <-chan error) {
	t.Helper()
	host, guest := guesttest.SocketPair(t)
	over := make(chan error, 1)
	go func() { over <- server.Serve(ctx, guest, cfg) }()
	return guesttest.NewPeer(t, host), over
}

// connect serves cfg to a real client. What Serve returns comes on served.
func connect(t testing.TB, cfg server.Config) (conn *client.Conn, served <-chan error) {
	t.Helper()
	host, guest := guesttest.SocketPair(t)
	over := make(chan error, 1)
	go func() { over <- server.Serve(context.WithoutCancel(t.Context()), guest, cfg) }()
	conn, err := client.New(t.Context(), host, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn, over
}

// open is the payload of an open frame.
func open(op wire.Op, request interface{ Append([]byte) []byte }) []byte {
	return request.Append([]byte{byte(op)})
}

// path is a request about a path.
func path(op wire.Op, p string) []byte { return open(op, wire.PathRequest{Path: p}) }

// failure decodes a fail frame.
func failure(t testing.TB, payload []byte) error {
	t.Helper()
	d := wire.NewDecoder(payload)
	err := d.Error()
	if bad := d.Finish(); bad != nil {
		t.Fatalf("malformed fail frame: %v", bad)
	}
	return err
}
