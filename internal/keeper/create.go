package keeper

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/workberth/workberth/internal/guestbox"
	"github.com/workberth/workberth/sandbox"
)

// generation is one life of a sandbox and what it takes to end it.
type generation struct {
	k    *Keeper
	slot *slot
	Birth
	life *Life
	// saved gives the result of writing the early record; nil when there is none.
	saved chan error
	// early record, as far as it can differ from the final one
	refs  []sandbox.ProcessRef
	facts map[string]string
}

// create starts a new generation and returns its first handle.
func (k *Keeper) create(ctx context.Context, s *slot, resolved sandbox.Resolved) (*guestbox.Handle, error) {
	claim, err := k.claim(ctx, resolved.ID)
	if err != nil {
		return nil, err
	}
	g := &generation{k: k, slot: s, Birth: Birth{Resolved: resolved, Claim: claim, Tag: newTag()}}
	g.Early = g.early
	before, known := claim.Record()
	box, err := g.begin(ctx)
	if err != nil {
		return nil, errors.Join(err, g.abandon(before, known))
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
func (k *Keeper) claim(ctx context.Context, id sandbox.ID) (*sandbox.Claim, error) {
	deadline := time.Now().Add(endBound)
	wait := time.Millisecond
	for {
		claim, err := k.opts.Registry.Claim(ctx, id)
		var held *sandbox.InUseError
		if !errors.As(err, &held) || time.Now().After(deadline) {
			return claim, err
		}
		if rec, e := k.opts.Registry.Get(id); e == nil && rec.Info.Owner == held.Owner && held.Owner.Alive() {
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

// begin brings the generation to life and keeps it.
func (g *generation) begin(ctx context.Context) (*guestbox.Box, error) {
	if err := g.k.bury(ctx, g.Claim); err != nil {
		return nil, &sandbox.Problem{
			What: fmt.Sprintf("what the last life of sandbox %s has left could not be cleared away", g.Resolved.ID), Rule: err.Error(),
			Remedy: "end what is named by hand, then try again", Err: fmt.Errorf("%w: %w", sandbox.ErrUnavailable, err),
		}
	}
	life, err := g.k.opts.Start(ctx, g.Birth)
	saveErr := g.awaitEarly()
	if err != nil {
		return nil, err
	}
	g.life = life
	if saveErr != nil || !slices.Equal(g.refs, life.Refs) || !maps.Equal(g.facts, life.Facts) {
		if err := g.Claim.Save(g.record(life)); err != nil {
			return nil, err
		}
	}
	rec, _ := g.Claim.Record() // with the times that were filled in
	info := rec.Info
	info.Config = g.Resolved.Spec.Config
	box := guestbox.New(guestbox.Options{
		Conn: life.Conn, Runtime: life.Runtime, Info: info,
		Env: life.Env, ConfigEnv: g.Resolved.Spec.Config.Env, Limits: life.Limits,
		OnEnd: g.end, Logger: g.k.log,
	})
	g.k.keep(g.slot, box)
	return box, nil
}

// early writes the record while the helper comes to life: making a record durable
// takes about as long as making a sandbox.
func (g *generation) early(l *Life) {
	_ = g.awaitEarly() // the last one counts
	g.refs, g.facts = slices.Clone(l.Refs), maps.Clone(l.Facts)
	rec := g.record(l)
	g.saved = make(chan error, 1)
	go func() { g.saved <- g.Claim.Save(rec) }()
}

// awaitEarly waits until nothing writes the record. Without an early record it
// returns an error.
func (g *generation) awaitEarly() error {
	if g.saved == nil {
		return errNoRecord
	}
	err := <-g.saved
	g.saved = nil
	return err
}

// errNoRecord: there is no early record.
var errNoRecord = errors.New("no record was written")

// abandon gives up before there is a box. A sandbox that did not exist before does
// not exist afterwards, and one that did is as it was.
func (g *generation) abandon(before sandbox.Record, known bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), endBound)
	defer cancel()
	var failures []error
	if l := g.life; l != nil {
		failures = append(failures, l.Conn.Close(), l.Runtime.Kill(ctx), l.release(ctx))
	}
	if known {
		failures = append(failures, g.Claim.Update(func(r *sandbox.Record) { *r = before }))
	} else {
		failures = append(failures, g.k.discard(ctx, g.Claim))
	}
	return errors.Join(append(failures, g.Claim.Release())...)
}

// release frees what a life holds.
func (l *Life) release(ctx context.Context) error {
	if l.Release == nil {
		return nil
	}
	return l.Release(ctx)
}

// record is what the registry keeps while the generation lives.
func (g *generation) record(l *Life) sandbox.Record {
	rec, _ := g.Claim.Record()
	spec := g.Resolved.Spec
	rec.Info = sandbox.Info{
		Backend: g.k.opts.Backend, State: sandbox.StateRunning, Scope: spec.Scope, Session: spec.Session, Agent: spec.Agent,
		Workspace: spec.Workspace, Workdir: l.Workdir, Mounts: l.Mounts,
		Config: spec.Config, ConfigHash: g.Resolved.ConfigHash, Created: rec.Info.Created, Runtime: l.Facts,
	}
	rec.Runtimes = l.Refs
	rec.InstanceTag = g.Tag
	rec.Scratch = l.Scratch
	if l.Fresh {
		rec.SetupDone = false
	}
	if spec.Config.SetupCommand == "" {
		rec.SetupDone = true
	}
	return rec
}

// settle does what a new generation needs before it is handed out: it clears away
// what earlier ones left inside, and runs the setup command of a new sandbox.
func (g *generation) settle(ctx context.Context, box *guestbox.Box, h *guestbox.Handle) error {
	rec, _ := g.Claim.Record()
	if len(rec.PendingSweep) > 0 {
		left, err := box.Sweep(ctx, rec.PendingSweep)
		if err != nil {
			g.k.log.Warn("what an earlier life left could not be cleared away", "sandbox", g.Resolved.ID, "error", err)
		}
		if err := g.Claim.Update(func(r *sandbox.Record) { r.PendingSweep = left }); err != nil {
			return errors.Join(err, h.Close())
		}
	}
	if rec.SetupDone {
		return nil
	}
	err := guestbox.Setup(ctx, h, g.Resolved.Spec.Config.SetupCommand, g.k.log)
	if err == nil {
		if err = g.Claim.Update(func(r *sandbox.Record) { r.SetupDone = true }); err == nil {
			return nil
		}
	}
	closeErr := h.Close()
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endBound)
	defer cancel()
	return errors.Join(err, closeErr, g.k.delete(ending, g.Resolved.ID))
}

// end releases what the generation holds, after its processes have ended.
func (g *generation) end(reason error) {
	ctx, cancel := context.WithTimeout(context.Background(), endBound)
	defer cancel()
	clean := g.life.Runtime.Clean()
	err := errors.Join(g.life.release(ctx), g.Claim.Update(func(r *sandbox.Record) {
		r.Runtimes, r.InstanceTag = nil, ""
		r.Info.State = sandbox.StateStopped
		if !clean {
			// A write may have been under way.
			if !slices.Contains(r.PendingSweep, g.Tag) {
				r.PendingSweep = append(r.PendingSweep, g.Tag)
			}
			r.Info.Detail = reason.Error()
		}
	}), g.Claim.Release())
	if err != nil {
		g.k.log.Error("the end of a sandbox left something behind", "sandbox", g.Resolved.ID, "error", err)
	}
	g.k.drop(g.Resolved.ID, g.slot)
}
