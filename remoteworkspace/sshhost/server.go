package sshhost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/workberth/workberth/sandbox"
)

// Options make a Server.
type Options struct {
	// HostKeys identify the server; at least one.
	HostKeys []ssh.Signer
	// Opener makes the sandboxes.
	Opener Opener
	Policy Policy
	Limits Limits
	// Audit gets one JSON object (see [Event]) per Write; nil discards.
	Audit io.Writer
	// Metrics may be nil.
	Metrics *Metrics
	// Clock may be nil for the machine's.
	Clock Clock
	// SpoolDir holds what random access to files needs on disk, without names; empty
	// means the directory for temporary files.
	SpoolDir string
	Logger   *slog.Logger
}

// Server serves workspaces over SSH. Safe for concurrent use.
type Server struct {
	hostKeys []ssh.Signer
	opener   Opener
	limits   Limits
	audit    *auditor
	refusals refusals
	metrics  *Metrics
	clock    Clock
	spool    *spool
	log      *slog.Logger
	policy   atomic.Pointer[Policy]
	gate     *gate
	pool     *pool

	// ctx ends with the server: it bounds sandboxes and the end of sessions.
	ctx  context.Context
	stop context.CancelFunc
	ids  atomic.Uint64

	mu        sync.Mutex
	draining  bool
	listeners map[net.Listener]struct{}
	conns     map[*conn]struct{}
	working   sync.WaitGroup
}

// New makes a Server. It opens nothing yet.
func New(opts Options) (*Server, error) {
	if len(opts.HostKeys) == 0 || opts.Opener == nil {
		return nil, errors.New("sshhost: a host key and an opener are needed")
	}
	limits, err := opts.Limits.complete()
	if err != nil {
		return nil, err
	}
	s := &Server{
		hostKeys: opts.HostKeys, opener: opts.Opener, limits: limits, metrics: opts.Metrics, clock: opts.Clock, log: opts.Logger,
		gate: newGate(limits), listeners: map[net.Listener]struct{}{}, conns: map[*conn]struct{}{},
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.clock == nil {
		s.clock = systemClock{}
	}
	if s.metrics == nil {
		if s.metrics, err = NewMetrics(nil); err != nil {
			return nil, err
		}
	}
	w := opts.Audit
	if w == nil {
		w = io.Discard
	}
	s.audit = &auditor{w: w, log: s.log}
	s.spool = newSpool(opts.SpoolDir, limits.BufferBytes, limits.SpoolBytes)
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.pool = &pool{srv: s, log: s.log, ctx: s.ctx, entries: map[string]*held{}}
	s.policy.Store(&opts.Policy)
	return s, nil
}

// Serve accepts connections until the listener fails or Shutdown closes it, which is no
// error. It closes the listener.
func (s *Server) Serve(l net.Listener) error {
	defer l.Close()
	s.mu.Lock()
	if s.draining {
		s.mu.Unlock()
		return nil
	}
	s.listeners[l] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.listeners, l)
	}()
	for {
		nc, err := l.Accept()
		if err == nil {
			go s.ServeConn(nc)
			continue
		}
		if s.isDraining() {
			return nil
		}
		if !temporary(err) {
			return fmt.Errorf("accept: %w", err)
		}
		// Out of descriptors, say: those who are in go on, and the next one waits.
		s.log.Warn("a connection could not be accepted", "error", err)
		select {
		case <-s.clock.After(50 * time.Millisecond):
		case <-s.ctx.Done():
			return nil
		}
	}
}

// temporary reports an error of accept after which the listener still works.
func temporary(err error) bool {
	var t interface{ Temporary() bool }
	return errors.As(err, &t) && t.Temporary()
}

func (s *Server) isDraining() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.draining
}

// ServeConn serves one connection to its end and closes it.
func (s *Server) ServeConn(nc net.Conn) {
	c := &conn{srv: s, nc: nc, id: s.ids.Add(1), remote: nc.RemoteAddr().String(), addr: addrOf(nc.RemoteAddr())}
	c.ctx, c.end = context.WithCancelCause(context.Background())
	defer c.end(errClientGone)
	defer nc.Close()
	if !s.enlist(c) {
		return
	}
	defer s.delist(c)
	place, evicted, limit := s.gate.enter(nc, c.addr)
	switch {
	case evicted != nil:
		s.metrics.refuse(limit)
		evicted.Close()
	case limit != "":
		c.refused(limit)
		return
	}
	defer s.gate.leave(place)
	c.serve(place)
}

// enlist makes a connection known to Shutdown and Reload.
func (s *Server) enlist(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return false
	}
	s.conns[c] = struct{}{}
	s.working.Add(1)
	return true
}

func (s *Server) delist(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	s.working.Done()
}

// connections lists the present ones.
func (s *Server) connections() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		all = append(all, c)
	}
	return all
}

// errRevoked ends the connections a new policy does not permit.
var errRevoked = errors.New("the permission was withdrawn")

// Reload puts another policy in force. Connections whose key it does not permit any more,
// or whose workspace has other settings, are ended with their sessions.
func (s *Server) Reload(p Policy) {
	old := s.policy.Swap(&p)
	changed := map[string]bool{}
	for name, ws := range old.Workspaces {
		now, ok := p.Workspaces[name]
		changed[name] = !ok || now.Revision != ws.Revision
	}
	ended := 0
	for _, c := range s.connections() {
		g := c.grant.Load()
		if g == nil {
			continue
		}
		ng, err := p.authorize(g.workspace, g.key, c.addr, s.clock.Now())
		if err != nil || changed[g.workspace] {
			ended++
			c.end(errRevoked)
			continue
		}
		c.grant.Store(ng)
	}
	for name, yes := range changed {
		if yes {
			s.pool.drop(name)
		}
	}
	s.record(Event{Event: "reload", Outcome: "ok", Detail: fmt.Sprintf("%d workspaces, %d connections ended", len(p.Workspaces), ended)})
}

// Shutdown stops accepting, ends connections without sessions at once, and waits for
// running sessions until ctx ends; then they are ended as if their clients had left. It
// returns when all sandboxes are closed. Keeps nothing running; the Server cannot be used
// again.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	first := !s.draining
	s.draining = true
	for l := range s.listeners {
		l.Close()
	}
	s.mu.Unlock()
	if first {
		s.record(Event{Event: "shutdown", Outcome: "begun"})
	}
	for _, c := range s.connections() {
		c.drain()
	}
	outcome := "drained"
	if !s.await(ctx) {
		outcome = "ended"
		for _, c := range s.connections() {
			c.end(errShuttingDown)
		}
		s.working.Wait() // bounded: every session ends its processes within endBound
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), endBound)
	defer cancel()
	err := s.pool.shut(closing)
	s.stop()
	s.record(Event{Event: "shutdown", Outcome: outcome})
	return err
}

// await waits until no connection is left.
func (s *Server) await(ctx context.Context) bool {
	done := make(chan struct{})
	go func() {
		s.working.Wait()
		close(done)
	}()
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}

// sandboxOf returns the sandbox of a connection's workspace.
func (s *Server) sandboxOf(ctx context.Context, g *grant) (sandbox.Sandbox, func(), error) {
	return s.pool.acquire(ctx, g.workspace)
}

// from is the client's address for SSH_CLIENT, or one that says nothing.
func from(a netip.Addr) string {
	if a.IsValid() {
		return a.String()
	}
	return "0.0.0.0"
}
