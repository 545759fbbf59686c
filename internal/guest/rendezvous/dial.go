//go:build unix

package rendezvous

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ErrRefused is returned by Dial when the host does not take this peer: the token
// is wrong, or another peer was there first.
var ErrRefused = errors.New("rendezvous: the host refused the connection")

// Dial connects to a listener's socket and presents the token. The result is the
// socket, with deadlines unset. It does without package net, which would make the
// helper larger by a tenth.
func Dial(ctx context.Context, path, token string) (*os.File, error) {
	if len(token) != tokenLen {
		return nil, fmt.Errorf("rendezvous: token of %d characters, want %d", len(token), tokenLen)
	}
	c, err := connect(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("rendezvous: %w", err)
	}
	if err := present(ctx, c, token); err != nil {
		_ = c.Close()
		if ctx.Err() != nil {
			return nil, fmt.Errorf("rendezvous: %w", ctx.Err())
		}
		return nil, err
	}
	return c, nil
}

// connect connects to a Unix socket. The kernel accepts for the listener or
// refuses; only a listener with too many waiting peers is tried again.
func connect(ctx context.Context, path string) (*os.File, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	unix.CloseOnExec(fd)
	if err = unix.SetNonblock(fd, true); err == nil {
		err = unix.Connect(fd, &unix.SockaddrUnix{Name: path})
	}
	for err == unix.EAGAIN { //nolint:errorlint // a bare errno
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case <-time.After(retry):
			err = unix.Connect(fd, &unix.SockaddrUnix{Name: path})
		}
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, &os.PathError{Op: "connect", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// retry is the time between attempts to connect to a busy listener.
const retry = 5 * time.Millisecond

func present(ctx context.Context, c *os.File, token string) error {
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := io.WriteString(c, greeting+token); err != nil {
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
