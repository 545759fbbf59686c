package ssh

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/workberth/workberth/internal/helperbin"
	"github.com/workberth/workberth/internal/keeper"
	"github.com/workberth/workberth/internal/sshclient"
	"github.com/workberth/workberth/internal/version"
	"github.com/workberth/workberth/sandbox"
)

// Options make a Backend. Only StateDir is needed.
type Options struct {
	// StateDir is this user's private directory for records, absolute. It is made when it
	// is missing.
	StateDir string
	// Helper returns the guest helper for an architecture in Go's spelling; nil means the
	// one that package helperbin finds.
	Helper func(arch string) (helperbin.Helper, error)
	// Getenv looks up an environment variable of this process; nil means os.Getenv.
	Getenv func(string) string
	// Passphrase is asked for encrypted keys that no agent holds; nil means the program in
	// SSH_ASKPASS, where there is one.
	Passphrase func(ctx context.Context, path string) ([]byte, error)
	// Now is the clock of records; nil means time.Now.
	Now func() time.Time
	// Logger may be nil.
	Logger *slog.Logger
}

// Backend runs commands on hosts that are reached over SSH. It is safe for concurrent use,
// also together with other processes of the same user that have the same StateDir.
type Backend struct {
	opts     Options
	log      *slog.Logger
	keep     *keeper.Keeper
	registry *sandbox.Registry
	lines    lines
}

var _ sandbox.Backend = (*Backend)(nil)

// New opens the backend. It connects to nothing.
func New(opts Options) (*Backend, error) {
	if opts.Getenv == nil {
		opts.Getenv = os.Getenv
	}
	log := opts.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	log = log.With("backend", Name)
	if opts.Helper == nil {
		opts.Helper = func(arch string) (helperbin.Helper, error) {
			return helperbin.For("linux", arch, helperbin.Options{Env: opts.Getenv, Logger: log})
		}
	}
	if opts.Passphrase == nil {
		opts.Passphrase = askpass(opts.Getenv)
	}
	registry, err := sandbox.OpenRegistry(opts.StateDir, sandbox.RegistryOptions{Log: log, Now: opts.Now})
	if err != nil {
		return nil, err
	}
	b := &Backend{opts: opts, log: log, registry: registry}
	b.lines = lines{open: b.newGroup, groups: make(map[line]*share)}
	b.keep = keeper.New(keeper.Options{
		Backend: Name, Registry: registry, Start: b.start, Quell: b.quell, Logger: log,
	})
	return b, nil
}

// Ensure returns a handle on the sandbox that spec identifies. A setting that cannot be
// kept without walls is refused before anything is connected to.
func (b *Backend) Ensure(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	spec.Workspace = Workspace(spec.Workspace)
	resolved, err := sandbox.Resolve(Name, spec, Facts(), b.log)
	if err != nil {
		return nil, err
	}
	if err := refuse(resolved.Spec); err != nil {
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

// Check looks for what this machine needs: helpers, keys, the state directory. Which host
// is meant it does not know; [Backend.CheckHost] looks at one.
func (b *Backend) Check(context.Context) sandbox.Diagnosis {
	d := sandbox.Diagnosis{Backend: Name, Usable: true, Version: version.Version()}
	found := false
	for _, arch := range architectures() {
		c := sandbox.Check{Name: "helper for " + arch, Result: sandbox.CheckOK}
		h, err := b.opts.Helper(arch)
		if err == nil {
			c.Detail, found = h.Path, true
		} else {
			c.Result, c.Detail = sandbox.CheckWarn, err.Error()
			c.Remedy = "hosts of this architecture need it: use a release, or build it with: GOARCH=" + arch + " go build ./cmd/berth-guest"
		}
		d.Checks = append(d.Checks, c)
	}
	if !found {
		d.Usable = false
		d.Checks[0].Result, d.Checks[0].Remedy = sandbox.CheckFail, "build it with: make build, or set "+helperbin.EnvPath+" to its path"
	}
	agent := sandbox.Check{Name: "agent", Result: sandbox.CheckOK, Detail: b.opts.Getenv("SSH_AUTH_SOCK")}
	if agent.Detail == "" {
		agent.Result, agent.Detail = sandbox.CheckWarn, "SSH_AUTH_SOCK is not set: only identity files without a passphrase can be used"
		agent.Remedy = `start one with: eval "$(ssh-agent)"; ssh-add`
	}
	d.Checks = append(d.Checks, agent,
		sandbox.Check{Name: "state", Result: sandbox.CheckOK, Detail: b.opts.StateDir},
		sandbox.Check{Name: "confinement", Result: sandbox.CheckWarn, Detail: "none: commands run with the rights of the account", Remedy: "use a container for anything that is not trusted"},
	)
	return d
}

// CheckHost connects to a host, looks whether the helper can run there, and puts it in
// place.
func (b *Backend) CheckHost(ctx context.Context, host, configFile string) sandbox.Check {
	c := sandbox.Check{Name: "host " + host, Result: sandbox.CheckOK}
	fail := func(err error) sandbox.Check {
		c.Result, c.Detail = sandbox.CheckFail, err.Error()
		var p *sandbox.Problem
		if errors.As(err, &p) {
			c.Remedy = p.Remedy
		}
		return c
	}
	g, release, err := b.lines.acquire(line{host, configFile})
	if err != nil {
		return fail(b.explain(err))
	}
	defer release()
	call, err := b.call(ctx, g, "state", HomePrefix)
	if err != nil {
		return fail(b.explain(err))
	}
	defer call.session.Abort()
	s := g.Settings()
	c.Detail = s.String() + ", helper for " + call.arch
	return c
}

// newGroup reads the settings of a destination.
func (b *Backend) newGroup(l line) (*sshclient.Group, error) {
	settings, err := sshclient.Read(l.host, sshclient.SystemEnvironment(b.opts.Getenv, l.config))
	if err != nil {
		return nil, err
	}
	return sshclient.NewGroup(settings, sshclient.Options{Passphrase: b.opts.Passphrase, Logger: b.log}), nil
}

// architectures are those that helpers are built for.
func architectures() []string { return []string{"amd64", "arm64"} }
