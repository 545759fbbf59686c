package docker

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/moby/moby/client"

	"github.com/workberth/workberth/internal/container"
	"github.com/workberth/workberth/internal/container/byssh"
	"github.com/workberth/workberth/internal/container/moby"
	"github.com/workberth/workberth/sandbox"
)

// behindSSH is what the engine is called in requests that go through ssh. Nobody looks it up.
const behindSSH = "http://docker.invalid"

// usualSocketThere is the engine's socket on another machine where the address names none.
const usualSocketThere = "/var/run/docker.sock"

// connectSSH opens an engine as the docker program does: each connection is that of the docker program
// of the other machine, run by ssh. Where that one has no such program, ssh forwards the engine's socket.
func connectSSH(ctx context.Context, e endpoint, opts Options) (container.Engine, error) {
	host, err := byssh.Parse(e.host)
	if err != nil {
		return nil, &sandbox.Problem{
			What: fmt.Sprintf("engine address %q (%s)", e.host, e.from), Rule: err.Error(), Remedy: "see: docker context ls",
			Err: fmt.Errorf("%w: %w", sandbox.ErrUnavailable, err),
		}
	}
	by := func(dial func(context.Context) (net.Conn, error)) (*moby.Client, error) {
		return open(e, moby.Options{Host: behindSSH, Logger: opts.Logger, Extra: []client.Opt{
			client.WithDialContext(func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) }),
		}})
	}
	engine, err := by(func(ctx context.Context) (net.Conn, error) { return host.Run(ctx, opts.Getenv, host.DialStdio()...) })
	if err != nil {
		return nil, err
	}
	err = engine.Ping(ctx)
	switch {
	case err == nil:
		return engine, nil
	case !byssh.NoCommand(err):
		return nil, errors.Join(err, engine.Close())
	}
	_ = engine.Close()
	if host.Socket == "" {
		host.Socket = usualSocketThere
	}
	tunnel := byssh.NewTunnel(host, opts.Getenv)
	if engine, err = by(tunnel.Dial); err != nil {
		return nil, errors.Join(err, tunnel.Close())
	}
	return &tunnelled{engine, tunnel}, nil
}

// tunnelled is an engine behind a tunnel of its own.
type tunnelled struct {
	*moby.Client
	tunnel *byssh.Tunnel
}

// Close gives the connections back and ends the tunnel.
func (t *tunnelled) Close() error { return errors.Join(t.Client.Close(), t.tunnel.Close()) }
