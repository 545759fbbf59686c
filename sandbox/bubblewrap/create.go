package bubblewrap

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/workberth/workberth/internal/guest/client"
	"github.com/workberth/workberth/internal/guestbox"
	"github.com/workberth/workberth/sandbox"
)

// How long parts of the start and of the end may take.
const (
	handshakeBound = 10 * time.Second
	// explainBound is how long a bwrap whose connection has ended may take to end
	// itself, before its messages are read.
	explainBound = 2 * time.Second
	endBound     = 10 * time.Second
)

// generation is one life of a sandbox in the making.
type generation struct {
	b        *Backend
	resolved sandbox.Resolved
	claim    *sandbox.Claim
	tag      string
	account  account
	scratch  string
	mounts   []mount
	plan     *plan
	limits   *limits
	runtime  *process
	conn     *client.Conn
}

// create starts a new generation and returns its first handle.
func (b *Backend) create(ctx context.Context, s *slot, resolved sandbox.Resolved) (sandbox.Sandbox, error) {
	claim, err := b.claim(ctx, resolved.ID)
	if err != nil {
		return nil, err
	}
	g := &generation{b: b, resolved: resolved, claim: claim, tag: newTag()}
	_, known := claim.Record()
	box, err := g.begin(ctx, s)
	if err != nil {
		return nil, errors.Join(err, g.abandon(known))
	}
	// From here on the claim belongs to the box.
	h, err := box.Handle()
	if err != nil {
		return nil, err
	}
	if err := g.settle(ctx, box, h); err != nil {
		return nil, err
	}
	return h, nil
}

// claim makes this process the owner of a sandbox. Somebody who holds it without
// having it in the record does so for a moment only, and is waited for: a process
// that looks after dead sandboxes, one that is just starting this one, or what a
// dead owner was about to start.
func (b *Backend) claim(ctx context.Context, id sandbox.ID) (*sandbox.Claim, error) {
	deadline := time.Now().Add(endBound)
	wait := time.Millisecond
	for {
		claim, err := b.registry.Claim(ctx, id)
		var held *sandbox.InUseError
		if !errors.As(err, &held) || time.Now().After(deadline) {
			return claim, err
		}
		if rec, e := b.registry.Get(id); e == nil && rec.Info.Owner == held.Owner && held.Owner.Alive() {
			return nil, err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
			wait = min(2*wait, 50*time.Millisecond)
		case <-ctx.Done():
			timer.Stop()
			return nil, err
		}
	}
}

// newTag names a generation.
func newTag() string {
	var raw [8]byte
	_, _ = rand.Read(raw[:]) // never fails
	return hex.EncodeToString(raw[:])
}

// begin brings the helper to life.
func (g *generation) begin(ctx context.Context, s *slot) (*guestbox.Box, error) {
	if err := g.bury(ctx); err != nil {
		return nil, err
	}
	if err := g.prepare(); err != nil {
		return nil, err
	}
	if err := g.launch(ctx); err != nil {
		return nil, err
	}
	rec := g.record()
	if err := g.claim.Save(rec); err != nil {
		return nil, err
	}
	rec, _ = g.claim.Record() // with the times that were filled in
	box := guestbox.New(guestbox.Options{
		Conn: g.conn, Runtime: g.runtime, Info: g.info(rec),
		Env: g.plan.env(), ConfigEnv: g.resolved.Spec.Config.Env, Limits: g.limits.each,
		OnEnd:  func(reason error) { g.end(s, reason) },
		Logger: g.b.log,
	})
	g.b.keep(s, box)
	return box, nil
}

// bury ends what a dead owner of this sandbox has left.
func (g *generation) bury(ctx context.Context) error {
	if reaped, ok := g.claim.Reap(ctx, nil); ok && (len(reaped.Left) > 0 || reaped.Err != nil) {
		return &sandbox.Problem{
			What: fmt.Sprintf("processes of the last life of sandbox %s are left", g.resolved.ID), Rule: fmt.Sprint(reaped.Err),
			Remedy: "end them by hand, then try again", Err: join(sandbox.ErrUnavailable, reaped.Err),
		}
	}
	return clearGroup(ctx, g.claim)
}

