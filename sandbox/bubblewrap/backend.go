package bubblewrap

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
	"github.com/workberth/workberth/internal/seccomp"
	"github.com/workberth/workberth/internal/version"
	"github.com/workberth/workberth/sandbox"
)

// Name of the backend.
const Name = "bubblewrap"

// The networks a sandbox can have.
const (
	networkNone = "none"
	networkHost = "host"
)

// minVersion is the oldest bubblewrap that has every option used here.
const minVersion = "0.8"

// Options make a Backend. Only StateDir is needed.
type Options struct {
	// BwrapPath is the program bwrap; empty means the one on PATH.
	BwrapPath string
	// HelperPath is the guest helper; empty means the one that package helperbin
	// finds.
	HelperPath string
	// StateDir is this user's private directory for records, absolute. Scratch
	// directories lie below it. It is made when it is missing.
	StateDir string
	// RuntimeDir is where this program keeps its sockets; it never appears inside.
	RuntimeDir string
	// Getenv looks up an environment variable of this process (PATH, HOME and
	// what names engines' sockets); nil means os.Getenv.
	Getenv func(string) string
	// Facts are what validation asks of this machine; nil means the real ones.
	Facts *sandbox.HostFacts
	// Now is the clock of records; nil means time.Now.
	Now func() time.Time
	// Logger may be nil.
	Logger *slog.Logger
}

// Backend makes sandboxes with bwrap. It is safe for concurrent use, also together
// with other processes of the same user that have the same StateDir.
type Backend struct {
	opts     Options
	registry *sandbox.Registry
	facts    sandbox.HostFacts
	log      *slog.Logger
	build    string
	root     string // "/" but in tests
	// helper finds the guest helper, once.
	helper func() (string, error)
	// hardened compiles the default filter, once.
	hardened func() (*seccomp.Filter, error)
	// settings are looked at when something fails.
	settings func() kernelSettings
	keeper   *keeper.Keeper
}

var _ sandbox.Backend = (*Backend)(nil)

// New opens the backend. It does not look whether bwrap works: Check does, and
// Ensure says so when it does not.
func New(opts Options) (*Backend, error) {
	if opts.Getenv == nil {
		opts.Getenv = os.Getenv
	}
	log := opts.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	log = log.With("backend", Name)
	registry, err := sandbox.OpenRegistry(opts.StateDir, sandbox.RegistryOptions{Log: log, Now: opts.Now})
	if err != nil {
		return nil, err
	}
	b := &Backend{
		opts: opts, registry: registry, log: log, build: version.Version(), root: "/",
		settings: func() kernelSettings { return readKernelSettings("") },
	}
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
	b.hardened = sync.OnceValues(func() (*seccomp.Filter, error) { return loadFilter(seccomp.ProfileDefault) })
	b.keeper = keeper.New(keeper.Options{
		Backend: Name, Registry: registry, Start: b.start, Quell: b.quell, Clear: clearAway, ClearAll: b.clearAll, Logger: log,
	})
	return b, nil
}

// Name is the word in --backend and the prefix of every ID.
func (b *Backend) Name() string { return Name }

// Features declares what this backend can do on this machine in principle.
func (b *Backend) Features() sandbox.Features {
	enforced := b.enforceable()
	return sandbox.Features{
		Confined: true, Networks: []string{networkNone, networkHost},
		Access: []sandbox.Access{sandbox.AccessNone, sandbox.AccessReadOnly, sandbox.AccessReadWrite},
		TTY:    true, ProcessCleanup: true, ProcessNamespace: true,
		Seccomp: true, ReadOnlyRoot: true, Tmpfs: true, Binds: true,
		PidsLimit: enforced.pids, MemoryLimit: enforced.memory, CPULimit: enforced.cpu,
	}
}

// findHelper finds the guest helper.
func (b *Backend) findHelper() (string, error) {
	if b.opts.HelperPath != "" {
		if _, err := os.Stat(b.opts.HelperPath); err != nil {
			return "", &sandbox.Problem{
				What: "the guest helper cannot be used", Rule: err.Error(),
				Remedy: "name the program berth-guest by its path", Err: join(sandbox.ErrUnavailable, err),
			}
		}
		return b.opts.HelperPath, nil
	}
	h, err := helperbin.Find(helperbin.Options{Env: b.opts.Getenv, Logger: b.log})
	if err != nil {
		return "", &sandbox.Problem{
			What: "the guest helper was not found", Rule: err.Error(),
			Remedy: "name the program berth-guest by its path in " + helperbin.EnvPath, Err: join(sandbox.ErrUnavailable, err),
		}
	}
	return h.Path, nil
}

