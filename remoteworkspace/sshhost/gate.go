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
	login     *list.Element // nil once admitted
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

// enter lets a connection in, or names the limit that keeps it out. When too many wait for
// their login, the one that has waited longest is closed and named as evicted.
func (g *gate) enter(nc net.Conn, a netip.Addr) (p *pass, evicted net.Conn, limit string) {
	from := network(a)
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.total >= g.limits.Connections:
		return nil, nil, "connections"
	case g.byAddress[from] >= g.limits.PerAddress:
		return nil, nil, "perAddress"
	}
	if g.logins.Len() >= g.limits.Unauthenticated {
		oldest, _ := g.logins.Front().Value.(*pass)
		g.logins.Remove(oldest.login)
		oldest.login = nil
		evicted = oldest.conn
	}
	p = &pass{conn: nc, from: from}
	p.login = g.logins.PushBack(p)
	g.total++
	g.byAddress[from]++
	return p, evicted, ""
}

// admit counts a connection for its workspace, or names the limit.
func (g *gate) admit(p *pass, workspace string) (limit string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.login == nil {
		return "unauthenticated" // it has just been evicted
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
