package sshhost

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"
)

// Why a connection or a session ends.
var (
	errClientGone  = errors.New("the client has left")
	errLoginGrace  = errors.New("the login took too long")
	errNoAnswer    = errors.New("the client does not answer")
	errIdle        = errors.New("nothing was sent for too long")
	errSandboxGone = errors.New("the sandbox has ended")
)

// conn is one connection.
type conn struct {
	srv    *Server
	nc     net.Conn
	id     uint64
	remote string
	addr   netip.Addr
	// ctx ends with the connection; its cause says why.
	ctx context.Context
	end context.CancelCauseFunc

	ssh   *ssh.ServerConn
	grant atomic.Pointer[grant]
	// heard is when a byte of a session last moved, in Unix nanoseconds.
	heard   atomic.Int64
	in, out atomic.Int64

	mu         sync.Mutex
	channels   int
	noSessions bool // the client said that it wants no further ones
	draining   bool // the server wants no further channels
	work       sync.WaitGroup
}

// refused writes down that a limit kept the connection out, of many in a second only one.
func (c *conn) refused(limit string) {
	c.srv.metrics.refuse(limit)
	more, write := c.srv.refusals.note(limit, c.srv.clock.Now())
	if !write {
		return
	}
	detail := "limit " + limit
	if more > 0 {
		detail += fmt.Sprintf(", and %d before that were not written down", more)
	}
	c.srv.record(Event{Event: "refused", Conn: c.id, Remote: c.remote, Outcome: "refused", Detail: detail})
}

// serve makes the handshake and serves what the client opens, to the end.
func (c *conn) serve(place *pass) {
	begun := c.srv.clock.Now()
	stop := context.AfterFunc(c.ctx, func() { c.nc.Close() })
	defer stop()
	chans, globals, err := c.login()
	if err != nil {
		c.srv.metrics.auth("failed")
		c.srv.log.Debug("no login", "remote", c.remote, "error", err)
		return
	}
	g := c.grant.Load()
	if limit := c.srv.gate.admit(place, g.workspace); limit != "" {
		c.refused(limit)
		return
	}
	c.srv.metrics.auth("ok")
	c.srv.metrics.state("admitted", 1)
	defer c.srv.metrics.state("admitted", -1)
	c.event(Event{Event: "login", Outcome: "ok"})
	// The policy may have changed between the verification and now.
	if _, err := c.authorize(g.workspace, g.key); err != nil {
		c.end(errRevoked)
	}
	c.hear()
	go c.globals(globals)
	go c.keepalive()
	go c.watchIdle()
	for nch := range chans {
		c.open(nch)
	}
	c.end(errClientGone)
	c.work.Wait()
	c.event(Event{
		Event: "logout", Outcome: context.Cause(c.ctx).Error(), In: c.in.Load(), Out: c.out.Load(),
		DurationMS: c.srv.clock.Now().Sub(begun).Milliseconds(),
	})
}

// login makes the handshake within the time for it.
func (c *conn) login() (<-chan ssh.NewChannel, <-chan *ssh.Request, error) {
	c.srv.metrics.state("login", 1)
	defer c.srv.metrics.state("login", -1)
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-c.srv.clock.After(c.srv.limits.LoginGrace):
			c.end(errLoginGrace)
		case <-over:
		}
	}()
	sc, chans, globals, err := ssh.NewServerConn(c.nc, c.authConfig())
	if err != nil {
		return nil, nil, err
	}
	g, ok := sc.Permissions.ExtraData[grantKey{}].(*grant)
	if !ok {
		return nil, nil, errors.New("a login without a grant")
	}
	c.ssh = sc
	c.grant.Store(g)
	return chans, globals, nil
}

// event completes an event of an admitted connection and writes it down.
func (c *conn) event(e Event) {
	g := c.grant.Load()
	e.Conn, e.Remote, e.Workspace = c.id, c.remote, g.workspace
	e.Key, e.KeyID, e.Authority = g.fingerprint, g.keyID, g.authority
	c.srv.record(e)
}

