package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/workberth/workberth/sandbox"
)

// terminateHow is the same of every backend.
func terminateHow(kind) string {
	return "A command starts 99 processes and becomes the hundredth: a third in sessions of their own, a third forked " +
		"twice so that they are nobody's children, a third forked twice and with an empty environment; all 99 ignore " +
		"SIGTERM. Then it is terminated. That all 100 run, and that none does when the call returns, is seen from " +
		"outside, in this machine's own list of processes."
}

const (
	treeProcesses  = 100
	terminateGrace = 200 * time.Millisecond
	// terminateSlack is what may pass beyond the grace.
	terminateSlack = 500 * time.Millisecond
)

// treeScript makes the tree. $0 is the argument of sleep that marks its processes.
const treeScript = `n=0
while [ $n -lt 33 ]; do
	setsid sh -c 'trap "" TERM; exec sleep "$0"' "$0" &
	(setsid sh -c 'trap "" TERM; exec sleep "$0"' "$0" &)
	(setsid sh -c 'trap "" TERM; exec env -i sleep "$0"' "$0" &)
	n=$((n+1))
done
exec sleep "$0"`

// terminate measures the end of process trees.
func terminate(ctx context.Context, b *Bench) (rows []Row, err error) {
	x, err := b.open(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, x.remove(ctx)) }()
	runs := b.pick(100, 5)
	var taken []time.Duration
	bad := 0
	var first error
	for i := range runs {
		elapsed, err := terminateTree(ctx, x, fmt.Sprintf("%d.%d", 1_000_000+i, os.Getpid()))
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if survived := (*survivedError)(nil); errors.As(err, &survived) {
			bad++
			first = errors.Join(first, err)
		} else if err != nil {
			return nil, err
		}
		taken = append(taken, elapsed)
	}
	return []Row{
		{
			Measured: fmt.Sprintf("terminate %d processes, grace %s", treeProcesses, terminateGrace),
			Ours:     times(taken).quantity(Seconds),
			Budget:   Budget{MaxWorst: (terminateGrace + terminateSlack).Seconds()},
		},
		{
			Measured: fmt.Sprintf("of %d runs, those with a survivor or another answer than \"gone\"", runs),
			Ours:     tally(bad, runs), Budget: Budget{Zero: true},
		},
	}, first
}

// survivedError says that a termination did not do what it has to.
type survivedError struct {
	left   int
	result sandbox.TerminateResult
}

func (e *survivedError) Error() string {
	return fmt.Sprintf("%d processes are left after the answer %q %v", e.left, e.result.Outcome, e.result.Pids)
}

// terminateTree starts a tree and ends it. It returns how long ending took.
func terminateTree(ctx context.Context, x *box, mark string) (time.Duration, error) {
	cmd := sandbox.Command{Argv: []string{"sh", "-c", treeScript, mark}}
	r, err := sandbox.Start(ctx, x.sb, cmd, nil, sandbox.IO{}, sandbox.StartOptions{})
	if err != nil {
		return 0, err
	}
	if err := awaitTree(ctx, r, mark); err != nil {
		_, ended := r.Terminate(ctx, time.Nanosecond)
		return 0, errors.Join(err, ended)
	}
	start := time.Now()
	result, err := r.Terminate(ctx, terminateGrace)
	elapsed := time.Since(start)
	if err != nil {
		return elapsed, err
	}
	left, err := running("sleep", mark)
	if err != nil {
		return elapsed, err
	}
	if left > 0 || result.Outcome != sandbox.TerminationGone {
		return elapsed, &survivedError{left, result}
	}
	_, err = r.Wait(ctx)
	return elapsed, err
}

// awaitTree returns when the whole tree runs.
func awaitTree(ctx context.Context, r *sandbox.Running, mark string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		n, err := running("sleep", mark)
		if err != nil || n == treeProcesses {
			return err
		}
		select {
		case <-tick.C:
		case <-r.Done():
			status, _ := r.Wait(ctx)
			return fmt.Errorf("the tree ended by itself: %+v", status)
		case <-ctx.Done():
			return fmt.Errorf("%d of %d processes came up: %w", n, treeProcesses, ctx.Err())
		}
	}
}

// tally is a count of something that may not happen, among so many chances.
func tally(n, chances int) *Quantity {
	v := float64(n)
	return &Quantity{Unit: Count, P50: v, P95: v, Worst: v, Samples: chances}
}
