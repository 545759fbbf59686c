package container

import (
	"archive/tar"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/workberth/workberth/internal/guest/seed"
	"github.com/workberth/workberth/sandbox"
)

// copied is what a copy of a workspace consists of.
type copied struct {
	seed.Packed
	at time.Time
}

// describe tells people what the sandbox works on.
func (c *copied) describe(spec sandbox.Spec) string {
	const after = "rm deletes the volume"
	if spec.Config.Access == sandbox.AccessNone {
		return "an empty volume on the engine's machine; " + after
	}
	return fmt.Sprintf("a volume on the engine's machine, filled from %s at %s (%d files, %d bytes); recreate copies again, %s",
		spec.Workspace, c.at.UTC().Format(time.RFC3339), c.Files, c.Bytes, after)
}

// fillWorkspace makes the volume in place of the workspace and copies the workspace into it; where the
// workspace is hidden it is empty.
func (g *generation) fillWorkspace(ctx context.Context) error {
	spec, id := g.Resolved.Spec, g.Resolved.ID
	f := &filler{g: g, volume: g.away.volume, container: g.b.fillerName(id), labels: g.b.labels(g.Resolved)}
	if err := g.markFilling(true); err != nil {
		return err
	}
	g.away.filled = true
	if err := g.engine.CreateVolume(ctx, f.volume, f.allLabels()); err != nil {
		return g.fillFailure(ctx, "the workspace", err)
	}
	if err := f.open(ctx); err != nil {
		return g.fillFailure(ctx, "the workspace", err)
	}
	a := g.plan.account
	done := &copied{}
	mode, content := int64(0o700), func(*tar.Writer) error { return nil }
	if spec.Config.Access != sandbox.AccessNone {
		root, err := os.OpenRoot(spec.Workspace)
		if err != nil {
			return g.fillFailure(ctx, "the workspace", err)
		}
		defer root.Close()
		info, err := root.Stat(".")
		if err != nil {
			return g.fillFailure(ctx, "the workspace", err)
		}
		mode, content = seed.Mode(info), func(w *tar.Writer) error {
			p := seed.NewPacker(w, root, seed.Owner{UID: a.InsideUID, GID: a.InsideGID})
			err := p.Below(ctx)
			done.Packed = p.Done()
			return err
		}
		g.b.log.Info("copying the workspace to the engine's machine", "sandbox", id, "workspace", spec.Workspace, "volume", f.volume)
	}
	if err := f.put(ctx, mode, a.InsideUID, a.InsideGID, content); err != nil {
		return g.fillFailure(ctx, "the workspace", err)
	}
	done.at = g.b.now()
	g.away.copied = done
	g.b.log.Info("the workspace was copied", "sandbox", id, "files", done.Files, "bytes", done.Bytes)
	if done.Skipped > 0 {
		g.b.log.Warn("parts of the workspace were not copied", "sandbox", id, "count", done.Skipped, "names", done.LeftOut())
	}
	return nil
}
