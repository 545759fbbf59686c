package remoteworkspace

import (
	"context"
	"sync"
)

// queue makes the saves of one document wait for each other.
type queue struct {
	mu   *sync.Mutex
	busy map[string]*turn
}

// turn is held by one save; others of the same document wait for its channel.
type turn struct {
	slot  chan struct{}
	users int
}

func newQueue() queue { return queue{mu: &sync.Mutex{}, busy: make(map[string]*turn)} }

// enter waits until it is the caller's turn, or ctx ends. leave must follow.
func (q queue) enter(ctx context.Context, key string) (leave func(), err error) {
	q.mu.Lock()
	t := q.busy[key]
	if t == nil {
		t = &turn{slot: make(chan struct{}, 1)}
		q.busy[key] = t
	}
	t.users++
	q.mu.Unlock()
	forget := func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if t.users--; t.users == 0 {
			delete(q.busy, key)
		}
	}
	select {
	case t.slot <- struct{}{}:
		return func() { <-t.slot; forget() }, nil
	case <-ctx.Done():
		forget()
		return nil, ctx.Err()
	}
}
