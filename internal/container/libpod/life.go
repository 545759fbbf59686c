package libpod

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/workberth/workberth/internal/container"
)

// waitInterval is how often an engine that must poll looks whether a container has ended.
const waitInterval = "100ms"

// onContainer is a call about one container.
func onContainer(verb, method, id, rest string, query url.Values) (call, error) {
	r := call{op: verb + " container " + id, method: method, query: query}
	part, err := name(id)
	if err != nil {
		return r, &RefusalError{Op: r.op, Text: err.Error(), kind: container.ErrNotFound}
	}
	r.path = "/containers/" + part + rest
	return r, nil
}

// plain makes a call whose answer tells nothing more.
func (c *Client) plain(ctx context.Context, verb, method, id, rest string, query url.Values) error {
	r, err := onContainer(verb, method, id, rest, query)
	if err != nil {
		return err
	}
	return c.get(ctx, r, nil)
}

// Start starts a container that does not run.
func (c *Client) Start(ctx context.Context, id string) error {
	return c.plain(ctx, "start", http.MethodPost, id, "/start", nil)
}

// Wait returns when the container does not run, with the exit code of its last run.
func (c *Client) Wait(ctx context.Context, id string) (int, error) {
	query := url.Values{"interval": {waitInterval}, "condition": {"created", "exited", "stopped"}}
	r, err := onContainer("wait for", http.MethodPost, id, "/wait", query)
	if err != nil {
		return 0, err
	}
	code, err := c.wait(ctx, r)
	if ctx.Err() != nil || errors.Is(err, container.ErrUnreachable) || errors.Is(err, container.ErrNotFound) {
		return code, err
	}
	// What the engine answers for a container that is removed meanwhile depends on who is faster.
	found, gone := c.inspect(ctx, r.op, id)
	switch {
	case gone != nil:
		return 0, gone
	case err != nil:
		return 0, err
	case status(found.State.Status) == container.StatusCreated:
		return 0, nil // it never ran
	case status(found.State.Status) == container.StatusExited:
		return found.State.ExitCode, nil
	default:
		return code, nil
	}
}

// wait makes the call and reads the number that comes back.
func (c *Client) wait(ctx context.Context, r call) (int, error) {
	a, err := c.do(ctx, r)
	if err != nil {
		return 0, err
	}
	defer a.Close()
	raw, err := a.read(maxRefusal)
	if err != nil {
		return 0, err
	}
	code, err := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 32)
	if err != nil {
		return 0, senseless(r.op, err)
	}
	return int(code), nil
}

// Kill kills every process of a container, also of a paused one.
func (c *Client) Kill(ctx context.Context, id string) error {
	const verb = "kill"
	found, err := c.inspect(ctx, verb+" container "+id, id)
	if err != nil {
		return err
	}
	switch status(found.State.Status) {
	case container.StatusRunning:
	case container.StatusPaused:
		// A frozen control group may keep its dead until it thaws, and some versions wait for them.
		if err := ended(c.plain(ctx, verb, http.MethodPost, id, "/unpause", nil)); err != nil {
			return err
		}
	default:
		return nil
	}
	rest, query := "/kill", url.Values{"signal": {"KILL"}}
	if found.HostConfig.PidMode == "host" {
		// Its processes do not end with the first one. Only stopping finds them all.
		rest, query = "/stop", url.Values{"timeout": {"0"}}
	}
	err = c.plain(ctx, verb, http.MethodPost, id, rest, query)
	if errors.Is(err, container.ErrConflict) {
		return nil // it has ended
	}
	return err
}

// ended drops the refusal to continue a container that is not paused, or no longer.
func ended(err error) error {
	var refusal *RefusalError
	if errors.As(err, &refusal) {
		return nil
	}
	return err
}

// Remove kills and removes a container with its anonymous volumes.
func (c *Client) Remove(ctx context.Context, id string) error {
	// Without a timeout of zero the container would be asked to stop first, for ten seconds.
	query := url.Values{"force": {"true"}, "v": {"true"}, "timeout": {"0"}}
	r, err := onContainer("remove", http.MethodDelete, id, "", query)
	if err == nil {
		err = c.remove(ctx, r)
	}
	if errors.Is(err, container.ErrNotFound) {
		return nil
	}
	return err
}

// remove makes the call. Some versions answer with a list of what was removed, and an error in it.
func (c *Client) remove(ctx context.Context, r call) error {
	a, err := c.do(ctx, r)
	if err != nil {
		return err
	}
	defer a.Close()
	raw, err := a.read(maxAnswer)
	if err != nil {
		return err
	}
	var reports []struct {
		Err json.RawMessage `json:"Err"`
	}
	if json.Unmarshal(raw, &reports) != nil {
		return nil // nothing, in older versions
	}
	for _, report := range reports {
		if text := string(report.Err); text != "" && text != "null" {
			return &RefusalError{Op: r.op, Status: http.StatusOK, Text: readable(text)}
		}
	}
	return nil
}
