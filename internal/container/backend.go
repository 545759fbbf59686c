package container

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/workberth/workberth/internal/helperbin"
	"github.com/workberth/workberth/internal/keeper"
	"github.com/workberth/workberth/internal/version"
	"github.com/workberth/workberth/sandbox"
)

// Options make a Backend. Name, Connect and StateDir are needed.
type Options struct {
	// Name is the name of the backend.
	Name string
	// Address is where the engine is. It is part of what a sandbox is: the same workspace has
	// another one on another engine.
	Address string
	// Plain: what goes to the engine and back is neither encrypted nor proved to come from who it
	// should.
	Plain bool
	// Connect opens the engine. It is called until it succeeds once.
	Connect func(ctx context.Context) (Engine, error)
	// Frugal: asking the engine costs a process, so it is not asked for containers that are on no
	// record.
	Frugal bool
	// Missing says what to do where no engine answers.
	Missing string
	// HelperPath is the guest helper; empty means the one that package helperbin finds.
	HelperPath string
	// StateDir is this user's private directory for records, absolute. It is made when it is
	// missing.
	StateDir string
	// RuntimeDir is where this program keeps its sockets; it never appears inside.
	RuntimeDir string
	// DefaultImage runs where the configuration names none.
	DefaultImage string
	// Getenv looks up an environment variable of this process; nil means os.Getenv.
	Getenv func(string) string
	// Facts are what validation asks of this machine; nil means the real ones.
	Facts *sandbox.HostFacts
	// Now is the clock of records; nil means time.Now.
	Now func() time.Time
	// Logger may be nil.
	Logger *slog.Logger
}

// Backend makes sandboxes in containers of one engine. It is safe for concurrent use, also together
// with other processes of the same user that have the same StateDir.
type Backend struct {
	opts     Options
	state    string // see stateID
	registry *sandbox.Registry
	facts    sandbox.HostFacts
	log      *slog.Logger
	build    string
	helper   func() (string, error)
	keeper   *keeper.Keeper

	// spared has the sandboxes whose start has failed and that were on no record before: what they have
	// on another machine is not that start's to delete.
	spared sync.Map

	mu     sync.Mutex
	engine Engine
	about  *Description // of engine, once it has answered
}

var _ sandbox.Backend = (*Backend)(nil)

// New opens the backend. It does not look whether the engine answers: Check does, and Ensure says so
// when it does not.
func New(opts Options) (*Backend, error) {
	if opts.Getenv == nil {
		opts.Getenv = os.Getenv
	}
	log := opts.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	log = log.With("backend", opts.Name)
	registry, err := sandbox.OpenRegistry(opts.StateDir, sandbox.RegistryOptions{Log: log, Now: opts.Now})
	if err != nil {
		return nil, err
	}
	b := &Backend{opts: opts, state: stateID(opts.StateDir), registry: registry, log: log, build: version.Version()}
	if opts.Facts != nil {
		b.facts = *opts.Facts
	} else {
		dirs := []string{opts.StateDir}
		if opts.RuntimeDir != "" {
			dirs = append(dirs, opts.RuntimeDir)
		}
		b.facts = sandbox.SystemFacts(opts.Getenv, dirs...)
	}
	b.helper = sync.OnceValues(b.findHelper)
	b.keeper = keeper.New(keeper.Options{
		Backend: opts.Name, Registry: registry, Start: b.start, Quell: b.quell, Clear: b.clear, Discard: b.Discard,
		ClearAll: b.clearAll, Logger: log,
	})
	return b, nil
}

// connect gives the engine. Whether it answers is found out by who asks it something.
func (b *Backend) connect(ctx context.Context) (Engine, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.engine != nil {
		if m, ok := b.engine.(mortal); !ok || !m.Ended() {
			return b.engine, nil
		}
		_ = b.engine.Close() // it is over, and with it what it held
		b.engine, b.about = nil, nil
	}
	engine, err := b.opts.Connect(ctx)
	if err != nil {
		return nil, b.unreachable(err)
	}
	b.engine = engine
	return engine, nil
}

