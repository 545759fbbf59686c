package rendezvous

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// ErrRefused is returned by Dial when the host does not take this peer: the token
// is wrong, or another peer was there first.
var ErrRefused = errors.New("rendezvous: the host refused the connection")

// Dial connects to a listener's socket and presents the token.
func Dial(ctx context.Context, path, token string) (*net.UnixConn, error) {
	if len(token) != tokenLen {
		return nil, fmt.Errorf("rendezvous: token of %d characters, want %d", len(token), tokenLen)
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("rendezvous: %w", err)
	}
	c := conn.(*net.UnixConn) //nolint:forcetypeassert // what dialling "unix" yields
	if err := present(ctx, c, token); err != nil {
		_ = c.Close()
		if ctx.Err() != nil {
			return nil, fmt.Errorf("rendezvous: %w", ctx.Err())
		}
		return nil, err
	}
	return c, nil
}

func present(ctx context.Context, c *net.UnixConn, token string) error {
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := c.Write([]byte(greeting + token)); err != nil {
		return refused(err)
	}
	var answer [1]byte
	if _, err := io.ReadFull(c, answer[:]); err != nil {
		return refused(err)
	}
	if answer[0] != admitted {
		return fmt.Errorf("%w: unexpected answer %#x", ErrRefused, answer[0])
	}
	if _, err := c.Write(answer[:]); err != nil {
		return refused(err)
	}
	if !stop() {
		return ctx.Err()
	}
	return nil
}

// refused tells a connection that the host closed from other failures.
func refused(err error) error {
	if isClosedByPeer(err) {
		return ErrRefused
	}
	return fmt.Errorf("rendezvous: %w", err)
}
