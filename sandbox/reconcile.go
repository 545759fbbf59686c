package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
)

// Reaped is what reconciliation found of one sandbox whose owner had died.
type Reaped struct {
	ID ID
	// Owner is the process that died.
	Owner ProcessRef
	// Killed are the processes that were ended, Left those that could not be.
	Killed []ProcessRef
	Left   []ProcessRef
	// Tag of the life that ended; it is in the record's PendingSweep now.
	Tag string
	// Err says why something is left.
	Err error
}

// KillFunc ends one process of a dead owner's sandbox. It is called only for a
// process that is provably the recorded one (pid, start time, boot id) and alive.
// Nil means [ProcessRef.Kill].
type KillFunc func(ctx context.Context, rec Record, runtime ProcessRef) error

// Reconcile looks for sandboxes of a backend ("" means all) whose owner died without
// stopping them, ends what is provably theirs, and marks them stopped. Sandboxes of
// live owners, and processes that cannot be proved to belong to one of ours, are not
// touched. What was reaped is logged with the reason. Doing it again finds nothing.
//
// The error tells what could not be looked at; a broken record is set aside and no
// error. Several processes may reconcile at the same time.
func (r *Registry) Reconcile(ctx context.Context, backend string, kill KillFunc) ([]Reaped, error) {
	if kill == nil {
		kill = func(ctx context.Context, _ Record, runtime ProcessRef) error { return runtime.Kill(ctx) }
	}
	ids, err := r.ids(backend)
	if err != nil {
		return nil, err
	}
	var reaped []Reaped
	var failures []error
	for _, id := range ids {
		if ctx.Err() != nil {
			return reaped, errors.Join(append(failures, ctx.Err())...)
		}
		if rec, err := readRecord(r.entry(id), id); err == nil && !rec.orphaned() {
			continue // the usual case, without a lock
		}
		one, err := r.reconcileOne(ctx, id, kill)
		if err != nil && !errors.Is(err, ErrInUse) {
			failures = append(failures, fmt.Errorf("sandbox %s: %w", id, err))
		}
		if one != nil {
			reaped = append(reaped, *one)
		}
	}
	return reaped, errors.Join(failures...)
}

// orphaned reports whether the record tells of a life that nobody ended.
func (r Record) orphaned() bool {
	if r.Info.Owner.Alive() {
		return false
	}
	return !r.Info.Owner.IsZero() || r.Info.State == StateRunning || len(r.Runtimes) > 0 || r.InstanceTag != ""
}

func (r *Registry) reconcileOne(ctx context.Context, id ID, kill KillFunc) (*Reaped, error) {
	claim, err := r.Claim(ctx, id)
	if err != nil {
		return nil, err
	}
	rec, known := claim.Record()
	if !known {
		return nil, r.dropEmpty(ctx, claim)
	}
	if !rec.orphaned() {
		return nil, claim.giveBack()
	}
	reaped := claim.reap(ctx, kill)
	r.log.Warn("reaped a sandbox whose owner had died",
		"sandbox", id, "owner", reaped.Owner, "killed", reaped.Killed, "left", reaped.Left, "tag", reaped.Tag, "error", reaped.Err)
	return &reaped, claim.giveBack()
}

// Reap ends what the last life of this sandbox left, as [Registry.Reconcile] does, and
// marks it stopped. A backend calls it on a fresh claim in Ensure. ok is false when
// there was nothing to do. A Reaped with Err set means that processes may be left: the
// sandbox must not be started.
func (c *Claim) Reap(ctx context.Context, kill KillFunc) (reaped Reaped, ok bool) {
	if kill == nil {
		kill = func(ctx context.Context, _ Record, runtime ProcessRef) error { return runtime.Kill(ctx) }
	}
	c.mu.Lock()
	rec, known := c.record, c.known
	// The claim made this process the owner, but the record still names the last one.
	orphaned := known && (rec.orphaned() || rec.Info.Owner == c.self)
	c.mu.Unlock()
	if !orphaned {
		return Reaped{}, false
	}
	reaped = c.reap(ctx, kill)
	c.registry.log.Warn("reaped the last life of a sandbox whose owner had died",
		"sandbox", c.id, "owner", reaped.Owner, "killed", reaped.Killed, "left", reaped.Left, "tag", reaped.Tag, "error", reaped.Err)
	return reaped, true
}

func (c *Claim) reap(ctx context.Context, kill KillFunc) Reaped {
	c.mu.Lock()
	defer c.mu.Unlock()
	rec := c.record.clone()
	reaped := Reaped{ID: c.id, Owner: rec.Info.Owner}
	var failures []error
	for _, p := range rec.Runtimes {
		if !p.Alive() {
			continue
		}
		err := kill(ctx, rec, p)
		if err == nil && p.Alive() {
			err = fmt.Errorf("%s is still alive", p)
		}
		if err != nil {
			reaped.Left = append(reaped.Left, p)
			failures = append(failures, err)
			continue
		}
		reaped.Killed = append(reaped.Killed, p)
	}
	rec.Runtimes = reaped.Left
	if len(reaped.Left) == 0 {
		reaped.Tag = rec.InstanceTag
		if rec.InstanceTag != "" && !slices.Contains(rec.PendingSweep, rec.InstanceTag) {
			rec.PendingSweep = append(rec.PendingSweep, rec.InstanceTag)
		}
		rec.InstanceTag = ""
		rec.Info.State = StateStopped
		rec.Info.Detail = fmt.Sprintf("its owner, %s, had ended without stopping it", reaped.Owner)
	} else {
		rec.Info.State = StateDead
		rec.Info.Detail = fmt.Sprintf("its owner, %s, has ended, and processes of it are left", reaped.Owner)
	}
	if err := c.save(rec, ProcessRef{}, rec.Info.LastUsed); err != nil {
		failures = append(failures, err)
	}
	reaped.Err = errors.Join(failures...)
	return reaped
}

// dropEmpty removes an entry whose maker died before there was a record.
func (r *Registry) dropEmpty(ctx context.Context, c *Claim) error {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return errors.Join(err, c.Release())
	}
	for _, e := range entries {
		if e.Name() != "lock" { // a record set aside, files of a backend
			return c.Release()
		}
	}
	return errors.Join(c.Delete(ctx), c.Release())
}

// Leave ends a claim that was made only to look or to clear away: an entry without a record and with
// nothing in it, which the claim may have made, is removed. The record stays as it is.
func (c *Claim) Leave(ctx context.Context) error {
	if _, known := c.Record(); !known {
		return c.registry.dropEmpty(ctx, c)
	}
	return c.giveBack()
}

// giveBack ends the claim and leaves the record as it is.
func (c *Claim) giveBack() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lock == nil {
		return nil
	}
	return c.unlock()
}
