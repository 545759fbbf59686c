package rendezvous

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	// greeting comes before the token.
	greeting = "BERTHRV1"
	// tokenLen is the length of a token: 256 random bits in hexadecimal.
	tokenLen = 64
	// admitted is what the host answers to the peer it takes.
	admitted = 0x06
	// socketName is the socket's name in its directory.
	socketName = "s"
	// maxSocketPath is what fits into a socket address everywhere, in bytes.
	maxSocketPath = 103
	// maxPending is how many peers may be on their way to present a token. One
	// more drops the one that has been silent longest.
	maxPending = 32

	// DefaultTokenWait is how long a peer may take to present its token.
	DefaultTokenWait = 5 * time.Second
)

// ErrClosed is returned by Accept after Close.
var ErrClosed = errors.New("rendezvous: closed")

// Options direct Listen. The zero value is fine.
type Options struct {
	// UID and GID are given the socket and its directory, for a helper that runs
	// as another user; zero leaves them to this process's user. Only root can.
	UID, GID int
	// PeerUIDs, when not empty, are the only users whose processes are admitted.
	PeerUIDs []int
	// TokenWait is how long a peer may take to present its token; zero means
	// DefaultTokenWait.
	TokenWait time.Duration
}

// Listener waits for the helper. Exactly one peer is ever admitted.
type Listener struct {
	opts  Options
	dir   string
	token string
	ln    *net.UnixListener

	closing sync.Once
	mu      sync.Mutex
	pending []*net.UnixConn // oldest first
	closed  bool
}

// Listen makes a directory of mode 0700 below parent, and listens on a socket in it.
func Listen(parent string, opts Options) (*Listener, error) {
	if opts.TokenWait <= 0 {
		opts.TokenWait = DefaultTokenWait
	}
	dir, err := os.MkdirTemp(parent, "rv-")
	if err != nil {
		return nil, fmt.Errorf("rendezvous: %w", err)
	}
	l := &Listener{opts: opts, dir: dir, token: newToken()}
	if err := l.listen(); err != nil {
		_ = os.RemoveAll(dir)
		return nil, fmt.Errorf("rendezvous: %w", err)
	}
	return l, nil
}

func newToken() string {
	var b [tokenLen / 2]byte
	_, _ = rand.Read(b[:]) // never fails, see crypto/rand
	return hex.EncodeToString(b[:])
}

func (l *Listener) listen() error {
	path := l.Path()
	address, release, err := shorten(l.dir)
	if err != nil {
		return err
	}
	defer release()
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(address, socketName), Net: "unix"})
	if err != nil {
		return err
	}
	ln.SetUnlinkOnClose(false) // Close removes it with the directory
	l.ln = ln
	// The directory keeps others out; the socket's own mode is a second net.
	err = os.Chmod(path, 0o600)
	if l.opts.UID != 0 || l.opts.GID != 0 {
		err = errors.Join(err, os.Chown(path, l.opts.UID, l.opts.GID), os.Chown(l.dir, l.opts.UID, l.opts.GID))
	}
	if err != nil {
		_ = ln.Close()
	}
	return err
}

// Dir is the private directory, which holds nothing but the socket.
func (l *Listener) Dir() string { return l.dir }

// Path is the path of the socket on this machine. Inside the environment it is the
// same name below wherever Dir is mounted.
func (l *Listener) Path() string { return filepath.Join(l.dir, socketName) }

// Token is what the peer must present. It is a secret until Accept has returned.
func (l *Listener) Token() string { return l.token }

// Close stops listening and removes the socket and its directory. It may be called
// at any time and more than once; a connection that Accept returned stays.
func (l *Listener) Close() error {
	var err error
	l.closing.Do(func() {
		l.mu.Lock()
		l.closed = true
		pending := l.pending
		l.pending = nil
		l.mu.Unlock()
		err = l.ln.Close()
		for _, c := range pending {
			_ = c.Close()
		}
		err = errors.Join(err, os.RemoveAll(l.dir))
	})
	return err
}

// Accept waits for the peer with the token, at most until ctx ends, and then closes
// the listener, in every case. Peers without the token are refused and forgotten.
// The connection's deadlines are unset.
func (l *Listener) Accept(ctx context.Context) (*net.UnixConn, error) {
	found := make(chan *net.UnixConn, 1)
	failed := make(chan error, 1)
	var checks sync.WaitGroup
	checks.Go(func() {
		for {
			c, err := l.ln.AcceptUnix()
			if err != nil {
				failed <- err
				return
			}
			l.add(c)
			checks.Go(func() {
				if l.check(c) {
					select {
					case found <- c:
						return
					default: // somebody else was first
					}
				}
				l.drop(c)
				_ = c.Close()
			})
		}
	})
	c, err := l.first(ctx, found, failed)
	_ = l.Close()
	checks.Wait()
	if err != nil {
		select {
		case late := <-found:
			_ = late.Close()
		default:
		}
	}
	return c, err
}

// first waits for the first of what may happen.
func (l *Listener) first(ctx context.Context, found <-chan *net.UnixConn, failed <-chan error) (*net.UnixConn, error) {
	select {
	case c := <-found:
		l.drop(c) // so that closing leaves it alone
		return c, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("rendezvous: no helper called back: %w", context.Cause(ctx))
	case err := <-failed:
		l.mu.Lock()
		closed := l.closed
		l.mu.Unlock()
		if closed {
			return nil, ErrClosed
		}
		return nil, fmt.Errorf("rendezvous: %w", err)
	}
}

// add notes a peer that has not presented a token. Too many of them cost the
// oldest its place, so that silent peers keep nobody out.
func (l *Listener) add(c *net.UnixConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_ = c.Close()
		return
	}
	if len(l.pending) == maxPending {
		_ = l.pending[0].Close() // its check ends with that
		l.pending = l.pending[1:]
	}
	l.pending = append(l.pending, c)
}

func (l *Listener) drop(c *net.UnixConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, p := range l.pending {
		if p == c {
			l.pending = append(l.pending[:i:i], l.pending[i+1:]...)
			return
		}
	}
}
