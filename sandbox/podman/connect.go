package podman

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/workberth/workberth/internal/container"
	"github.com/workberth/workberth/internal/container/libpod"
	"github.com/workberth/workberth/sandbox"
)

// endpoint is where a service is, and who says so.
type endpoint struct {
	host, from string
	// own: where nobody listens, a service of ours may.
	own bool
}

// find says where the service is, as the podman program does.
func find(opts Options) endpoint {
	if opts.Host != "" {
		// What was found before, by another process, may be started by this one too.
		return endpoint{opts.Host, "configuration", opts.Host == usualSocket(opts)}
	}
	if host := opts.Getenv("CONTAINER_HOST"); host != "" {
		return endpoint{host, "CONTAINER_HOST", false}
	}
	return endpoint{usualSocket(opts), "the usual socket", true}
}

// usualSocket is the socket of the system's service for root, and of the user's own for others.
func usualSocket(opts Options) string {
	if os.Geteuid() == 0 {
		return "unix:///run/podman/podman.sock"
	}
	dir := opts.Getenv("XDG_RUNTIME_DIR")
	if dir == "" {
		dir = fmt.Sprintf("/run/user/%d", os.Geteuid())
	}
	return "unix://" + filepath.Join(dir, "podman", "podman.sock")
}

// connect opens a service, and starts one where nobody listens at the usual place.
func connect(ctx context.Context, e endpoint, opts Options, log *slog.Logger) (container.Engine, error) {
	scheme, _, _ := strings.Cut(e.host, "://")
	switch scheme {
	case "unix", "tcp":
	case "ssh":
		return connectSSH(ctx, e, opts, log)
	default:
		return nil, &sandbox.Problem{
			What: fmt.Sprintf("engine address %q (%s)", e.host, e.from), Rule: "an address begins with unix://, tcp:// or ssh://",
			Remedy: "name the service's socket: unix:///run/podman/podman.sock", Err: sandbox.ErrUnavailable,
		}
	}
	engine, err := open(libpod.Options{Address: e.host, Logger: log})
	if err != nil {
		return nil, err
	}
	if !e.own {
		return engine, nil
	}
	if !errors.Is(engine.Ping(ctx), container.ErrUnreachable) {
		return engine, nil // what else is wrong is found out by who asks next
	}
	_ = engine.Close()
	return startService(ctx, opts, log)
}

func open(o libpod.Options) (*libpod.Client, error) {
	engine, err := libpod.New(o)
	if err != nil {
		return nil, &sandbox.Problem{
			What: fmt.Sprintf("engine address %q", o.Address), Rule: err.Error(), Remedy: "name the service's socket: unix:///run/podman/podman.sock",
			Err: fmt.Errorf("%w: %w", sandbox.ErrUnavailable, err),
		}
	}
	return engine, nil
}
