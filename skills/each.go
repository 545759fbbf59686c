package skills

import (
	"context"
	"sync"
)

// each runs fn for 0 to n-1, at most parallel of them at a time, and returns the error of the
// smallest number that failed. After a failure no further ones are begun.
func each(ctx context.Context, n, parallel int, fn func(i int) error) error {
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex
		next   int
		failed = -1
		first  error
	)
	work := func() {
		for {
			mu.Lock()
			i := next
			if i >= n || first != nil {
				mu.Unlock()
				return
			}
			next++
			mu.Unlock()
			err := ctx.Err()
			if err == nil {
				err = fn(i)
			}
			if err != nil {
				mu.Lock()
				if failed < 0 || i < failed {
					failed, first = i, err
				}
				mu.Unlock()
			}
		}
	}
	for range min(n, max(parallel, 1)) {
		wg.Go(work)
	}
	wg.Wait()
	return first
}

// budget bounds the bytes that are held at a time.
type budget struct {
	mu   sync.Mutex
	free *sync.Cond
	left int64
}

func newBudget(n int64) *budget {
	b := &budget{left: n}
	b.free = sync.NewCond(&b.mu)
	return b
}

// take waits for n bytes; more than there ever are is all of them. give gives them back.
func (b *budget) take(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.left < n {
		b.free.Wait()
	}
	b.left -= n
}

func (b *budget) give(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left += n
	b.free.Broadcast()
}
