package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/local"
	"github.com/workberth/workberth/internal/config"
	"github.com/workberth/workberth/internal/guest/proc"
	"github.com/workberth/workberth/internal/owner"
	"github.com/workberth/workberth/remoteworkspace"
	"github.com/workberth/workberth/skills"
	"github.com/workberth/workberth/skills/probe"
)

// localParallel is how many files of this machine are read at once.
const localParallel = 8

// skillLoad finds the skills that one command line is about. It opens bridges on demand.
type skillLoad struct {
	a        *app
	t        *target
	settings config.Skills

	handle *owner.Handle
	opened []io.Closer
	// here and there are the bridges for this machine's roots and for the workspace.
	here, there fsbridge.Bridge
}

// skillLoader reads the configuration.
func (a *app) skillLoader(s *skillsFlags) (*skillLoad, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	at, explicit := s.config, s.config != ""
	if !explicit {
		at = config.DefaultPath(a.getenv)
	}
	ws := s.workspace
	if ws == "" || s.elsewhere() {
		ws = "."
	}
	file, err := config.Load(at, explicit, ws)
	if err != nil {
		return nil, err
	}
	return &skillLoad{a: a, t: &s.target, settings: file.Skills()}, nil
}

// elsewhere reports whether flags name a sandbox; a workspace directory alone is one of this
// machine.
func (t *target) elsewhere() bool {
	return t.backend+t.ssh+t.access+t.scope+t.session+t.agent+t.network+t.image+t.archive != ""
}

func (l *skillLoad) close() {
	for _, c := range l.opened {
		_ = c.Close() // everything was read
	}
}

func (a *app) listSkills(ctx context.Context, s *skillsFlags, opts skills.Options) (skills.Listing, error) {
	ld, err := a.skillLoader(s)
	if err != nil {
		return skills.Listing{}, err
	}
	defer ld.close()
	return ld.list(ctx, opts)
}

// list finds everything and decides.
func (l *skillLoad) list(ctx context.Context, opts skills.Options) (skills.Listing, error) {
	opts.Limits = skills.Limits{Skills: l.settings.MaxSkills, FileBytes: l.settings.FileSize, Depth: l.settings.Depth, Entries: l.settings.Entries}
	ws, err := l.ofWorkspace(ctx, opts)
	if err != nil {
		return skills.Listing{}, workspaceError(err)
	}
	b, err := l.gateway()
	if err != nil {
		return skills.Listing{}, err
	}
	found := []skills.Discovery{ws}
	if b != nil {
		opts.Parallel = localParallel
		installed, err := skills.Discover(ctx, b, l.gatewayRoots(), probe.Here{Getenv: l.a.getenv}, opts)
		if err != nil {
			return skills.Listing{}, err
		}
		found = append(found, installed)
	}
	return skills.Select(skills.Policy{Allow: l.settings.Allow, Deny: l.settings.Deny}, found...)
}

// at finds what is at one path, in the sandbox or on this machine.
func (l *skillLoad) at(ctx context.Context, p string) (skills.Discovery, error) {
	opts := skills.Options{NoHashes: true, Limits: skills.Limits{Skills: l.settings.MaxSkills, FileBytes: l.settings.FileSize, Depth: l.settings.Depth, Entries: l.settings.Entries}}
	if l.t.elsewhere() {
		b, err := l.workspace(ctx)
		if err != nil {
			return skills.Discovery{}, err
		}
		return skills.Discover(ctx, b, []skills.Root{{Path: p, Kind: skills.KindWorkspace, Needed: true}}, nil, opts)
	}
	opts.Parallel = localParallel
	abs, err := filepath.Abs(p)
	if err != nil {
		return skills.Discovery{}, err
	}
	dir, err := l.workspaceDir()
	if err != nil {
		return skills.Discovery{}, err
	}
	b, err := l.open(fsbridge.MountTable{{Path: dir, Kind: fsbridge.MountWorkspace, ReadOnly: true}}, []string{abs})
	if err != nil {
		return skills.Discovery{}, err
	}
	root, err := filepath.Rel(dir, abs)
	if err != nil || root == ".." || strings.HasPrefix(root, "../") {
		root = abs // outside the workspace, with a mount of its own
	}
	return skills.Discover(ctx, b, []skills.Root{{Path: root, Kind: skills.KindWorkspace, Needed: true}}, nil, opts)
}

