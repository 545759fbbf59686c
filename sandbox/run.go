package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"
)

// Limits of the time a command run by Run may take.
const (
	DefaultTimeout = 10 * time.Minute
	MaxTimeout     = 24 * time.Hour
)

// RunOptions direct Run. The zero value gives an empty standard input, ten minutes, and
// the first and last half MiB of each stream.
type RunOptions struct {
	// Timeout ends the command, output so far is kept. Zero means DefaultTimeout; a
	// negative one and one above MaxTimeout are refused. Whoever needs a command
	// without an end uses Start or Commands.
	Timeout time.Duration
	// IdleTimeout ends the command when it has written nothing for so long; zero means
	// never.
	IdleTimeout time.Duration
	// OutputLimit is the number of bytes kept of each stream; zero means
	// DefaultOutputLimit, at most MaxOutputLimit.
	OutputLimit int
	// Stdin is given to the command; nil is empty.
	Stdin io.Reader
	// Stdout and Stderr get the exact bytes as they come, beside what is kept. One that
	// fails ends the command.
	Stdout, Stderr io.Writer
	// Start has further options.
	Start StartOptions
}

// Result says what a command did.
type Result struct {
	Status         ExitStatus
	Stdout, Stderr Output
	// TimedOut: it was ended because Timeout was over. Idle: because IdleTimeout was.
	// Cancelled: because the caller's context ended. At most one is true.
	TimedOut, Idle, Cancelled bool
	// StreamErr is the failure of a stream of the caller that ended the command.
	StreamErr error
	// Elapsed is the time from the launch to the end.
	Elapsed time.Duration
	// Terminated is set when the command's processes were ended from outside.
	Terminated *TerminateResult
	// CleanupErr is a failure of cleaning up; Status is not affected by it.
	CleanupErr error
}

// Why Run ends a command, as causes of its context.
var (
	errTimedOut = fmt.Errorf("the time for the command is over: %w", context.DeadlineExceeded)
	errIdle     = fmt.Errorf("the command has written nothing for too long: %w", context.DeadlineExceeded)
)

// Run runs a command to its end and returns what it wrote and how it ended. A command
// that was launched always has a Result and a nil error, whatever ended it: look at
// TimedOut, Idle, Cancelled, StreamErr and Status. An error means that nothing ran; see
// [Start] for its kinds. Memory is bounded by OutputLimit.
func Run(ctx context.Context, sb Sandbox, cmd Command, env Env, opts RunOptions) (Result, error) {
	if err := opts.check(); err != nil {
		return Result{}, err
	}
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	life, end := context.WithCancelCause(ctx)
	defer end(nil)
	watch := newIdleWatch(opts.IdleTimeout, func() { end(errIdle) })
	defer watch.stop()
	stdout, stderr := NewOutputBuffer(opts.OutputLimit), NewOutputBuffer(opts.OutputLimit)
	streams := IO{
		Stdin:  opts.Stdin,
		Stdout: teeWriter{watch, stdout, opts.Stdout},
		Stderr: teeWriter{watch, stderr, opts.Stderr},
	}
	if opts.Stdout != nil && sameWriter(opts.Stdout, opts.Stderr) {
		// Both streams in one writer of the caller: their writes must not overlap.
		shared := &lockedWriter{w: opts.Stdout}
		streams.Stdout, streams.Stderr = teeWriter{watch, stdout, shared}, teeWriter{watch, stderr, shared}
	}
	launching := time.Now()
	timer := time.AfterFunc(opts.Timeout, func() { end(errTimedOut) })
	defer timer.Stop()
	running, err := Start(life, sb, cmd, env, streams, opts.Start)
	if err != nil {
		return Result{}, err
	}
	<-running.Done()
	stdout.End()
	stderr.End()
	status, _ := running.Wait(context.Background())
	r := Result{
		Status: status, Stdout: stdout.Output(), Stderr: stderr.Output(),
		Elapsed: time.Since(launching), Terminated: running.Terminated(), CleanupErr: running.CleanupErr(),
	}
	switch cause := running.Cause(); {
	case cause == nil:
	case errors.Is(cause, errTimedOut):
		r.TimedOut = true
	case errors.Is(cause, errIdle):
		r.Idle = true
	case errors.As(cause, new(*StreamError)):
		r.StreamErr = cause
	default:
		r.Cancelled = true
	}
	return r, nil
}

// check refuses limits that limit nothing, and fills in the default.
func (o *RunOptions) check() error {
	remedy := fmt.Sprintf("give a time up to %s; leave it out for %s", MaxTimeout, DefaultTimeout)
	switch {
	case o.Timeout < 0 || o.Timeout > MaxTimeout:
		return refused("timeout", fmt.Sprintf("timeout %s", o.Timeout), "a command has a limit", remedy)
	case o.IdleTimeout < 0 || o.IdleTimeout > MaxTimeout:
		return refused("idleTimeout", fmt.Sprintf("idle timeout %s", o.IdleTimeout), "it is not negative and at most a day", "leave it out")
	case o.OutputLimit < 0 || o.OutputLimit > MaxOutputLimit:
		return refused("outputLimit", fmt.Sprintf("output limit %d", o.OutputLimit), fmt.Sprintf("it is between 0 (%d) and %d bytes", DefaultOutputLimit, MaxOutputLimit), "give a sensible number")
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Start.Log == nil {
		o.Start.Log = slog.New(slog.DiscardHandler)
	}
	return nil
}

// teeWriter keeps output, tells the idle watch, and hands it on.
type teeWriter struct {
	watch *idleWatch
	keep  *OutputBuffer
	live  io.Writer // may be nil
}

func (t teeWriter) Write(p []byte) (int, error) {
	t.watch.seen()
	_, _ = t.keep.Write(p) // never fails
	if t.live == nil {
		return len(p), nil
	}
	// A slow reader is not an idle command.
	defer t.watch.seen()
	return t.live.Write(p)
}

// lockedWriter serialises writes.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// idleWatch calls expire when nothing was seen for the limit.
type idleWatch struct {
	limit time.Duration
	timer *time.Timer
}

// newIdleWatch begins now. A zero limit watches nothing.
func newIdleWatch(limit time.Duration, expire func()) *idleWatch {
	w := &idleWatch{limit: limit}
	if limit > 0 {
		w.timer = time.AfterFunc(limit, expire)
	}
	return w
}

func (w *idleWatch) seen() {
	if w.timer != nil {
		w.timer.Reset(w.limit)
	}
}

func (w *idleWatch) stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
}