// bwrap finds the program.
func (b *Backend) bwrap() (string, error) { return findBwrap(b.opts.BwrapPath, b.opts.Getenv("PATH")) }

// filter gives the system-call filter of a configuration.
func (b *Backend) filter(profile string) (*seccomp.Filter, error) {
	if profile == seccomp.ProfileDefault {
		return b.hardened()
	}
	f, err := loadFilter(profile)
	if err == nil && len(f.Ignored) > 0 {
		b.log.Warn("the system-call filter names calls that are not known here; they keep its default action", "profile", profile, "calls", f.Ignored)
	}
	return f, err
}

// loadFilter compiles a filter for this machine.
func loadFilter(profile string) (*seccomp.Filter, error) {
	facts, err := seccomp.HostFacts()
	if err != nil {
		return nil, err
	}
	f, err := seccomp.Load(profile, facts)
	if err != nil {
		return nil, &sandbox.Problem{
			Field: "seccompProfile", What: fmt.Sprintf("profile %q", profile), Rule: err.Error(),
			Remedy: `mend it, or use "default"`, Err: join(sandbox.ErrRefused, err),
		}
	}
	return f, nil
}

// refuse says what this backend cannot do, before anything is created. Dangerous
// settings have been dealt with.
func refuse(c sandbox.Config, e enforceable) error {
	no := func(field, what, rule, remedy string) error {
		return &sandbox.Problem{Field: field, What: what, Rule: rule, Remedy: remedy, Err: sandbox.ErrRefused}
	}
	const container = "bubblewrap runs the programs of this machine and has no containers"
	switch {
	case c.Network != networkNone && c.Network != networkHost:
		return no("network", fmt.Sprintf("network %q", c.Network), "bubblewrap has the networks none and host", `use network "none"`)
	case c.Engine != "":
		return no("engine", fmt.Sprintf("engine %q", c.Engine), container, "leave it out, or use docker or podman")
	case c.Image != "":
		return no("image", fmt.Sprintf("image %q", c.Image), container, "leave it out, or use docker or podman")
	case c.GPUs != "":
		return no("gpus", fmt.Sprintf("gpus %q", c.GPUs), container, "leave it out, or use docker or podman")
	case c.Privileged:
		return no("privileged", "privileged", container, "leave it out")
	case c.PidMode != "" && c.PidMode != "private":
		return no("pidMode", fmt.Sprintf("pidMode %q", c.PidMode), "every sandbox of bubblewrap has its own processes", "leave it out")
	case len(c.CapAdd) > 0:
		return no("capAdd", fmt.Sprintf("capability %q", c.CapAdd[0]), "commands in bubblewrap run without any capability", "leave it out")
	case c.Limits.CPUs > 0 && !e.cpu:
		return no("limits", fmt.Sprintf("cpus %v", c.Limits.CPUs), "processor time is bounded by control groups, and none can be made here: "+e.why,
			"leave it out, or let the system delegate control groups to this user")
	}
	return nil
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
	if err := errors.Join(refuse(resolved.Spec.Config, enforced), sandbox.RefuseHost(Name, resolved.Spec.Config)); err != nil {
		return nil, err
	}
	return b.keeper.Ensure(ctx, resolved)
}

// List tells every sandbox of this user that is in the registry.
func (b *Backend) List(ctx context.Context) ([]sandbox.Info, error) { return b.keeper.List(ctx) }

// Stop ends all processes of a sandbox, whoever holds it; its files stay. What is
// ended is proved to be the recorded process first.
func (b *Backend) Stop(ctx context.Context, id sandbox.ID) error { return b.keeper.Stop(ctx, id) }

// Remove stops a sandbox and deletes its record and its scratch directory. The
// workspace is not touched.
func (b *Backend) Remove(ctx context.Context, id sandbox.ID) error { return b.keeper.Remove(ctx, id) }
