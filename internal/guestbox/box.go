package guestbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/workberth/workberth/internal/guest/client"
	"github.com/workberth/workberth/internal/guest/proc"
	"github.com/workberth/workberth/internal/guest/wire"
	"github.com/workberth/workberth/sandbox"
)

// How long the end of a generation may take.
const (
	// settleWait is how long a helper that lost its connection may take to end by
	// itself, which tells better why than a kill does.
	settleWait = time.Second
	// closeGrace is how long running commands may take to end when the last handle
	// is closed: their SIGTERM, the default grace, and some room.
	closeGrace = proc.DefaultGrace + time.Second
	// killBound bounds ending the runtime.
	killBound = 20 * time.Second
)

// Options make a Box.
type Options struct {
	// Conn is the connection to the helper, greeted. The box owns it.
	Conn *client.Conn
	// Runtime is the place the helper runs in. The box ends it.
	Runtime Runtime
	// Info describes the sandbox. Its Mounts are the mount table for files.
	Info sandbox.Info
	// Env is what the environment of every command starts from; ConfigEnv, from
	// the configuration, comes on top, and the command's own on top of that.
	Env, ConfigEnv sandbox.Env
	// Limits are set on every command.
	Limits proc.Limits
	// OnEnd is called once, after the runtime has ended and before Done is closed,
	// with the reason; it releases what the backend holds. May be nil.
	OnEnd func(reason error)
	// Logger may be nil.
	Logger *slog.Logger
}

// Box is one generation of a sandbox. It is safe for concurrent use.
type Box struct {
	conn   *client.Conn
	runner proc.Runner
	opts   Options
	log    *slog.Logger

	ending chan struct{} // closed when the end begins; cause is set
	done   chan struct{} // closed when it is over; err is set

	mu      sync.Mutex
	cause   error // why the end began
	orderly bool  // it was asked for: what is under way may finish
	err     error
	handles int
	// running are the launched commands that are not over, by marker.
	running map[string]proc.Process
}

// New takes over a connection and a runtime.
func New(opts Options) *Box {
	b := &Box{
		conn: opts.Conn, runner: opts.Conn.Runner(), opts: opts, log: opts.Logger,
		ending: make(chan struct{}), done: make(chan struct{}), running: make(map[string]proc.Process),
	}
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	b.opts.Env, b.opts.ConfigEnv = opts.Env.Clone(), opts.ConfigEnv.Clone()
	go b.watch()
	return b
}

// Reasons for the end that are nobody's fault.
var errClosed = errors.New("it was closed")

// Handle returns a new handle. A box that has ended, or is about to, gives none and
// the error says why.
func (b *Box) Handle() (*Handle, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cause != nil {
		return nil, fmt.Errorf("%w: %w", sandbox.ErrGone, b.cause)
	}
	b.handles++
	return newHandle(b), nil
}

// release takes a handle back and ends the box with the last one.
func (b *Box) release() {
	b.mu.Lock()
	b.handles--
	last := b.handles == 0
	b.mu.Unlock()
	if last {
		b.endOrderly(errClosed)
	}
}

