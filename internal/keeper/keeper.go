package keeper

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/guest/client"
	"github.com/workberth/workberth/internal/guest/proc"
	"github.com/workberth/workberth/internal/guestbox"
	"github.com/workberth/workberth/sandbox"
)

// Bounds of what goes on without a caller's context.
const (
	// endBound bounds giving up, ending and clearing away one generation.
	endBound = 10 * time.Second
	// lookBound bounds looking after what others have left.
	lookBound = 15 * time.Second
)

// Birth asks for a new generation of a sandbox. The claim is held for it.
type Birth struct {
	Resolved sandbox.Resolved
	Claim    *sandbox.Claim
	// Tag names the generation: 16 hexadecimal digits.
	Tag string
	// Early takes what is known of the life before its helper has spoken, all but Conn,
	// Runtime and Limits, and writes the record meanwhile. It may be called again, and
	// need not be: Start's result is what counts.
	Early func(*Life)
}

// Life is a new generation: a helper that has been greeted, and what is to be said of
// it.
type Life struct {
	Conn    *client.Conn
	Runtime Runtime
	// Mounts, Workdir and Facts go into the record and to the handles.
	Mounts  fsbridge.MountTable
	Workdir string
	Facts   map[string]string
	// Refs are the processes of this machine that are the sandbox.
	Refs []sandbox.ProcessRef
	// Scratch is the directory in place of the workspace, where there is one.
	Scratch string
	// Fresh: what an earlier setup command did is not there any more.
	Fresh bool
	// Env is what the environment of every command starts from.
	Env    sandbox.Env
	Limits proc.Limits
	// Release frees what the generation holds beside its processes, after these have
	// ended. May be nil.
	Release func(ctx context.Context) error
}

// Runtime is where the helper runs.
type Runtime interface {
	guestbox.Runtime
	// Clean reports, once the runtime has ended, that the helper ended by itself and
	// without complaint, so that it has left nothing behind.
	Clean() bool
}

// Options make a Keeper.
type Options struct {
	// Backend is the name of the backend.
	Backend  string
	Registry *sandbox.Registry
	// Start brings a generation to life. Its errors leave nothing running.
	Start func(ctx context.Context, b Birth) (*Life, error)
	// Clear clears away what earlier generations of a claimed sandbox have left on
	// this machine, beside the processes in its record; those have been ended. May be
	// nil.
	Clear func(ctx context.Context, claim *sandbox.Claim) error
	// Quell ends what a generation has left running whose recorded processes were ended
	// while its owner lives, and waits until it is over. Nil where nothing can be left.
	Quell func(ctx context.Context, rec sandbox.Record) error
	// Discard deletes what belongs to a claimed sandbox elsewhere than in its own
	// directory, before that is deleted. May be nil.
	Discard func(ctx context.Context, claim *sandbox.Claim) error
	// ClearAll does what Clear does for every sandbox of the backend that nobody holds.
	// May be nil.
	ClearAll func(ctx context.Context) error
	// Logger is not nil.
	Logger *slog.Logger
}

// Keeper keeps the sandboxes of one backend. It is safe for concurrent use.
type Keeper struct {
	opts Options
	log  *slog.Logger
	look func() error // looks after what others have left, once

	mu    sync.Mutex
	slots map[sandbox.ID]*slot
}

// New makes a Keeper.
func New(opts Options) *Keeper {
	k := &Keeper{opts: opts, log: opts.Logger, slots: make(map[sandbox.ID]*slot)}
	k.look = sync.OnceValue(k.lookAfter)
	return k
}

// slot is where the live generation of one sandbox is. Its turn is taken while one is
// being started or removed.
type slot struct {
	turn chan struct{} // holds one token while nobody has the turn

	// box and users are guarded by Keeper.mu.
	box   *guestbox.Box
	users int
}

// take waits for the turn of a sandbox. give gives it back.
func (k *Keeper) take(ctx context.Context, id sandbox.ID) (s *slot, give func(), err error) {
	k.mu.Lock()
	s = k.slots[id]
	if s == nil {
		s = &slot{turn: make(chan struct{}, 1)}
		s.turn <- struct{}{}
		k.slots[id] = s
	}
	s.users++
	k.mu.Unlock()

	leave := func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if s.users--; s.users == 0 && s.box == nil {
			delete(k.slots, id)
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

// current is the generation in a slot, nil when there is none.
func (k *Keeper) current(s *slot) *guestbox.Box {
	k.mu.Lock()
	defer k.mu.Unlock()
	return s.box
}

// keep puts a generation into its slot.
func (k *Keeper) keep(s *slot, box *guestbox.Box) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s.box = box
}

// drop empties a slot.
func (k *Keeper) drop(id sandbox.ID, s *slot) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s.box = nil
	if s.users == 0 && k.slots[id] == s {
		delete(k.slots, id)
	}
}

// Ensure returns a handle on a sandbox: on the live generation of this process, or on
// a new one. A sandbox that another live process holds is a *sandbox.InUseError.
func (k *Keeper) Ensure(ctx context.Context, resolved sandbox.Resolved) (sandbox.Sandbox, error) {
	s, give, err := k.take(ctx, resolved.ID)
	if err != nil {
		return nil, err
	}
	defer give()
	for {
		box := k.current(s)
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
			k.drop(resolved.ID, s)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	// A look at what others have left costs little and runs beside the start.
	looked := make(chan error, 1)
	go func() { looked <- k.look() }()
	h, err := k.create(ctx, s, resolved)
	if e := <-looked; e != nil {
		k.log.Warn("looking after dead sandboxes failed", "error", e)
	}
	if err != nil {
		return nil, err
	}
	return h, nil
}

// lookAfter ends and clears away what sandboxes of dead owners have left.
func (k *Keeper) lookAfter() error {
	ctx, cancel := context.WithTimeout(context.Background(), lookBound)
	defer cancel()
	_, err := k.opts.Registry.Reconcile(ctx, k.opts.Backend, nil)
	if k.opts.ClearAll != nil {
		err = errors.Join(err, k.opts.ClearAll(ctx))
	}
	return err
}

// List tells every sandbox of the backend that is in the registry.
func (k *Keeper) List(ctx context.Context) ([]sandbox.Info, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	records, corrupt, err := k.opts.Registry.List(k.opts.Backend)
	if err != nil {
		return nil, err
	}
	for _, c := range corrupt {
		k.log.Warn("the record of a sandbox cannot be read", "sandbox", c.ID, "error", c.Err)
	}
	infos := make([]sandbox.Info, 0, len(records))
	for _, r := range records {
		infos = append(infos, r.Describe())
	}
	return infos, nil
}
