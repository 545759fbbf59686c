package libpod

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/workberth/workberth/internal/container"
)

// maxProgress bounds a line of the answer to a pull, in bytes.
const maxProgress = 256 << 10

// Image looks an image up on the engine.
func (c *Client) Image(ctx context.Context, image string) (container.Image, error) {
	op := "look up image " + image
	part, err := name(image)
	if err != nil {
		return container.Image{}, &RefusalError{Op: op, Text: err.Error(), kind: container.ErrNotFound}
	}
	var found ImageInspectReport
	if err := c.get(ctx, call{op: op, method: http.MethodGet, path: "/images/" + part + "/json"}, &found); err != nil {
		return container.Image{}, err
	}
	if found.ID == "" {
		return container.Image{}, senseless(op, errNoName)
	}
	return container.Image{
		ID: found.ID, Names: found.RepoTags, Env: found.Config.Env, OS: found.Os, Arch: found.Architecture,
		Size: found.Size, Created: known(found.Created),
	}, nil
}

// Pull fetches an image from its registry.
func (c *Client) Pull(ctx context.Context, image string, progress func(line string)) error {
	op := "pull image " + image
	a, err := c.do(ctx, call{
		op: op, method: http.MethodPost, path: "/images/pull", query: url.Values{"reference": {image}},
	})
	if err != nil {
		return err
	}
	defer a.Close()
	err = readPull(a.body, progress)
	var said *pullError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &said) && said.engine:
		return &RefusalError{Op: op, Status: a.status, Text: readable(said.text)}
	case errors.As(err, &said):
		return senseless(op, err)
	default:
		return c.fault(a.ctx, op, err)
	}
}

// pullError is an error inside the answer to a pull: the engine's own, or ours about it.
type pullError struct {
	text   string
	engine bool
}

func (e *pullError) Error() string { return e.text }

// readPull follows a pull to its end, which is the id of an image.
func readPull(from io.Reader, progress func(line string)) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxProgress)
	var failed, complete bool
	var failure string
	for lines.Scan() {
		if len(lines.Bytes()) == 0 {
			continue
		}
		var report ImagePullReport
		if err := json.Unmarshal(lines.Bytes(), &report); err != nil {
			if lines.Err() != nil { // the line was cut off
				break
			}
			return &pullError{text: err.Error()}
		}
		switch {
		case report.Error != "":
			failed, failure = true, report.Error
		case report.ID != "" || len(report.Images) > 0:
			complete = true
		default:
			tell(progress, report.Stream)
		}
	}
	switch err := lines.Err(); {
	case failed:
		return &pullError{text: failure, engine: true}
	case errors.Is(err, bufio.ErrTooLong):
		return &pullError{text: err.Error()}
	case err != nil:
		return err
	case !complete:
		return io.ErrUnexpectedEOF
	}
	return nil
}

// tell hands text on in lines.
func tell(progress func(line string), text string) {
	if progress == nil {
		return
	}
	for line := range strings.Lines(text) {
		if line = readable(line); line != "" {
			progress(line)
		}
	}
}

// Import makes an image of a root file system in a tar archive.
func (c *Client) Import(ctx context.Context, image string, tar io.Reader) (string, error) {
	var made ImageImportReport
	op := "import image " + image
	err := c.upload(ctx, call{
		op: op, path: "/images/import", query: url.Values{"reference": {image}},
	}, tar, &made)
	if err != nil {
		return "", err
	}
	if made.ID == "" {
		return "", senseless(op, errNoName)
	}
	// Everywhere else it has no prefix.
	return strings.TrimPrefix(made.ID, "sha256:"), nil
}

// Load takes the images of an archive.
func (c *Client) Load(ctx context.Context, archive io.Reader) ([]string, error) {
	var loaded ImageLoadReport
	op := "load images"
	err := c.upload(ctx, call{op: op, path: "/images/load"}, archive, &loaded)
	if err != nil {
		return nil, err
	}
	if len(loaded.Names) == 0 {
		return nil, senseless(op, errNoName)
	}
	return loaded.Names, nil
}

// upload makes a call that sends an archive. An archive that cannot be read is not the engine's
// fault.
func (c *Client) upload(ctx context.Context, r call, archive io.Reader, out any) error {
	from := &source{from: archive}
	r.method, r.body, r.kind = http.MethodPost, from, "application/x-tar"
	err := c.get(ctx, r, out)
	if fault := from.fault(); err != nil && fault != nil && ctx.Err() == nil {
		return fmt.Errorf("%s: read the archive: %w", r.op, fault)
	}
	return err
}

// source remembers why a reader failed, and keeps what it reads from being closed.
type source struct {
	from io.Reader
	mu   sync.Mutex
	err  error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.mu.Lock()
		s.err = err
		s.mu.Unlock()
	}
	return n, err
}

// fault returns why reading failed, or nil.
func (s *source) fault() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}