// Stop ends the box and waits for it; reason is kept for the errors of its handles.
func (b *Box) Stop(ctx context.Context, reason error) error {
	b.endOrderly(reason)
	select {
	case <-b.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// taint ends a box that can no longer keep what it promises: a command got at its
// reaper, or processes do not end. What was found out is reported first, by who
// found it.
func (b *Box) taint(reason string) {
	b.log.Warn("the sandbox is recycled", "sandbox", b.opts.Info.ID, "reason", reason)
	b.end(errors.New(reason))
}

// end begins the end, once.
func (b *Box) end(cause error) { b.begin(cause, false) }

// endOrderly begins an end that somebody asked for.
func (b *Box) endOrderly(cause error) { b.begin(cause, true) }

func (b *Box) begin(cause error, orderly bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cause != nil {
		return
	}
	b.cause, b.orderly = cause, orderly
	close(b.ending)
}

// Done is closed when the generation is over: its runtime has ended and the backend
// has released what it held.
func (b *Box) Done() <-chan struct{} { return b.done }

// Err says why the generation ended; nil before Done is closed. It matches
// sandbox.ErrGone.
func (b *Box) Err() error {
	select {
	case <-b.done:
		return b.err
	default:
		return nil
	}
}

// watch waits for whatever ends the generation, and ends it completely.
func (b *Box) watch() {
	var graceful time.Duration
	select {
	case <-b.conn.Done():
		b.end(b.conn.Err())
		if !errors.Is(b.conn.Err(), wire.ErrProtocol) {
			graceful = settleWait
		}
	case <-b.opts.Runtime.Done():
		b.end(errors.New("the helper ended"))
	case <-b.ending:
		b.mu.Lock()
		if b.orderly {
			graceful = settleWait // to finish a write that is under way, or undo it
			if len(b.running) > 0 {
				graceful = closeGrace
			}
		}
		b.mu.Unlock()
	}
	_ = b.conn.Close() // the helper ends every command at the end of its input
	b.await(graceful)

	ctx, cancel := context.WithTimeout(context.Background(), killBound)
	defer cancel()
	killErr := b.opts.Runtime.Kill(ctx)
	err := b.reason(killErr)
	if killErr != nil {
		b.log.Error("the sandbox could not be ended", "sandbox", b.opts.Info.ID, "error", killErr)
	}
	if b.opts.OnEnd != nil {
		b.opts.OnEnd(err)
	}
	b.err = err
	close(b.done)
}

// await waits for the runtime to end by itself.
func (b *Box) await(long time.Duration) {
	if long <= 0 {
		return
	}
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-b.opts.Runtime.Done():
	case <-timer.C:
	}
}

// reason is the error of everybody who still holds a handle.
func (b *Box) reason(killErr error) error {
	b.mu.Lock()
	cause := b.cause
	b.mu.Unlock()
	switch {
	case killErr != nil:
		return fmt.Errorf("%w (%w), and it could not be ended: %w", sandbox.ErrGone, cause, killErr)
	case errors.Is(cause, errClosed):
		return fmt.Errorf("%w: %w", sandbox.ErrGone, cause)
	}
	return fmt.Errorf("%w: %w; %s", sandbox.ErrGone, cause, b.opts.Runtime.Diagnose())
}

// gone is the error for a call that needs the box, nil while it lives.
func (b *Box) gone() error {
	select {
	case <-b.done:
		return b.err
	default:
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cause != nil {
		return fmt.Errorf("%w: %w", sandbox.ErrGone, b.cause)
	}
	return nil
}

// alive reports that the helper can still be asked. It is false as soon as a call
// can have failed for want of a connection.
func (b *Box) alive() bool {
	select {
	case <-b.conn.Done():
		return false
	case <-b.ending:
		return false
	default:
		return true
	}
}

// settled waits for the end that has begun, so that its reason can be told.
func (b *Box) settled(ctx context.Context) error {
	select {
	case <-b.done:
		return b.err
	case <-ctx.Done():
		return b.gone()
	}
}

// info is the sandbox as it is now. Values of environment variables are left out.
func (b *Box) info() sandbox.Info {
	info := b.opts.Info
	info.Config = info.Config.Redacted()
	info.Mounts = append(info.Mounts[:0:0], info.Mounts...)
	info.Runtime = maps.Clone(info.Runtime)
	info.State = sandbox.StateRunning
	if err := b.gone(); err != nil {
		info.State, info.Detail = sandbox.StateDead, err.Error()
		if errors.Is(err, errClosed) {
			info.State = sandbox.StateStopped
		}
	}
	return info
}

// Sweep ends what earlier generations with these tags left in the environment. It
// returns the tags that could not be swept, with the first error.
func (b *Box) Sweep(ctx context.Context, tags []string) (left []string, err error) {
	for _, tag := range tags {
		n, e := b.conn.Sweep(ctx, tag)
		if e != nil {
			left = append(left, tag)
			err = errors.Join(err, e)
			continue
		}
		if n > 0 {
			b.log.Info("ended what an earlier life of the sandbox had left", "sandbox", b.opts.Info.ID, "tag", tag, "processes", n)
		}
	}
	return left, err
}

// launched lists a command as running.
func (b *Box) launched(marker string, p proc.Process) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running[marker] = p
}

// over takes a command off the list.
func (b *Box) over(marker string, p proc.Process) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.running[marker] == p {
		delete(b.running, marker)
	}
}

// find returns a running command by its marker.
func (b *Box) find(marker string) (proc.Process, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, ok := b.running[marker]
	return p, ok
}
