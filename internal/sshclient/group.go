package sshclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// Options make a Group. The zero value is fine.
type Options struct {
	// Passphrase is asked for encrypted identity files that no agent holds; nil leaves
	// them out.
	Passphrase PassphraseFunc
	// Logger may be nil.
	Logger *slog.Logger
}

// Group holds the connections to one destination. It is safe for concurrent use.
type Group struct {
	s    Settings
	opts Options
	log  *slog.Logger

	dialling chan struct{} // holds one token while nobody dials
	unlocked unlocked      // belongs to whoever dials

	mu     sync.Mutex
	conns  []*conn
	closed bool
}

// NewGroup makes a group without connections.
func NewGroup(s Settings, opts Options) *Group {
	g := &Group{s: s, opts: opts, log: opts.Logger, dialling: make(chan struct{}, 1), unlocked: make(unlocked)}
	if g.log == nil {
		g.log = slog.New(slog.DiscardHandler)
	}
	g.dialling <- struct{}{}
	if s.Ignored != "" {
		g.log.Warn("the system's SSH configuration does not count", "host", s.Name, "error", s.Ignored)
	}
	return g
}

// Settings are the ones it was made with.
func (g *Group) Settings() Settings { return g.s }

// conn is one connection.
type conn struct {
	client *ssh.Client
	below  []io.Closer
	over   chan struct{} // closed when it has ended; err is set
	err    error

	// guarded by Group.mu
	sessions int
	full     bool // the server has refused another session
}

// Session opens a session, on a connection that has room for one or on a new one.
//
// Errors: a *[DialError] when no connection can be made, ErrSessions when a fresh one
// admits no session.
func (g *Group) Session(ctx context.Context) (*Session, error) {
	tried := make(map[*conn]bool)
	for {
		c, fresh, err := g.take(ctx, tried)
		if err != nil {
			return nil, err
		}
		s, err := g.open(ctx, c)
		if err == nil {
			return s, nil
		}
		alone := g.leave(c)
		var refused *ssh.OpenChannelError
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.As(err, &refused) && fresh && alone:
			return nil, &DialError{Host: g.s.String(), Remedy: "see MaxSessions and ForceCommand in the server's configuration", Err: fmt.Errorf("%w: %s", ErrSessions, OneLine(refused.Message))}
		case errors.As(err, &refused):
			g.mark(c)
		case fresh:
			return nil, &DialError{Host: g.s.String(), Remedy: "try again", Err: fmt.Errorf("%w: %w", ErrCut, err)}
		}
		tried[c] = true // it is full or over
	}
}

// take returns a connection, with room for one session reserved on it.
func (g *Group) take(ctx context.Context, not map[*conn]bool) (c *conn, fresh bool, err error) {
	if c := g.roomy(not); c != nil {
		return c, false, nil
	}
	select {
	case <-g.dialling:
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
	defer func() { g.dialling <- struct{}{} }()
	// Somebody may have dialled meanwhile.
	if c := g.roomy(not); c != nil {
		return c, false, nil
	}
	client, below, err := g.connect(ctx)
	if err != nil {
		return nil, false, err
	}
	c = &conn{client: client, below: below, over: make(chan struct{}), sessions: 1}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		_ = client.Close()
		closeAll(below)
		return nil, false, ErrCut
	}
	g.conns = append(g.conns, c)
	go g.watch(c)
	if g.s.AliveInterval > 0 {
		go c.keepAlive(g.s.AliveInterval, g.s.AliveCountMax)
	}
	return c, true, nil
}

// roomy returns a connection that may admit another session, and reserves it.
func (g *Group) roomy(not map[*conn]bool) *conn {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.conns {
		select {
		case <-c.over:
			continue
		default:
		}
		if !c.full && !not[c] {
			c.sessions++
			return c
		}
	}
	return nil
}

// mark keeps further sessions off a connection until one of its own ends.
func (g *Group) mark(c *conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c.full = c.sessions > 0
}

// leave gives a session's place back and reports whether it was the connection's last. A
// connection without sessions stays while it is the only one.
func (g *Group) leave(c *conn) (last bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c.sessions--
	c.full = false
	if c.sessions == 0 && len(g.conns) > 1 {
		_ = c.client.Close() // watch takes it off the list
	}
	return c.sessions == 0
}

// watch notices the end of a connection.
func (g *Group) watch(c *conn) {
	err := c.client.Wait()
	if err == nil {
		err = io.EOF
	}
	g.mu.Lock()
	if c.err == nil {
		c.err = fmt.Errorf("%w: %s", ErrCut, OneLine(err.Error()))
	}
	for i, o := range g.conns {
		if o == c {
			g.conns = append(g.conns[:i:i], g.conns[i+1:]...)
			break
		}
	}
	g.mu.Unlock()
	closeAll(c.below)
	close(c.over)
}

// open opens a session on a connection that was taken.
func (g *Group) open(ctx context.Context, c *conn) (*Session, error) {
	type result struct {
		s   *ssh.Session
		err error
	}
	opened := make(chan result, 1)
	go func() {
		s, err := c.client.NewSession()
		opened <- result{s, err}
	}()
	select {
	case r := <-opened:
		if r.err != nil {
			return nil, r.err
		}
		return newSession(g, c, r.s), nil
	case <-ctx.Done():
		go func() {
			if r := <-opened; r.err == nil {
				_ = r.s.Close()
			}
		}()
		return nil, ctx.Err()
	}
}

// aliveRequest is what OpenSSH's client asks for a sign of life with.
const aliveRequest = "keepalive@openssh.com"

// keepAlive asks for a sign of life and ends a connection that gives none. It counts its
// own ticks: a process that was asleep has not waited.
func (c *conn) keepAlive(every time.Duration, most int) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	answered := make(chan struct{}, 1)
	waiting := 0
	for {
		select {
		case <-c.over:
			return
		case <-answered:
			waiting = 0
			continue
		case <-ticker.C:
		}
		if waiting >= most {
			_ = c.client.Close()
			return
		}
		if waiting == 0 {
			go func() {
				// Every answer counts, a refusal as well.
				if _, _, err := c.client.SendRequest(aliveRequest, true, nil); err == nil {
					answered <- struct{}{}
				}
			}()
		}
		waiting++
	}
}

// Close ends every connection.
func (g *Group) Close() error {
	g.mu.Lock()
	g.closed = true
	conns := append([]*conn(nil), g.conns...)
	g.mu.Unlock()
	for _, c := range conns {
		_ = c.client.Close() // it may be over
		<-c.over
	}
	return nil
}
