package docker

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/workberth/workberth/internal/container"
	"github.com/workberth/workberth/sandbox"
)

// Name of the backend.
const Name = "docker"

// DefaultImage runs where a configuration names none.
const DefaultImage = "debian:stable-slim"

// Options make a Backend. Only StateDir is needed.
type Options struct {
	// Host is the engine's address: unix://PATH, tcp://HOST:PORT or ssh://USER@HOST. Empty means
	// that of DOCKER_HOST, of the docker context in use, or the usual socket.
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

// Backend makes sandboxes in Docker containers. It is safe for concurrent use, also together with
// other processes of the same user that have the same StateDir. Keeps SBX-06.
type Backend struct{ *container.Backend }

var _ sandbox.Backend = (*Backend)(nil)

// New opens the backend. It does not look whether an engine answers: Check does, and Ensure says so
// when it does not.
func New(opts Options) (*Backend, error) {
	if opts.Getenv == nil {
		opts.Getenv = os.Getenv
	}
	where, whereErr := find(opts)
	b, err := container.New(container.Options{
		Name: Name, Address: where.host, Plain: where.plain(), DefaultImage: DefaultImage, HelperPath: opts.HelperPath, StateDir: opts.StateDir, RuntimeDir: opts.RuntimeDir,
		Getenv: opts.Getenv, Facts: opts.Facts, Now: opts.Now, Logger: opts.Logger,
		Connect: func(ctx context.Context) (container.Engine, error) {
			if whereErr != nil {
				return nil, whereErr
			}
			return connect(ctx, where, opts)
		},
		Missing: "start it (systemctl start docker), see that this user may use its socket (group docker), or name another one in DOCKER_HOST",
	})
	if err != nil {
		return nil, err
	}
	return &Backend{b}, nil
}

// Address says which engine a backend opened in this environment uses: that of DOCKER_HOST, of the
// docker context in use, or the usual socket.
func Address(getenv func(string) string) (string, error) {
	where, err := find(Options{Getenv: getenv})
	return where.host, err
}

// DefaultConfig is the hardened configuration with the image that is used where none is named.
func DefaultConfig() sandbox.Config {
	c := sandbox.DefaultConfig()
	c.Image = DefaultImage
	return c
}
