package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

const sandboxesHow = "All sandboxes are made at the same time by this one process, each on a workspace of its own, and each runs a command; against the same\n" +
	"one after the other. Then they idle. The memory of an idle sandbox on this machine is what this process has grown by, shared out, and\n" +
	"its `bwrap` process; pages that several processes share are divided among them. Inside there are the helper and the\n" +
	"reaper it keeps ready for the next command; a resident size counts shared pages in full. The owner is the process that `berth` calls\n" +
	"for one sandbox share."

// Budgets of memory, in bytes.
const (
	maxHostMemory = 1 << 20
	maxHelperRSS  = 12 << 20
)

// sandboxes measures many sandboxes.
func sandboxes(ctx context.Context, b *Bench) (rows []Row, err error) {
	n, rounds := b.pick(64, 8), b.pick(3, 1)
	c := &crowd{bench: b}
	defer func() { err = errors.Join(err, c.remove(ctx)) }()
	results, err := race(ctx, rounds, 0,
		contender{name: "together", run: func(ctx context.Context) error { return c.make(ctx, n, n) }, after: c.remove},
		contender{name: "one after the other", run: func(ctx context.Context) error { return c.make(ctx, n, 1) }, after: c.remove})
	if err != nil {
		return nil, err
	}
	row, err := compare(Row{Measured: fmt.Sprintf("create %d sandboxes and run a command in each", n)}, Speed, results[0], results[1])
	if err != nil {
		return nil, err
	}
	wrong := Row{
		Measured: fmt.Sprintf("of %d sandboxes, those that failed", 2*rounds*n),
		Ours:     tally(len(c.failures), 2*rounds*n), Budget: Budget{Zero: true},
	}
	if len(c.failures) > 0 {
		wrong.Note = tail(c.failures[0].Error())
	}
	idle, err := c.idle(ctx, n)
	rows = append([]Row{row, wrong}, idle...)
	if err != nil {
		return rows, err
	}
	owner, err := b.ownerMemory(ctx)
	return append(rows, owner...), err
}

// crowd is a number of sandboxes at the same time.
type crowd struct {
	bench *Bench

	mu       sync.Mutex
	boxes    []*box
	failures []error
}

// make makes n sandboxes, so many at a time, and runs a command in each.
func (c *crowd) make(ctx context.Context, n, parallel int) error {
	var wg sync.WaitGroup
	turn := make(chan struct{}, parallel)
	for range n {
		turn <- struct{}{}
		wg.Go(func() {
			defer func() { <-turn }()
			x, err := c.bench.open(ctx, nil)
			if err == nil {
				err = trueCommand(ctx, x.sb)
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			if x != nil {
				c.boxes = append(c.boxes, x)
			}
			if err != nil {
				c.failures = append(c.failures, err)
			}
		})
	}
	wg.Wait()
	return ctx.Err()
}

// remove removes all.
func (c *crowd) remove(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, x := range c.boxes {
		errs = append(errs, x.remove(ctx))
	}
	c.boxes = nil
	return errors.Join(errs...)
}

// idle measures the memory of n sandboxes that do nothing.
func (c *crowd) idle(ctx context.Context, n int) ([]Row, error) {
	before, err := ownMemory()
	if err != nil {
		return nil, err
	}
	if err := c.make(ctx, n, n); err != nil {
		return nil, err
	}
	after, err := ownMemory()
	if err != nil {
		return nil, err
	}
	grown := max(after.pss-before.pss, 0) / float64(n)
	outside, inside, err := settled(ctx, n)
	if err != nil {
		return nil, err
	}
	var monitors, helpers, resident, shared series
	for _, m := range outside {
		monitors = append(monitors, m.pss)
	}
	for _, m := range inside {
		helpers = append(helpers, m.helper.rss)
		resident = append(resident, m.all.rss)
		shared = append(shared, m.all.pss)
	}
	host := series{grown}
	if len(monitors) > 0 {
		host = nil
		for _, m := range monitors {
			host = append(host, grown+m)
		}
	}
	return []Row{
		{Measured: fmt.Sprintf("memory on this machine per idle sandbox, %d of them", n), Ours: host.quantity(Bytes), Budget: Budget{MaxP50: maxHostMemory}},
		{Measured: "of it in the process that holds them", Ours: series{grown}.quantity(Bytes)},
		{Measured: "helper, resident", Ours: helpers.quantity(Bytes), Budget: Budget{MaxWorst: maxHelperRSS}},
		{Measured: "helper and reaper, resident", Ours: resident.quantity(Bytes)},
		{Measured: "helper and reaper, their share of memory", Ours: shared.quantity(Bytes)},
	}, nil
}

// place is the memory of one sandbox, inside: of its helper, and of all its processes.
type place struct{ helper, all memory }

// settled waits until nothing starts or ends any more in n sandboxes: what ran the last commands
// may take a moment to go. It returns the memory of the bwrap processes, and of all processes
// inside each sandbox.
func settled(ctx context.Context, n int) (outside []memory, inside []place, err error) {
	const quiet = 20 // looks without a change
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	var before []process
	for same := 0; ; {
		all, err := processes()
		if err != nil {
			return nil, nil, err
		}
		now := below(all, os.Getpid())
		if same++; !slices.Equal(before, now) {
			before, same = now, 0
		}
		if same == quiet {
			outside, inside, err = byPlace(all, now)
			if err == nil && len(inside) != n {
				err = fmt.Errorf("%d helpers in %d idle sandboxes", len(inside), n)
			}
			return outside, inside, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, nil, fmt.Errorf("%d processes of %d idle sandboxes do not come to rest: %w", len(now), n, ctx.Err())
		}
	}
}

// byPlace adds up memory: each bwrap process by itself, each helper (who is nobody else's child of
// ours) with its descendants.
func byPlace(all, ours []process) (outside []memory, inside []place, err error) {
	monitor := map[int]bool{os.Getpid(): true}
	for _, p := range ours {
		monitor[p.pid] = p.comm == "bwrap"
	}
	for _, p := range ours {
		switch {
		case monitor[p.pid]:
			m, err := memoryOf(p.pid)
			if err != nil {
				return nil, nil, err
			}
			outside = append(outside, m)
		case monitor[p.parent]:
			helper, err := memoryOf(p.pid)
			if err != nil {
				return nil, nil, err
			}
			sum := helper
			for _, q := range below(all, p.pid) {
				m, err := memoryOf(q.pid)
				if err != nil {
					return nil, nil, err
				}
				sum.rss, sum.pss = sum.rss+m.rss, sum.pss+m.pss
			}
			inside = append(inside, place{helper, sum})
		}
	}
	return outside, inside, nil
}

// ownMemory is the memory of this process, less what is garbage.
func ownMemory() (memory, error) {
	runtime.GC()
	debug.FreeOSMemory()
	return memoryOf(os.Getpid())
}

// ownerMemory measures the process that the berth program leaves behind for the next call.
func (b *Bench) ownerMemory(ctx context.Context) (rows []Row, err error) {
	berth, err := b.cli()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, berth.remove(ctx)) }()
	ws, err := b.workspace()
	if err != nil {
		return nil, err
	}
	if err := runQuiet(berth.exec(ctx, ws, "owner", "/bin/true")); err != nil {
		return nil, err
	}
	owners, err := programs(b.Berth)
	if err != nil {
		return nil, err
	}
	var resident series
	for _, pid := range owners {
		m, err := memoryOf(pid)
		if err != nil {
			return nil, err
		}
		resident = append(resident, m.rss)
	}
	return []Row{{Measured: "owner process of `berth`, resident", Ours: resident.quantity(Bytes)}}, nil
}
