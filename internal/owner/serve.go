package owner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/workberth/workberth/internal/guest/server"
	"github.com/workberth/workberth/internal/version"
	"github.com/workberth/workberth/sandbox"
)

// maxBootstrap bounds what an owner reads on its standard input, in bytes.
const maxBootstrap = 4 << 20

// Opener opens a backend by name.
type Opener func(name, engine string, log *slog.Logger) (sandbox.Backend, error)

// Main is the owner role: it reads what to do from in, starts the sandbox, says
// on out that it serves or why it cannot, and serves until its end. It returns
// nil after an orderly end. The caller has given it a session of its own.
func Main(ctx context.Context, in io.Reader, out io.Writer, open Opener, log *slog.Logger) error {
	log = discard(log)
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT)
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	o := &daemon{log: log}
	err := o.prepare(ctx, in, open)
	var a answer
	if err != nil {
		a.Error = newFailure(err)
	}
	if werr := json.NewEncoder(out).Encode(a); err == nil && werr != nil {
		err = fmt.Errorf("the starter has left: %w", werr)
		o.close()
	}
	if err != nil {
		return err
	}
	if c, ok := out.(io.Closer); ok {
		if err := c.Close(); err != nil {
			log.Warn("closing standard output", "error", err)
		}
	}
	return o.serve(ctx)
}

// daemon is one owner process at work.
type daemon struct {
	log      *slog.Logger
	boot     bootstrap
	sb       sandbox.Sandbox
	commands *sandbox.Commands
	listener *net.UnixListener
	busy     *activity
	end      context.CancelCauseFunc
	conns    sync.WaitGroup
}

// Why an owner ends.
var (
	errIdle    = errors.New("idle")
	errStopped = errors.New("asked to stop")
)

// prepare does everything that can fail before the owner says it serves.
func (o *daemon) prepare(ctx context.Context, in io.Reader, open Opener) error {
	data, err := io.ReadAll(io.LimitReader(in, maxBootstrap))
	if err != nil {
		return fmt.Errorf("read the bootstrap: %w", err)
	}
	if err := json.Unmarshal(data, &o.boot); err != nil {
		return fmt.Errorf("malformed bootstrap: %w", err)
	}
	if err := privateDir(o.boot.RuntimeDir); err != nil {
		return err
	}
	path, err := socketPath(o.boot.RuntimeDir, o.boot.ID)
	if err != nil {
		return err
	}
	backend, err := open(o.boot.Backend, o.boot.Spec.Config.Engine, o.log)
	if err != nil {
		return err
	}
	if o.sb, err = ensure(ctx, backend, o.boot.Spec); err != nil {
		return err
	}
	if id := o.sb.Info().ID; id != o.boot.ID {
		o.close()
		return fmt.Errorf("the sandbox is %s, asked was %s: the workspace has changed in between; try again", id, o.boot.ID)
	}
	// We hold the sandbox, so a socket that lies here belongs to a dead owner.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		o.close()
		return fmt.Errorf("remove the socket of a dead owner: %w", err)
	}
	old := syscall.Umask(0o177)
	o.listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	syscall.Umask(old)
	if err != nil {
		o.close()
		return fmt.Errorf("listen: %w", err)
	}
	o.commands = sandbox.NewCommands(o.sb, sandbox.CommandsOptions{Log: o.log})
	return nil
}

// ensure starts the sandbox. An owner that is just ending still holds it for a
// moment; that is waited for.
func ensure(ctx context.Context, backend sandbox.Backend, spec sandbox.Spec) (sandbox.Sandbox, error) {
	deadline := time.Now().Add(5 * time.Second)
	for {
		sb, err := backend.Ensure(ctx, spec)
		if !errors.Is(err, sandbox.ErrInUse) || time.Now().After(deadline) {
			return sb, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// serve serves connections until the owner's end.
func (o *daemon) serve(ctx context.Context) error {
	ctx, end := context.WithCancelCause(ctx)
	o.end = end
	defer end(nil)
	o.busy = newActivity(o.boot.Idle, func() { end(errIdle) })
	defer o.busy.stop()
	go func() {
		select {
		case <-o.sb.Done():
			_ = o.listener.Close() // it is closed once
		case <-ctx.Done():
		}
	}()
	// The listener closes first: who comes later starts a new owner.
	stop := context.AfterFunc(ctx, func() { _ = o.listener.Close() }) // it is closed once
	defer stop()
	for {
		c, err := o.listener.AcceptUnix()
		if err != nil {
			if ctx.Err() == nil && temporary(err) {
				o.log.Warn("accept", "error", err)
				continue
			}
			if ctx.Err() == nil && !o.over() {
				end(err)
			}
			break
		}
		if err := checkPeer(c); err != nil {
			o.log.Warn("refused a connection", "error", err)
			_ = c.Close() // nothing was said on it
			continue
		}
		release := o.busy.begin()
		o.conns.Go(func() {
			defer release()
			o.connection(ctx, c)
		})
	}
	if o.over() {
		o.lastWords(ctx)
		end(fmt.Errorf("the sandbox has ended: %w", o.sb.Err()))
	}
	o.log.Info("the owner ends", "reason", context.Cause(ctx))
	o.conns.Wait()
	o.close()
	return nil
}

// over reports that the sandbox has ended.
func (o *daemon) over() bool {
	select {
	case <-o.sb.Done():
		return true
	default:
		return false
	}
}

// lastWordsBound is how long clients of a sandbox that has ended may take to hear of it.
const lastWordsBound = 3 * time.Second

// lastWords waits until every client of a sandbox that has ended has been told how, and has gone.
func (o *daemon) lastWords(ctx context.Context) {
	gone := make(chan struct{})
	go func() {
		o.conns.Wait()
		close(gone)
	}()
	timer := time.NewTimer(lastWordsBound)
	defer timer.Stop()
	select {
	case <-gone:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// temporary reports an accept error that passes.
func temporary(err error) bool {
	return errors.Is(err, syscall.ECONNABORTED) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.EINTR)
}

// connection serves one client to its end.
func (o *daemon) connection(ctx context.Context, c *net.UnixConn) {
	bridge, err := o.sb.Bridge(ctx, nil)
	if err != nil {
		o.log.Warn("no bridge", "error", err)
		_ = c.Close() // nothing was said on it
		return
	}
	ctl := &control{sb: o.sb, commands: o.commands, busy: o.busy, stop: func() { o.end(errStopped) }}
	err = server.Serve(ctx, c, server.Config{
		Files:  bridge,
		Runner: &runner{sb: o.sb, opts: sandbox.StartOptions{Log: o.log}, busy: o.busy},
		Call:   ctl.handle,
		Build:  version.Version(),
		Logger: o.log,
	})
	if err != nil && ctx.Err() == nil {
		o.log.Debug("a connection ended", "error", err)
	}
}

// close ends background commands and gives the sandbox back.
func (o *daemon) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if o.commands != nil {
		if err := o.commands.Close(ctx); err != nil {
			o.log.Warn("ending background commands", "error", err)
		}
	}
	if o.sb != nil {
		if err := o.sb.Close(); err != nil {
			o.log.Warn("closing the sandbox", "error", err)
		}
	}
}
