package podman

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/workberth/workberth/internal/container"
	"github.com/workberth/workberth/sandbox"
)

// Name of the backend.
const Name = "podman"

// DefaultImage runs where a configuration names none.
const DefaultImage = "docker.io/library/debian:stable-slim"

// Options make a Backend. Only StateDir is needed.
type Options struct {
	// Host is the service's address: unix://PATH, tcp://HOST:PORT or ssh://USER@HOST/PATH. Empty means
	// that of CONTAINER_HOST, this user's socket, or a service that is started.
	Host string
	// HelperPath is the guest helper; empty means the one that package helperbin finds.
	HelperPath string
	// StateDir is this user's private directory for records, absolute. It is made when it is
	// missing.
	StateDir string
	// RuntimeDir is where this program keeps its sockets; it never appears inside.
	RuntimeDir string
	// Getenv looks up an environment variable of this process; nil means os.Getenv.
	Getenv func(string) string
	// Facts are what validation asks of this machine; nil means the real ones.
	Facts *sandbox.HostFacts
	// Now is the clock of records; nil means time.Now.
	Now func() time.Time
	// Logger may be nil.
	Logger *slog.Logger
}

// Backend makes sandboxes in Podman containers. It is safe for concurrent use, also together with
// other processes of the same user that have the same StateDir. Keeps SBX-06.
type Backend struct{ *container.Backend }

var _ sandbox.Backend = (*Backend)(nil)

// New opens the backend. It does not look whether an engine answers: Check does, and Ensure says so
// when it does not.
func New(opts Options) (*Backend, error) {
	if opts.Getenv == nil {
		opts.Getenv = os.Getenv
	}
	log := opts.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	where := find(opts)
	b, err := container.New(container.Options{
		Name: Name, Address: where.host, Plain: strings.HasPrefix(where.host, "tcp://"), DefaultImage: DefaultImage, HelperPath: opts.HelperPath, StateDir: opts.StateDir,
		RuntimeDir: opts.RuntimeDir, Getenv: opts.Getenv, Facts: opts.Facts, Now: opts.Now, Logger: opts.Logger,
		Connect: func(ctx context.Context) (container.Engine, error) { return connect(ctx, where, opts, log) },
		Frugal:  where.own,
		Missing: "install podman, start its service (systemctl --user start podman.socket), or name one in CONTAINER_HOST; over ssh see that this works without a question: ssh HOST podman info",
	})
	if err != nil {
		return nil, err
	}
	return &Backend{b}, nil
}

// Address says which service a backend opened in this environment uses: that of CONTAINER_HOST, this
// user's socket, or the one that is started where nobody listens.
func Address(getenv func(string) string) string { return find(Options{Getenv: getenv}).host }

// DefaultConfig is the hardened configuration with the image that is used where none is named.
func DefaultConfig() sandbox.Config {
	c := sandbox.DefaultConfig()
	c.Image = DefaultImage
	return c
}