// globals answers what concerns the connection as a whole.
func (c *conn) globals(reqs <-chan *ssh.Request) {
	for r := range reqs {
		if r.Type == "no-more-sessions@openssh.com" {
			c.mu.Lock()
			c.noSessions = true
			c.mu.Unlock()
		}
		if r.WantReply {
			_ = r.Reply(false, nil) // a connection that is over needs no answer
		}
	}
}

// open serves one channel, or says why not. It never waits for the client.
func (c *conn) open(nch ssh.NewChannel) {
	var serve func(ssh.NewChannel)
	switch nch.ChannelType() {
	case "session":
		serve = c.session
	case "direct-tcpip":
		serve = c.forward
	default:
		_ = nch.Reject(ssh.UnknownChannelType, "unknown channel type")
		return
	}
	c.mu.Lock()
	full := c.channels >= c.srv.limits.Sessions
	noMore := c.draining || c.noSessions && nch.ChannelType() == "session"
	if !full && !noMore {
		c.channels++
		c.work.Add(1)
	}
	c.mu.Unlock()
	switch {
	case noMore:
		_ = nch.Reject(ssh.Prohibited, "no more channels on this connection")
	case full:
		c.srv.metrics.refuse("sessions")
		_ = nch.Reject(ssh.ResourceShortage, fmt.Sprintf("at most %d channels on a connection", c.srv.limits.Sessions))
	default:
		go func() {
			defer c.work.Done()
			defer c.closed()
			serve(nch)
		}()
	}
}

// closed takes a channel off the count. While the server drains, the last one ends the
// connection.
func (c *conn) closed() {
	c.mu.Lock()
	c.channels--
	last := c.channels == 0
	c.mu.Unlock()
	if last && c.srv.isDraining() {
		c.end(errShuttingDown)
	}
}

// drain refuses further channels and ends a connection without any.
func (c *conn) drain() {
	c.mu.Lock()
	c.draining = true
	idle := c.channels == 0
	c.mu.Unlock()
	if idle {
		c.end(errShuttingDown)
	}
}

// hear notes that something moved.
func (c *conn) hear() { c.heard.Store(c.srv.clock.Now().UnixNano()) }

// keepalive asks the client again and again whether it is there. C177.
func (c *conn) keepalive() {
	limits := c.srv.limits
	answers := make(chan error, 1)
	asking, missed := false, 0
	for {
		if !asking {
			asking = true
			go func() {
				_, _, err := c.ssh.SendRequest("keepalive@openssh.com", true, nil)
				answers <- err
			}()
		}
		select {
		case <-c.ctx.Done():
			return
		case err := <-answers:
			if err != nil {
				return // the connection is over
			}
			asking, missed = false, 0
			select {
			case <-c.srv.clock.After(limits.Keepalive):
			case <-c.ctx.Done():
				return
			}
		case <-c.srv.clock.After(limits.Keepalive):
			if missed++; missed >= limits.KeepaliveMisses {
				c.end(errNoAnswer)
				return
			}
		}
	}
}

// watchIdle ends a connection on which nothing moves.
func (c *conn) watchIdle() {
	wait := c.srv.limits.Idle
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-c.srv.clock.After(wait):
		}
		quiet := c.srv.clock.Now().Sub(time.Unix(0, c.heard.Load()))
		if quiet >= c.srv.limits.Idle {
			c.end(errIdle)
			return
		}
		wait = c.srv.limits.Idle - quiet
	}
}

// assertCurrent is the guard of everything done for the connection. A client that has left
// keeps its authority: what it has sent in full is still done.
func (c *conn) assertCurrent() error {
	if cause := context.Cause(c.ctx); errors.Is(cause, errRevoked) {
		return cause
	}
	return nil
}
