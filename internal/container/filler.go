package container

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"

	"github.com/workberth/workberth/sandbox"
)

// filler brings content into a volume of an engine, through a container that never runs.
type filler struct {
	g         *generation
	volume    string
	container string // its name
	labels    map[string]string
}

// allLabels are those of the volume and of the container.
func (f *filler) allLabels() map[string]string {
	all := f.g.b.ours()
	maps.Copy(all, f.labels)
	return all
}

// open makes the container. One that somebody has left is removed before.
func (f *filler) open(ctx context.Context) error {
	c, err := f.g.engine.Inspect(ctx, f.container)
	switch {
	case err == nil && c.Labels[labelState] != f.g.b.state:
		return fmt.Errorf("a container is called %s already, and is not ours", f.container)
	case err == nil:
		err = f.g.engine.Remove(ctx, c.ID)
	case errors.Is(err, ErrNotFound):
		err = nil
	}
	if err != nil {
		return err
	}
	s := f.g.plan.spec
	_, err = f.g.engine.Create(ctx, Spec{
		Name: f.container, Image: s.Image, Labels: f.allLabels(), Argv: s.Argv[:1], User: s.User, Workdir: "/", Network: networkNone,
		KeepID: s.KeepID, Mounts: []Mount{{Target: fillPlace, Volume: f.volume}},
	})
	return err
}

// put fills the volume. mode and owner are those of its root. Docker takes them from an archive for the
// directory above, Podman the owner too, from the place where the volume is mounted for the first time; but
// its version 4 takes the mode only from an archive for the directory itself.
func (f *filler) put(ctx context.Context, mode int64, uid, gid int, content func(*tar.Writer) error) error {
	root := func(name string) func(*tar.Writer) error {
		return func(w *tar.Writer) error {
			return w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeDir, Mode: mode, Uid: uid, Gid: gid})
		}
	}
	if err := f.unpack(ctx, "/", root(path.Base(fillPlace)+"/")); err != nil {
		return err
	}
	return f.unpack(ctx, fillPlace, func(w *tar.Writer) error {
		if err := root("./")(w); err != nil {
			return err
		}
		return content(w)
	})
}

// unpack sends an archive while it is written.
func (f *filler) unpack(ctx context.Context, dir string, content func(*tar.Writer) error) error {
	r, w := io.Pipe()
	written := make(chan error, 1)
	go func() {
		t := tar.NewWriter(w)
		err := content(t)
		if err == nil {
			err = t.Close()
		}
		_ = w.CloseWithError(err)
		written <- err
	}()
	err := f.g.engine.Unpack(ctx, f.container, dir, r)
	_ = r.CloseWithError(errUnpacked)
	if e := <-written; e != nil && !errors.Is(e, errUnpacked) {
		return e // of which the engine's complaint is a consequence
	}
	return err
}

// errUnpacked: the engine reads no further.
var errUnpacked = errors.New("the engine has ended the copy")

// close removes the container. The volume stays.
func (f *filler) close(ctx context.Context) error { return f.g.engine.Remove(ctx, f.container) }

// fillFailure explains what could not be brought to an engine.
func (g *generation) fillFailure(ctx context.Context, what string, err error) error {
	var p *sandbox.Problem
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &p):
		return err
	case errors.Is(err, ErrUnreachable):
		return g.b.unreachable(err)
	}
	return &sandbox.Problem{
		What: what + " could not be copied to the engine's machine", Rule: err.Error(), Remedy: "see: berth doctor",
		Err: fmt.Errorf("%w: %w", sandbox.ErrUnavailable, err),
	}
}
