package byssh

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// openBound is how long a tunnel may take to open.
const openBound = 40 * time.Second

// Tunnel is a socket of this machine, in a private directory, that ssh connects to one of another
// machine. It is opened when it is first used, and again when it has ended. It is safe for concurrent use.
type Tunnel struct {
	host   Host
	getenv func(string) string

	mu     sync.Mutex
	closed bool
	dir    string
	held   *os.File // dir, as long as it is in use
	ssh    *program
}

// NewTunnel makes a tunnel to the socket of a host. Nothing is done yet.
func NewTunnel(h Host, getenv func(string) string) *Tunnel { return &Tunnel{host: h, getenv: getenv} }

// Dial connects to the socket on the other machine.
func (t *Tunnel) Dial(ctx context.Context) (net.Conn, error) {
	path, err := t.open(ctx)
	if err != nil {
		return nil, err
	}
	return new(net.Dialer).DialContext(ctx, "unix", path)
}

// open sees that ssh runs and listens, and gives the socket.
func (t *Tunnel) open(ctx context.Context) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return "", net.ErrClosed
	}
	if t.ssh != nil {
		select {
		case <-t.ssh.ended:
			t.shut()
		default:
			return filepath.Join(t.dir, "s"), nil
		}
	}
	var err error
	if t.dir, t.held, err = privateDir(); err != nil {
		return "", err
	}
	path := filepath.Join(t.dir, "s")
	t.ssh, err = t.host.start(t.getenv, nil, nil, t.host.arguments([]string{
		"-N", "-o", "ExitOnForwardFailure=yes", "-o", "StreamLocalBindMask=0177", "-o", "ControlPath=none", "-L", path + ":" + t.host.Socket,
	}))
	if err == nil {
		err = t.await(ctx, path)
	}
	if err != nil {
		t.shut()
		return "", err
	}
	return path, nil
}

// await waits until ssh listens.
func (t *Tunnel) await(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, openBound, fmt.Errorf("ssh to %s does not connect", t.host.Name))
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		// The file is there before anybody listens.
		if probe, err := new(net.Dialer).DialContext(ctx, "unix", path); err == nil {
			return probe.Close()
		}
		select {
		case <-tick.C:
		case <-t.ssh.ended:
			return &net.OpError{Op: "dial", Net: "ssh", Addr: address(t.host.Name), Err: t.ssh.failure()}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// shut ends ssh and removes the directory. The caller has the lock.
func (t *Tunnel) shut() {
	if t.ssh != nil && t.ssh.cmd.Process != nil { // nil where it could not be started
		_ = t.ssh.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		t.ssh.end()
	}
	if t.held != nil {
		_ = os.RemoveAll(t.dir)
		_ = t.held.Close()
	}
	t.ssh, t.dir, t.held = nil, "", nil
}

// Close ends the tunnel with all its connections.
func (t *Tunnel) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	if t.ssh != nil {
		t.shut()
	}
	return nil
}

// NoCommand reports whether an error means that the program of the engine is not on the other machine.
func NoCommand(err error) bool {
	var failed *Error
	return errors.As(err, &failed) && (failed.Code == 127 || failed.Code == 126)
}
