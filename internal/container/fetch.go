package container

import (
	"context"
	"errors"
	"fmt"

	"github.com/workberth/workberth/sandbox"
)

// FetchImage sees that an image is on the engine, and fetches it when it is not. progress is told lines
// for people. Ensure does so by itself; who wants to show how it goes asks beforehand.
func (b *Backend) FetchImage(ctx context.Context, name string, progress func(line string)) error {
	engine, err := b.connect(ctx)
	if err != nil {
		return err
	}
	if _, err := engine.Image(ctx, name); !errors.Is(err, ErrNotFound) {
		return b.imageError(err)
	}
	return b.pull(ctx, engine, name, progress)
}

// pull fetches an image that the engine does not have.
func (b *Backend) pull(ctx context.Context, engine Engine, name string, progress func(line string)) error {
	err := engine.Pull(ctx, name, progress)
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	return &sandbox.Problem{
		Field: "image", What: fmt.Sprintf("image %q", name),
		Rule:   fmt.Sprintf("the %s engine does not have it and cannot fetch it: %v", b.opts.Name, err),
		Remedy: fmt.Sprintf("fetch it by hand (%s pull %s), load it from an archive with --image-archive FILE, or make one: berth image import", b.opts.Name, name),
		Err:    fmt.Errorf("%w: %w", sandbox.ErrUnavailable, err),
	}
}
