package podman

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"strings"

	"github.com/workberth/workberth/internal/container"
	"github.com/workberth/workberth/internal/container/byssh"
	"github.com/workberth/workberth/internal/container/libpod"
	"github.com/workberth/workberth/sandbox"
)

// connectSSH opens a service on another machine, whose socket ssh forwards. Where the address names no
// socket, the podman program there tells which it is. CONTAINER_SSHKEY names a key to use.
func connectSSH(ctx context.Context, e endpoint, opts Options, log *slog.Logger) (container.Engine, error) {
	host, err := byssh.Parse(e.host)
	if err != nil {
		return nil, &sandbox.Problem{
			What: fmt.Sprintf("engine address %q (%s)", e.host, e.from), Rule: err.Error(), Remedy: "see: podman system connection list",
			Err: fmt.Errorf("%w: %w", sandbox.ErrUnavailable, err),
		}
	}
	host.Identity = opts.Getenv("CONTAINER_SSHKEY")
	if host.Socket == "" {
		if host.Socket, err = socketThere(ctx, host, opts); err != nil {
			return nil, err
		}
	}
	tunnel := byssh.NewTunnel(host, opts.Getenv)
	engine, err := open(libpod.Options{Address: e.host, Dial: tunnel.Dial, Logger: log})
	if err != nil {
		return nil, errors.Join(err, tunnel.Close())
	}
	return &tunnelled{engine, tunnel}, nil
}

// socketThere asks the other machine for the service's socket.
func socketThere(ctx context.Context, host byssh.Host, opts Options) (string, error) {
	said, err := host.Output(ctx, opts.Getenv, "podman", "info", "--format", "'{{.Host.RemoteSocket.Path}}'")
	if err != nil {
		return "", fmt.Errorf("ask for the service's socket: %w", err)
	}
	socket := strings.TrimPrefix(strings.TrimSpace(said), "unix://")
	if !path.IsAbs(socket) || strings.ContainsAny(socket, "\n\x00") {
		return "", fmt.Errorf("ask for the service's socket: podman there says %q", socket)
	}
	return socket, nil
}

// tunnelled is a service behind a tunnel of its own.
type tunnelled struct {
	*libpod.Client
	tunnel *byssh.Tunnel
}

// Close gives the connections back and ends the tunnel.
func (t *tunnelled) Close() error { return errors.Join(t.Client.Close(), t.tunnel.Close()) }
