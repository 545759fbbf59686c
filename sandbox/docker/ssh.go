package docker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"

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
	// Docker's client does not always tell why a connection has ended.
	var failed atomic.Pointer[byssh.Error]
	engine, err := by(func(ctx context.Context) (net.Conn, error) {
		conn, err := host.Run(ctx, opts.Getenv, host.DialStdio()...)
		if err != nil {
			return nil, err
		}
		return &noting{conn, &failed}, nil
	})
	if err != nil {
		return nil, err
	}
	err = engine.Ping(ctx)
	why := failed.Load()
	switch {
	case err == nil:
		return engine, nil
	case why == nil:
		return nil, errors.Join(err, engine.Close())
	case !byssh.NoCommand(why):
		_ = engine.Close()
		return nil, &sandbox.Problem{
			What: fmt.Sprintf("no docker engine answers at %s (%s)", e.host, e.from), Rule: why.Error(),
			Remedy: fmt.Sprintf("see that this works without a question: ssh %s docker version", host.Name), Err: fmt.Errorf("%w: %w", sandbox.ErrUnavailable, why),
		}
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

// noting is a connection that keeps why it has failed.
type noting struct {
	net.Conn
	failed *atomic.Pointer[byssh.Error]
}

func (n *noting) Read(p []byte) (int, error) {
	k, err := n.Conn.Read(p)
	var failed *byssh.Error
	if errors.As(err, &failed) {
		n.failed.Store(failed)
	}
	return k, err
}

// CloseWrite ends what is sent.
func (n *noting) CloseWrite() error {
	if c, ok := n.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return errors.ErrUnsupported
}

// tunnelled is an engine behind a tunnel of its own.
type tunnelled struct {
	*moby.Client
	tunnel *byssh.Tunnel
}

// Close gives the connections back and ends the tunnel.
func (t *tunnelled) Close() error { return errors.Join(t.Client.Close(), t.tunnel.Close()) }
