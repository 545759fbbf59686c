//go:build linux

package reaper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/workberth/workberth/internal/guest/proc"
)

// unknownCode is the exit code of a command nobody knows the end of: not success.
const unknownCode = 255

// command is a started command. It implements proc.Process.
type command struct {
	r       *Runner
	spec    proc.Spec
	pipes   *plumbing
	streams proc.IO
	reaper  *child // this command's until over is closed
	turn    uint64 // which of the reaper's commands this is
	large   bool   // so large an order that its reaper is not worth keeping
	pid     int    // valid once started

	started chan error    // gets one value
	ended   chan struct{} // closed once status is valid
	done    chan struct{} // closed once everything the direct child wrote is delivered too
	over    chan struct{} // closed once the tree is over

	mu       sync.Mutex
	forking  bool // something may have run
	running  bool // between start and end of the direct child
	status   proc.Status
	result   proc.TerminateResult // valid once over
	stdinErr error
	detached bool
	nextID   uint64
	requests map[uint64]chan<- proc.TerminateResult
}

var _ proc.Process = (*command)(nil)

// largeOrder is how many bytes of arguments and environment make a reaper so much
// larger than a new one that it is not worth keeping.
const largeOrder = 1 << 20

func newCommand(r *Runner, spec proc.Spec, pipes *plumbing, streams proc.IO) *command {
	size := 0
	for _, list := range [][]string{spec.Argv, spec.Env} {
		for _, s := range list {
			size += len(s)
		}
	}
	return &command{
		large: size > largeOrder,
		r:     r, spec: spec, pipes: pipes, streams: streams,
		started: make(chan error, 1), ended: make(chan struct{}), done: make(chan struct{}), over: make(chan struct{}),
		requests: make(map[uint64]chan<- proc.TerminateResult),
	}
}

// carries reports whether the command was started with this variable.
func (c *command) carries(variable string) bool { return slices.Contains(c.spec.Env, variable) }

// awaitStart returns once the command runs. An error means that nothing does.
func (c *command) awaitStart(ctx context.Context) error {
	timer := time.NewTimer(startBound)
	defer timer.Stop()
	nudge := time.NewTicker(startNudge)
	defer nudge.Stop()
	var err error
	for err == nil {
		select {
		case err := <-c.started:
			if err == nil {
				c.flow()
				return nil
			}
			c.pipes.closeOurs()
			return err
		case <-nudge.C:
			c.signalReaper(unix.SIGCONT) // the command may have stopped it
		case <-ctx.Done():
			err = ctx.Err()
		case <-timer.C:
			err = fmt.Errorf("its reaper did not start it within %v", startBound)
		}
	}
	c.abandon()
	return &proc.StartError{Reason: proc.Internal, What: c.spec.Argv[0], Err: err}
}

// abandon ends a command whose start failed half-way.
func (c *command) abandon() {
	ctx, cancel := context.WithTimeout(context.Background(), killBound)
	defer cancel()
	if _, err := c.Terminate(ctx, -1); err != nil {
		c.signalReaper(unix.SIGKILL)
	}
	c.pipes.closeOurs()
}

// flow begins to move the streams.
func (c *command) flow() {
	for _, o := range c.pipes.outputs {
		c.r.work.Go(o.pump)
	}
	c.r.work.Go(c.settle)
	in := c.pipes.stdin
	switch {
	case in == nil:
	case c.spec.Stdin && c.streams.Stdin != nil:
		go c.feed() // not in work: its reader may never return
	case c.spec.TTY != nil:
		sendEnd(in, false)
	default:
		_ = in.Close()
	}
}

// feed copies standard input. If its reader fails the command is ended: it would
// act on a part of what it was to get.
func (c *command) feed() {
	err := feed(c.pipes.stdin, c.streams.Stdin, c.spec.TTY != nil)
	if err == nil {
		return
	}
	select {
	case <-c.ended:
		return
	default:
	}
	c.mu.Lock()
	c.stdinErr = fmt.Errorf("reading standard input: %w", err)
	c.mu.Unlock()
	if _, err := c.Terminate(context.Background(), c.spec.Grace); err != nil {
		c.r.log.Warn("command without its input was not ended", "pid", c.pid, "error", err)
	}
}

// settle brings the streams to their ends.
func (c *command) settle() {
	<-c.ended
	if c.spec.TTY == nil && c.pipes.stdin != nil {
		_ = c.pipes.stdin.Close()
	}
	for _, o := range c.pipes.outputs {
		o.childEnded()
	}
	for _, o := range c.pipes.outputs {
		<-o.delivered
	}
	close(c.done)
	<-c.over
	c.pipes.closeOurs()
}

// setStatus tells how the direct child ended; the first word counts.
func (c *command) setStatus(s proc.Status) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.ended:
		return
	default:
	}
	c.status, c.running = s, false
	close(c.ended)
}

// finish tells that the tree is over.
func (c *command) finish(result proc.TerminateResult) {
	c.r.forget(c)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.result = result
	close(c.over)
}

// detach lets go of a tree: its reaper sees the end of the connection and keeps or
// ends it.
func (c *command) detach() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.isOver() {
		c.detached = true
		_ = c.reaper.conn.Close()
	}
}

// isOver reports whether the tree is over, and the reaper no longer this
// command's. c.mu is held.
func (c *command) isOver() bool {
	select {
	case <-c.over:
		return true
	default:
		return false
	}
}

// signalReaper sends a signal to the reaper while it is this command's.
func (c *command) signalReaper(sig unix.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.isOver() {
		c.r.reapers.signal(c.reaper.pid, sig)
	}
}

// Pid returns the process id inside the environment; zero if the command killed its
// reaper before that could tell.
func (c *command) Pid() int { return c.pid }

// Wait waits for the direct child and its output; see [proc.Process]. The error is
// that of ctx, of a writer of output, or of the reader of standard input.
func (c *command) Wait(ctx context.Context) (proc.Status, error) {
	select {
	case <-c.done:
	case <-ctx.Done():
		return proc.Status{}, ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	errs := []error{c.stdinErr}
	for _, o := range c.pipes.outputs {
		if o.err != nil {
			errs = append(errs, fmt.Errorf("delivering %s: %w", o.f.Name(), o.err))
		}
	}
	return c.status, errors.Join(errs...)
}

// Signal sends a signal to the direct child's process group. A command that has
// ended is an error that matches ESRCH.
func (c *command) Signal(ctx context.Context, signal int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if signal < 1 || signal >= signalCount {
		return fmt.Errorf("signal %d: %w", signal, unix.EINVAL)
	}
	c.mu.Lock()
	running := c.running
	c.mu.Unlock()
	if !running {
		return fmt.Errorf("the command has ended: %w", unix.ESRCH)
	}
	if err := c.reaper.conn.send(msgSignal, signalOrder{c.turn, signal}.append(nil)); err != nil {
		return fmt.Errorf("asking the reaper: %w", err)
	}
	return nil
}

// Resize sets the terminal's size. Without a terminal it is an error that matches
// ENOTTY.
func (c *command) Resize(ctx context.Context, size proc.Size) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.pipes.terminal == nil {
		return fmt.Errorf("the command has no terminal: %w", unix.ENOTTY)
	}
	raw, err := c.pipes.terminal.SyscallConn()
	if err != nil {
		return nil // closed: the command is over
	}
	var serr error
	if err := raw.Control(func(fd uintptr) { serr = setSize(int(fd), size) }); err != nil {
		return nil
	}
	return serr
}