// read reads the file of a skill where it lies.
func (l *skillLoad) read(ctx context.Context, v skills.Verdict) ([]byte, error) {
	b, err := l.gateway()
	if v.Kind == skills.KindWorkspace {
		b, err = l.workspace(ctx)
	}
	if err != nil {
		return nil, err
	}
	return b.ReadFile(ctx, v.File)
}

// ofWorkspace finds the skills of the workspace: by a binding where it is elsewhere. Keeps SKL-01,
// SKL-06, SKL-08.
func (l *skillLoad) ofWorkspace(ctx context.Context, opts skills.Options) (skills.Discovery, error) {
	const dir = "/workspace"
	registry := remoteworkspace.NewRegistry(remoteworkspace.RegistryOptions{
		Canonical: func(dir string) (string, error) { return dir, nil }, Logger: l.a.logger(),
	})
	if l.t.elsewhere() {
		if err := registry.Declare(dir); err != nil {
			return skills.Discovery{}, err
		}
		access := remoteworkspace.Access{
			Bridge: func(ctx context.Context, _ fsbridge.AssertFunc) (fsbridge.Bridge, error) { return l.workspace(ctx) },
			LoadSkills: func(ctx context.Context) (skills.Discovery, error) {
				b, err := l.workspace(ctx)
				if err != nil {
					return skills.Discovery{}, err
				}
				return skills.Discover(ctx, b, l.workspaceRoots(), l.prober(), opts)
			},
		}
		release, err := registry.Register(dir, access)
		if err != nil {
			return skills.Discovery{}, err
		}
		defer release()
	}
	all, err := remoteworkspace.New(remoteworkspace.Options{Registry: registry, Logger: l.a.logger()})
	if err != nil {
		return skills.Discovery{}, err
	}
	return all.LoadSkills(ctx, dir, func(ctx context.Context, _ string) (skills.Discovery, error) {
		b, err := l.workspace(ctx)
		if err != nil {
			return skills.Discovery{}, err
		}
		opts.Parallel = localParallel
		return skills.Discover(ctx, b, l.workspaceRoots(), probe.Here{Getenv: l.a.getenv}, opts)
	})
}

// workspace is the bridge to the workspace's files.
func (l *skillLoad) workspace(ctx context.Context) (fsbridge.Bridge, error) {
	if l.there != nil {
		return l.there, nil
	}
	if l.t.elsewhere() {
		h, err := l.a.open(ctx, l.t)
		if err != nil {
			return nil, err
		}
		l.handle, l.there = h, h.Bridge()
		l.opened = append(l.opened, h)
		return l.there, nil
	}
	dir, err := l.workspaceDir()
	if err != nil {
		return nil, err
	}
	b, err := l.open(fsbridge.MountTable{{Path: dir, Kind: fsbridge.MountWorkspace}}, nil)
	if err != nil {
		return nil, err
	}
	l.there = b
	return b, nil
}

// workspaceDir is the workspace on this machine.
func (l *skillLoad) workspaceDir() (string, error) {
	ws := l.t.workspace
	if ws == "" {
		ws = "."
	}
	return filepath.Abs(ws)
}

// gateway is the bridge to the installed and bundled roots of this machine, nil where there are
// none.
func (l *skillLoad) gateway() (fsbridge.Bridge, error) {
	if l.here != nil {
		return l.here, nil
	}
	var dirs []string
	for _, r := range l.gatewayRoots() {
		dirs = append(dirs, r.Path)
	}
	if len(dirs) == 0 {
		return nil, nil //nolint:nilnil // there is nothing to read
	}
	b, err := l.open(nil, dirs)
	if err != nil {
		return nil, err
	}
	l.here = b
	return b, nil
}

// open makes a bridge to directories of this machine: those that exist of dirs, and those that
// links may lead to.
func (l *skillLoad) open(mounts fsbridge.MountTable, dirs []string) (fsbridge.Bridge, error) {
	for _, d := range slices.Concat(dirs, l.expand(l.settings.Links)) {
		if st, err := os.Stat(d); err != nil || !st.IsDir() || slices.ContainsFunc(mounts, func(m fsbridge.Mount) bool { return m.Path == filepath.Clean(d) }) {
			continue
		}
		mounts = append(mounts, fsbridge.Mount{Path: filepath.Clean(d), Kind: fsbridge.MountBind, ReadOnly: true})
	}
	b, err := local.New(local.Options{Mounts: mounts, Logger: l.a.logger()})
	if err != nil {
		return nil, err
	}
	l.opened = append(l.opened, b)
	return b, nil
}

