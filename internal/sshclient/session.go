package sshclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"golang.org/x/crypto/ssh"

	"github.com/workberth/workberth/internal/tail"
)

// maxStderr is how much of the end of a session's messages is kept, in bytes.
const maxStderr = 4 << 10

// Session is one session that is not yet started. It belongs to one caller until it is
// started; the streams may be used from several goroutines as those of a process.
type Session struct {
	g      *Group
	c      *conn
	raw    *ssh.Session
	in     io.WriteCloser
	out    io.Reader
	stderr tail.Buffer
	// bare is set for a subsystem, whose end nobody tells: it is over with its output.
	bare bool

	ended sync.Once
	done  chan struct{} // closed when the session is over; err is set
	err   error
}

func newSession(g *Group, c *conn, raw *ssh.Session) *Session {
	s := &Session{g: g, c: c, raw: raw, done: make(chan struct{})}
	s.stderr.Limit = maxStderr
	return s
}

// Start runs a command with the user's login shell.
func (s *Session) Start(ctx context.Context, command string) error {
	return s.start(ctx, func() error { return s.raw.Start(command) })
}

// Subsystem starts a subsystem. A server that has none is ErrNoSubsystem.
func (s *Session) Subsystem(ctx context.Context, name string) error {
	s.bare = true
	err := s.start(ctx, func() error { return s.raw.RequestSubsystem(name) })
	if err != nil && ctx.Err() == nil {
		select {
		case <-s.c.over:
		default:
			err = fmt.Errorf("%w %q: %w", ErrNoSubsystem, name, err)
		}
	}
	return err
}

// ErrNoSubsystem tells a server that does not have a subsystem.
var ErrNoSubsystem = errors.New("the server has no subsystem")

func (s *Session) start(ctx context.Context, request func() error) error {
	var err error
	if s.in, err = s.raw.StdinPipe(); err != nil {
		return err
	}
	if s.out, err = s.raw.StdoutPipe(); err != nil {
		return err
	}
	s.raw.Stderr = &s.stderr
	started := make(chan error, 1)
	go func() { started <- request() }()
	select {
	case err = <-started:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		s.Abort()
		s.end(err)
		return s.cause(err)
	}
	go func() {
		if !s.bare {
			s.end(s.wait())
			return
		}
		select {
		case <-s.c.over:
			s.end(s.c.err)
		case <-s.done:
		}
	}()
	return nil
}

// wait waits for the end of the command. Where the server tells none, it finds out whether
// the connection has ended: that shows a moment later than the end of its sessions.
func (s *Session) wait() error {
	err := s.raw.Wait()
	var exit *ssh.ExitError
	if err != nil && !errors.As(err, &exit) {
		if _, _, gone := s.c.client.SendRequest(aliveRequest, true, nil); gone != nil {
			<-s.c.over
		}
	}
	return err
}

// end makes the session over.
func (s *Session) end(err error) {
	s.ended.Do(func() {
		s.err = err
		s.g.leave(s.c)
		close(s.done)
	})
}

// cause prefers the end of the connection to what followed from it.
func (s *Session) cause(err error) error {
	select {
	case <-s.c.over:
		return s.c.err
	default:
		return err
	}
}

// Read reads from standard output.
func (s *Session) Read(p []byte) (int, error) {
	n, err := s.out.Read(p)
	if err != nil && s.bare {
		s.end(s.cause(err))
	}
	return n, err
}

// Write writes to standard input.
func (s *Session) Write(p []byte) (int, error) { return s.in.Write(p) }

// Close ends standard input. What runs there is expected to end then; Abort does not wait
// for it.
func (s *Session) Close() error { return s.in.Close() }

// Abort closes the session from both ends. What runs there loses its streams. A session
// that is not to be started is given back with it.
func (s *Session) Abort() {
	_ = s.raw.Close() // it may be over
	if s.in == nil || s.bare {
		s.end(ErrCut)
	}
}

// Done is closed when the command has ended, or the connection.
func (s *Session) Done() <-chan struct{} { return s.done }

// Ended returns, after Done, how the command ended: exit status, signal, or that the
// connection was cut (ErrCut). proved is true when the server told the end, so that the
// command is known to be over.
func (s *Session) Ended() (err error, proved bool) { //nolint:revive // the error is the answer
	var exit *ssh.ExitError
	if s.err == nil || errors.As(s.err, &exit) {
		return s.err, true // whatever became of the connection since
	}
	return s.cause(s.err), false
}

// Cut is closed when the connection beneath has ended.
func (s *Session) Cut() <-chan struct{} { return s.c.over }

// Stderr is the end of what was written to standard error, in one line.
func (s *Session) Stderr() string { return OneLine(s.stderr.String()) }
