package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Docker is an engine to compare with, spoken to through its command line and its API. It is
// small on purpose: the calls below are what a client of the engine makes, and nothing more.
type Docker struct {
	// Version tells engine and client.
	Version string

	socket string
	image  string
	cli    string // path of the docker program
	http   *http.Client
}

// NewDocker finds the engine behind a Unix socket. image is one that has sh, cat, ls, stat, true
// and sleep; it must be there already. The docker program is looked up on PATH.
func NewDocker(ctx context.Context, socket, image string) (*Docker, error) {
	d := &Docker{socket: strings.TrimPrefix(socket, "unix://"), image: image}
	d.http = &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var dialer net.Dialer
			return dialer.DialContext(ctx, "unix", d.socket)
		},
	}}
	var v struct{ Version, APIVersion string }
	if err := d.call(ctx, http.MethodGet, "/version", nil, &v); err != nil {
		return nil, fmt.Errorf("docker at %s: %w", d.socket, err)
	}
	if err := d.call(ctx, http.MethodGet, "/images/"+image+"/json", nil, nil); err != nil {
		return nil, fmt.Errorf("docker image %s: %w", image, err)
	}
	d.Version = "engine " + v.Version + ", API " + v.APIVersion
	cli, err := exec.LookPath("docker")
	if err != nil {
		return nil, fmt.Errorf("there is an engine, but no client: %w", err)
	}
	d.cli = cli
	d.Version += ", client " + strings.TrimSuffix(strings.TrimPrefix(firstLine(ctx, cli, "--version"), "Docker version "), ",")
	return d, nil
}

// command is a call of the docker program.
func (d *Docker) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, d.cli, args...)
	cmd.Env = append(os.Environ(), "DOCKER_HOST=unix://"+d.socket)
	return cmd
}

// container is a running container on a workspace.
type container struct {
	engine *Docker
	id     string
}

// container starts one that waits, with the directory at /workspace. Where there is no engine it
// returns nil, whose remove does nothing.
func (b *Bench) container(ctx context.Context, workspace string) (*container, error) {
	d := b.Docker
	if d == nil {
		return nil, nil
	}
	var created struct{ ID string }
	err := d.call(ctx, http.MethodPost, "/containers/create", map[string]any{
		"Image": d.image, "Cmd": []string{"sleep", "1000000"}, "WorkingDir": "/workspace",
		"HostConfig": map[string]any{
			"NetworkMode": "none", "Init": true, "Binds": []string{workspace + ":/workspace"},
		},
	}, &created)
	if err != nil {
		return nil, err
	}
	c := &container{d, created.ID}
	if err := d.call(ctx, http.MethodPost, "/containers/"+c.id+"/start", nil, nil); err != nil {
		return nil, errors.Join(err, c.remove(ctx))
	}
	return c, nil
}

// remove ends and deletes the container, also after the end of ctx.
func (c *container) remove(ctx context.Context) error {
	if c == nil {
		return nil
	}
	return c.engine.call(context.WithoutCancel(ctx), http.MethodDelete, "/containers/"+c.id+"?force=1&v=1", nil, nil)
}

// program is a call of `docker exec`.
func (c *container) program(ctx context.Context, argv ...string) *exec.Cmd {
	return c.engine.command(ctx, append([]string{"exec", c.id}, argv...)...)
}

// programWithInput is a call of `docker exec -i`.
func (c *container) programWithInput(ctx context.Context, in io.Reader, argv ...string) *exec.Cmd {
	cmd := c.engine.command(ctx, append([]string{"exec", "-i", c.id}, argv...)...)
	cmd.Stdin = in
	return cmd
}

// exec runs a command in a container through the API as a client does that wants its output and
// its exit code: create, start, read to the end, inspect.
func (c *container) exec(ctx context.Context, argv ...string) error {
	d := c.engine
	var made struct{ ID string }
	if err := d.call(ctx, http.MethodPost, "/containers/"+c.id+"/exec", map[string]any{
		"AttachStdout": true, "AttachStderr": true, "Cmd": argv,
	}, &made); err != nil {
		return err
	}
	if err := d.call(ctx, http.MethodPost, "/exec/"+made.ID+"/start", map[string]any{"Detach": false, "Tty": false}, io.Discard); err != nil {
		return err
	}
	var state struct {
		Running  bool
		ExitCode int
	}
	if err := d.call(ctx, http.MethodGet, "/exec/"+made.ID+"/json", nil, &state); err != nil {
		return err
	}
	if state.Running || state.ExitCode != 0 {
		return fmt.Errorf("docker exec %s: running %t, exit code %d", strings.Join(argv, " "), state.Running, state.ExitCode)
	}
	return nil
}

// call makes one API call. out is nil, an io.Writer for the raw body, or what the JSON goes into.
func (d *Docker) call(ctx context.Context, method, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://docker"+path, body)
	if err != nil {
		return err
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := d.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode >= 300 {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 1000))
		return fmt.Errorf("%s %s: %s: %s", method, path, res.Status, bytes.TrimSpace(text))
	}
	switch out := out.(type) {
	case nil:
		_, err = io.Copy(io.Discard, res.Body)
	case io.Writer:
		_, err = io.Copy(out, res.Body)
	default:
		err = json.NewDecoder(res.Body).Decode(out)
	}
	return err
}
