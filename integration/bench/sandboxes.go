package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
)

// sandboxesHow tells what sandboxes does.
func sandboxesHow(k kind) string {
	return "All sandboxes are made at the same time by this one process, each on a workspace of its own, and each runs a command; " +
		"against the same one after the other. Then they idle. The memory of an idle sandbox on this machine is what this process " +
		"has grown by, shared out" + k.choose("; what the engine has for each container, a process that watches it and the init "+
		"inside, is told apart, and what its own service grows by is not counted; ", ", and its `bwrap` process; ") +
		"pages that several processes share are divided among them. Inside there are the helper and the reaper it keeps ready for " +
		"the next command; a resident size counts shared pages in full. The owner is the process that `berth` calls for one sandbox share."
}

// Budgets of memory, in bytes.
const (
	maxHostMemory = 1 << 20
	maxHelperRSS  = 12 << 20
)

// sandboxes measures many sandboxes.
func sandboxes(ctx context.Context, b *Bench) (rows []Row, err error) {
	n, rounds := b.pick(64, b.kind().fewer(8, 4)), b.pick(b.kind().fewer(3, 1), 1)
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
	idle, err := c.idle(ctx, n)
	made := (2*rounds + 1) * n
	wrong := Row{
		Measured: fmt.Sprintf("of %d sandboxes, those that failed", made),
		Ours:     tally(len(c.failures), made), Budget: Budget{Zero: true},
	}
	if len(c.failures) > 0 {
		wrong.Note = tail(c.failures[0].Error())
	}
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
	households, err := c.households(ctx, n)
	if err != nil {
		return nil, err
	}
	var host, engine, helpers, resident, shared series
	for _, h := range households {
		host = append(host, grown+h.ours.pss)
		engine = append(engine, h.engine.pss)
		helpers = append(helpers, h.helper.rss)
		resident = append(resident, h.inside.rss)
		shared = append(shared, h.inside.pss)
	}
	rows := []Row{
		{Measured: fmt.Sprintf("memory on this machine per idle sandbox, %d of them", n), Ours: host.quantity(Bytes), Budget: Budget{MaxP50: maxHostMemory}},
		{Measured: "of it in the process that holds them", Ours: series{grown}.quantity(Bytes)},
	}
	if c.bench.kind().contained {
		rows[1] = Row{Measured: "the engine's for each of them", Ours: engine.quantity(Bytes)}
	}
	return append(rows,
		Row{Measured: "helper, resident", Ours: helpers.quantity(Bytes), Budget: Budget{MaxWorst: maxHelperRSS}},
		Row{Measured: "helper and reaper, resident", Ours: resident.quantity(Bytes)},
		Row{Measured: "helper and reaper, their share of memory", Ours: shared.quantity(Bytes)},
	), nil
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
