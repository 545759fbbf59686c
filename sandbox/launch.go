package sandbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Times the owner waits before it gives up, unless StartOptions say otherwise.
const (
	defaultCleanupTimeout = 30 * time.Second
	defaultDrainTimeout   = 5 * time.Second
)

// StartOptions direct Start. The zero value is good.
type StartOptions struct {
	// Log gets what nobody else is told: failures of cleaning up. Nil discards.
	Log *slog.Logger
	// CleanupTimeout bounds terminating (beyond its grace) and finalising; zero
	// means 30 s. Both go on after the end of the caller's context.
	CleanupTimeout time.Duration
	// DrainTimeout bounds the wait for a command's last output after its tree was
	// terminated, in case a writer blocks for good; zero means 5 s.
	DrainTimeout time.Duration
}

// Running is a command that was launched and is owned by this process. It keeps
// the custody of the command's process tree (SBX-03). Safe for concurrent use.
//
// When the context given to [Start] ends, or one of the streams fails, the tree is
// terminated. Whatever happens, the exec spec is finalised exactly once, after any
// termination that is under way (SBX-05).
type Running struct {
	sandbox  Sandbox
	spec     ExecSpec
	prepared Prepared
	proc     Process
	opts     StartOptions
	fail     context.CancelCauseFunc // ends the command for a reason
	base     context.Context         // the caller's values, without its end
	release  context.CancelFunc      // frees what the launch was bound to
	done     chan struct{}           // closed when everything below is settled

	mu           sync.Mutex
	terminating  int           // calls of Terminate under way
	idle         chan struct{} // closed when terminating falls to zero
	terminated   *TerminateResult
	status       ExitStatus
	cause        error
	terminateErr error // of the last Terminate
	finalizeErr  error
}

// Start launches a command in the order that the package documentation gives, and
// returns once it runs. ctx governs the whole life of the command: when it ends,
// the process tree is terminated with the command's grace.
//
// A failure returns no Running and leaves nothing behind: no process and no open
// token. It is a *[StartError] when the command could not be started, matches
// ErrRevoked when execution was revoked, ErrGone when the sandbox has ended.
//
// A Stdin is given to the command whether or not cmd.Stdin is set. A Stdin that
// fails (other than by io.EOF) and a writer that fails end the command, and
// [Running.Cause] tells; a failing writer gets nothing more.
func Start(ctx context.Context, sb Sandbox, cmd Command, env Env, streams IO, opts StartOptions) (*Running, error) {
	if opts.CleanupTimeout <= 0 {
		opts.CleanupTimeout = defaultCleanupTimeout
	}
	if opts.DrainTimeout <= 0 {
		opts.DrainTimeout = defaultDrainTimeout
	}
	opts.Log = discard(opts.Log)
	cmd.Stdin = cmd.Stdin || streams.Stdin != nil

	prepared, err := PrepareProcessCleanup(ctx, sb, env)
	if err != nil {
		return nil, err
	}
	spec, err := sb.BuildExecSpec(ctx, cmd, prepared.Env)
	if err != nil {
		return nil, err
	}
	r := &Running{
		sandbox: sb, spec: spec, prepared: prepared, opts: opts,
		base: context.WithoutCancel(ctx), done: make(chan struct{}),
	}
	life, fail := context.WithCancelCause(ctx)
	r.fail = fail
	if err := r.launch(life, guardStreams(streams, fail, r.done)); err != nil {
		fail(nil)
		return nil, err
	}
	go r.supervise(life)
	return r, nil
}

// launch makes the last check and spawns. On failure it cleans up.
func (r *Running) launch(ctx context.Context, streams IO) error {
	if r.spec.AssertCurrent == nil || r.spec.Spawn == nil {
		r.finalize(OutcomeLaunchFailed)
		return errors.New("sandbox: an exec spec without its last check or its launch")
	}
	err := ctx.Err()
	if err == nil {
		err = r.spec.AssertCurrent()
	}
	if err != nil {
		r.finalize(OutcomeLaunchFailed)
		return err
	}
	// The end of ctx ends a launch under way, but not a process that runs: its
	// tree must be terminated, which the end of a client does not do.
	spawning, cancel := context.WithCancel(r.base)
	r.release = cancel
	stop := context.AfterFunc(ctx, cancel)
	r.proc, err = r.spec.Spawn(spawning, streams)
	if !stop() && err != nil {
		err = fmt.Errorf("%w (%w)", context.Cause(ctx), err)
	}
	if err == nil && r.proc == nil {
		err = errors.New("sandbox: a launch without a process")
	}
	if err != nil {
		cancel()
		return r.undo(err)
	}
	if r.prepared.launched != nil {
		r.prepared.launched(r.proc)
	}
	return nil
}

// undo ends what a failed launch may have left, and finalises afterwards.
func (r *Running) undo(launchErr error) error {
	ctx, cancel := r.cleanupContext()
	defer cancel()
	result, err := settled(r.prepared.Terminate(ctx, r.spec.Command.Grace))
	if result.Outcome != TerminationGone && !errors.Is(err, errors.ErrUnsupported) {
		r.opts.Log.Error("processes of a failed launch may be left",
			"outcome", result.Outcome, "pids", result.Pids, "error", err)
	}
	r.finalize(OutcomeLaunchFailed)
	return launchErr
}

// ending is what Wait said.
type ending struct {
	status ExitStatus
	err    error
}

