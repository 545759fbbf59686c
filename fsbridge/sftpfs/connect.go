package sftpfs

import (
	"context"
	"errors"
	"fmt"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"github.com/workberth/workberth/fsbridge"
)

// errNoSubsystem is what a server without SFTP gives.
var errNoSubsystem = fmt.Errorf("the server has no SFTP subsystem: %w", fsbridge.ErrUnsupported)

// Connect starts the SFTP subsystem in a session of its own and waits for its first answer, or for the end
// of ctx. A server without the subsystem is ErrUnsupported; other errors are ErrUnavailable. Closing the
// client ends the session, not the connection.
func Connect(ctx context.Context, conn *ssh.Client) (*sftp.Client, error) {
	type result struct {
		client *sftp.Client
		err    error
	}
	session, err := conn.NewSession()
	if err != nil {
		return nil, fmt.Errorf("SFTP: %w: %w", fsbridge.ErrUnavailable, err)
	}
	done := make(chan result, 1)
	go func() {
		client, err := start(session)
		done <- result{client, err}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			_ = session.Close()
			return nil, fmt.Errorf("SFTP: %w", r.err)
		}
		return r.client, nil
	case <-ctx.Done():
		_ = session.Close() // which ends the wait above
		go func() {
			if r := <-done; r.client != nil {
				_ = r.client.Close()
			}
		}()
		return nil, fmt.Errorf("SFTP: %w: %w", fsbridge.ErrUnavailable, ctx.Err())
	}
}

// start asks for the subsystem and greets it.
func start(session *ssh.Session) (*sftp.Client, error) {
	in, err1 := session.StdinPipe()
	out, err2 := session.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	if err := session.RequestSubsystem("sftp"); err != nil {
		// The server's refusal is not an io error; a lost connection is.
		if err.Error() == "ssh: subsystem request failed" {
			return nil, errNoSubsystem
		}
		return nil, fmt.Errorf("%w: %w", fsbridge.ErrUnavailable, err)
	}
	client, err := sftp.NewClientPipe(out, in)
	if err != nil {
		// Some servers accept the request and then find no program to run.
		return nil, fmt.Errorf("the subsystem does not answer: %w: %w", fsbridge.ErrUnsupported, err)
	}
	return client, nil
}
