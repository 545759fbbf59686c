package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	goruntime "runtime"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/guest/client"
	"github.com/workberth/workberth/internal/guest/rendezvous"
	"github.com/workberth/workberth/internal/helperbin"
	"github.com/workberth/workberth/internal/hostmount"
	"github.com/workberth/workberth/internal/keeper"
	"github.com/workberth/workberth/sandbox"
)

// factVolume is the fact that names the volume in place of the workspace. In a record it also tells that
// the volume is complete.
const factVolume = "volume"

// fillingFile is there, in the sandbox's directory of records, while its volume may be incomplete.
const fillingFile = "filling"

// away is what a generation has where its engine runs on another machine.
type away struct {
	helper program
	volume string
	// filled: the volume was made for this generation.
	filled bool
	// copied is what has been copied for it; nil when the volume was there.
	copied *copied
}

// program is a guest helper of this machine.
type program struct{ path, sum string }

// isAway reports whether a sandbox is, or was, on another machine than this one.
func (b *Backend) isAway(birth keeper.Birth) bool {
	rec, _ := birth.Claim.Record()
	return Elsewhere(b.opts.Address) || rec.Info.Runtime[factVolume] != ""
}

// helperFor finds the guest helper for an engine's machine.
func (b *Backend) helperFor(about Description) (program, error) {
	var p program
	var err error
	if b.opts.HelperPath != "" && about.OS == "linux" && about.Arch == goruntime.GOARCH {
		p.path = b.opts.HelperPath
		p.sum, err = sumOf(p.path)
	} else {
		var h helperbin.Helper
		if h, err = helperbin.For(about.OS, about.Arch, helperbin.Options{Env: b.opts.Getenv, Logger: b.log}); err == nil {
			p.path = h.Path
			p.sum, err = h.SHA256()
		}
	}
	if err != nil {
		return p, &sandbox.Problem{
			What: fmt.Sprintf("the guest helper for the engine's machine, %s/%s, cannot be used", about.OS, about.Arch), Rule: err.Error(),
			Remedy: "use a release build, which carries helpers for amd64 and arm64, or put " + fmt.Sprintf("%s-%s-%s", helperbin.Name, about.OS, about.Arch) + " beside the program",
			Err:    fmt.Errorf("%w: %w", sandbox.ErrUnavailable, err),
		}
	}
	return p, nil
}

// prepareAway decides everything for an engine on another machine.
func (g *generation) prepareAway(ctx context.Context) error {
	spec := g.Resolved.Spec
	if err := refuseAway(spec, g.about); err != nil {
		return err
	}
	var err error
	if g.away.helper, err = g.b.helperFor(g.about); err != nil {
		return err
	}
	account, err := accountFor(spec, g.about)
	if err != nil {
		return err
	}
	if g.limits, err = g.b.limitsFor(spec.Config.Limits, g.about, account.InsideUID); err != nil {
		return err
	}
	g.away.volume = g.b.volumeName(g.Resolved.ID)
	image, err := g.image(ctx)
	if err != nil {
		return err
	}
	mounts, err := hostmount.List(spec, "")
	if err != nil {
		return err
	}
	for i, m := range mounts {
		if isWorkspace(m) {
			mounts[i].Source = "" // its content lies on another machine
		}
	}
	g.plan, err = g.b.newPlan(g.Resolved, g.about, account, mounts, image, place{
		helper: g.b.helperVolume(g.away.helper.sum), volume: g.away.volume,
	})
	if err == nil {
		g.plan.spec.Limits = g.limits.group
	}
	return err
}

// isWorkspace reports whether a mount is the workspace, or what stands in for it.
func isWorkspace(m hostmount.Mount) bool { return m.Kind == fsbridge.MountWorkspace }

// launchAway fills the volumes that are not filled, gets a container that does not run, starts it, and
// greets its helper over the container's own input and output.
func (g *generation) launchAway(ctx context.Context) error {
	if err := g.carryHelper(ctx); err != nil {
		return err
	}
	if err := g.settleVolume(ctx); err != nil {
		return err
	}
	id, err := g.container(ctx)
	if err != nil {
		return err
	}
	// From here on the container tells that its volume is complete.
	if err := errors.Join(g.engine.Remove(ctx, g.b.fillerName(g.Resolved.ID)), g.markFilling(false)); err != nil {
		return g.b.unreachable(err)
	}
	for range awakenings {
		if err = g.awaken(ctx, id); err == nil || g.made || !g.endedEarly(ctx) {
			break
		}
	}
	return err
}

// awakenings is how often a container that was there is started, when it ends at once. The engine may
// still be about to see that an owner has died, and ends the input that it takes for that one's.
const awakenings = 3

// awaken starts a container and greets its helper.
func (g *generation) awaken(ctx context.Context, id string) error {
	g.runtime = newRuntime(g.b, g.engine, id)
	g.Early(g.life())
	conn, err := g.engine.Attach(ctx, id, &g.runtime.said)
	if err != nil {
		return g.b.startFailure(g.runtime.name, err)
	}
	if err := g.engine.Start(ctx, id); err != nil {
		return errors.Join(g.b.startFailure(g.runtime.name, err), conn.Close())
	}
	g.runtime.watch()
	if err := g.greet(ctx, conn); err != nil {
		return g.explain(ctx, err)
	}
	return nil
}

