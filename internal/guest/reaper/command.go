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
	reaper  *child
	pid     int // valid once started

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

func newCommand(r *Runner, spec proc.Spec, pipes *plumbing, streams proc.IO) *command {
	return &command{
		r: r, spec: spec, pipes: pipes, streams: streams,
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
			c.r.reapers.signal(c.reaper.pid, unix.SIGCONT) // the command may have stopped it
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
		c.r.reapers.signal(c.reaper.pid, unix.SIGKILL)
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

// listen acts on what the reaper says, until it is gone.
func (c *command) listen() {
	gone := false
	for !gone {
		kind, payload, fds, err := c.reaper.conn.recv(maxReply)
		closeFDs(fds)
		if err == nil {
			gone, err = c.hear(kind, payload)
		}
		if err != nil {
			break
		}
	}
	c.mu.Lock()
	detached := c.detached
	c.mu.Unlock()
	_ = c.reaper.conn.Close()
	switch {
	case detached:
		c.setStatus(proc.Status{Unknown: true, Code: unknownCode, Reason: "the helper ended before the command did"})
		c.finish(proc.TerminateResult{Outcome: proc.Unknown})
		return
	case gone:
		c.finish(proc.TerminateResult{Outcome: proc.Gone})
		c.r.reapers.signal(c.reaper.pid, unix.SIGKILL) // it has nothing left to do
		c.r.reapers.bury(c.reaper.pid)
	default:
		c.lost()
	}
}

// hear acts on one message. gone means that it was the last one.
func (c *command) hear(kind message, payload []byte) (gone bool, err error) {
	switch kind {
	case msgForking:
		c.mu.Lock()
		c.forking = true
		c.mu.Unlock()
	case msgStarted:
		pid, err := decodeNumber(payload)
		if err != nil {
			return false, err
		}
		if pid <= 0 || !c.begin(pid) {
			return false, fmt.Errorf("unexpected start of process %d", pid)
		}
	case msgFailed:
		f, err := decodeFailure(payload)
		if err != nil {
			return false, err
		}
		if f.what == "" {
			f.what = c.spec.Argv[0]
		}
		c.tell(f.err())
		return true, nil
	case msgExited:
		s, err := decodeStatus(payload)
		if err != nil {
			return false, err
		}
		c.setStatus(s)
	case msgTerminated:
		t, err := decodeTerminated(payload)
		if err != nil {
			return false, err
		}
		c.mu.Lock()
		reply := c.requests[t.id]
		delete(c.requests, t.id)
		c.mu.Unlock()
		if reply != nil {
			reply <- t.result
		}
	case msgGone:
		return true, nil
	default:
		return false, fmt.Errorf("unknown message %d", kind)
	}
	return false, nil
}

// begin takes note that the command runs; it does so once.
func (c *command) begin(pid int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pid != 0 {
		return false
	}
	c.pid, c.running = pid, true
	c.tell(nil)
	return true
}

// tell tells who waits for the start what came of it; the first word counts.
func (c *command) tell(err error) {
	select {
	case c.started <- err:
	default:
	}
}

// lost is what happens when the reaper ends without a word: somebody killed it.
// Its descendants are this process's orphans now, or nobody's.
func (c *command) lost() {
	c.r.reapers.signal(c.reaper.pid, unix.SIGKILL) // if it only hung up
	end := c.r.reapers.bury(c.reaper.pid)
	reason := obituary(end)
	result := c.hunt(context.Background())
	switch result.Outcome {
	case proc.Gone:
		reason += "; its processes were ended"
	case proc.Survivors:
		reason += fmt.Sprintf("; processes are left: %v", result.Pids)
	default:
		reason += "; what became of its processes is not known"
	}
	c.r.log.Warn("reaper lost", "pid", c.pid, "reason", reason)
	// A command that killed its reaper before that could say so was started; one
	// whose reaper died earlier was not.
	c.mu.Lock()
	forking := c.forking
	c.mu.Unlock()
	switch {
	case forking:
		c.tell(nil)
	case end.Exited() && end.ExitStatus() == exitRuntime:
		c.tell(&proc.StartError{Reason: proc.LimitReached, What: c.spec.Argv[0], Err: errors.New("no room for its reaper's threads or memory")})
	default:
		c.tell(&proc.StartError{Reason: proc.Internal, What: c.spec.Argv[0], Err: errors.New(reason)})
	}
	c.setStatus(proc.Status{Unknown: true, Code: unknownCode, Reason: reason})
	c.finish(result)
}

// hunt ends what a killed reaper left behind.
func (c *command) hunt(ctx context.Context) proc.TerminateResult {
	if c.r.orphans != nil {
		return c.r.orphans.clear()
	}
	if c.spec.Marker == "" {
		return proc.TerminateResult{Outcome: proc.Unknown}
	}
	s := search{carried: []string{proc.MarkerVar + "=" + c.spec.Marker}, own: c.r.reapers}
	result, err := s.end(ctx, -1)
	if err != nil {
		return proc.TerminateResult{Outcome: proc.Unknown}
	}
	return result
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
	c.detached = true
	c.mu.Unlock()
	_ = c.reaper.conn.Close()
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
	if err := c.reaper.conn.send(msgSignal, appendNumber(nil, signal)); err != nil {
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
