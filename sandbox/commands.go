package sandbox

import (
	"context"
	"fmt"
	"time"
)

// find returns an entry. An unknown one is an error that matches ErrNotFound.
func (c *Commands) find(id CommandID) (*command, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[id]
	if !ok {
		return nil, &Problem{
			What: fmt.Sprintf("background command %q", id), Rule: "there is none of that name now",
			Remedy: fmt.Sprintf("list the commands; the last %d finished ones are kept", c.opts.MaxFinished), Err: ErrNotFound,
		}
	}
	return e, nil
}

// describe is the entry as it is now; c.mu is held.
func (e *command) describe() CommandInfo {
	info := e.info
	info.Argv = append([]string(nil), info.Argv...)
	info.Stdout, info.Stderr = e.stdout.Total(), e.stderr.Total()
	if t := e.running.Terminated(); t != nil {
		info.Terminated = t
	}
	return info
}

// List describes all commands, in the order they were started.
func (c *Commands) List() []CommandInfo {
	c.mu.Lock()
	defer c.mu.Unlock()
	infos := make([]CommandInfo, 0, len(c.order))
	for _, id := range c.order {
		infos = append(infos, c.entries[id].describe())
	}
	return infos
}

// Running is the number of commands that have not ended.
func (c *Commands) Running() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.entries) - len(c.finished)
}

// Get describes one command.
func (c *Commands) Get(id CommandID) (CommandInfo, error) {
	e, err := c.find(id)
	if err != nil {
		return CommandInfo{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return e.describe(), nil
}

// Wait returns when the command has ended. ctx ends only the waiting.
func (c *Commands) Wait(ctx context.Context, id CommandID) (CommandInfo, error) {
	e, err := c.find(id)
	if err != nil {
		return CommandInfo{}, err
	}
	select {
	case <-e.settled:
	case <-ctx.Done():
		return CommandInfo{}, ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return e.describe(), nil
}

// buffer returns one output of a command.
func (c *Commands) buffer(id CommandID, stream Stream) (*OutputBuffer, error) {
	e, err := c.find(id)
	if err != nil {
		return nil, err
	}
	switch stream {
	case StreamStdout:
		return e.stdout, nil
	case StreamStderr:
		return e.stderr, nil
	}
	return nil, refused("stream", fmt.Sprintf("stream %q", stream), "a stream is stdout or stderr", "choose one of the two")
}

// Read returns output from the cursor on, at once, at most most bytes; zero means all
// that is kept. See [OutputBuffer.Read].
func (c *Commands) Read(id CommandID, stream Stream, cursor int64, most int) (Chunk, error) {
	b, err := c.buffer(id, stream)
	if err != nil {
		return Chunk{}, err
	}
	return b.Read(cursor, most), nil
}

// Follow is Read, but waits until there is something or the command has ended. When
// ctx ends first it returns its error and an empty chunk with the same cursor.
func (c *Commands) Follow(ctx context.Context, id CommandID, stream Stream, cursor int64, most int) (Chunk, error) {
	b, err := c.buffer(id, stream)
	if err != nil {
		return Chunk{}, err
	}
	return b.Follow(ctx, cursor, most)
}

// WriteStdin hands data to the command's standard input and returns when all of it is
// buffered (64 KiB) or read; n tells how much was when ctx or the command ended first.
func (c *Commands) WriteStdin(ctx context.Context, id CommandID, data []byte) (n int, err error) {
	e, err := c.find(id)
	if err != nil {
		return 0, err
	}
	if e.stdin == nil {
		return 0, refused("stdin", fmt.Sprintf("standard input of command %s", id), "it was started without one", "start it with a standard input")
	}
	return e.stdin.write(ctx, data)
}

// CloseStdin ends the command's standard input after what was written. Again, and on
// a command without one, it does nothing.
func (c *Commands) CloseStdin(id CommandID) error {
	e, err := c.find(id)
	if err == nil && e.stdin != nil {
		e.stdin.close(false)
	}
	return err
}

// Signal sends a signal to the command's process group. Refused after revocation.
func (c *Commands) Signal(ctx context.Context, id CommandID, signal int) error {
	e, err := c.find(id)
	if err != nil {
		return err
	}
	return e.running.Signal(ctx, signal)
}

// Resize sets the size of the command's terminal.
func (c *Commands) Resize(ctx context.Context, id CommandID, size TTYSize) error {
	e, err := c.find(id)
	if err != nil {
		return err
	}
	return e.running.Resize(ctx, size)
}

// Kill ends everything the command started: SIGTERM, grace (zero: 2 s), SIGKILL. On a
// command that has ended it ends what was kept of it. When the result is "gone" the
// command is settled.
func (c *Commands) Kill(ctx context.Context, id CommandID, grace time.Duration) (TerminateResult, error) {
	e, err := c.find(id)
	if err != nil {
		return TerminateResult{Outcome: TerminationUnknown}, err
	}
	result, err := e.running.Terminate(ctx, grace)
	if err == nil && result.Outcome == TerminationGone {
		select {
		case <-e.settled:
		case <-ctx.Done():
		}
	}
	return result, err
}

// Remove forgets a command that has ended. One that runs is refused.
func (c *Commands) Remove(id CommandID) error {
	if _, err := c.find(id); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[id]
	if ok && e.info.State == CommandRunning {
		return refused("", fmt.Sprintf("removing command %s", id), "it is running", "end it first")
	}
	c.forget(id)
	return nil
}
