package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"syscall"
	"time"

	"github.com/workberth/workberth/internal/guest/wire"
)

// errPeerGone is why calls and flows end when the connection has.
var errPeerGone = errors.New("the connection is closed")

// Serve greets the peer, answers its calls until the connection ends or ctx does,
// and closes conn. The connection is the lease: before Serve returns it cancels
// every call and terminates every command that was not started with
// KeepDescendants, and waits for them, at most Limits.Drain longer than the
// commands' grace.
//
// It returns nil when the peer closed the connection, ctx's error when ctx ended,
// a *wire.VersionError for a peer of another version, an error that matches
// wire.ErrProtocol for a violation, and the transport's error otherwise.
func Serve(ctx context.Context, conn io.ReadWriteCloser, cfg Config) error {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	cfg.Limits = cfg.Limits.withDefaults()
	s := newSession(ctx, conn, cfg)

	go s.run()
	var err error
	select {
	case <-s.broken:
		err = s.brokenErr()
	case <-ctx.Done():
		err = ctx.Err()
	}
	drained := s.end()
	switch {
	case hungUp(err):
		err = nil
	case errors.Is(err, wire.ErrProtocol):
		cfg.Logger.Warn("guest connection ended by the server", "error", err)
	}
	if drained != nil {
		return errors.Join(err, drained)
	}
	return err
}

// hungUp reports whether an error of the transport means that the peer is gone.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
}

// run greets and then reads until the connection ends.
func (s *session) run() {
	// A peer that connects and stays silent is not kept.
	timer := time.AfterFunc(s.cfg.Limits.Handshake, func() {
		s.breakOff(fmt.Errorf("the peer said no hello within %v", s.cfg.Limits.Handshake))
	})
	err := s.greet()
	switch {
	case !timer.Stop(): // it breaks off, or has
	case err != nil:
		s.breakOff(err)
	default:
		s.read()
	}
}

func (s *session) greet() error {
	mine := s.cfg.hello(os.Getpid())
	f := wire.NewFrame(wire.KindHello, 0, 1024)
	f.B = mine.Append(f.B)
	b, ok := f.Bytes()
	if !ok {
		return wire.Violation("greeting of %d bytes", len(f.B))
	}
	_, err := s.conn.Write(append([]byte(wire.Magic), b...))
	f.Release()
	if err != nil {
		return err
	}
	if f, err = s.frames.NextHello(); err != nil {
		return err
	}
	defer f.Release()
	if f.Kind() != wire.KindHello || f.Stream() != 0 {
		return wire.Violation("%v frame where hello was due", f.Kind())
	}
	hello, err := wire.DecodeHello(f.Payload())
	if err != nil {
		return err
	}
	if hello.Protocol != wire.Version {
		return &wire.VersionError{
			Host:  wire.Peer{Protocol: hello.Protocol, Build: hello.Build},
			Guest: wire.Peer{Protocol: wire.Version, Build: s.cfg.Build},
		}
	}
	return nil
}
