package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// household is the memory of one idle sandbox.
type household struct {
	// ours is a process outside that is there for it alone; engine are those of the engine.
	ours, engine memory
	// helper is the guest helper, inside all that it has started and itself.
	helper, inside memory
}

// households waits until nothing starts or ends any more in the n sandboxes of the crowd: what ran the
// last commands may take a moment to go. Then it looks at each of them.
func (c *crowd) households(ctx context.Context, n int) ([]household, error) {
	roots, err := c.roots(ctx)
	if err != nil {
		return nil, err
	}
	all, err := settled(ctx, roots)
	if err != nil {
		return nil, err
	}
	find := bwrapHouseholds
	if c.bench.kind().contained {
		find = containerHouseholds
	}
	found, err := find(all, roots)
	if err == nil && len(found) != n {
		err = fmt.Errorf("%d helpers in %d idle sandboxes", len(found), n)
	}
	return found, err
}

// roots are the processes that everything in the sandboxes descends from: the first ones of their
// containers, or else this one.
func (c *crowd) roots(ctx context.Context) ([]int, error) {
	if !c.bench.kind().contained {
		return []int{os.Getpid()}, nil
	}
	var roots []int
	for _, x := range c.boxes {
		pid, err := c.bench.Engine.firstProcess(ctx, x.sb.Info().Runtime["container"])
		if err != nil {
			return nil, err
		}
		roots = append(roots, pid)
	}
	return roots, nil
}

// settled returns all processes when those below the roots have stayed the same for a while.
func settled(ctx context.Context, roots []int) ([]process, error) {
	const quiet = 20 // looks without a change
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	var before []process
	for same := 0; ; {
		all, err := processes()
		if err != nil {
			return nil, err
		}
		now := below(all, roots...)
		if same++; !slices.Equal(before, now) {
			before, same = now, 0
		}
		if same == quiet {
			return all, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("%d processes of idle sandboxes do not come to rest: %w", len(now), ctx.Err())
		}
	}
}

// bwrapHouseholds finds each helper below this process: the child of a bwrap process, which is the
// one outside, that is none itself.
func bwrapHouseholds(all []process, roots []int) (out []household, err error) {
	ours := below(all, roots...)
	monitor := map[int]bool{}
	for _, p := range ours {
		monitor[p.pid] = p.comm == "bwrap"
	}
	for _, p := range ours {
		if monitor[p.pid] || !monitor[p.parent] {
			continue
		}
		h, err := lookInside(all, p.pid)
		if err != nil {
			return nil, err
		}
		h.ours, err = memoryOf(p.parent)
		if err != nil {
			return nil, err
		}
		out = append(out, h)
	}
	return out, nil
}

// containerHouseholds finds each helper as the child of a container's first process, an init of the
// engine whose parent is the engine's too.
func containerHouseholds(all []process, roots []int) (out []household, err error) {
	parent := map[int]int{}
	for _, p := range all {
		parent[p.pid] = p.parent
	}
	for _, p := range all {
		if !slices.Contains(roots, p.parent) {
			continue
		}
		h, err := lookInside(all, p.pid)
		if err != nil {
			return nil, err
		}
		first, err1 := memoryOf(p.parent)
		watcher, err2 := memoryOf(parent[p.parent])
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		h.engine = first.plus(watcher)
		out = append(out, h)
	}
	return out, nil
}

// lookInside adds up a helper and what it has started.
func lookInside(all []process, helper int) (h household, err error) {
	h.helper, err = memoryOf(helper)
	h.inside = h.helper
	for _, p := range below(all, helper) {
		m, failed := memoryOf(p.pid)
		h.inside, err = h.inside.plus(m), errors.Join(err, failed)
	}
	return h, err
}

// plus adds memory.
func (m memory) plus(n memory) memory { return memory{rss: m.rss + n.rss, pss: m.pss + n.pss} }
