package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"

	"github.com/workberth/workberth/sandbox"
)

// container is a running container of an engine on a workspace, made without us.
type container struct {
	engine *Engine
	id     string
}

// container starts one that waits, with the directory at /workspace and settings like those of our
// sandboxes. Where there is no engine it returns nil, whose remove does nothing.
func (b *Bench) container(ctx context.Context, workspace string) (*container, error) {
	e := b.Engine
	if e == nil {
		return nil, nil
	}
	var created struct{ ID string }
	if err := e.call(ctx, http.MethodPost, "/containers/create", e.settings(b.Config, workspace), &created); err != nil {
		return nil, err
	}
	c := &container{e, created.ID}
	if err := e.call(ctx, http.MethodPost, "/containers/"+c.id+"/start", nil, nil); err != nil {
		return nil, errors.Join(err, c.remove(ctx))
	}
	return c, nil
}

// settings describe a container to the API that has what a sandbox of the configuration has.
func (e *Engine) settings(c sandbox.Config, workspace string) map[string]any {
	log := map[string]any{"Type": "json-file", "Config": map[string]string{"max-size": "1m", "max-file": "1"}}
	if e.Name == podman {
		log = map[string]any{"Type": "k8s-file"}
	}
	memory := map[string]string{}
	for _, t := range c.Tmpfs {
		memory[t.Path] = fmt.Sprintf("rw,nosuid,nodev,exec,size=%d,mode=1777", t.SizeBytes)
	}
	return map[string]any{
		"Image": e.image, "Entrypoint": []string{"sleep"}, "Cmd": []string{"1000000"}, "WorkingDir": "/workspace",
		"User": fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()), "Healthcheck": map[string]any{"Test": []string{"NONE"}},
		"HostConfig": map[string]any{
			"Init": true, "NetworkMode": c.Network, "IpcMode": "private", "ReadonlyRootfs": c.ReadOnlyRoot,
			"CapDrop": []string{"ALL"}, "SecurityOpt": []string{"no-new-privileges"}, "PidsLimit": c.Limits.Pids,
			"Tmpfs": memory, "Binds": []string{workspace + ":/workspace"}, "LogConfig": log,
		},
	}
}

// remove ends and deletes the container, also after the end of ctx.
func (c *container) remove(ctx context.Context) error {
	if c == nil {
		return nil
	}
	// Podman would otherwise ask it to stop first, for ten seconds; Docker does not know the word.
	return c.engine.call(context.WithoutCancel(ctx), http.MethodDelete, "/containers/"+c.id+"?force=1&v=1&timeout=0", nil, nil)
}

// program is a call of `docker exec` or its like, with standard input unless in is nil.
func (c *container) program(ctx context.Context, in io.Reader, argv ...string) *exec.Cmd {
	args := []string{"exec"}
	if in != nil {
		args = append(args, "-i")
	}
	cmd := c.engine.command(ctx, append(append(args, c.id), argv...)...)
	cmd.Stdin = in
	return cmd
}

// exec runs a command in a container through the API as a client does that wants its output and
// its exit code: create, start, read to the end, inspect.
func (c *container) exec(ctx context.Context, argv ...string) error {
	e := c.engine
	var made struct{ ID string }
	if err := e.call(ctx, http.MethodPost, "/containers/"+c.id+"/exec", map[string]any{
		"AttachStdout": true, "AttachStderr": true, "Cmd": argv,
	}, &made); err != nil {
		return err
	}
	if err := e.call(ctx, http.MethodPost, "/exec/"+made.ID+"/start", map[string]any{"Detach": false, "Tty": false}, io.Discard); err != nil {
		return err
	}
	var state struct {
		Running  bool
		ExitCode int
	}
	if err := e.call(ctx, http.MethodGet, "/exec/"+made.ID+"/json", nil, &state); err != nil {
		return err
	}
	if state.Running || state.ExitCode != 0 {
		return fmt.Errorf("exec %s: running %t, exit code %d", strings.Join(argv, " "), state.Running, state.ExitCode)
	}
	return nil
}

// firstProcess is the process id, on this machine, of a container's first process.
func (e *Engine) firstProcess(ctx context.Context, id string) (int, error) {
	var about struct{ State struct{ Pid int } }
	err := e.call(ctx, http.MethodGet, "/containers/"+id+"/json", nil, &about)
	if err == nil && about.State.Pid == 0 {
		err = fmt.Errorf("container %s does not run", id)
	}
	return about.State.Pid, err
}
