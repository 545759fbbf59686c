package containertest

import (
	"net"
	"path/filepath"
	"strings"
	"sync"
)

// gate is a way to the engine that can be shut.
type gate struct {
	address string
	path    string
	far     string

	mu    sync.Mutex
	ln    net.Listener
	conns []net.Conn
}

func newGate(k *kit) *gate {
	k.Helper()
	path := filepath.Join(k.dir, "gate")
	g := &gate{address: "unix://" + path, path: path, far: strings.TrimPrefix(k.address, "unix://")}
	g.open(k)
	k.Cleanup(g.close)
	return g
}

func (g *gate) open(k *kit) {
	k.Helper()
	ln, err := net.Listen("unix", g.path) //nolint:noctx // it ends with the test
	k.must(err)
	g.mu.Lock()
	g.ln = ln
	g.mu.Unlock()
	go func() {
		for {
			near, err := ln.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("unix", g.far) //nolint:noctx // it ends with the connection
			if err != nil {
				_ = near.Close()
				continue
			}
			g.mu.Lock()
			g.conns = append(g.conns, near, far)
			g.mu.Unlock()
			go pass(near, far)
			go pass(far, near)
		}
	}()
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	_ = g.ln.Close()
	for _, c := range g.conns {
		_ = c.Close()
	}
	g.conns = nil
}
