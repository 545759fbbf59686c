package client

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/workberth/workberth/internal/guest/mux"
	"github.com/workberth/workberth/internal/guest/wire"
)

// Defaults of Options.
const (
	// DefaultCancelWait is how long a cancelled change waits for the truth.
	DefaultCancelWait = 2 * time.Second
	// closeWait bounds how long Close waits for the connection's goroutines,
	// which a transport that cannot be interrupted may hold.
	closeWait = 2 * time.Second
)

// Options direct New. The zero value is fine.
type Options struct {
	// SkipLimit is how many bytes before the greeting are skipped; zero means
	// wire.MaxBanner, negative means none.
	SkipLimit int
	// HandshakeTimeout bounds the greeting; zero means wire.HandshakeTimeout.
	HandshakeTimeout time.Duration
	// CancelWait is how long a call that changes something, and whose ctx has
	// ended, waits for the server to say what became of it. Zero means
	// DefaultCancelWait.
	CancelWait time.Duration
	// Build is the version of this program, told to the server.
	Build string
	// Logger is told why a connection ended, unless it was Close; nil discards.
	Logger *slog.Logger
}

// Conn is a connection to a server. It is safe for concurrent use.
type Conn struct {
	conn       io.ReadWriteCloser
	frames     *wire.Reader
	out        *mux.Sender
	log        *slog.Logger
	cancelWait time.Duration
	hello      wire.Hello

	slots chan struct{} // one token per open call
	over  chan struct{} // closed with err
	read  chan struct{} // closed when the reading goroutine has ended

	baton *baton

	mu    sync.Mutex
	calls map[uint64]*Call
	last  uint64
	err   error
}

// New greets the server on conn and returns the connection, which owns conn from
// then on, also when New fails. Whatever the peer prints before its greeting, a
// login shell's banner for one, is skipped.
//
// Errors: a *HandshakeError that quotes what was said instead, a *VersionError
// for a server of another version.
func New(ctx context.Context, conn io.ReadWriteCloser, opts Options) (*Conn, error) {
	c := &Conn{
		conn: conn, frames: wire.NewReader(conn), log: opts.Logger, cancelWait: opts.CancelWait,
		slots: make(chan struct{}, wire.MaxStreams), over: make(chan struct{}), read: make(chan struct{}),
		calls: make(map[uint64]*Call),
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if c.cancelWait <= 0 {
		c.cancelWait = DefaultCancelWait
	}
	if opts.HandshakeTimeout <= 0 {
		opts.HandshakeTimeout = wire.HandshakeTimeout
	}
	ctx, cancel := context.WithTimeoutCause(ctx, opts.HandshakeTimeout, errSilent)
	defer cancel()
	if err := c.greet(ctx, opts); err != nil {
		_ = conn.Close()
		return nil, err
	}
	c.baton = newBaton(conn)
	c.out = mux.NewSender(conn, c.fail)
	go c.readAll()
	return c, nil
}

// Hello returns what the server said of itself. The caller must not change it.
func (c *Conn) Hello() wire.Hello { return c.hello }

// Done is closed when the connection is over.
func (c *Conn) Done() <-chan struct{} { return c.over }

// Err returns why the connection is over, nil before. It matches ErrClosed after
// Close, and wire.ErrProtocol when the server broke the protocol.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close ends the connection. The server then ends every call and command of it.
// Calls that wait return with a *LostError.
func (c *Conn) Close() error {
	c.fail(ErrClosed)
	timer := time.NewTimer(closeWait)
	defer timer.Stop()
	for _, ended := range []<-chan struct{}{c.read, c.out.Done()} {
		select {
		case <-ended:
		case <-timer.C:
			return nil
		}
	}
	return nil
}

// Violated ends the connection because of an answer that cannot be true, and
// returns err. Whoever decodes answers calls it.
func (c *Conn) Violated(err error) error {
	c.fail(err)
	return err
}

// fail ends the connection. Only the first error counts.
func (c *Conn) fail(err error) {
	if errors.Is(err, io.EOF) {
		err = errHungUp
	}
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = err
	calls := c.calls
	c.calls = nil
	c.mu.Unlock()

	close(c.over)
	_ = c.conn.Close()
	c.out.Close(err)
	for _, call := range calls {
		call.cut(err)
	}
	if !errors.Is(err, ErrClosed) {
		c.log.Warn("the connection to the helper ended", "error", err, "calls", len(calls))
	}
}

// errHungUp is the end of input in words.
var errHungUp = errors.New("the helper closed the connection")

// errSilent is the cause of an expired handshake.
var errSilent = errors.New("it kept silent for too long")
