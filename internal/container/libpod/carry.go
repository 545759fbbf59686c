package libpod

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"

	"github.com/workberth/workberth/internal/container"
)

// Attach takes the standard input and output of a container that is about to be started.
func (c *Client) Attach(ctx context.Context, id string, stderr io.Writer) (io.ReadWriteCloser, error) {
	// Without keys that detach, whatever is sent is content.
	query := url.Values{"stream": {"true"}, "stdin": {"true"}, "stdout": {"true"}, "stderr": {"true"}, "detachKeys": {""}}
	r, err := onContainer("attach to", http.MethodPost, id, "/attach", query)
	if err != nil {
		return nil, err
	}
	version, err := c.negotiate(ctx, r.op)
	if err != nil {
		return nil, err
	}
	r.path, r.upgrade = "/v"+version+"/libpod"+r.path, true
	// The connection outlives the call, so it does not depend on ctx.
	held, cancel := context.WithCancel(c.open)
	stop := context.AfterFunc(ctx, cancel)
	a, err := c.begin(held, r)
	if !stop() && err == nil {
		err = errors.Join(context.Cause(ctx), a.body.Close())
	}
	if err != nil {
		cancel()
		return nil, c.fault(ctx, r.op, err)
	}
	a.done = cancel
	conn, ok := a.body.(io.ReadWriteCloser)
	if a.status != http.StatusSwitchingProtocols || !ok {
		defer a.Close()
		return nil, a.refusal()
	}
	return container.Attached(&upgraded{conn, cancel}, conn, stderr), nil
}

// upgraded is a connection that was a call's.
type upgraded struct {
	io.WriteCloser
	done func()
}

// Close closes the connection.
func (u *upgraded) Close() error {
	err := u.WriteCloser.Close()
	u.done()
	return err
}

// Unpack unpacks an archive in a directory of a container. What it makes belongs to the container's user.
func (c *Client) Unpack(ctx context.Context, id, dir string, tar io.Reader) error {
	r, err := onContainer("copy to", http.MethodPut, id, "/archive", url.Values{"path": {dir}})
	if err != nil {
		return err
	}
	from := &source{from: tar}
	r.body, r.kind = from, "application/x-tar"
	err = c.get(ctx, r, nil)
	if fault := from.fault(); err != nil && fault != nil && ctx.Err() == nil {
		return fault
	}
	return err
}

// Pack gives a file of a container as an archive.
func (c *Client) Pack(ctx context.Context, id, path string) (io.ReadCloser, error) {
	r, err := onContainer("copy from", http.MethodGet, id, "/archive", url.Values{"path": {path}})
	if err != nil {
		return nil, err
	}
	a, err := c.do(ctx, r)
	if err != nil {
		return nil, err
	}
	return &content{a}, nil
}

// content is an answer to be read as it comes.
type content struct{ a *answer }

func (f *content) Read(p []byte) (int, error) { return f.a.body.Read(p) }
func (f *content) Close() error               { return f.a.Close() }

// onVolume is a call about one volume.
func onVolume(verb, method, volume, rest string) (call, error) {
	r := call{op: verb + " volume " + volume, method: method}
	part, err := name(volume)
	if err != nil {
		return r, &RefusalError{Op: r.op, Text: err.Error(), kind: container.ErrNotFound}
	}
	r.path = "/volumes/" + part + rest
	return r, nil
}

// CreateVolume makes a volume.
func (c *Client) CreateVolume(ctx context.Context, volume string, labels map[string]string) error {
	return c.post(ctx, call{op: "create volume " + volume, path: "/volumes/create"}, VolumeCreateOptions{Name: volume, Labels: labels}, nil)
}

// Volume describes a volume.
func (c *Client) Volume(ctx context.Context, volume string) (container.Volume, error) {
	r, err := onVolume("look up", http.MethodGet, volume, "/json")
	if err != nil {
		return container.Volume{}, err
	}
	var found VolumeConfig
	err = c.get(ctx, r, &found)
	return container.Volume(found), err
}

// Volumes describes the volumes that carry all these labels.
func (c *Client) Volumes(ctx context.Context, labels map[string]string) ([]container.Volume, error) {
	filters := map[string][]string{}
	for name, value := range labels {
		filters["label"] = append(filters["label"], name+"="+value)
	}
	raw, err := json.Marshal(filters)
	if err != nil {
		return nil, err
	}
	var found []VolumeConfig
	r := call{op: "list volumes", method: http.MethodGet, path: "/volumes/json", query: url.Values{"filters": {string(raw)}}}
	if err := c.get(ctx, r, &found); err != nil {
		return nil, err
	}
	out := make([]container.Volume, 0, len(found))
	for _, v := range found {
		// Some versions want any of the labels only.
		all := true
		for name, value := range labels {
			all = all && v.Labels[name] == value
		}
		if all {
			out = append(out, container.Volume(v))
		}
	}
	return out, nil
}

// RemoveVolume removes a volume.
func (c *Client) RemoveVolume(ctx context.Context, volume string) error {
	r, err := onVolume("remove", http.MethodDelete, volume, "")
	if err == nil {
		err = c.get(ctx, r, nil)
	}
	if errors.Is(err, container.ErrNotFound) {
		return nil
	}
	return err
}
