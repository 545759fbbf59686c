package moby

import (
	"context"
	"errors"
	"io"

	"github.com/moby/moby/client"

	"github.com/workberth/workberth/internal/container"
)

// Attach takes the standard input and output of a container that is about to be started.
func (c *Client) Attach(ctx context.Context, id string, stderr io.Writer) (io.ReadWriteCloser, error) {
	res, err := c.api.ContainerAttach(ctx, id, client.ContainerAttachOptions{Stream: true, Stdin: true, Stdout: true, Stderr: true})
	if err != nil {
		// Docker's client tells no reason then.
		if _, e := c.Inspect(ctx, id); e != nil {
			return nil, e
		}
		return nil, c.translate(err)
	}
	return container.Attached(res.Conn, res.Reader, stderr), nil
}

// Unpack unpacks an archive in a directory of a container.
func (c *Client) Unpack(ctx context.Context, id, dir string, tar io.Reader) error {
	_, err := c.api.CopyToContainer(ctx, id, client.CopyToContainerOptions{DestinationPath: dir, Content: tar})
	return c.translate(err)
}

// Pack gives a file of a container as an archive.
func (c *Client) Pack(ctx context.Context, id, path string) (io.ReadCloser, error) {
	res, err := c.api.CopyFromContainer(ctx, id, client.CopyFromContainerOptions{SourcePath: path})
	if err != nil {
		return nil, c.translate(err)
	}
	return res.Content, nil
}

// CreateVolume makes a volume.
func (c *Client) CreateVolume(ctx context.Context, name string, labels map[string]string) error {
	_, err := c.api.VolumeCreate(ctx, client.VolumeCreateOptions{Name: name, Driver: "local", Labels: labels})
	return c.translate(err)
}

// Volume describes a volume.
func (c *Client) Volume(ctx context.Context, name string) (container.Volume, error) {
	res, err := c.api.VolumeInspect(ctx, name, client.VolumeInspectOptions{})
	if err != nil {
		return container.Volume{}, c.translate(err)
	}
	return container.Volume{Name: res.Volume.Name, Labels: res.Volume.Labels}, nil
}

// Volumes describes the volumes that carry all these labels.
func (c *Client) Volumes(ctx context.Context, labels map[string]string) ([]container.Volume, error) {
	filters := client.Filters{}
	for name, value := range labels {
		filters.Add("label", name+"="+value)
	}
	res, err := c.api.VolumeList(ctx, client.VolumeListOptions{Filters: filters})
	if err != nil {
		return nil, c.translate(err)
	}
	out := make([]container.Volume, 0, len(res.Items))
	for _, v := range res.Items {
		out = append(out, container.Volume{Name: v.Name, Labels: v.Labels})
	}
	return out, nil
}

// RemoveVolume removes a volume.
func (c *Client) RemoveVolume(ctx context.Context, name string) error {
	_, err := c.api.VolumeRemove(ctx, name, client.VolumeRemoveOptions{})
	if err = c.translate(err); errors.Is(err, container.ErrNotFound) {
		return nil
	}
	return err
}
