package moby

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	dockercontainer "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/workberth/workberth/internal/container"
)

// Options make a Client.
type Options struct {
	// Host is the address of the engine: unix://PATH, tcp://HOST:PORT.
	Host string
	// Extra are further options of Docker's client, for TLS and for other ways to connect.
	Extra []client.Opt
	// Logger may be nil.
	Logger *slog.Logger
}

// Client is a Docker engine. It is safe for concurrent use.
type Client struct {
	api *client.Client
	log *slog.Logger
}

var _ container.Engine = (*Client)(nil)

// New makes a client. Nothing is sent yet; the API version is negotiated with the first call.
func New(opts Options) (*Client, error) {
	log := opts.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	all := append([]client.Opt{client.WithHost(opts.Host)}, opts.Extra...)
	api, err := client.New(all...)
	if err != nil {
		return nil, fmt.Errorf("address %q: %w", opts.Host, err)
	}
	return &Client{api: api, log: log}, nil
}

// Close gives connections back.
func (c *Client) Close() error { return c.api.Close() }

// translate makes an error of Docker's client one of an Engine.
func (c *Client) translate(err error) error {
	var sentinel error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errdefs.IsNotFound(err):
		sentinel = container.ErrNotFound
	case errdefs.IsConflict(err):
		sentinel = container.ErrConflict
	case client.IsErrConnectionFailed(err), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), broken(err):
		sentinel = container.ErrUnreachable
	default:
		return refusal(err)
	}
	return &engineError{sentinel: sentinel, text: message(err), err: err}
}

// refusal is an error in the engine's words that matches nothing.
func refusal(err error) error { return fmt.Errorf("docker: %s", message(err)) }

// engineError is an error with the engine's words, that matches a sentinel.
type engineError struct {
	sentinel error
	text     string
	err      error
}

func (e *engineError) Error() string   { return e.text }
func (e *engineError) Unwrap() []error { return []error{e.sentinel, e.err} }

// maxMessage bounds what an engine may say in an error, in bytes.
const maxMessage = 2 << 10

// message is the engine's own text.
func message(err error) string {
	text := strings.TrimPrefix(err.Error(), "Error response from daemon: ")
	if len(text) > maxMessage {
		text = text[:maxMessage] + "…"
	}
	return text
}

// Create makes a container and starts nothing.
func (c *Client) Create(ctx context.Context, s container.Spec) (container.Created, error) {
	config, host, err := settings(s)
	if err != nil {
		return container.Created{}, err
	}
	image, err := c.api.ImageInspect(ctx, s.Image)
	if err != nil {
		return container.Created{}, c.translate(err)
	}
	if image.Config != nil {
		closeVolumes(host, s, slices.Sorted(maps.Keys(image.Config.Volumes)))
	}
	res, err := c.api.ContainerCreate(ctx, client.ContainerCreateOptions{Name: s.Name, Config: config, HostConfig: host})
	if errdefs.IsNotFound(err) {
		return container.Created{}, refusal(err) // the image is there, so it is something else
	}
	if err != nil {
		return container.Created{}, c.translate(err)
	}
	return container.Created{ID: res.ID, Warnings: res.Warnings}, nil
}

// Start starts a container that does not run.
func (c *Client) Start(ctx context.Context, id string) error {
	_, err := c.api.ContainerStart(ctx, id, client.ContainerStartOptions{})
	switch {
	case errdefs.IsNotModified(err):
		return nil
	case errdefs.IsNotFound(err):
		// What is not found may be something that the container refers to, such as a network.
		if _, e := c.Inspect(ctx, id); e == nil {
			return refusal(err)
		}
	}
	return c.translate(err)
}

// Wait returns when the container does not run.
func (c *Client) Wait(ctx context.Context, id string) (int, error) {
	res := c.api.ContainerWait(ctx, id, client.ContainerWaitOptions{Condition: dockercontainer.WaitConditionNotRunning})
	select {
	case err := <-res.Error:
		return 0, c.translate(err)
	case r := <-res.Result:
		if r.Error != nil && r.Error.Message != "" {
			if strings.Contains(strings.ToLower(r.Error.Message), "no such container") {
				return 0, &engineError{sentinel: container.ErrNotFound, text: r.Error.Message}
			}
			return int(r.StatusCode), nil // Inspect tells it
		}
		return int(r.StatusCode), nil
	}
}