// prepare decides everything and makes what the sandbox needs on this machine.
func (g *generation) prepare() error {
	b, spec := g.b, g.resolved.Spec
	bwrap, err := b.bwrap()
	if err != nil {
		return err
	}
	helper, err := b.helper()
	if err != nil {
		return err
	}
	filter, err := b.filter(spec.Config.SeccompProfile)
	if err != nil {
		return err
	}
	if g.account, err = accountFor(spec, b.selfUID(), os.Getegid()); err != nil {
		return err
	}
	if err := g.sources(); err != nil {
		return err
	}
	if g.mounts, err = mountsOf(spec, g.scratch); err != nil {
		return err
	}
	if err := makeMountpoints(g.account, g.mounts); err != nil {
		return err
	}
	g.plan = newPlan(b.root, g.resolved.ID, spec, g.account, g.mounts, filter)
	g.plan.bwrap, g.plan.helper = bwrap, helper
	g.plan.copyHelper = !g.account.runnable(helper)
	g.plan.helperArgs = helperArgs(g.tag, tableOf(g.mounts))
	return nil
}

// sources makes the scratch directory, and sees that the account comes to what is
// mounted.
func (g *generation) sources() error {
	spec := g.resolved.Spec
	if spec.Config.Access == sandbox.AccessNone {
		g.scratch = filepath.Join(g.claim.Dir(), "scratch")
		if err := os.Mkdir(g.scratch, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("make the scratch directory: %w", err)
		}
	} else if err := g.account.reach("workspace", fmt.Sprintf("workspace %q", spec.Workspace), spec.Workspace); err != nil {
		return err
	}
	for _, bind := range spec.Config.Binds {
		if err := g.account.reach("binds", fmt.Sprintf("bind %q to %q", bind.Source, bind.Target), bind.Source); err != nil {
			return err
		}
	}
	return nil
}

// launch starts bwrap and greets the helper. Root on a machine without user
// namespaces does without.
func (g *generation) launch(ctx context.Context) error {
	err := g.attempt(ctx)
	if errors.Is(err, errNoUserNamespaces) && g.account.uid == 0 && g.account.insideUID == 0 && g.account.insideGID == 0 {
		g.b.log.Debug("no user namespace, starting without one", "sandbox", g.resolved.ID)
		g.plan.userns = false
		err = g.attempt(ctx)
	}
	return err
}

