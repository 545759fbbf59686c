package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/workberth/workberth/internal/config"
	"github.com/workberth/workberth/internal/container"
	"github.com/workberth/workberth/internal/owner"
	"github.com/workberth/workberth/sandbox"
	"github.com/workberth/workberth/sandbox/ssh"
)

// target is the set of flags that say which sandbox is meant.
type target struct {
	backend, workspace, access, scope, session, agent, network, image, archive, config string
	ssh, sshConfig, seed                                                               string
	allowDangerous                                                                     []string
	escaped                                                                            bool
	// found is what archive holds, once it was looked at.
	found *container.Archive
}

// register adds the target flags.
func (t *target) register(f *pflag.FlagSet) {
	f.StringVar(&t.backend, "backend", "", "where to run: "+strings.Join(backendNames(), ", ")+" (default bubblewrap; $BERTH_BACKEND)")
	f.StringVar(&t.workspace, "workspace", "", "directory to work in (default: the current one; with ssh: one of the host, default ~/workberth)")
	f.StringVar(&t.access, "access", "", "how the workspace appears inside: none, ro or rw (default rw)")
	f.StringVar(&t.scope, "scope", "", "who shares the sandbox: session, agent or shared (default session)")
	f.StringVar(&t.session, "session", "", `session key (default "default")`)
	f.StringVar(&t.agent, "agent", "", "agent id; its settings in the configuration apply")
	f.StringVar(&t.network, "network", "", "none, bridge or the name of an engine's network, or host, which needs --allow-dangerous network (default none)")
	f.StringVar(&t.image, "image", "", "image of a container")
	f.StringVar(&t.archive, "image-archive", "", "image of a container, from a tar archive: a saved image, or a root file system")
	f.StringVar(&t.ssh, "ssh", "", "host of the ssh backend: USER@HOST[:PORT], or a Host of the SSH configuration; chooses --backend ssh")
	f.StringVar(&t.sshConfig, "ssh-config", "", "SSH configuration file (default ~/.ssh/config and the system's)")
	f.StringVar(&t.seed, "seed", "", "directory of this machine that a workspace elsewhere is filled from when it does not exist")
	f.StringVar(&t.config, "config", "", "configuration file (default $XDG_CONFIG_HOME/berth/config.yaml)")
	f.StringSliceVar(&t.allowDangerous, "allow-dangerous", nil, "permit a dangerous setting by its field, such as network or binds; logged")
}

// effective merges configuration, environment and flags.
func (t *target) effective(a *app) (*config.Effective, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	ws := t.workspace
	if ws == "" || t.chosenBackend() == ssh.Name {
		ws = "." // a workspace of another machine holds no configuration
	}
	path, explicit := t.config, t.config != ""
	if !explicit {
		path = config.DefaultPath(a.getenv)
	}
	file, err := config.Load(path, explicit, ws)
	if err != nil {
		return nil, err
	}
	image := t.image
	if t.archive != "" {
		if t.found == nil {
			archive, err := container.ReadArchive(t.archive)
			if err != nil {
				return nil, err
			}
			t.found = &archive
		}
		image = t.found.Image
	}
	sshConfig, err := absolute(t.sshConfig)
	if err != nil {
		return nil, err
	}
	seed, err := absolute(t.seed)
	if err != nil {
		return nil, err
	}
	return file.Merge(config.Request{
		SSH: t.ssh, SSHConfig: sshConfig, Seed: seed,
		Backend: t.chosenBackend(), EnvBackend: a.getenv("BERTH_BACKEND"), Workspace: t.workspace, Access: t.access,
		Scope: t.scope, Session: t.session, Agent: t.agent, Network: t.network, Image: image, AllowDangerous: t.allowDangerous,
	}, defaultConfig)
}

// check refuses words that are no value of their flag.
func (t *target) check() error {
	for _, c := range []struct {
		flag, value string
		words       []string
	}{
		{"--access", t.access, []string{"none", "ro", "rw"}},
		{"--scope", t.scope, []string{"session", "agent", "shared"}},
	} {
		if c.value != "" && !slices.Contains(c.words, c.value) {
			return &usageError{fmt.Errorf("%s %q: give one of %s", c.flag, c.value, strings.Join(c.words, ", "))}
		}
	}
	if t.ssh != "" && t.backend != "" && t.backend != ssh.Name {
		return &usageError{fmt.Errorf("--ssh names a host for --backend ssh, not for %s", t.backend)}
	}
	if backend := t.chosenBackend(); backend != "" && backend != ssh.Name {
		for _, f := range []struct{ flag, value string }{{"--ssh-config", t.sshConfig}, {"--seed", t.seed}} {
			if f.value != "" {
				return &usageError{fmt.Errorf("%s is for a workspace of --backend ssh, not of %s", f.flag, backend)}
			}
		}
	}
	if t.image != "" && t.archive != "" {
		return &usageError{errors.New("--image and --image-archive: give one of them")}
	}
	return nil
}