// Kill kills every process of a container. The engine thaws a paused one for that.
func (c *Client) Kill(ctx context.Context, id string) error {
	_, err := c.api.ContainerKill(ctx, id, client.ContainerKillOptions{Signal: "KILL"})
	if err == nil {
		return nil
	}
	found, e := c.Inspect(ctx, id)
	switch {
	case e != nil:
		return e
	case found.Status == container.StatusPaused:
		// Some engines do not deliver the signal to a paused one.
		if _, err := c.api.ContainerUnpause(ctx, id, client.ContainerUnpauseOptions{}); err != nil {
			return c.translate(err)
		}
		_, err = c.api.ContainerKill(ctx, id, client.ContainerKillOptions{Signal: "KILL"})
		return c.translate(err)
	case found.Status != container.StatusRunning:
		return nil
	}
	return c.translate(err)
}

// Pause freezes every process of a container.
func (c *Client) Pause(ctx context.Context, id string) error {
	_, err := c.api.ContainerPause(ctx, id, client.ContainerPauseOptions{})
	return c.translate(err)
}

// Remove kills and removes a container.
func (c *Client) Remove(ctx context.Context, id string) error {
	for {
		_, err := c.api.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		err = c.translate(err)
		switch {
		case err == nil, errors.Is(err, container.ErrNotFound):
			return nil
		case errors.Is(err, container.ErrConflict): // somebody else is removing it
			if err := c.awaitGone(ctx, id); err != nil {
				return err
			}
		default:
			return err
		}
	}
}

// awaitGone waits for the end of a removal that somebody else has begun.
func (c *Client) awaitGone(ctx context.Context, id string) error {
	res := c.api.ContainerWait(ctx, id, client.ContainerWaitOptions{Condition: dockercontainer.WaitConditionRemoved})
	select {
	case err := <-res.Error:
		if err = c.translate(err); errors.Is(err, container.ErrNotFound) {
			return nil
		}
		return err
	case <-res.Result:
		return nil
	}
}

// Inspect describes one container.
func (c *Client) Inspect(ctx context.Context, id string) (container.Container, error) {
	res, err := c.api.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	if err != nil {
		return container.Container{}, c.translate(err)
	}
	in := res.Container
	out := container.Container{
		ID: in.ID, Name: strings.TrimPrefix(in.Name, "/"), ImageID: in.Image, Created: moment(in.Created),
	}
	if in.Config != nil {
		out.Labels = in.Config.Labels
	}
	if s := in.State; s != nil {
		out.Status, out.PID, out.Started = container.Status(s.Status), s.Pid, moment(s.StartedAt)
		if !s.Running {
			out.Exit = container.Exit{Code: s.ExitCode, OOM: s.OOMKilled, Error: s.Error, Time: moment(s.FinishedAt)}
		}
	}
	return out, nil
}

// List describes the containers that carry all these labels.
func (c *Client) List(ctx context.Context, labels map[string]string) ([]container.Container, error) {
	filters := client.Filters{}
	for name, value := range labels {
		filters.Add("label", name+"="+value)
	}
	res, err := c.api.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: filters})
	if err != nil {
		return nil, c.translate(err)
	}
	out := make([]container.Container, 0, len(res.Items))
	for _, s := range res.Items {
		one := container.Container{
			ID: s.ID, ImageID: s.ImageID, Labels: s.Labels, Status: container.Status(s.State), Created: time.Unix(s.Created, 0),
		}
		if len(s.Names) > 0 {
			one.Name = strings.TrimPrefix(s.Names[0], "/")
		}
		out = append(out, one)
	}
	return out, nil
}

// moment reads a time; the zero value where the engine has none.
func moment(text string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || t.Year() <= 1 {
		return time.Time{}
	}
	return t
}
