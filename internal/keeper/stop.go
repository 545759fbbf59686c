package keeper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/workberth/workberth/sandbox"
)

// errStopped is the reason of those who still hold a sandbox that was stopped.
var errStopped = errors.New("it was stopped")

// Stop ends all processes of a sandbox, whoever holds it; its files stay. What is
// ended is proved to be the recorded process first.
func (k *Keeper) Stop(ctx context.Context, id sandbox.ID) error {
	s, give, err := k.take(ctx, id)
	if err != nil {
		return err
	}
	defer give()
	if box := k.current(s); box != nil {
		return box.Stop(ctx, errStopped)
	}
	return k.stopElsewhere(ctx, id)
}

// stopElsewhere ends a sandbox that this process does not hold.
func (k *Keeper) stopElsewhere(ctx context.Context, id sandbox.ID) error {
	rec, err := k.opts.Registry.Get(id)
	if errors.Is(err, sandbox.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if rec.Info.Owner.Alive() {
		var failures []error
		for _, p := range rec.Runtimes {
			failures = append(failures, p.Kill(ctx))
		}
		if k.opts.Quell != nil {
			failures = append(failures, k.opts.Quell(ctx, rec))
		}
		return errors.Join(failures...)
	}
	claim, err := k.opts.Registry.Claim(ctx, id)
	if errors.Is(err, sandbox.ErrInUse) {
		return nil // somebody has just taken it over
	}
	if err != nil {
		return err
	}
	return errors.Join(k.bury(ctx, claim), claim.Release())
}

// bury ends and clears away what a dead owner has left of a claimed sandbox.
func (k *Keeper) bury(ctx context.Context, claim *sandbox.Claim) error {
	reaped, _ := claim.Reap(ctx, nil)
	if reaped.Err != nil || k.opts.Clear == nil {
		return reaped.Err
	}
	return k.opts.Clear(ctx, claim)
}

// Remove stops a sandbox and deletes its record and its scratch directory. The
// workspace is not touched.
func (k *Keeper) Remove(ctx context.Context, id sandbox.ID) error {
	if !id.Valid() || id.Backend() != k.opts.Backend {
		return nil
	}
	if err := k.Stop(ctx, id); err != nil {
		return err
	}
	_, give, err := k.take(ctx, id)
	if err != nil {
		return err
	}
	defer give()
	return k.delete(ctx, id)
}

// delete deletes a sandbox that was stopped; the caller has its turn.
func (k *Keeper) delete(ctx context.Context, id sandbox.ID) error {
	if _, err := k.opts.Registry.Get(id); errors.Is(err, sandbox.ErrNotFound) {
		return nil
	}
	claim, err := k.claimStopped(ctx, id)
	if err != nil {
		return err
	}
	if err := k.bury(ctx, claim); err != nil {
		return errors.Join(err, claim.Release())
	}
	return errors.Join(k.discard(ctx, claim), claim.Release())
}

// discard deletes a claimed sandbox, elsewhere first: what cannot be deleted stays on
// record.
func (k *Keeper) discard(ctx context.Context, claim *sandbox.Claim) error {
	if k.opts.Discard != nil {
		if err := k.opts.Discard(ctx, claim); err != nil {
			return err
		}
	}
	return claim.Delete(ctx)
}

// claimStopped claims a sandbox whose owner is about to give it up.
func (k *Keeper) claimStopped(ctx context.Context, id sandbox.ID) (*sandbox.Claim, error) {
	ctx, cancel := context.WithTimeout(ctx, endBound)
	defer cancel()
	wait := time.Millisecond
	for {
		claim, err := k.opts.Registry.Claim(ctx, id)
		if !errors.Is(err, sandbox.ErrInUse) {
			return claim, err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
			wait = min(2*wait, 50*time.Millisecond)
		case <-ctx.Done():
			timer.Stop()
			return nil, fmt.Errorf("the sandbox was stopped, but its owner keeps it: %w", err)
		}
	}
}
