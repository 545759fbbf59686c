package bench

import (
	"context"
	"fmt"
	"time"
)

// contender is one of the things that are timed against each other.
type contender struct {
	name string
	// per is the number of samples in each round; zero means 1. Cheap operations take several.
	per int
	// before prepares each run and is not timed; nil means nothing to do.
	before func(ctx context.Context) error
	// run is what is timed.
	run func(ctx context.Context) error
	// after cleans up behind each run and is not timed; nil means nothing to do.
	after func(ctx context.Context) error
}

// timed is what became of a contender.
type timed struct {
	name  string
	times series
	// err is why it dropped out.
	err error
}

// race runs all contenders in each round, in turns: the one that begins changes from round to
// round. The first warm rounds are not counted. A contender that fails drops out and keeps its
// error; when it is the first, which is ours, the race is over. race itself fails only with ctx.
func race(ctx context.Context, rounds, warm int, contenders ...contender) ([]timed, error) {
	out := make([]timed, len(contenders))
	taken := make([][]time.Duration, len(contenders))
	for i, c := range contenders {
		out[i].name = c.name
	}
	for round := range warm + rounds {
		for turn := range contenders {
			i := (round + turn) % len(contenders)
			if out[i].err != nil || out[0].err != nil {
				continue
			}
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			samples, err := contenders[i].round(ctx)
			if err != nil {
				out[i].err = fmt.Errorf("%s: %w", contenders[i].name, err)
			} else if round >= warm {
				taken[i] = append(taken[i], samples...)
			}
		}
	}
	for i := range out {
		out[i].times = times(taken[i])
	}
	return out, nil
}

// round takes one round's samples.
func (c contender) round(ctx context.Context) ([]time.Duration, error) {
	samples := make([]time.Duration, 0, max(c.per, 1))
	for range max(c.per, 1) {
		if c.before != nil {
			if err := c.before(ctx); err != nil {
				return nil, err
			}
		}
		start := time.Now()
		err := c.run(ctx)
		samples = append(samples, time.Since(start))
		if c.after != nil {
			if cleaned := c.after(ctx); err == nil {
				err = cleaned
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return samples, nil
}