// describe gives the engine and what it says of itself. It is asked once, which some engines take a
// quarter of a second for.
func (b *Backend) describe(ctx context.Context) (Engine, Description, error) {
	engine, err := b.connect(ctx)
	if err != nil {
		return nil, Description{}, err
	}
	b.mu.Lock()
	known := b.about
	b.mu.Unlock()
	if known != nil {
		return engine, *known, nil
	}
	about, err := engine.Describe(ctx)
	if err != nil {
		return nil, Description{}, b.unreachable(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.engine == engine {
		b.about = &about
	}
	return engine, about, nil
}

// mortal is an engine that can end for good, so that another one has to be connected.
type mortal interface{ Ended() bool }

// unreachable explains an engine that does not answer.
func (b *Backend) unreachable(err error) error {
	var p *sandbox.Problem
	if err == nil || errors.As(err, &p) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &sandbox.Problem{
		What: "no " + b.opts.Name + " engine answers", Rule: err.Error(), Remedy: b.opts.Missing,
		Err: fmt.Errorf("%w: %w", sandbox.ErrUnavailable, err),
	}
}

// Close gives the connections to the engine back. Sandboxes that are held go on.
func (b *Backend) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.engine == nil {
		return nil
	}
	err := b.engine.Close()
	b.engine, b.about = nil, nil
	return err
}

// Name is the word in --backend and the prefix of every ID.
func (b *Backend) Name() string { return b.opts.Name }

// Features declares what this backend can do. Where the engine has answered, the limits are those
// that it can keep.
func (b *Backend) Features() sandbox.Features {
	ctx, cancel := context.WithTimeout(context.Background(), lookBound)
	defer cancel()
	_, about, err := b.describe(ctx)
	return sandbox.Features{
		Confined: true, Networks: []string{networkNone, networkBridge, networkHost},
		Access: []sandbox.Access{sandbox.AccessNone, sandbox.AccessReadOnly, sandbox.AccessReadWrite},
		TTY:    true, ProcessCleanup: true, ProcessNamespace: true,
		Seccomp: true, ReadOnlyRoot: true, Tmpfs: true, Binds: !Elsewhere(b.opts.Address), Image: true,
		PidsLimit: err != nil || about.PidsLimit || about.Rootless && about.KeepsID, MemoryLimit: err != nil || about.MemoryLimit, CPULimit: err != nil || about.CPULimit,
	}
}

// now is the present time.
func (b *Backend) now() time.Time {
	if b.opts.Now != nil {
		return b.opts.Now()
	}
	return time.Now()
}

// lookBound bounds asking an engine what it is.
const lookBound = 5 * time.Second

// findHelper finds the guest helper.
func (b *Backend) findHelper() (string, error) {
	path := b.opts.HelperPath
	var err error
	if path != "" {
		_, err = os.Stat(path)
	} else {
		var h helperbin.Helper
		h, err = helperbin.Find(helperbin.Options{Env: b.opts.Getenv, Logger: b.log})
		path = h.Path
	}
	if err != nil {
		return "", &sandbox.Problem{
			What: "the guest helper cannot be used", Rule: err.Error(),
			Remedy: "name the program berth-guest by its path in " + helperbin.EnvPath, Err: fmt.Errorf("%w: %w", sandbox.ErrUnavailable, err),
		}
	}
	return path, nil
}

// Ensure returns a handle on the sandbox that spec identifies: on the live one of this process, or on
// a new life of its container, which is made when there is none. One that another live process holds
// is a *sandbox.InUseError, one that somebody has paused or that is not ours a *sandbox.Problem.
// Errors about engine and machine match sandbox.ErrUnavailable, errors about the spec
// sandbox.ErrRefused; in both cases nothing is left behind.
func (b *Backend) Ensure(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	if spec.Config.Image == "" {
		spec.Config.Image = b.opts.DefaultImage
	}
	if spec.Config.Engine == "" {
		spec.Config.Engine = b.opts.Address
	}
	resolved, err := sandbox.Resolve(b.opts.Name, spec, b.facts, b.log)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(b.refuse(resolved.Spec.Config), sandbox.RefuseHost(b.opts.Name, resolved.Spec.Config), checkNames(resolved.Spec)); err != nil {
		return nil, err
	}
	return b.keeper.Ensure(ctx, resolved)
}

// refuse says what this backend cannot do, before anything is created. Dangerous settings have been
// dealt with.
func (b *Backend) refuse(c sandbox.Config) error {
	if c.Engine != b.opts.Address {
		return &sandbox.Problem{
			Field: "engine", What: fmt.Sprintf("engine %q", c.Engine), Rule: fmt.Sprintf("this backend was opened for %q", b.opts.Address),
			Remedy: "open the backend for that engine", Err: sandbox.ErrRefused,
		}
	}
	if c.Image == "" {
		return &sandbox.Problem{
			Field: "image", What: "no image", Rule: "a container needs one", Remedy: "name one with --image, or in the configuration",
			Err: sandbox.ErrRefused,
		}
	}
	return nil
}

// Stop ends all processes of a sandbox, whoever holds it; its container and its files stay.
func (b *Backend) Stop(ctx context.Context, id sandbox.ID) error {
	if err := b.keeper.Stop(ctx, id); err != nil {
		return err
	}
	return b.killStray(ctx, id)
}

// Remove stops a sandbox and deletes its record, its container and its scratch directory, and on another
// machine the volume in place of the workspace. The workspace is not touched.
func (b *Backend) Remove(ctx context.Context, id sandbox.ID) error {
	if err := b.keeper.Remove(ctx, id); err != nil {
		return err
	}
	return b.removeStray(ctx, id, true)
}
