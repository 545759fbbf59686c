package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Engine is a container engine to compare with, spoken to through its command line and through
// Docker's API, which Podman has too. It is small on purpose: the calls below are what a client of
// the engine makes, and nothing more.
type Engine struct {
	// Name is docker or podman.
	Name string
	// Version tells engine and client.
	Version string

	socket string
	image  string
	path   string // of the program
	http   *http.Client
}

// NewEngine finds the engine of that name behind a Unix socket. image is one that has sh, cat, ls,
// stat, true and sleep; it must be there already. The engine's program is looked up on PATH.
func NewEngine(ctx context.Context, name, socket, image string) (*Engine, error) {
	e := &Engine{Name: name, socket: strings.TrimPrefix(socket, "unix://"), image: image}
	e.http = &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var dialer net.Dialer
			return dialer.DialContext(ctx, "unix", e.socket)
		},
	}}
	var v struct{ Version, APIVersion string }
	if err := e.call(ctx, http.MethodGet, "/version", nil, &v); err != nil {
		return nil, fmt.Errorf("%s at %s: %w", name, e.socket, err)
	}
	if err := e.call(ctx, http.MethodGet, "/images/"+image+"/json", nil, nil); err != nil {
		return nil, fmt.Errorf("%s image %s: %w", name, image, err)
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, fmt.Errorf("there is an engine, but no client: %w", err)
	}
	e.path = path
	_, client, _ := strings.Cut(strings.ToLower(firstLine(ctx, path, "--version")), "version ")
	e.Version = fmt.Sprintf("engine %s, API %s, client %s", v.Version, v.APIVersion, client)
	return e, nil
}

// Address is where the engine is.
func (e *Engine) Address() string { return "unix://" + e.socket }

// Image is the image that its containers are made from.
func (e *Engine) Image() string { return e.image }

// command is a call of the engine's program.
func (e *Engine) command(ctx context.Context, args ...string) *exec.Cmd {
	if e.Name == podman {
		args = append([]string{"--remote"}, args...)
	}
	cmd := exec.CommandContext(ctx, e.path, args...)
	cmd.Env = append(os.Environ(), e.variable())
	return cmd
}

// variable is what programs find the engine by.
func (e *Engine) variable() string {
	if e.Name == podman {
		return "CONTAINER_HOST=" + e.Address()
	}
	return "DOCKER_HOST=" + e.Address()
}

// call makes one API call. out is nil, an io.Writer for the raw body, or what the JSON goes into.
func (e *Engine) call(ctx context.Context, method, path string, in, out any) error {
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
	req, err := http.NewRequestWithContext(ctx, method, "http://engine"+path, body)
	if err != nil {
		return err
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := e.http.Do(req)
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
