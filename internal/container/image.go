package container

import (
	"context"
	"errors"
	"fmt"

	"github.com/workberth/workberth/sandbox"
)

// image finds the image of a configuration, and fetches it when the engine does not have it.
func (b *Backend) image(ctx context.Context, engine Engine, name string) (Image, error) {
	image, err := engine.Image(ctx, name)
	if err == nil {
		return b.fits(name, image)
	}
	if !errors.Is(err, ErrNotFound) {
		return Image{}, b.unreachable(err)
	}
	b.log.Info("the image is not on the engine and is fetched", "image", name)
	if err := engine.Pull(ctx, name, func(line string) { b.log.Info("fetching the image", "image", name, "progress", line) }); err != nil {
		if ctx.Err() != nil {
			return Image{}, ctx.Err()
		}
		return Image{}, &sandbox.Problem{
			Field: "image", What: fmt.Sprintf("image %q", name),
			Rule:   fmt.Sprintf("the %s engine does not have it and cannot fetch it: %v", b.opts.Name, err),
			Remedy: fmt.Sprintf("fetch it by hand (%s pull %s), load it from an archive with --image-archive FILE, or make one: berth image import", b.opts.Name, name),
			Err:    fmt.Errorf("%w: %w", sandbox.ErrUnavailable, err),
		}
	}
	if image, err = engine.Image(ctx, name); err != nil {
		return Image{}, b.unreachable(err)
	}
	return b.fits(name, image)
}

// fits refuses an image that the guest helper cannot run in.
func (b *Backend) fits(name string, image Image) (Image, error) {
	if image.OS != "" && image.OS != "linux" {
		return Image{}, &sandbox.Problem{
			Field: "image", What: fmt.Sprintf("image %q", name), Rule: fmt.Sprintf("it is made for %s/%s", image.OS, image.Arch),
			Remedy: "use an image for Linux", Err: sandbox.ErrRefused,
		}
	}
	return image, nil
}
