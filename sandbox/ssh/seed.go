package ssh

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/workberth/workberth/internal/guest/seed"
	"github.com/workberth/workberth/internal/sshclient"
	"github.com/workberth/workberth/sandbox"
)

// seed fills a workspace that does not exist from the local directory of the
// configuration. It returns what is to be said of it; nil where nothing was done.
func (b *Backend) seed(ctx context.Context, g *sshclient.Group, spec sandbox.Spec) (map[string]string, error) {
	if spec.Config.Seed == "" {
		return nil, nil
	}
	exists, err := b.exists(ctx, g, spec)
	if err != nil || exists {
		return nil, err
	}
	begun := time.Now()
	c, err := b.call(ctx, g, "unpack", spec.Workspace)
	if err != nil {
		return nil, err
	}
	defer c.session.Abort()
	stop := context.AfterFunc(ctx, c.session.Abort)
	defer stop()
	packed, packErr := seed.Pack(ctx, c.session, spec.Config.Seed)
	if packErr != nil {
		select {
		case <-c.session.Done(): // the other side gave up; it tells why
		default:
			c.session.Abort() // without its end the stream is no copy
		}
	}
	err = finish(ctx, c)
	if err != nil || packErr != nil {
		// Somebody else may have been faster, with a whole copy.
		if exists, e := b.exists(ctx, g, spec); e == nil && exists {
			return nil, nil
		}
		return nil, &sandbox.Problem{
			Field: "seed", What: fmt.Sprintf("workspace %q on %s could not be filled from %q", spec.Workspace, g.Settings(), spec.Config.Seed),
			Rule: errors.Join(packErr, err).Error(), Remedy: "nothing was left there; mend it and try again", Err: errors.Join(sandbox.ErrUnavailable, packErr, err),
		}
	}
	facts := map[string]string{
		"seed": fmt.Sprintf("%d files, %d directories, %d links, %d bytes from %s", packed.Files, packed.Dirs, packed.Links, packed.Bytes, spec.Config.Seed),
	}
	b.log.Info("the workspace was filled", "host", g.Settings().String(), "workspace", spec.Workspace, "from", spec.Config.Seed,
		"files", packed.Files, "bytes", packed.Bytes, "took", time.Since(begun))
	if packed.Skipped > 0 {
		facts["seedLeftOut"] = packed.LeftOut()
		b.log.Warn("entries that lead out of the directory were left out", "seed", spec.Config.Seed, "entries", packed.LeftOut())
	}
	return facts, nil
}

// exists reports whether the workspace is there.
func (b *Backend) exists(ctx context.Context, g *sshclient.Group, spec sandbox.Spec) (bool, error) {
	c, err := b.call(ctx, g, "state", spec.Workspace)
	if err != nil {
		return false, err
	}
	c.session.Abort()
	switch c.word {
	case "there":
		return true, nil
	case "absent":
		return false, nil
	}
	return false, &sandbox.Problem{
		Field: "workspace", What: fmt.Sprintf("workspace %q on %s", c.rest, g.Settings()), Rule: "it is not a directory",
		Remedy: "name a directory, or one that does not exist", Err: sandbox.ErrRefused,
	}
}

// Reseed moves the workspace of a spec with a seed aside, so that the next start fills it
// anew. It returns the name under which the old one was kept, empty when there was none.
// The sandbox must have been removed.
func (b *Backend) Reseed(ctx context.Context, spec sandbox.Spec) (kept string, err error) {
	if spec.Config.Seed == "" {
		return "", nil
	}
	spec.Workspace = Workspace(spec.Workspace)
	g, release, err := b.lines.acquire(lineOf(spec.Config))
	if err != nil {
		return "", b.explain(err)
	}
	defer release()
	c, err := b.call(ctx, g, "aside", spec.Workspace, time.Now().UTC().Format("20060102-150405"))
	if err != nil {
		return "", b.explain(err)
	}
	defer c.session.Abort()
	switch c.word {
	case "moved":
		return c.rest, nil
	case "absent":
		return "", nil
	}
	return "", &sandbox.Problem{
		Field: "workspace", What: fmt.Sprintf("workspace %q on %s", c.rest, g.Settings()), Rule: "it cannot be moved aside",
		Remedy: "see that the account may rename it", Err: sandbox.ErrUnavailable,
	}
}
