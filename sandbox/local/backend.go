package local

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/workberth/workberth/internal/helperbin"
	"github.com/workberth/workberth/internal/keeper"
	"github.com/workberth/workberth/internal/version"
	"github.com/workberth/workberth/sandbox"
)

// Name is the word in --backend.
const Name = "local"

// Options make a Backend. Only StateDir is needed.
type Options struct {
	// HelperPath is the guest helper; empty means the one that package helperbin
	// finds.
	HelperPath string
	// StateDir is this user's private directory for records, absolute. It is made
	// when it is missing.
	StateDir string
	// RuntimeDir is where this program keeps its sockets; it is no workspace.
	RuntimeDir string
	// Getenv looks up an environment variable of this process; nil means os.Getenv.
	Getenv func(string) string
	// Environ is the environment that commands get a part of (see Environment); nil
	// means os.Environ.
	Environ func() []string
	// Facts are what validation asks of this machine; nil means the real ones.
	Facts *sandbox.HostFacts
	// Now is the clock of records; nil means time.Now.
	Now func() time.Time
	// Logger may be nil.
	Logger *slog.Logger
}

// Backend runs commands with the user's own rights. It is safe for concurrent use,
// also together with other processes of the same user that have the same StateDir.
type Backend struct {
	opts  Options
	log   *slog.Logger
	facts sandbox.HostFacts
	keep  *keeper.Keeper
	// registry has the records of dead owners.
	registry *sandbox.Registry
}

var _ sandbox.Backend = (*Backend)(nil)

// New opens the backend. It starts nothing.
func New(opts Options) (*Backend, error) {
	if opts.Getenv == nil {
		opts.Getenv = os.Getenv
	}
	if opts.Environ == nil {
		opts.Environ = os.Environ
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
	var facts sandbox.HostFacts
	if opts.Facts != nil {
		facts = *opts.Facts
	} else {
		dirs := []string{opts.StateDir}
		if opts.RuntimeDir != "" {
			dirs = append(dirs, opts.RuntimeDir)
		}
		facts = sandbox.SystemFacts(opts.Getenv, dirs...)
	}
	b := &Backend{opts: opts, log: log, facts: facts}
	b.registry = registry
	b.keep = keeper.New(keeper.Options{
		Backend: Name, Registry: registry, Start: b.start, Quell: quell, Clear: clearAway, ClearAll: b.clearAll, Logger: log,
	})
	return b, nil
}

// Ensure returns a handle on the sandbox that spec identifies. A setting that cannot
// be kept without walls is refused.
func (b *Backend) Ensure(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	resolved, err := sandbox.Resolve(Name, spec, b.facts, b.log)
	if err != nil {
		return nil, err
	}
	if err := refuse(resolved.Spec.Config); err != nil {
		return nil, err
	}
	return b.keep.Ensure(ctx, resolved)
}

// List tells every sandbox of this user that is in the registry.
func (b *Backend) List(ctx context.Context) ([]sandbox.Info, error) { return b.keep.List(ctx) }

// Stop ends all processes of a sandbox, whoever holds it.
func (b *Backend) Stop(ctx context.Context, id sandbox.ID) error { return b.keep.Stop(ctx, id) }

// Remove stops a sandbox and deletes its record. The workspace is not touched.
func (b *Backend) Remove(ctx context.Context, id sandbox.ID) error { return b.keep.Remove(ctx, id) }

// Name is the word in --backend and the prefix of every ID.
func (b *Backend) Name() string { return Name }

// Features declares that there are no walls.
func (b *Backend) Features() sandbox.Features {
	return sandbox.Features{
		Networks: []string{sandbox.NetworkHost}, Access: []sandbox.Access{sandbox.AccessReadWrite},
		TTY: true, ProcessCleanup: true,
	}
}

// DefaultConfig is what the backend can keep: the workspace read-write and this
// machine as it is. That this is no confinement is permitted by having named the
// backend.
func DefaultConfig() sandbox.Config {
	return sandbox.Config{
		Access: sandbox.AccessReadWrite, Network: sandbox.NetworkHost, SeccompProfile: sandbox.SeccompUnconfined,
		AllowDangerous: []string{"network", "seccompProfile"},
	}
}

// Check looks for the helper and the state directory.
func (b *Backend) Check(context.Context) sandbox.Diagnosis {
	d := sandbox.Diagnosis{Backend: Name, Usable: true, Version: version.Version()}
	helper, err := b.helper()
	c := sandbox.Check{Name: "helper", Result: sandbox.CheckOK, Detail: helper}
	if err != nil {
		d.Usable = false
		c.Result, c.Detail, c.Remedy = sandbox.CheckFail, err.Error(), "name the program berth-guest by its path in "+helperbin.EnvPath
	}
	d.Checks = append(d.Checks,
		c,
		sandbox.Check{Name: "state", Result: sandbox.CheckOK, Detail: b.opts.StateDir},
		sandbox.Check{Name: "confinement", Result: sandbox.CheckWarn, Detail: "none: commands run with the rights of this user", Remedy: "use bubblewrap for anything that is not trusted"},
	)
	return d
}

// helper finds the guest helper.
func (b *Backend) helper() (string, error) {
	if b.opts.HelperPath != "" {
		_, err := os.Stat(b.opts.HelperPath)
		return b.opts.HelperPath, err
	}
	h, err := helperbin.Find(helperbin.Options{Env: b.opts.Getenv, Logger: b.log})
	return h.Path, err
}

// Environment is the part of an environment that commands start from: where things
// are and how text is written, not what a shell happens to hold of secrets.
func Environment(environ []string) sandbox.Env {
	env := sandbox.Env{"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		switch name {
		case "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR":
			env[name] = value
		default:
			if strings.HasPrefix(name, "LC_") {
				env[name] = value
			}
		}
	}
	return env
}
