package bubblewrap

import (
	"context"
	"errors"
	"time"

	"github.com/workberth/workberth/internal/guestbox"
	"github.com/workberth/workberth/sandbox"
)

// slot is where this process keeps the live generation of one sandbox. Its turn is
// taken while one is being started.
type slot struct {
	turn chan struct{} // holds one token while nobody has the turn

	// box and users are guarded by Backend.mu.
	box   *guestbox.Box
	users int
}

// take waits for the turn of a sandbox. give gives it back.
func (b *Backend) take(ctx context.Context, id sandbox.ID) (s *slot, give func(), err error) {
	b.mu.Lock()
	s = b.live[id]
	if s == nil {
		s = &slot{turn: make(chan struct{}, 1)}
		s.turn <- struct{}{}
		b.live[id] = s
	}
	s.users++
	b.mu.Unlock()

	leave := func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if s.users--; s.users == 0 && s.box == nil {
			delete(b.live, id)
		}
	}
	select {
	case <-s.turn:
	case <-ctx.Done():
		leave()
		return nil, nil, ctx.Err()
	}
	return s, func() { s.turn <- struct{}{}; leave() }, nil
}

// current is the live generation in a slot, nil when there is none.
func (b *Backend) current(s *slot) *guestbox.Box {
	b.mu.Lock()
	defer b.mu.Unlock()
	return s.box
}

// keep puts a generation into its slot.
func (b *Backend) keep(s *slot, box *guestbox.Box) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s.box = box
}

// drop empties a slot.
func (b *Backend) drop(id sandbox.ID, s *slot) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s.box = nil
	if s.users == 0 && b.live[id] == s {
		delete(b.live, id)
	}
}

// Ensure returns a handle on the sandbox that spec identifies: on the live one of
// this process, or on a new generation. One that another live process holds is a
// *sandbox.InUseError. Errors about this machine match sandbox.ErrUnavailable,
// errors about the spec sandbox.ErrRefused; in both cases nothing is left behind.
func (b *Backend) Ensure(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	resolved, err := sandbox.Resolve(Name, spec, b.facts, b.log)
	if err != nil {
		return nil, err
	}
	var enforced enforceable
	if resolved.Spec.Config.Limits.CPUs > 0 {
		enforced = b.enforceable()
	}
	if err := refuse(resolved.Spec.Config, enforced); err != nil {
		return nil, err
	}
	s, give, err := b.take(ctx, resolved.ID)
	if err != nil {
		return nil, err
	}
	defer give()
	for {
		box := b.current(s)
		if box == nil {
			break
		}
		h, err := box.Handle()
		if err == nil {
			return h, nil
		}
		// It is ending; what it holds is released when it is done.
		select {
		case <-box.Done():
			b.drop(resolved.ID, s)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	// A look at what others have left costs little and runs beside the start.
	looked := make(chan error, 1)
	go func() { looked <- b.reconcile() }()
	h, err := b.create(ctx, s, resolved)
	if e := <-looked; e != nil {
		b.log.Warn("looking after dead sandboxes failed", "error", e)
	}
	return h, err
}

// reconcileBound bounds looking after dead sandboxes.
const reconcileBound = 15 * time.Second

// reconcileAll ends and clears away what sandboxes of dead owners have left.
func (b *Backend) reconcileAll() error {
	ctx, cancel := context.WithTimeout(context.Background(), reconcileBound)
	defer cancel()
	_, err := b.registry.Reconcile(ctx, Name, nil)
	return errors.Join(err, b.clearGroups(ctx))
}
