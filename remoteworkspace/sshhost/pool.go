package sshhost

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/workberth/workberth/sandbox"
)

// Opener makes the sandbox of a workspace, or connects to it. Open is called for one
// workspace at a time, when the first session needs it; the server closes what it gets
// when no session has needed it for a while. Its errors go to the log, not to clients.
type Opener interface {
	Open(ctx context.Context, workspace string) (sandbox.Sandbox, error)
}

// pool holds one sandbox per workspace for as long as it is needed, and a while longer.
type pool struct {
	srv *Server
	log *slog.Logger
	// ctx bounds opening: a client that leaves does not undo what others wait for.
	ctx context.Context

	mu      sync.Mutex
	closed  bool
	entries map[string]*held
	closing sync.WaitGroup
}

// held is the sandbox of one workspace.
type held struct {
	name   string
	users  int
	opened chan struct{} // closed when sb or err is set
	sb     sandbox.Sandbox
	err    error
	// idle numbers the times it became unused: a timer of an earlier one is stale.
	idle   uint64
	closed bool
}

// errShuttingDown refuses new work.
var errShuttingDown = errors.New("the server is shutting down")

// acquire returns the workspace's sandbox. release gives it back, once.
func (p *pool) acquire(ctx context.Context, name string) (sb sandbox.Sandbox, release func(), err error) {
	for {
		h, mine, err := p.enter(name)
		if err != nil {
			return nil, nil, err
		}
		if mine {
			go p.open(h)
		}
		select {
		case <-h.opened:
		case <-ctx.Done():
			p.leave(h)
			return nil, nil, context.Cause(ctx)
		}
		if h.err != nil {
			p.leave(h)
			return nil, nil, h.err
		}
		select {
		case <-h.sb.Done(): // it ended by itself: make another
			p.forget(h)
			p.leave(h)
			continue
		default:
		}
		return h.sb, sync.OnceFunc(func() { p.leave(h) }), nil
	}
}

// enter counts a user of the entry; mine means that the caller has to open it.
func (p *pool) enter(name string) (h *held, mine bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, false, errShuttingDown
	}
	h, ok := p.entries[name]
	if !ok {
		h = &held{name: name, opened: make(chan struct{})}
		p.entries[name] = h
		p.srv.metrics.sandboxes.Inc()
		p.closing.Add(1)
	}
	h.users++
	return h, !ok, nil
}

// open makes the sandbox of an entry.
func (p *pool) open(h *held) {
	h.sb, h.err = p.srv.opener.Open(p.ctx, h.name)
	outcome := "ok"
	if h.err != nil {
		outcome = "failed"
		p.log.Error("the sandbox of a workspace cannot be opened", "workspace", h.name, "error", h.err)
		p.unlist(h)
	}
	p.srv.metrics.opens.WithLabelValues(outcome).Inc()
	close(h.opened)
	p.settle(h)
}

// forget makes the next user get another sandbox; the present ones keep theirs.
func (p *pool) forget(h *held) {
	p.unlist(h)
	p.settle(h)
}

// unlist takes an entry off the table.
func (p *pool) unlist(h *held) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.entries[h.name] == h {
		delete(p.entries, h.name)
	}
}

// leave gives an entry back. One that nobody uses is kept warm for a while.
func (p *pool) leave(h *held) {
	p.mu.Lock()
	h.users--
	h.idle++
	turn, unused := h.idle, h.users == 0
	current := p.entries[h.name] == h
	if unused && current && p.closed {
		delete(p.entries, h.name)
		current = false
	}
	p.mu.Unlock()
	switch {
	case unused && current:
		go p.cool(h, turn)
	case unused:
		p.settle(h)
	}
}

// cool waits for the time an unused sandbox is kept, and forgets it when nobody came.
func (p *pool) cool(h *held, turn uint64) {
	<-h.opened
	if h.err == nil {
		select {
		case <-p.srv.clock.After(p.srv.limits.Warm):
		case <-h.sb.Done():
		case <-p.ctx.Done():
		}
	}
	p.mu.Lock()
	if h.idle == turn && h.users == 0 && p.entries[h.name] == h {
		delete(p.entries, h.name)
	}
	p.mu.Unlock()
	p.settle(h)
}

// settle closes an entry that is in no table, has no users, and is not being opened.
func (p *pool) settle(h *held) {
	p.mu.Lock()
	over := h.users == 0 && p.entries[h.name] != h && !h.closed && isClosed(h.opened)
	h.closed = h.closed || over
	p.mu.Unlock()
	if !over {
		return
	}
	defer p.closing.Done()
	p.srv.metrics.sandboxes.Dec()
	if h.sb == nil {
		return
	}
	if err := h.sb.Close(); err != nil {
		p.log.Error("a sandbox was not closed", "workspace", h.name, "error", err)
	}
}

// isClosed reports whether a channel that carries nothing is closed.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// drop forgets a workspace whose settings have changed.
func (p *pool) drop(name string) {
	p.mu.Lock()
	h, ok := p.entries[name]
	p.mu.Unlock()
	if ok {
		p.forget(h)
	}
}

// shut refuses new users, closes what is unused, and waits until all is closed.
func (p *pool) shut(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	var unused []*held
	for name, h := range p.entries {
		if h.users == 0 {
			unused = append(unused, h)
			delete(p.entries, name)
		}
	}
	p.mu.Unlock()
	for _, h := range unused {
		p.settle(h)
	}
	done := make(chan struct{})
	go func() {
		p.closing.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("sandboxes are still in use: %w", ctx.Err())
	}
}