// endedEarly reports whether the container has run and is over, and can be started again.
func (g *generation) endedEarly(ctx context.Context) bool {
	select {
	case <-g.runtime.Done():
		return ctx.Err() == nil && !g.runtime.gone
	default:
		return false
	}
}

// greet speaks first to the helper behind a connection, and owns the connection.
func (g *generation) greet(ctx context.Context, conn io.ReadWriteCloser) error {
	ctx, cancel := context.WithTimeout(ctx, startBound)
	defer cancel()
	ended := g.runtime.Done()
	go func() {
		select {
		case <-ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	lead := rendezvous.Lead{Tag: g.Tag, Umask: umask()}
	if err := lead.Write(conn); err != nil {
		return errors.Join(err, conn.Close())
	}
	var err error
	g.conn, err = client.New(ctx, conn, client.Options{SkipLimit: -1, HandshakeTimeout: startBound, Build: g.b.build, Logger: g.b.log})
	return err
}

// settleVolume sees that the volume in place of the workspace is there and complete. It is filled once;
// from then on it is the workspace. A half copy is never used, and what may be somebody's work never
// thrown away.
func (g *generation) settleVolume(ctx context.Context) error {
	id, name := g.Resolved.ID, g.away.volume
	c, err := g.engine.Inspect(ctx, g.b.containerName(id))
	if err != nil && !errors.Is(err, ErrNotFound) {
		return g.b.unreachable(err)
	}
	made := err == nil && g.b.owns(c, id) && c.Labels[labelVolume] == name
	v, err := g.engine.Volume(ctx, name)
	switch {
	case errors.Is(err, ErrNotFound):
		return g.fillWorkspace(ctx)
	case err != nil:
		return g.b.unreachable(err)
	case !g.b.ownsVolume(v, id):
		return &sandbox.Problem{
			What: fmt.Sprintf("a volume is called %s already", name), Rule: "its labels do not say that it is this sandbox's",
			Remedy: "remove it: " + g.b.opts.Name + " volume rm " + name, Err: sandbox.ErrUnavailable,
		}
	case made:
		return nil
	}
	filling, err := g.isFilling(ctx)
	if err != nil {
		return err
	}
	if filling {
		if err := g.b.removeVolume(ctx, g.engine, id); err != nil {
			return err
		}
		return g.fillWorkspace(ctx)
	}
	if rec, _ := g.Claim.Record(); rec.Info.Runtime[factVolume] == name {
		return nil
	}
	return &sandbox.Problem{
		What: fmt.Sprintf("volume %s is there, and nothing tells whether it is complete", name),
		Rule: "the sandbox's container and its record are gone, which tell that",
		Remedy: fmt.Sprintf("berth sandbox recreate %s copies the workspace again, without what is in the volume; what it holds shows: %s run --rm -it -v %s:/w IMAGE",
			id, g.b.opts.Name, name),
		Err: sandbox.ErrUnavailable,
	}
}

// markFilling notes on this machine that the volume may be incomplete, or that it is not any more.
func (g *generation) markFilling(yes bool) error {
	path := filepath.Join(g.Claim.Dir(), fillingFile)
	if yes {
		return os.WriteFile(path, nil, 0o600)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// isFilling reports whether the volume was being filled when somebody died.
func (g *generation) isFilling(ctx context.Context) (bool, error) {
	if _, err := os.Lstat(filepath.Join(g.Claim.Dir(), fillingFile)); err == nil {
		return true, nil
	}
	c, err := g.engine.Inspect(ctx, g.b.fillerName(g.Resolved.ID))
	switch {
	case errors.Is(err, ErrNotFound):
		return false, nil
	case err != nil:
		return false, g.b.unreachable(err)
	}
	return g.b.owns(c, g.Resolved.ID), nil
}

// removeVolume removes the volume of a sandbox of ours, and what it was being filled by.
func (b *Backend) removeVolume(ctx context.Context, engine Engine, id sandbox.ID) error {
	v, err := engine.Volume(ctx, b.volumeName(id))
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err == nil && !b.ownsVolume(v, id) {
		return nil
	}
	if err == nil {
		err = engine.Remove(ctx, b.fillerName(id))
	}
	if err == nil {
		err = engine.RemoveVolume(ctx, v.Name)
	}
	if err != nil {
		return b.unreachable(err)
	}
	return nil
}

// awayFacts are what there is to say of a sandbox on another machine.
func (g *generation) awayFacts() map[string]string {
	rec, _ := g.Claim.Record()
	facts := map[string]string{factVolume: g.away.volume}
	for _, name := range []string{"copy", "leftOut"} {
		if text := rec.Info.Runtime[name]; text != "" {
			facts[name] = text
		}
	}
	if c := g.away.copied; c != nil {
		delete(facts, "leftOut")
		facts["copy"] = c.describe(g.Resolved.Spec)
		if c.Skipped > 0 {
			facts["leftOut"] = fmt.Sprintf("%d: %s", c.Skipped, c.LeftOut())
		}
	}
	if facts["copy"] == "" {
		facts["copy"] = "a volume on the engine's machine; recreate copies the workspace again, rm deletes the volume"
	}
	return facts
}