// supervise waits for the command, ends it when its life is over, and settles.
func (r *Running) supervise(ctx context.Context) {
	defer r.fail(nil)
	defer r.release()
	waiting, stopWaiting := context.WithCancel(r.base)
	defer stopWaiting()
	ended := make(chan ending, 1)
	go func() {
		status, err := r.proc.Wait(waiting)
		ended <- ending{status, err}
	}()

	var e ending
	select {
	case e = <-ended:
		// A stream that failed may have ended the command by itself.
		if cause := context.Cause(ctx); errors.As(cause, new(*StreamError)) {
			r.setCause(cause)
		}
	case <-ctx.Done():
		e = r.cutShort(context.Cause(ctx), ended)
	}
	if e.err != nil {
		e.status = ExitStatus{Unknown: true, Reason: e.err.Error()}
	}
	if e.status.Unknown && r.Terminated() == nil {
		// Nobody knows what became of it: end the tree before finalising.
		r.terminateNow()
	}
	r.settle(e.status)
}

// cutShort ends a command whose life is over.
func (r *Running) cutShort(cause error, ended <-chan ending) ending {
	select {
	case e := <-ended: // by itself, at the same moment
		if errors.As(cause, new(*StreamError)) {
			r.setCause(cause)
		}
		return e
	default:
	}
	r.setCause(cause)
	r.terminateNow()
	drain := time.NewTimer(r.opts.DrainTimeout)
	defer drain.Stop()
	select {
	case e := <-ended:
		return e
	case <-drain.C:
		return ending{status: ExitStatus{Unknown: true, Reason: "its end was not reported, or its output could not be delivered"}}
	}
}

// settle finalises after the terminations under way, and publishes the status.
func (r *Running) settle(status ExitStatus) {
	r.awaitTerminations()
	outcome := OutcomeExited
	switch {
	case status.Unknown:
		outcome = OutcomeLost
	case r.Terminated() != nil:
		outcome = OutcomeTerminated
	}
	r.finalize(outcome)
	r.mu.Lock()
	r.status = status
	r.mu.Unlock()
	close(r.done)
}

// finalize releases the exec spec's token. A failure is kept and logged and
// changes nothing else: custody for stopping is Terminate. Keeps SBX-05.
func (r *Running) finalize(outcome Outcome) {
	ctx, cancel := r.cleanupContext()
	defer cancel()
	err := r.sandbox.FinalizeExec(ctx, r.spec.Token, outcome)
	if err == nil {
		return
	}
	r.opts.Log.Error("finalising an exec spec failed", "outcome", outcome, "error", err)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.finalizeErr = fmt.Errorf("finalise: %w", err)
}

// cleanupContext outlives the caller's context.
func (r *Running) cleanupContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(r.base, r.opts.CleanupTimeout+r.spec.Command.Grace)
}

// terminateNow terminates on the owner's own account; the result is kept.
func (r *Running) terminateNow() {
	ctx, cancel := r.cleanupContext()
	defer cancel()
	result, err := r.Terminate(ctx, 0)
	if result.Outcome != TerminationGone {
		r.opts.Log.Error("processes of a command may be left",
			"outcome", result.Outcome, "pids", result.Pids, "error", err)
	}
}

// awaitTerminations returns when no call of Terminate is under way.
func (r *Running) awaitTerminations() {
	r.mu.Lock()
	idle := r.idle
	if r.terminating == 0 {
		idle = nil
	}
	r.mu.Unlock()
	if idle != nil {
		<-idle
	}
}

// Terminate ends everything the command started: SIGTERM, grace (zero: that of
// the command, or 2 s), SIGKILL until nothing is left. It may be called at any time,
// repeatedly, concurrently, after revocation and after the command has ended.
func (r *Running) Terminate(ctx context.Context, grace time.Duration) (TerminateResult, error) {
	if grace <= 0 {
		grace = r.spec.Command.Grace
	}
	r.mu.Lock()
	if r.terminating++; r.terminating == 1 {
		r.idle = make(chan struct{})
	}
	r.mu.Unlock()

	result, err := settled(r.prepared.Terminate(ctx, grace))

	r.mu.Lock()
	defer r.mu.Unlock()
	r.terminated = &result
	r.terminateErr = nil
	if err != nil {
		r.terminateErr = fmt.Errorf("terminate: %w", err)
	}
	if r.terminating--; r.terminating == 0 {
		close(r.idle)
	}
	return result, err
}

// Interrupt sends SIGINT to the command. It is refused after revocation. Keeps
// SBX-13.
func (r *Running) Interrupt(ctx context.Context) error { return r.prepared.Interrupt(ctx) }

// Signal sends a signal to the command's process group. It is refused after
// revocation.
func (r *Running) Signal(ctx context.Context, signal int) error { return r.proc.Signal(ctx, signal) }

// Resize sets the terminal's size.
func (r *Running) Resize(ctx context.Context, size TTYSize) error { return r.proc.Resize(ctx, size) }

// Pid is the process id inside the sandbox.
func (r *Running) Pid() int { return r.proc.Pid() }

// Marker names the process tree.
func (r *Running) Marker() string { return r.prepared.Marker }

// Done is closed when the command has ended and its exec spec is finalised.
func (r *Running) Done() <-chan struct{} { return r.done }

// Wait returns how the command ended, after its exec spec was finalised. ctx ends
// only the waiting. A lost sandbox is a status with Unknown set.
func (r *Running) Wait(ctx context.Context) (ExitStatus, error) {
	select {
	case <-r.done:
	case <-ctx.Done():
		return ExitStatus{}, ctx.Err()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status, nil
}

// Cause tells why the command was ended from outside: the cause of the context, or
// the failure of a stream (a *[StreamError]). Nil when it ended by itself or by
// Terminate.
func (r *Running) Cause() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cause
}

// Terminated is the result of the last Terminate, nil when there was none.
func (r *Running) Terminated() *TerminateResult {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.terminated
}

// CleanupErr tells what failed while terminating and finalising. It never changes
// the command's own status.
func (r *Running) CleanupErr() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(r.terminateErr, r.finalizeErr)
}

func (r *Running) setCause(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cause = err
}