// workspaceRoots are the roots in the workspace.
func (l *skillLoad) workspaceRoots() []skills.Root {
	list := l.settings.Roots
	if list == nil {
		list = skills.DefaultWorkspaceRoots()
	}
	return rootsOf(list, skills.KindWorkspace)
}

// gatewayRoots are the roots of this machine that exist. Keeps SKL-03.
func (l *skillLoad) gatewayRoots() []skills.Root {
	installed := l.settings.Installed
	if installed == nil {
		for _, r := range skills.DefaultInstalledRoots() {
			installed = append(installed, "~/"+r)
		}
	}
	bundled := l.settings.Bundled
	if bundled == nil {
		bundled = []string{filepath.Join(filepath.Dir(filepath.Dir(l.a.executable)), "share", "berth", "skills")}
	}
	all := append(rootsOf(l.expand(installed), skills.KindInstalled), rootsOf(l.expand(bundled), skills.KindBundled)...)
	return slices.DeleteFunc(all, func(r skills.Root) bool {
		st, err := os.Stat(r.Path)
		return err != nil || !st.IsDir()
	})
}

func rootsOf(paths []string, kind skills.Kind) []skills.Root {
	var out []skills.Root
	for _, p := range paths {
		out = append(out, skills.Root{Path: p, Kind: kind})
	}
	return out
}

// expand puts the home directory in the place of "~". Without one such paths are left out.
func (l *skillLoad) expand(paths []string) []string {
	var out []string
	home := l.a.getenv("HOME")
	for _, p := range paths {
		if rest, ok := strings.CutPrefix(p, "~/"); ok {
			if !filepath.IsAbs(home) {
				continue
			}
			p = filepath.Join(home, rest)
		}
		out = append(out, filepath.Clean(p))
	}
	return out
}

// prober asks the sandbox of the workspace.
func (l *skillLoad) prober() skills.Prober {
	env := map[string]string{}
	if eff, err := l.t.effective(l.a); err == nil {
		env = eff.Config.Env
	}
	return probe.Either{
		Shell: probe.Shell{Run: runIn(l.handle), Platform: "linux"},
		Path:  probe.Path{Bridge: l.there, Platform: "linux", Env: env},
	}
}

// maxProbe bounds what a sandbox may answer a prober, in bytes.
const maxProbe = 1 << 20

// runIn runs the commands of a prober in a sandbox.
func runIn(h *owner.Handle) probe.Run {
	return func(ctx context.Context, argv []string) ([]byte, error) {
		info, err := h.Info(ctx)
		if err != nil {
			return nil, err
		}
		if why := info.Runtime["commands"]; strings.HasPrefix(why, "none") {
			return nil, fmt.Errorf("%w: %s", probe.ErrNoCommands, why)
		}
		out := &boundedOutput{}
		p, err := h.Runner().Start(ctx, proc.Spec{Argv: argv}, proc.IO{Stdout: out})
		var start *proc.StartError
		if errors.As(err, &start) && (start.Reason == proc.NoCommand || start.Reason == proc.NotExecutable) {
			return nil, fmt.Errorf("%w: %w", probe.ErrNoShell, err)
		}
		if err != nil {
			return nil, err
		}
		st, err := p.Wait(ctx)
		switch {
		case err != nil:
			return nil, err
		case st.Unknown:
			return nil, fmt.Errorf("the shell's end is unknown: %s", st.Reason)
		case st.Code != 0:
			return nil, fmt.Errorf("its shell ended with exit code %d", st.Code)
		}
		return out.data, nil
	}
}

// boundedOutput keeps what a prober needs and fails beyond that.
type boundedOutput struct{ data []byte }

// Write implements io.Writer.
func (b *boundedOutput) Write(p []byte) (int, error) {
	if len(b.data)+len(p) > maxProbe {
		return 0, fmt.Errorf("the answer is larger than %d bytes: %w", maxProbe, fsbridge.ErrTooLarge)
	}
	b.data = append(b.data, p...)
	return len(p), nil
}
