package bench

import (
	"context"
	"io"
	"os/exec"
)

// rival is a way to run programs on a workspace without us.
type rival struct {
	name string
	// command is a program to start, with standard input unless in is nil.
	command func(ctx context.Context, in io.Reader, argv ...string) *exec.Cmd
	// container is where they run; nil where they have none.
	container *container
}

// rival is a new sandbox for each program.
func (w bwrap) rival(workspace string) rival {
	return rival{name: "plain `bwrap`", command: func(ctx context.Context, in io.Reader, argv ...string) *exec.Cmd {
		cmd := w.command(ctx, workspace, argv...)
		cmd.Stdin = in
		return cmd
	}}
}

// rival is a call of the engine's program for each program.
func (c *container) rival() rival {
	return rival{kindOf(c.engine.Name).program("exec") + " program", c.program, c}
}

// rivals are those that a sandbox on the workspace is compared with, the closest one first: plain
// bwrap for one that is no container, and a container where there is an engine. done removes it.
func (b *Bench) rivals(ctx context.Context, workspace string) (all []rival, done func() error, err error) {
	if !b.kind().contained {
		plain, err := newBwrap()
		if err != nil {
			return nil, nil, err
		}
		all = append(all, plain.rival(workspace))
	}
	c, err := b.container(ctx, workspace)
	if err != nil {
		return nil, nil, err
	}
	if c != nil {
		all = append(all, c.rival())
	}
	return all, func() error { return c.remove(ctx) }, nil
}