// attempt is one start; a failed one leaves nothing running.
func (g *generation) attempt(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, g.undo())
		}
	}()
	spec := g.resolved.Spec
	if g.limits, err = newLimits(g.resolved.ID, g.claim.Dir(), g.tag, spec.Config.Limits, g.account, g.plan.userns, g.b.log); err != nil {
		return err
	}
	c, err := g.plan.command()
	if err != nil {
		return err
	}
	rt, conn, err := launch(g.plan.bwrap, c, g.account, g.limits.group)
	c.close()
	if err != nil {
		return startFailure(g.plan.bwrap, err)
	}
	g.runtime = rt
	g.conn, err = client.New(ctx, conn, client.Options{
		SkipLimit: -1, HandshakeTimeout: handshakeBound, Build: g.b.build, Logger: g.b.log,
	})
	if err == nil {
		if err = rt.adopt(); err == nil {
			return nil
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var version *client.VersionError
	if errors.As(err, &version) {
		return &sandbox.Problem{
			What: "the guest helper does not fit this program", Rule: version.Error(),
			Remedy: "install both from the same release", Err: join(sandbox.ErrUnavailable, err),
		}
	}
	timer := time.NewTimer(explainBound)
	defer timer.Stop()
	select {
	case <-rt.done:
		return failure(rt.stderr.String(), rt.Diagnose(), g.b.settings())
	case <-timer.C:
		return join(sandbox.ErrUnavailable, err)
	}
}

// undo ends what a failed attempt has left.
func (g *generation) undo() error {
	ctx, cancel := context.WithTimeout(context.Background(), endBound)
	defer cancel()
	var failures []error
	if g.conn != nil {
		failures = append(failures, g.conn.Close())
		g.conn = nil
	}
	if g.runtime != nil {
		failures = append(failures, g.runtime.Kill(ctx))
		g.runtime = nil
	}
	if g.limits != nil && g.limits.group != nil {
		failures = append(failures, g.limits.group.Remove(ctx), forgetGroup(g.claim.Dir()))
		g.limits = nil
	}
	return errors.Join(failures...)
}

// abandon gives up before there is a box. A sandbox that did not exist before does
// not exist afterwards.
func (g *generation) abandon(known bool) error {
	err := g.undo()
	if known {
		return errors.Join(err, g.claim.Release())
	}
	ctx, cancel := context.WithTimeout(context.Background(), endBound)
	defer cancel()
	return errors.Join(err, g.claim.Delete(ctx), g.claim.Release())
}

// record is what the registry keeps while the generation lives.
func (g *generation) record() sandbox.Record {
	rec, known := g.claim.Record()
	spec := g.resolved.Spec
	if !known {
		rec = sandbox.Record{}
	}
	rec.Info = sandbox.Info{
		Backend: Name, State: sandbox.StateRunning, Scope: spec.Scope, Session: spec.Session, Agent: spec.Agent,
		Workspace: spec.Workspace, Workdir: workdirOf(spec.Config, workspacePath(spec.Config)), Mounts: tableOf(g.mounts),
		Config: spec.Config, ConfigHash: g.resolved.ConfigHash, Created: rec.Info.Created, Runtime: g.facts(),
	}
	rec.Runtimes = g.runtime.refs()
	rec.InstanceTag = g.tag
	rec.Scratch = g.scratch
	if spec.Config.SetupCommand == "" {
		rec.SetupDone = true
	}
	return rec
}

// facts are what there is to say of this generation in particular.
func (g *generation) facts() map[string]string {
	facts := map[string]string{
		"pid":  strconv.Itoa(g.runtime.ref.PID),
		"user": fmt.Sprintf("%d:%d", g.account.uid, g.account.gid),
		"tag":  g.tag,
	}
	if !g.plan.userns {
		facts["userNamespace"] = "none: this kernel permits none"
	}
	for k, v := range g.limits.facts {
		facts[k] = v
	}
	return facts
}

// info is what the handles tell: the record's, with the configuration as it is.
func (g *generation) info(rec sandbox.Record) sandbox.Info {
	info := rec.Info
	info.Config = g.resolved.Spec.Config
	return info
}

// settle does what a new generation needs before it is handed out: it clears away
// what earlier ones left, and runs the setup command of a new sandbox.
func (g *generation) settle(ctx context.Context, box *guestbox.Box, h *guestbox.Handle) error {
	rec, _ := g.claim.Record()
	if len(rec.PendingSweep) > 0 {
		left, err := box.Sweep(ctx, rec.PendingSweep)
		if err != nil {
			g.b.log.Warn("what an earlier life left could not be cleared away", "sandbox", g.resolved.ID, "error", err)
		}
		if err := g.claim.Update(func(r *sandbox.Record) { r.PendingSweep = left }); err != nil {
			return errors.Join(err, h.Close())
		}
	}
	if rec.SetupDone {
		return nil
	}
	err := guestbox.Setup(ctx, h, g.resolved.Spec.Config.SetupCommand, g.b.log)
	if err == nil {
		if err = g.claim.Update(func(r *sandbox.Record) { r.SetupDone = true }); err == nil {
			return nil
		}
	}
	closeErr := h.Close()
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endBound)
	defer cancel()
	return errors.Join(err, closeErr, g.b.delete(ending, g.resolved.ID))
}

// end releases what the generation holds, after its processes have ended.
func (g *generation) end(s *slot, reason error) {
	ctx, cancel := context.WithTimeout(context.Background(), endBound)
	defer cancel()
	var failures []error
	if g.limits.group != nil {
		failures = append(failures, g.limits.group.Remove(ctx), forgetGroup(g.claim.Dir()))
	}
	clean := g.runtime.clean()
	failures = append(failures, g.claim.Update(func(r *sandbox.Record) {
		r.Runtimes, r.InstanceTag = nil, ""
		r.Info.State = sandbox.StateStopped
		if !clean {
			// A write may have been under way.
			if !slices.Contains(r.PendingSweep, g.tag) {
				r.PendingSweep = append(r.PendingSweep, g.tag)
			}
			r.Info.Detail = reason.Error()
		}
	}), g.claim.Release())
	if err := errors.Join(failures...); err != nil {
		g.b.log.Error("the end of a sandbox left something behind", "sandbox", g.resolved.ID, "error", err)
	}
	g.b.drop(g.resolved.ID, s)
}

// selfUID is the user of this process.
func (b *Backend) selfUID() int { return os.Geteuid() }
