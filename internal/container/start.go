package container

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/workberth/workberth/internal/guest/client"
	"github.com/workberth/workberth/internal/guest/rendezvous"
	"github.com/workberth/workberth/internal/hostmount"
	"github.com/workberth/workberth/internal/keeper"
	"github.com/workberth/workberth/sandbox"
)

// How long parts of the start and of the end may take.
const (
	// startBound is how long a started container may take to call back.
	startBound = 30 * time.Second
	endBound   = 10 * time.Second
)

// generation is one life of a container in the making.
type generation struct {
	keeper.Birth
	b       *Backend
	engine  Engine
	about   Description
	scratch string
	own     string
	limits  *limits
	plan    *plan
	away    *away // nil where the engine sees this machine's files
	made    bool  // its container was made for it
	runtime *runtime
	conn    *client.Conn
}

// start brings a generation to life. A failure leaves nothing running; a container that was there
// before stays.
func (b *Backend) start(ctx context.Context, birth keeper.Birth) (*keeper.Life, error) {
	a := &away{}
	_, known := birth.Claim.Record()
	var life *keeper.Life
	var err error
	if b.isAway(birth) {
		life, err = b.startAt(ctx, birth, a)
	} else {
		life, err = b.startAt(ctx, birth, nil)
	}
	var other *elsewhereError
	if errors.As(err, &other) && ctx.Err() == nil {
		warnAway(b.log, birth.Resolved.ID, birth.Resolved.Spec.Workspace, other)
		life, err = b.startAt(ctx, birth, a)
	}
	if err != nil && !a.filled && !known {
		b.spared.Store(birth.Resolved.ID, true)
	}
	return life, err
}

// startAt does so on an engine of this machine, or of another one if a is not nil.
func (b *Backend) startAt(ctx context.Context, birth keeper.Birth, a *away) (*keeper.Life, error) {
	engine, about, err := b.describe(ctx)
	if err != nil {
		return nil, err
	}
	g := &generation{Birth: birth, b: b, engine: engine, about: about, own: ownDir(birth.Claim), away: a}
	prepare, launch := g.prepare, g.launch
	if a != nil {
		prepare, launch = g.prepareAway, g.launchAway
	}
	if err := prepare(ctx); err != nil {
		return nil, err
	}
	if err := launch(ctx); err != nil {
		return nil, errors.Join(err, g.undo())
	}
	life := g.life()
	life.Conn, life.Runtime = g.conn, g.runtime
	return life, nil
}

// prepare decides everything and makes what the container needs on this machine.
func (g *generation) prepare(ctx context.Context) error {
	spec := g.Resolved.Spec
	helper, err := g.b.helper()
	if err != nil {
		return err
	}
	if err := checkUser(g.about); err != nil {
		return err
	}
	account, err := accountFor(spec, g.about)
	if err != nil {
		return err
	}
	if g.limits, err = g.b.limitsFor(spec.Config.Limits, g.about, account.InsideUID); err != nil {
		return err
	}
	image, err := g.image(ctx)
	if err != nil {
		return err
	}
	if err := g.makeScratch(account); err != nil {
		return err
	}
	mounts, err := hostmount.List(spec, g.scratch)
	if err != nil {
		return err
	}
	if err := g.b.checkLabels(g.about, mounts); err != nil {
		return err
	}
	if err := hostmount.MakeMountpoints(account, mounts); err != nil {
		return err
	}
	if err := makeGuestDir(g.own, helper); err != nil {
		return err
	}
	g.plan, err = g.b.newPlan(g.Resolved, g.about, account, mounts, image, place{own: g.own, scratch: g.scratch})
	if err == nil {
		g.plan.spec.Limits = g.limits.group
	}
	return err
}

// accountFor decides who runs in the container: the user of the configuration, else the owner of the
// workspace.
func accountFor(spec sandbox.Spec, about Description) (hostmount.Account, error) {
	a, err := hostmount.AccountFor(spec, os.Geteuid(), os.Getegid())
	if err != nil {
		return a, err
	}
	if about.Rootless && !about.KeepsID && spec.Config.User == "" {
		a.InsideUID, a.InsideGID = 0, 0 // which is what such an engine calls its own user
		return a, nil
	}
	// Numbers mean the same inside and outside.
	a.UID, a.GID = a.InsideUID, a.InsideGID
	a.Other = a.UID != os.Geteuid()
	return a, nil
}

