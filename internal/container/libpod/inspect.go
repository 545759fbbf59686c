package libpod

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/workberth/workberth/internal/container"
)

// Inspect describes one container, by id or name.
func (c *Client) Inspect(ctx context.Context, id string) (container.Container, error) {
	found, err := c.inspect(ctx, "inspect container "+id, id)
	if err != nil {
		return container.Container{}, err
	}
	out := container.Container{
		ID: found.ID, Name: found.Name, ImageID: found.Image, Labels: found.Config.Labels,
		Status: status(found.State.Status), Started: known(found.State.StartedAt), Created: known(found.Created),
		PID: found.State.Pid,
	}
	switch out.Status {
	case container.StatusExited, container.StatusDead:
		out.Exit = container.Exit{Code: found.State.ExitCode, OOM: found.State.OOMKilled, Time: known(found.State.FinishedAt)}
		fallthrough
	case container.StatusCreated:
		out.Exit.Error = startFault(found.State.Error)
	default:
	}
	return out, nil
}

// startFault is why a container could not be started. To start one that runs is no fault, though
// Podman 5 remembers it as one.
func startFault(text string) string {
	if strings.HasSuffix(text, "container is running") {
		return ""
	}
	return readable(text)
}

// inspect describes a container in Podman's words.
func (c *Client) inspect(ctx context.Context, op, id string) (*InspectContainerData, error) {
	r, err := onContainer("inspect", http.MethodGet, id, "/json", nil)
	if err != nil {
		return nil, err
	}
	r.op = op
	var found InspectContainerData
	if err := c.get(ctx, r, &found); err != nil {
		return nil, err
	}
	if found.ID == "" {
		return nil, senseless(op, errNoName)
	}
	return &found, nil
}

// List describes the containers that carry all these labels, running or not.
func (c *Client) List(ctx context.Context, labels map[string]string) ([]container.Container, error) {
	wanted := make([]string, 0, len(labels))
	for name, value := range labels {
		wanted = append(wanted, name+"="+value)
	}
	filters, err := json.Marshal(map[string][]string{"label": wanted})
	if err != nil {
		return nil, err
	}
	var found []ListContainer
	err = c.get(ctx, call{
		op: "list containers", method: http.MethodGet, path: "/containers/json",
		query: url.Values{"all": {"true"}, "filters": {string(filters)}},
	}, &found)
	if err != nil {
		return nil, err
	}
	var out []container.Container
	for _, f := range found {
		if !carries(f.Labels, labels) {
			continue
		}
		one := container.Container{
			ID: f.ID, ImageID: f.ImageID, Labels: f.Labels, Status: status(f.State), Created: known(f.Created),
		}
		if len(f.Names) > 0 {
			one.Name = f.Names[0]
		}
		if f.StartedAt > 0 {
			one.Started = time.Unix(f.StartedAt, 0)
		}
		if one.Status == container.StatusRunning || one.Status == container.StatusPaused {
			one.PID = f.Pid
		}
		out = append(out, one)
	}
	return out, nil
}

// carries reports whether labels has all the wanted ones. The engine's filter is looser: an empty
// value matches any.
func carries(labels, wanted map[string]string) bool {
	for name, value := range wanted {
		if got, ok := labels[name]; !ok || got != value {
			return false
		}
	}
	return true
}

// known makes the times that stand for none zero.
func known(t time.Time) time.Time {
	if t.Year() <= 1970 {
		return time.Time{}
	}
	return t
}

// status maps Podman's word for what a container is doing.
func status(word string) container.Status {
	switch word {
	case "created", "configured", "initialized":
		return container.StatusCreated
	case "running", "stopping":
		return container.StatusRunning
	case "paused":
		return container.StatusPaused
	case "removing":
		return container.StatusRemoving
	case "exited", "stopped":
		return container.StatusExited
	default:
		return container.StatusDead
	}
}
