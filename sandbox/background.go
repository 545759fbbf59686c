package sandbox

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// Bounds of Commands, unless CommandsOptions say otherwise.
const (
	DefaultMaxRunning  = 256
	DefaultMaxFinished = 64
)

// CommandID names a background command. It is random, so that an old name never
// means a new command.
type CommandID string

// CommandState is the state of a background command.
type CommandState string

// The states.
const (
	// CommandRunning: it has not ended.
	CommandRunning CommandState = "running"
	// CommandExited: it ended by itself, by exit or signal.
	CommandExited CommandState = "exited"
	// CommandKilled: it was ended by Kill, by the end of its client, or by Close.
	CommandKilled CommandState = "killed"
	// CommandUnknown: nobody knows how it ended.
	CommandUnknown CommandState = "unknown"
)

// Stream names an output stream of a command.
type Stream string

// The streams. A command on a terminal writes to StreamStdout only.
const (
	StreamStdout Stream = "stdout"
	StreamStderr Stream = "stderr"
)

// CommandsOptions direct NewCommands. The zero value is good.
type CommandsOptions struct {
	// Log gets failures of cleaning up. Nil discards.
	Log *slog.Logger
	// Now is the clock of start and end times; nil means time.Now.
	Now func() time.Time
	// MaxRunning refuses more commands at a time; MaxFinished is the number of
	// finished ones kept, the oldest are forgotten first. Zero means the defaults.
	MaxRunning, MaxFinished int
}

// CommandOptions direct Commands.Start.
type CommandOptions struct {
	// Client is the lease: when it ends, the command is terminated. Nil means that
	// the command lives until Close.
	Client context.Context
	// KeepUntilEnd lets the command run on after its client and after Close, until it
	// ends or the sandbox does. It excludes Client.
	KeepUntilEnd bool
	// OutputLimit is the number of bytes kept per stream; zero means
	// DefaultOutputLimit.
	OutputLimit int
	// Stdin opens a standard input for Commands.WriteStdin.
	Stdin bool
}

// CommandInfo describes a background command. The environment is not part of it.
type CommandInfo struct {
	ID    CommandID    `json:"id"`
	Argv  []string     `json:"argv"`
	Dir   string       `json:"dir,omitempty"`
	TTY   bool         `json:"tty,omitempty"`
	State CommandState `json:"state"`
	// Pid is the process id inside.
	Pid int `json:"pid"`
	// KeepUntilEnd as asked for at the start.
	KeepUntilEnd bool `json:"keepUntilEnd,omitempty"`
	// Status is set when the command has ended.
	Status *ExitStatus `json:"status,omitempty"`
	// Terminated is the result of the last attempt to end it, if there was one.
	Terminated *TerminateResult `json:"terminated,omitempty"`
	Started    time.Time        `json:"started"`
	// Ended is zero while it runs.
	Ended time.Time `json:"ended,omitzero"`
	// Stdout and Stderr count the bytes written so far.
	Stdout int64 `json:"stdout"`
	Stderr int64 `json:"stderr"`
	// CleanupErr is a failure of cleaning up; Status is not affected by it.
	CleanupErr string `json:"cleanupError,omitempty"`
}

// Commands manages the background commands of one sandbox. Safe for concurrent use.
type Commands struct {
	sb   Sandbox
	opts CommandsOptions

	mu       sync.Mutex
	closed   bool
	starting int
	entries  map[CommandID]*command
	order    []CommandID // by start
	finished []CommandID // by end
}

// command is one entry.
type command struct {
	running        *Running
	stdin          *stdinPipe // nil without
	stdout, stderr *OutputBuffer
	kill           context.CancelCauseFunc
	settled        chan struct{} // closed when info has its final state

	info CommandInfo // guarded by Commands.mu
}

// errClosed ends commands when Commands are closed.
var errClosed = errors.New("the owner of the background commands has ended")

// NewCommands makes a manager for a sandbox.
func NewCommands(sb Sandbox, opts CommandsOptions) *Commands {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.MaxRunning <= 0 {
		opts.MaxRunning = DefaultMaxRunning
	}
	if opts.MaxFinished <= 0 {
		opts.MaxFinished = DefaultMaxFinished
	}
	opts.Log = discard(opts.Log)
	return &Commands{sb: sb, opts: opts, entries: map[CommandID]*command{}}
}