// makeScratch makes the directory that stands in for a hidden workspace.
func (g *generation) makeScratch(a hostmount.Account) error {
	if g.Resolved.Spec.Config.Access != sandbox.AccessNone {
		return nil
	}
	g.scratch = filepath.Join(g.Claim.Dir(), "scratch")
	if err := os.Mkdir(g.scratch, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make the scratch directory: %w", err)
	}
	if a.Other && os.Geteuid() == 0 {
		return os.Chown(g.scratch, a.UID, a.GID)
	}
	return nil
}

// launch gets a container that does not run, starts it, and greets the helper that calls back.
func (g *generation) launch(ctx context.Context) error {
	opts := rendezvous.Options{}
	if g.plan.account.Other && os.Geteuid() == 0 {
		opts.UID, opts.GID = g.plan.account.UID, g.plan.account.GID
	}
	door, err := rendezvous.Listen(g.own, opts)
	if err != nil {
		return err
	}
	defer door.Close()
	if err := door.Invite(g.own, g.Tag, umask()); err != nil {
		return err
	}
	defer func() { _ = rendezvous.Uninvite(g.own) }() // the token has been used, or is worth nothing
	id, err := g.container(ctx)
	if err != nil {
		return err
	}
	g.runtime = newRuntime(g.b, g.engine, id)
	g.Early(g.life())
	if err := g.engine.Start(ctx, id); err != nil {
		return g.b.startFailure(g.runtime.name, err)
	}
	g.runtime.watch()
	conn, err := g.callBack(ctx, door)
	if err != nil {
		return g.explain(ctx, err)
	}
	g.conn, err = client.New(ctx, conn, client.Options{
		SkipLimit: -1, HandshakeTimeout: startBound, Build: g.b.build, Logger: g.b.log,
	})
	if err != nil {
		return g.explain(ctx, errors.Join(err, conn.Close()))
	}
	return g.sees(ctx)
}

// container makes the sandbox's container, or takes the one that is there.
func (g *generation) container(ctx context.Context) (id string, err error) {
	name := g.plan.spec.Name
	for range 2 { // it may go, or come, between two calls
		c, err := g.engine.Inspect(ctx, name)
		switch {
		case errors.Is(err, ErrNotFound):
			id, err := g.create(ctx)
			if errors.Is(err, ErrConflict) {
				continue
			}
			return id, err
		case err != nil:
			return "", g.b.unreachable(err)
		case !g.b.owns(c, g.Resolved.ID):
			return "", &sandbox.Problem{
				What: fmt.Sprintf("a container is called %s already", name), Rule: "its labels do not say that it is this sandbox's",
				Remedy: "rename or remove it: " + g.b.opts.Name + " rename " + name + " NEW", Err: sandbox.ErrUnavailable,
			}
		}
		if c.Labels[labelVolume] != "" && g.away == nil {
			return "", &elsewhereError{fmt.Errorf("container %s was made on another machine than this one", name)}
		}
		reuse, err := g.reuse(ctx, c)
		if err != nil {
			return "", err
		}
		if reuse {
			return c.ID, nil
		}
		if err := g.engine.Remove(ctx, c.ID); err != nil {
			return "", g.b.unreachable(err)
		}
	}
	return "", &sandbox.Problem{
		What: fmt.Sprintf("container %s cannot be made", name), Rule: "it is being made or removed by somebody else at the same time",
		Remedy: "try again", Err: sandbox.ErrUnavailable,
	}
}

// create makes the container.
func (g *generation) create(ctx context.Context) (string, error) {
	if err := g.plan.checkVolumes(g.Resolved.Spec.Config.Image); err != nil {
		return "", err
	}
	made, err := g.engine.Create(ctx, g.plan.spec)
	if err != nil {
		if errors.Is(err, ErrConflict) {
			return "", err
		}
		return "", g.b.createFailure(g.plan, err)
	}
	g.made = true
	for _, w := range made.Warnings {
		g.b.log.Warn("the engine has a warning about the container", "sandbox", g.Resolved.ID, "warning", w)
	}
	return made.ID, nil
}