// chosenBackend is the backend that the flags name: naming a host is naming ssh.
func (t *target) chosenBackend() string {
	if t.backend == "" && t.ssh != "" {
		return ssh.Name
	}
	return t.backend
}

// absolute makes a path of this machine absolute; an empty one and "none" stay.
func absolute(path string) (string, error) {
	if path == "" || path == "none" {
		return path, nil
	}
	return filepath.Abs(path)
}

// spec is the sandbox the effective configuration asks for.
func spec(e *config.Effective) (sandbox.Spec, error) {
	ws := e.Workspace
	if e.Backend == ssh.Name {
		if ws == "" {
			ws = config.RemoteWorkspace
		}
		return sandbox.Spec{Scope: e.Scope, Session: e.Session, Agent: e.Agent, Workspace: ssh.Workspace(ws), Config: e.Config}, nil
	}
	if ws == "" {
		ws = "."
	}
	abs, err := filepath.Abs(ws)
	if err != nil {
		return sandbox.Spec{}, err
	}
	return sandbox.Spec{Scope: e.Scope, Session: e.Session, Agent: e.Agent, Workspace: abs, Config: e.Config}, nil
}

// resolve turns the target into a spec that may be made, named by its identity.
func (a *app) resolve(t *target) (backend string, res sandbox.Resolved, err error) {
	eff, err := t.effective(a)
	if err != nil {
		return "", res, err
	}
	return a.resolveEffective(eff)
}

// resolveEffective turns an effective configuration into a spec that may be made, named by its
// identity.
func (a *app) resolveEffective(eff *config.Effective) (backend string, res sandbox.Resolved, err error) {
	if err := knownBackend(eff.Backend); err != nil {
		return "", res, err
	}
	s, err := spec(eff)
	if err != nil {
		return "", res, err
	}
	if s.Config.Engine == "" {
		s.Config.Engine = a.engineOf(eff.Backend)
	}
	log := a.logger()
	if eff.Source("allowDangerous") == config.SourceDefault {
		log = nil // the backend itself is the permission, and it was named
	}
	res, err = sandbox.Resolve(eff.Backend, s, a.factsFor(eff.Backend), log)
	return eff.Backend, res, err
}

// factsFor are what validation asks about the machine that a backend's sandboxes are on.
func (a *app) factsFor(backend string) sandbox.HostFacts {
	if backend == ssh.Name {
		return ssh.Facts()
	}
	return a.facts()
}

// open connects to the sandbox that the target names, starting it on demand.
func (a *app) open(ctx context.Context, t *target) (*owner.Handle, error) {
	backend, res, err := a.resolve(t)
	if err != nil {
		return nil, err
	}
	return a.connect(ctx, t, backend, res)
}

// connect connects to a resolved sandbox, starting it on demand.
func (a *app) connect(ctx context.Context, t *target, backend string, res sandbox.Resolved) (*owner.Handle, error) {
	opts := a.ownerOptions()
	started := false
	opts.BeforeStart = func(ctx context.Context) error {
		started = true
		return a.bringImage(ctx, t, backend, res.Spec.Config)
	}
	h, err := owner.Connect(ctx, owner.Request{Backend: backend, ID: res.ID, Spec: res.Spec}, opts)
	if err == nil && started {
		a.noteCopy(ctx, h)
	}
	return h, err
}

// dial connects to the sandbox that the target names if it is running.
func (a *app) dial(ctx context.Context, t *target) (*owner.Handle, error) {
	_, res, err := a.resolve(t)
	if err != nil {
		return nil, err
	}
	return owner.Dial(ctx, res.ID, a.ownerOptions())
}

// facts are what validation asks about this machine.
func (a *app) facts() sandbox.HostFacts {
	dirs := []string{owner.DefaultRuntimeDir(a.getenv)}
	if d := owner.DefaultStateDir(a.getenv); d != "" {
		dirs = append(dirs, d)
	}
	if p := config.DefaultPath(a.getenv); p != "" {
		dirs = append(dirs, filepath.Dir(p))
	}
	return sandbox.SystemFacts(a.getenv, dirs...)
}

// ownerOptions tell how owners are found and started.
func (a *app) ownerOptions() owner.Options {
	return owner.Options{
		RuntimeDir: owner.DefaultRuntimeDir(a.getenv),
		Executable: a.executable,
		Args:       []string{ownerRole},
		Env:        os.Environ(),
		Logger:     a.logger(),
	}
}
