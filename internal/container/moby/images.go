package moby

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/client"

	"github.com/workberth/workberth/internal/container"
)

// Image looks an image up on the engine.
func (c *Client) Image(ctx context.Context, name string) (container.Image, error) {
	res, err := c.api.ImageInspect(ctx, name)
	if err != nil {
		return container.Image{}, c.translate(err)
	}
	image := container.Image{
		ID: res.ID, Names: res.RepoTags, OS: res.Os, Arch: res.Architecture, Size: res.Size, Created: moment(res.Created),
	}
	if res.Config != nil {
		image.Env = res.Config.Env
		image.Volumes = slices.Sorted(maps.Keys(res.Config.Volumes))
	}
	return image, nil
}

// Pull fetches an image from its registry.
func (c *Client) Pull(ctx context.Context, name string, progress func(string)) error {
	res, err := c.api.ImagePull(ctx, name, client.ImagePullOptions{})
	if err != nil {
		return c.translate(err)
	}
	defer res.Close()
	return c.follow(ctx, res, progress, nil)
}

// Import makes an image of a root file system.
func (c *Client) Import(ctx context.Context, name string, tar io.Reader) (string, error) {
	res, err := c.api.ImageImport(ctx, client.ImageImportSource{Source: tar, SourceName: "-"}, name, client.ImageImportOptions{})
	if err != nil {
		return "", c.translate(err)
	}
	defer res.Close()
	var id string
	err = c.follow(ctx, res, func(line string) { id = strings.TrimSpace(line) }, nil)
	if err == nil && !strings.HasPrefix(id, "sha256:") {
		err = fmt.Errorf("docker: the engine does not tell the image's id: %q", id)
	}
	return id, err
}

// Load takes the images of an archive.
func (c *Client) Load(ctx context.Context, archive io.Reader) ([]string, error) {
	res, err := c.api.ImageLoad(ctx, archive)
	if err != nil {
		return nil, c.translate(err)
	}
	defer res.Close()
	var names []string
	err = c.follow(ctx, res, nil, func(line string) {
		for _, prefix := range []string{"Loaded image: ", "Loaded image ID: "} {
			if name, ok := strings.CutPrefix(strings.TrimSpace(line), prefix); ok {
				names = append(names, name)
			}
		}
	})
	return names, err
}

// maxLine bounds a line of an engine's report.
const maxLine = 1 << 20

// follow reads an engine's report to its end. An error in it is the result.
func (c *Client) follow(ctx context.Context, r io.Reader, status, stream func(string)) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var m struct {
			Status, ID, Stream, Error string
			ErrorDetail               struct{ Message string }
		}
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			continue // not for us
		}
		switch {
		case m.ErrorDetail.Message != "":
			return fmt.Errorf("docker: %s", message(errors.New(m.ErrorDetail.Message)))
		case m.Error != "":
			return fmt.Errorf("docker: %s", message(errors.New(m.Error)))
		case m.Status != "" && status != nil:
			if m.ID != "" {
				status(m.ID + ": " + m.Status)
			} else {
				status(m.Status)
			}
		case m.Stream != "" && stream != nil:
			stream(m.Stream)
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return c.translate(lines.Err())
}

// maxLogs bounds what is kept of the end of a container's log, in bytes.
const maxLogs = 256 << 10

// Logs returns the last lines that the container's first process wrote.
func (c *Client) Logs(ctx context.Context, id string, lines int, since time.Time) ([]byte, error) {
	opts := client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Tail: fmt.Sprint(lines)}
	if !since.IsZero() {
		opts.Since = since.UTC().Format(time.RFC3339Nano)
	}
	res, err := c.api.ContainerLogs(ctx, id, opts)
	if err != nil {
		return nil, c.translate(err)
	}
	defer res.Close()
	var out tail
	_, err = stdcopy.StdCopy(&out, &out, res)
	return out, c.translate(err)
}

// tail keeps the end of what is written.
type tail []byte

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	*t = append(*t, p...)
	if n := len(*t) - maxLogs; n > 0 {
		*t = append((*t)[:0], (*t)[n:]...)
	}
	return len(p), nil
}
