package sshhost

import (
	"container/list"
	"net"
	"net/netip"
	"sync"
)

// gate counts connections and refuses those above the limits. Memory is bounded by the
// number of connections it lets in.
type gate struct {
	limits Limits

	mu          sync.Mutex
	total       int
	byAddress   map[netip.Prefix]int
	byWorkspace map[string]int
	logins      *list.List // of *pass, the oldest first
}

// pass is a connection's place behind the gate.
type pass struct {
	conn      net.Conn
	from      netip.Prefix
	workspace string
	login     *list.Element // nil once admitted or evicted
	gone      bool          // its place was given back
}

func newGate(l Limits) *gate {
	return &gate{limits: l, byAddress: map[netip.Prefix]int{}, byWorkspace: map[string]int{}, logins: list.New()}
}

// network is what counts as one address.
func network(a netip.Addr) netip.Prefix {
	bits := a.BitLen()
	if a.Is6() {
		bits = 64
	}
	p, err := a.WithZone("").Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return p
}

// enter lets a connection in, or names the limit that keeps it out. Where a limit is reached
// and others are still waiting for their login, the one that has waited longest (for the limit
// of an address: of that address) makes room; its connection is returned to be closed. So
// clients that say nothing keep nobody out.
func (g *gate) enter(nc net.Conn, a netip.Addr) (p *pass, evicted net.Conn, limit string) {
	from := network(a)
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.byAddress[from] >= g.limits.PerAddress:
		limit = "perAddress"
		evicted = g.evict(func(p *pass) bool { return p.from == from })
	case g.total >= g.limits.Connections:
		limit = "connections"
		evicted = g.evict(func(*pass) bool { return true })
	case g.logins.Len() >= g.limits.Unauthenticated:
		limit = "unauthenticated"
		evicted = g.evict(func(*pass) bool { return true })
	}
	if limit != "" && evicted == nil {
		return nil, nil, limit
	}
	p = &pass{conn: nc, from: from}
	p.login = g.logins.PushBack(p)
	g.total++
	g.byAddress[from]++
	return p, evicted, limit
}

// evict takes the place of the one that has waited longest among those that match.
func (g *gate) evict(match func(*pass) bool) net.Conn {
	for e := g.logins.Front(); e != nil; e = e.Next() {
		if p, ok := e.Value.(*pass); ok && match(p) {
			g.release(p)
			return p.conn
		}
	}
	return nil
}

// admit counts a connection for its workspace, or names the limit.
func (g *gate) admit(p *pass, workspace string) (limit string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.gone {
		return "unauthenticated" // it has just made room
	}
	if g.byWorkspace[workspace] >= g.limits.PerWorkspace {
		return "perWorkspace"
	}
	g.logins.Remove(p.login)
	p.login = nil
	p.workspace = workspace
	g.byWorkspace[workspace]++
	return ""
}

// leave gives a place back.
func (g *gate) leave(p *pass) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.release(p)
}

// release gives a place back, once; g.mu is held.
func (g *gate) release(p *pass) {
	if p.gone {
		return
	}
	p.gone = true
	if p.login != nil {
		g.logins.Remove(p.login)
		p.login = nil
	}
	g.total--
	if g.byAddress[p.from]--; g.byAddress[p.from] == 0 {
		delete(g.byAddress, p.from)
	}
	if p.workspace != "" {
		if g.byWorkspace[p.workspace]--; g.byWorkspace[p.workspace] == 0 {
			delete(g.byWorkspace, p.workspace)
		}
	}
}
