package remoteworkspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/workberth/workberth/fsbridge"
)

// Method names an operation on a workspace's documents.
type Method string

// The methods, by the names the Gateway has for them.
const (
	MethodList           Method = "agents.files.list"
	MethodGet            Method = "agents.files.get"
	MethodSet            Method = "agents.files.set"
	MethodUpdateIdentity Method = "agents.update"
	MethodBootstrap      Method = "bootstrap"
	MethodCompaction     Method = "compaction"
)

// Operation is what the authorisation hook is asked about.
type Operation struct {
	Method Method
	// Dir is the workspace directory as the caller named it.
	Dir string
	// Name is the document; empty for calls about the whole workspace.
	Name string
}

// AuthorizeFunc is the host's authorisation check. An error refuses the call before
// anything else happens. The guard it returns, which may be nil, is asked again
// before each single command that the call sends. Keeps RWS-07.
type AuthorizeFunc func(ctx context.Context, op Operation) (guard fsbridge.AssertFunc, err error)

// Options direct New.
type Options struct {
	// Registry has the bindings. Needed.
	Registry *Registry
	// Local opens workspaces that are not bound. Nil refuses them.
	Local LocalFunc
	// Authorize is asked first, for bound and local workspaces alike. Nil allows
	// everything: the caller has checked.
	Authorize AuthorizeFunc
	// Logger is told, for debugging, of connections that fail and saves that nobody knows
	// the outcome of: the errors say the same. Nil discards.
	Logger *slog.Logger
}

// Workspaces finds the files of workspaces, bound or local. It is safe for
// concurrent use.
type Workspaces struct {
	opts Options
	log  *slog.Logger
}

// New makes a Workspaces.
func New(opts Options) (*Workspaces, error) {
	if opts.Registry == nil {
		return nil, fmt.Errorf("remoteworkspace: no registry: %w", ErrInvalid)
	}
	w := &Workspaces{opts: opts, log: opts.Logger}
	if w.log == nil {
		w.log = slog.New(slog.DiscardHandler)
	}
	return w, nil
}

// opened is a bridge for one call.
type opened struct {
	fsbridge.Bridge
	// bound: the workspace has a binding.
	bound bool
	dir   string
	// key is the same for every spelling of the directory.
	key string
}

// authorize asks the host.
func (w *Workspaces) authorize(ctx context.Context, op Operation) (fsbridge.AssertFunc, error) {
	if w.opts.Authorize == nil {
		return nil, nil
	}
	guard, err := w.opts.Authorize(ctx, op)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnauthorized, err)
	}
	return guard, nil
}

// open makes the bridge for one call. A bound workspace is reached through its access
// or not at all. Keeps RWS-05, RWS-08, RWS-16.
func (w *Workspaces) open(ctx context.Context, dir string, guard fsbridge.AssertFunc) (*opened, error) {
	reg, key, err := w.opts.Registry.lookup(dir)
	if err != nil {
		return nil, err
	}
	if reg == nil {
		return w.openLocal(ctx, dir, key, guard)
	}
	hold := func() error { return w.opts.Registry.holds(key, reg) }
	b, err := reg.access.Bridge(ctx, both(hold, guard))
	o := &opened{Bridge: b, bound: true, dir: dir, key: key}
	if err != nil {
		w.log.Debug("a bound workspace cannot be reached", "dir", dir, "error", err)
		return nil, o.explain(ctx, err, true)
	}
	if b == nil {
		return nil, &UnavailableError{Dir: dir, State: StateReady, Err: errors.New("its access gave no bridge")}
	}
	return o, nil
}

func (w *Workspaces) openLocal(ctx context.Context, dir, key string, guard fsbridge.AssertFunc) (*opened, error) {
	if w.opts.Local == nil {
		return nil, fmt.Errorf("workspace %s is not bound, and local workspaces are not served here: %w", fsbridge.DisplayPath(dir), fsbridge.ErrUnsupported)
	}
	hold := func() error { return w.opts.Registry.unbound(key) }
	b, err := w.opts.Local(ctx, dir, both(hold, guard))
	if err != nil {
		return nil, err
	}
	if b == nil {
		return nil, fmt.Errorf("workspace %s: no bridge was opened: %w", fsbridge.DisplayPath(dir), ErrInvalid)
	}
	return &opened{Bridge: b, dir: dir, key: key}, nil
}

// both is a guard that wants two to hold; either may be nil.
func both(a, b fsbridge.AssertFunc) fsbridge.AssertFunc {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return func() error {
		if err := a(); err != nil {
			return err
		}
		return b()
	}
}

// close ends the bridge.
func (o *opened) close() { closeBridge(o.Bridge) }

// explain makes a failure of a bound workspace's bridge an ErrUnavailable where that
// is what it is: the connection failed, or was never made. Keeps RWS-16.
func (o *opened) explain(ctx context.Context, err error, opening bool) error {
	var known *UnavailableError
	switch {
	case err == nil || !o.bound || errors.As(err, &known):
		return err
	case errors.Is(err, fsbridge.ErrUnavailable), errors.Is(err, fs.ErrClosed):
	case opening && ctx.Err() == nil && !errors.Is(err, fsbridge.ErrNotCurrent):
	default:
		return err
	}
	return &UnavailableError{Dir: o.dir, State: StateReady, Err: err}
}