// reuse gets a container of ours ready to be started. One that was made in another way is not.
func (g *generation) reuse(ctx context.Context, c Container) (bool, error) {
	switch c.Status {
	case StatusPaused:
		return false, &sandbox.Problem{
			What: fmt.Sprintf("sandbox %s is paused", g.Resolved.ID), Rule: "somebody has paused its container, " + c.Name,
			Remedy: g.b.opts.Name + " unpause " + c.Name + ", or: berth sandbox stop " + string(g.Resolved.ID), Err: sandbox.ErrUnavailable,
		}
	case StatusRunning, StatusRestarting:
		// Nobody holds it: the claim is ours. A helper without a host ends by itself.
		if err := end(ctx, g.engine, c.ID); err != nil {
			return false, g.b.unreachable(err)
		}
	case StatusDead, StatusRemoving:
		return false, nil // such a container cannot be started again
	case StatusCreated, StatusExited:
	}
	return g.fits(c), nil
}

// fits reports whether a container of ours is as it would be made now.
func (g *generation) fits(c Container) bool {
	volume, helper := "", ""
	if g.away != nil {
		volume, helper = g.away.volume, g.b.helperVolume(g.away.helper.sum)
	}
	return c.Labels[labelForm] == form && c.Labels[labelConfig] == g.Resolved.ConfigHash &&
		c.Labels[labelVolume] == volume && c.Labels[labelHelper] == helper
}

// callBack waits for the helper, as long as its container lives.
func (g *generation) callBack(ctx context.Context, door *rendezvous.Listener) (net.Conn, error) {
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
	return door.Accept(ctx)
}

// life is what is to be said of the generation.
func (g *generation) life() *keeper.Life {
	return &keeper.Life{
		Mounts: g.plan.table, Workdir: g.plan.workdir, Scratch: g.scratch, Env: g.plan.env(), Fresh: g.made,
		Facts:  g.facts(),
		Limits: g.limits.each,
	}
}

// facts are what there is to say of this generation in particular.
func (g *generation) facts() map[string]string {
	s := g.plan.spec
	facts := map[string]string{
		"container": g.runtime.id, "name": s.Name, "image": g.Resolved.Spec.Config.Image, "imageId": s.Image,
		"engine": strings.TrimSpace(g.about.Product + " " + g.about.Version), "user": s.User, "tag": g.Tag,
		"capabilities": "none", "init": "yes", "newPrivileges": "no",
	}
	if len(s.CapAdd) > 0 {
		facts["capabilities"] = strings.Join(s.CapAdd, ",")
	}
	if s.Privileged {
		facts["capabilities"], facts["newPrivileges"] = "all", "yes"
	}
	if s.Attached {
		facts["init"] = "the helper"
	}
	if g.about.Rootless {
		facts["rootless"] = "yes"
	}
	maps.Copy(facts, g.limits.facts)
	if g.away != nil {
		maps.Copy(facts, g.awayFacts())
	}
	return facts
}

// undo ends what a failed start has left. A container that was made for it goes too.
func (g *generation) undo() error {
	ctx, cancel := context.WithTimeout(context.Background(), endBound)
	defer cancel()
	var failures []error
	if g.conn != nil {
		failures = append(failures, g.conn.Close())
	}
	if g.runtime != nil {
		failures = append(failures, g.runtime.Kill(ctx))
		if g.made {
			failures = append(failures, g.engine.Remove(ctx, g.runtime.id))
		}
	}
	return errors.Join(failures...)
}

// umask is that of this process, which cannot be asked for without changing it but here. Where that
// is not told it is the usual one.
func umask() int {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return usualUmask
	}
	for line := range strings.Lines(string(data)) {
		if text, ok := strings.CutPrefix(line, "Umask:"); ok {
			if n, err := strconv.ParseUint(strings.TrimSpace(text), 8, 9); err == nil {
				return int(n)
			}
		}
	}
	return usualUmask
}

const usualUmask = 0o022
