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
	if err := b.pull(ctx, engine, name, func(line string) { b.log.Info("fetching the image", "image", name, "progress", line) }); err != nil {
		return Image{}, err
	}
	if image, err = engine.Image(ctx, name); err != nil {
		return Image{}, b.unreachable(err)
	}
	return b.fits(name, image)
}

// image is what the sandbox is made of: that of its container where there is one, whatever its name
// means by now, else that of the configuration.
func (g *generation) image(ctx context.Context) (Image, error) {
	name := g.Resolved.Spec.Config.Image
	if _, known := g.Claim.Record(); !known {
		return g.b.image(ctx, g.engine, name)
	}
	c, err := g.engine.Inspect(ctx, g.b.containerName(g.Resolved.ID))
	if err != nil || !g.b.owns(c, g.Resolved.ID) || !g.fits(c) {
		return g.b.image(ctx, g.engine, name)
	}
	made, err := g.engine.Image(ctx, c.ImageID)
	if err != nil {
		return g.b.image(ctx, g.engine, name)
	}
	if named, err := g.engine.Image(ctx, name); err != nil || named.ID != made.ID {
		g.b.log.Warn("the image has changed since the sandbox was made, which keeps what it was made of until it is removed",
			"sandbox", g.Resolved.ID, "image", name, "imageId", made.ID)
	}
	return made, nil
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
