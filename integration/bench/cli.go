package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// cli is the berth program with state and sockets of its own.
type cli struct {
	program string
	env     []string
	// flags say what the sandboxes are.
	flags []string
}

// cli prepares the program; its directories are made below Dir.
func (b *Bench) cli() (*cli, error) {
	if b.Berth == "" {
		return nil, errors.New("there is no berth program: run make build")
	}
	c := &cli{program: b.Berth, flags: []string{"--backend", b.Name}}
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "BERTH_") && !strings.HasPrefix(kv, "XDG_") {
			c.env = append(c.env, kv)
		}
	}
	for name, variable := range map[string]string{
		"run": "BERTH_RUNTIME_DIR", "state": "BERTH_STATE_DIR", "config": "XDG_CONFIG_HOME", "cache": "XDG_CACHE_HOME",
	} {
		dir := filepath.Join(b.Dir, "cli-"+name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		c.env = append(c.env, variable+"="+dir)
	}
	if b.kind().contained {
		c.flags = append(c.flags, "--image", b.Config.Image)
		c.env = append(c.env, b.Engine.variable())
	}
	return c, nil
}

// command is a call of the program.
func (c *cli) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, c.program, args...)
	cmd.Env = c.env
	return cmd
}

// exec runs a command in the sandbox of a session.
func (c *cli) exec(ctx context.Context, workspace, session string, argv ...string) *exec.Cmd {
	args := append([]string{"exec", "--workspace", workspace, "--session", session}, c.flags...)
	return c.command(ctx, append(append(args, "--"), argv...)...)
}

// remove ends every sandbox the program knows, and with it its owner processes.
func (c *cli) remove(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	out, err := c.command(ctx, "sandbox", "ls", "--json").Output()
	if err != nil {
		return fmt.Errorf("berth sandbox ls: %w", err)
	}
	var errs []error
	for line := range strings.Lines(string(out)) {
		id, err := jsonField(line, "id")
		if err == nil {
			err = runQuiet(c.command(ctx, "sandbox", "rm", id))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
