package libpod

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/workberth/workberth/internal/container"
)

// Create makes a container and starts nothing.
func (c *Client) Create(ctx context.Context, s container.Spec) (container.Created, error) {
	op := "create container " + s.Name
	around, done, err := c.surroundings(ctx, op, s)
	if err != nil {
		return container.Created{}, err
	}
	defer done()
	g, err := generator(s, around)
	if err != nil {
		return container.Created{}, err
	}
	var out ContainerCreateResponse
	if err := c.post(ctx, call{op: op, path: "/containers/create"}, g, &out); err != nil {
		return container.Created{}, createFault(err)
	}
	if out.ID == "" {
		return container.Created{}, senseless(op, errNoName)
	}
	for _, w := range out.Warnings {
		c.log.Warn("podman warns about a new container", "container", s.Name, "warning", w)
	}
	return container.Created{ID: out.ID, Warnings: out.Warnings}, nil
}

// surroundings finds what the description of a container depends on. done removes what was made
// for it.
func (c *Client) surroundings(ctx context.Context, op string, s container.Spec) (around surroundings, done func(), err error) {
	done = func() {}
	around.bound = c.bound
	// This also connects, and so finds the limits of the engine.
	if _, err := c.negotiate(ctx, op); err != nil {
		return around, done, err
	}
	if p := c.peer.Load(); p != nil {
		around.peer = *p
	}
	if s.Network == "bridge" {
		info, err := c.info(ctx, op, false)
		if err != nil {
			return around, done, err
		}
		around.network = usualNetwork(info)
	}
	switch {
	case s.Seccomp == nil:
	case *s.Seccomp == "":
		around.seccomp = unconfined
	default:
		around.seccomp, done, err = c.share("seccomp.json", *s.Seccomp)
	}
	return around, done, err
}

// usualNetwork is the mode of the network that containers of an engine are in when nothing else
// is asked for. An ordinary user's engine has a program for it, as it may not make a bridge.
func usualNetwork(info *Info) string {
	switch {
	case !info.Host.Security.Rootless:
		return "bridge"
	case info.Host.RootlessNetworkCmd != "":
		return info.Host.RootlessNetworkCmd
	default:
		return "slirp4netns"
	}
}

// share writes a file that the engine can read, also one of another user. Nobody but this user can
// change it. remove removes it.
func (c *Client) share(name, content string) (path string, remove func(), err error) {
	dir, err := os.MkdirTemp(c.shared, "berth-")
	if err != nil {
		return "", func() {}, err
	}
	remove = func() { os.RemoveAll(dir) }
	path = filepath.Join(dir, name)
	err = errors.Join(os.Chmod(dir, 0o755), os.WriteFile(path, []byte(content), 0o644), os.Chmod(path, 0o644))
	if err != nil {
		remove()
		return "", func() {}, err
	}
	return path, remove, nil
}

// createFault gives refusals their meaning that the status does not tell, and the remedy for the
// one that every fresh installation has.
func createFault(err error) error {
	var refusal *RefusalError
	if !errors.As(err, &refusal) {
		return err
	}
	says := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(refusal.Text, w) {
				return true
			}
		}
		return false
	}
	switch {
	case says("container-init binary"):
		refusal.Text += ": install catatonit on the engine's machine (the Debian package has that name)"
	case says("network not found"):
		refusal.kind = nil // ErrNotFound would mean the image
	case refusal.kind != nil:
	case says("name is already in use", "is already in use by", "container already exists"):
		refusal.kind = container.ErrConflict
	case says("no such image", "image not known"):
		refusal.kind = container.ErrNotFound
	}
	return refusal
}
