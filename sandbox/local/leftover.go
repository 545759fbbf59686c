package local

import (
	"context"
	"errors"

	"github.com/workberth/workberth/sandbox"
)

// Without a process namespace commands can outlive their helper. What they leave is
// found by the tag in its environment, which names the generation.

// quell ends what the generation of a record has left.
func quell(ctx context.Context, rec sandbox.Record) error { return sweep(ctx, rec.InstanceTag) }

// sweep ends what a generation has left.
func sweep(ctx context.Context, tag string) error {
	if tag == "" {
		return nil
	}
	_, err := searcher().Sweep(ctx, tag)
	return err
}

// clearAway ends what dead generations of a claimed sandbox have left. Their tags stay
// in the record: the next helper looks for temporary files by them.
func clearAway(ctx context.Context, claim *sandbox.Claim) error {
	rec, _ := claim.Record()
	var failures []error
	for _, tag := range rec.PendingSweep {
		failures = append(failures, sweep(ctx, tag))
	}
	return errors.Join(failures...)
}

// clearAll does so for every sandbox that nobody holds.
func (b *Backend) clearAll(ctx context.Context) error {
	records, _, err := b.registry.List(Name)
	failures := []error{err}
	for _, rec := range records {
		if len(rec.PendingSweep) == 0 || rec.Info.Owner.Alive() {
			continue // the usual case, without a lock
		}
		claim, err := b.registry.Claim(ctx, rec.Info.ID)
		if errors.Is(err, sandbox.ErrInUse) {
			continue
		}
		if err == nil {
			err = errors.Join(clearAway(ctx, claim), claim.Leave(ctx))
		}
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}