// Start launches a command in the background. ctx bounds the launch only. Errors are
// those of [Start]; too many running commands are refused.
func (c *Commands) Start(ctx context.Context, cmd Command, env Env, opts CommandOptions) (CommandInfo, error) {
	if opts.OutputLimit < 0 || opts.OutputLimit > MaxOutputLimit {
		return CommandInfo{}, refused("outputLimit", fmt.Sprintf("output limit %d", opts.OutputLimit), fmt.Sprintf("it is between 0 (%d) and %d bytes", DefaultOutputLimit, MaxOutputLimit), "give a sensible number")
	}
	if opts.KeepUntilEnd && opts.Client != nil {
		return CommandInfo{}, refused("keepUntilEnd", "a command that outlives its client", "it cannot have a client", "choose one of the two")
	}
	if err := c.reserve(); err != nil {
		return CommandInfo{}, err
	}
	e := &command{
		stdout: NewOutputBuffer(opts.OutputLimit), stderr: NewOutputBuffer(opts.OutputLimit),
		settled: make(chan struct{}),
	}
	streams := IO{Stdout: e.stdout, Stderr: e.stderr}
	if opts.Stdin {
		e.stdin = newStdinPipe()
		streams.Stdin = e.stdin
	}
	// The command's life ends with its client, not with this call.
	client := opts.Client
	if client == nil {
		client = context.WithoutCancel(ctx)
	}
	life, kill := context.WithCancelCause(client)
	e.kill = kill
	stop := context.AfterFunc(ctx, func() { kill(context.Cause(ctx)) })
	running, err := Start(life, c.sb, cmd, env, streams, StartOptions{Log: c.opts.Log})
	inTime := stop()
	if err != nil {
		kill(nil)
		c.release()
		return CommandInfo{}, err
	}
	e.running = running
	e.info = CommandInfo{
		ID: newCommandID(), Argv: append([]string(nil), cmd.Argv...), Dir: cmd.Dir, TTY: cmd.TTY != nil,
		State: CommandRunning, Pid: running.Pid(), KeepUntilEnd: opts.KeepUntilEnd, Started: c.opts.Now(),
	}
	info, err := c.add(e)
	if err != nil || inTime {
		return info, err
	}
	// The caller is gone and will not learn the name.
	<-e.settled
	_ = c.Remove(info.ID)
	return CommandInfo{}, context.Cause(ctx)
}

// reserve takes a place among the running commands.
func (c *Commands) reserve() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	running := c.starting + len(c.entries) - len(c.finished)
	switch {
	case c.closed:
		return fmt.Errorf("%w: %w", ErrGone, errClosed)
	case running >= c.opts.MaxRunning:
		return refused("", "one more background command", fmt.Sprintf("%d are running, no more are possible at a time", running), "end one of them")
	}
	c.starting++
	return nil
}

func (c *Commands) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.starting--
}

// add enters a running command and watches it. When Commands were closed meanwhile,
// the command is ended: nobody knows its name.
func (c *Commands) add(e *command) (CommandInfo, error) {
	c.mu.Lock()
	c.starting--
	closed := c.closed
	if !closed {
		c.entries[e.info.ID] = e
		c.order = append(c.order, e.info.ID)
	}
	info := e.info
	c.mu.Unlock()
	if closed {
		e.kill(errClosed)
		<-e.running.Done()
		return CommandInfo{}, fmt.Errorf("%w: %w", ErrGone, errClosed)
	}
	go c.watch(e)
	return info, nil
}

// watch settles a command when it has ended.
func (c *Commands) watch(e *command) {
	<-e.running.Done()
	status, _ := e.running.Wait(context.Background()) // it is done
	e.stdout.End()
	e.stderr.End()
	if e.stdin != nil {
		e.stdin.close(true)
	}
	e.kill(nil) // frees the context

	c.mu.Lock()
	defer c.mu.Unlock()
	e.info.Status = &status
	e.info.Ended = c.opts.Now()
	e.info.Terminated = e.running.Terminated()
	switch {
	case status.Unknown:
		e.info.State = CommandUnknown
	case e.info.Terminated != nil:
		e.info.State = CommandKilled
	default:
		e.info.State = CommandExited
	}
	if err := e.running.CleanupErr(); err != nil {
		e.info.CleanupErr = err.Error()
	}
	c.finished = append(c.finished, e.info.ID)
	for len(c.finished) > c.opts.MaxFinished {
		c.forget(c.finished[0])
	}
	close(e.settled)
}

// forget drops an entry; c.mu is held.
func (c *Commands) forget(id CommandID) {
	delete(c.entries, id)
	same := func(other CommandID) bool { return other == id }
	c.order = slices.DeleteFunc(c.order, same)
	c.finished = slices.DeleteFunc(c.finished, same)
}

// Close ends the commands that were not started to be kept, refuses new ones, and
// returns when the ended ones are settled or ctx is over. Finished and kept ones can
// still be looked at. Closing again waits again.
func (c *Commands) Close(ctx context.Context) error {
	c.mu.Lock()
	c.closed = true
	var ending []*command
	for _, e := range c.entries {
		if !e.info.KeepUntilEnd {
			ending = append(ending, e)
		}
	}
	c.mu.Unlock()
	for _, e := range ending {
		e.kill(errClosed)
	}
	for _, e := range ending {
		select {
		case <-e.settled:
		case <-ctx.Done():
			return fmt.Errorf("close background commands: %w", ctx.Err())
		}
	}
	return nil
}

func newCommandID() CommandID {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails
	return CommandID("cmd-" + hex.EncodeToString(b[:]))
}
