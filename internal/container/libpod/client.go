package libpod

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/workberth/workberth/internal/container"
)

// Options of a client.
type Options struct {
	// Address of the Podman service: unix:///path, or tcp://host:port without encryption.
	Address string
	// Shared is a directory for files that the engine reads while a call lasts. It must be at the
	// same path for both. Empty means that of temporary files.
	Shared string
	// Bound: the engine may not raise its own limits on open files and processes, which Podman does
	// by default, so that each container is told those of the engine.
	Bound bool
	// Dial makes connections in place of those that Address tells, which is for people then. May be
	// nil.
	Dial func(ctx context.Context) (net.Conn, error)
	// Logger is told about negotiation and warnings; nil means nobody.
	Logger *slog.Logger
}

// Client speaks to one Podman service. Safe for concurrent use.
type Client struct {
	address string
	shared  string
	bound   bool
	log     *slog.Logger
	http    *http.Client
	idle    func()

	// open ends when the client is closed.
	open  context.Context
	close context.CancelFunc

	api   atomic.Pointer[string]     // the version of the protocol in use
	facts atomic.Pointer[Info]       // what the engine said of itself
	peer  atomic.Pointer[peerLimits] // what the engine's process may use
}

var _ container.Engine = (*Client)(nil)

// New makes a client. It connects when it is first used.
func New(o Options) (*Client, error) {
	dial := o.Dial
	if dial == nil {
		network, target, err := parseAddress(o.Address)
		if err != nil {
			return nil, err
		}
		dialer := &net.Dialer{}
		dial = func(ctx context.Context) (net.Conn, error) { return dialer.DialContext(ctx, network, target) }
	}
	c := &Client{address: o.Address, shared: o.Shared, bound: o.Bound, log: o.Logger}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	c.open, c.close = context.WithCancel(context.Background())
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := dial(ctx)
			if err == nil && o.Dial == nil && c.peer.Load() == nil {
				limits := limitsOfPeer(conn)
				c.peer.Store(&limits)
			}
			return conn, err
		},
		DisableCompression:     true,
		MaxIdleConnsPerHost:    8,
		IdleConnTimeout:        30 * time.Second,
		MaxResponseHeaderBytes: 256 << 10,
	}
	c.idle = transport.CloseIdleConnections
	c.http = &http.Client{
		Transport: transport,
		// The API redirects nobody; a path that the server would correct is a fault of ours.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

// Close ends the calls that are under way and closes all connections. Later calls fail.
func (c *Client) Close() error {
	c.close()
	c.idle()
	return nil
}

// parseAddress takes an address apart for net.Dial.
func parseAddress(address string) (network, target string, err error) {
	scheme, rest, ok := strings.Cut(address, "://")
	switch {
	case !ok:
		err = errors.New("write it as unix:///path or tcp://host:port")
	case scheme == "unix" && (!filepath.IsAbs(rest) || strings.ContainsRune(rest, 0)):
		err = errors.New("the path of the socket must be absolute: unix:///path")
	case scheme == "unix":
		return scheme, rest, nil
	case scheme == "tcp":
		if _, _, err = net.SplitHostPort(strings.TrimSuffix(rest, "/")); err == nil {
			return scheme, strings.TrimSuffix(rest, "/"), nil
		}
	default:
		err = fmt.Errorf("%s is not spoken here, only unix:///path and tcp://host:port", scheme)
	}
	return "", "", fmt.Errorf("address %q of a Podman service: %w", address, err)
}
