package sandbox

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// PruneOptions direct Registry.Prune.
type PruneOptions struct {
	// Backend limits it to one backend; "" means all.
	Backend string
	// DryRun only tells what would be removed.
	DryRun bool
	// Default applies to sandboxes whose own configuration never prunes; its zero
	// value keeps them.
	Default Prune
	// Remove removes what the backend keeps outside the entry, before the entry is
	// deleted. The claim is held. Nil means that there is nothing.
	Remove func(ctx context.Context, c *Claim) error
}

// Pruned is a sandbox that was removed, or would be.
type Pruned struct {
	Info   Info
	Reason string
	// Err says why it could not be removed.
	Err error
}

// Prune removes sandboxes that nobody holds and that were not used for longer than
// their idleHours, or are older than their maxAgeDays. A sandbox with a live owner is
// never removed, neither is one with processes that could not be ended: reconcile
// first. A moment in the future counts as now.
func (r *Registry) Prune(ctx context.Context, opts PruneOptions) ([]Pruned, error) {
	records, _, err := r.List(opts.Backend)
	if err != nil {
		return nil, err
	}
	var pruned []Pruned
	for _, rec := range records {
		if ctx.Err() != nil {
			return pruned, ctx.Err()
		}
		reason := r.expired(rec, opts.Default)
		if reason == "" {
			continue
		}
		p := Pruned{Info: rec.Describe(), Reason: reason}
		if !opts.DryRun {
			removed, err := r.pruneOne(ctx, rec.Info.ID, opts)
			if err == nil && !removed {
				continue // somebody has just used it
			}
			p.Err = err
			r.log.Info("pruned a sandbox", "sandbox", rec.Info.ID, "reason", reason, "error", err)
		}
		pruned = append(pruned, p)
	}
	return pruned, nil
}

// expired tells why a sandbox may go; "" means that it may not.
func (r *Registry) expired(rec Record, byDefault Prune) string {
	if rec.Info.Owner.Alive() || rec.orphaned() {
		return ""
	}
	rule := rec.Info.Config.Prune
	if rule == (Prune{}) {
		rule = byDefault
	}
	now := r.now()
	if limit := hours(rule.IdleHours); limit > 0 && now.Sub(rec.Info.LastUsed) > limit {
		return fmt.Sprintf("not used since %s, idleHours is %g", rec.Info.LastUsed.Format(time.DateTime), rule.IdleHours)
	}
	if limit := hours(24 * rule.MaxAgeDays); limit > 0 && now.Sub(rec.Info.Created) > limit {
		return fmt.Sprintf("made on %s, maxAgeDays is %g", rec.Info.Created.Format(time.DateTime), rule.MaxAgeDays)
	}
	return ""
}

// hours converts, and takes more than a duration can hold for never.
func hours(h float64) time.Duration {
	if h <= 0 || h > float64(1<<62)/float64(time.Hour) {
		return 0
	}
	return time.Duration(h * float64(time.Hour))
}

func (r *Registry) pruneOne(ctx context.Context, id ID, opts PruneOptions) (bool, error) {
	claim, err := r.Claim(ctx, id)
	if errors.Is(err, ErrInUse) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	// Again, now that nobody else can change it.
	if rec, known := claim.Record(); !known || r.expired(rec, opts.Default) == "" {
		return false, claim.giveBack()
	}
	if opts.Remove != nil {
		if err := opts.Remove(ctx, claim); err != nil {
			return false, errors.Join(err, claim.giveBack())
		}
	}
	if err := claim.Delete(ctx); err != nil {
		return false, errors.Join(err, claim.giveBack())
	}
	return true, nil
}
