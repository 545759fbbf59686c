package bubblewrap

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/workberth/workberth/sandbox"
)

// Stop ends all processes of a sandbox, whoever holds it; its files stay. What is
// ended is proved to be the recorded process first.
func (b *Backend) Stop(ctx context.Context, id sandbox.ID) error {
	s, give, err := b.take(ctx, id)
	if err != nil {
		return err
	}
	defer give()
	if box := b.current(s); box != nil {
		return box.Stop(ctx, errStopped)
	}
	return b.stopElsewhere(ctx, id)
}

// stopElsewhere ends a sandbox that this process does not hold.
func (b *Backend) stopElsewhere(ctx context.Context, id sandbox.ID) error {
	rec, err := b.registry.Get(id)
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
		return errors.Join(failures...)
	}
	claim, err := b.registry.Claim(ctx, id)
	if errors.Is(err, sandbox.ErrInUse) {
		return nil // somebody has just taken it over
	}
	if err != nil {
		return err
	}
	defer claim.Release() //nolint:errcheck // the record was saved by Reap
	return buryClaimed(ctx, claim)
}

// buryClaimed ends what a dead owner has left of a claimed sandbox.
func buryClaimed(ctx context.Context, claim *sandbox.Claim) error {
	reaped, _ := claim.Reap(ctx, nil)
	return errors.Join(reaped.Err, clearGroup(ctx, claim))
}

// Remove stops a sandbox and deletes its record and its scratch directory. The
// workspace is not touched.
func (b *Backend) Remove(ctx context.Context, id sandbox.ID) error {
	if !id.Valid() || id.Backend() != Name {
		return nil
	}
	if err := b.Stop(ctx, id); err != nil {
		return err
	}
	_, give, err := b.take(ctx, id)
	if err != nil {
		return err
	}
	defer give()
	return b.delete(ctx, id)
}

// delete deletes a sandbox that was stopped; the caller has its turn.
func (b *Backend) delete(ctx context.Context, id sandbox.ID) error {
	if _, err := b.registry.Get(id); errors.Is(err, sandbox.ErrNotFound) {
		return nil
	}
	claim, err := b.claimStopped(ctx, id)
	if err != nil {
		return err
	}
	if err := buryClaimed(ctx, claim); err != nil {
		return errors.Join(err, claim.Release())
	}
	return errors.Join(claim.Delete(ctx), claim.Release())
}

// giveUpBound is how long the owner of a sandbox that was stopped may take to
// give it up.
const giveUpBound = 10 * time.Second

// claimStopped claims a sandbox whose owner is about to give it up.
func (b *Backend) claimStopped(ctx context.Context, id sandbox.ID) (*sandbox.Claim, error) {
	ctx, cancel := context.WithTimeout(ctx, giveUpBound)
	defer cancel()
	wait := time.Millisecond
	for {
		claim, err := b.registry.Claim(ctx, id)
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
