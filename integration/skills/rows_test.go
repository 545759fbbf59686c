package skills

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/local"
	"github.com/workberth/workberth/internal/sandboxtest"
	"github.com/workberth/workberth/remoteworkspace"
	"github.com/workberth/workberth/sandbox"
	"github.com/workberth/workberth/skills"
	"github.com/workberth/workberth/skills/mirror"
	"github.com/workberth/workberth/skills/probe"
)

// machine is a workspace elsewhere, which has a program and a variable that this machine has not.
type machine struct {
	*sandboxtest.Place
	sb     sandbox.Sandbox
	bridge fsbridge.Bridge
	probes atomic.Int64
}

func newMachine(t *testing.T, p *sandboxtest.Place, binds ...sandbox.Bind) *machine {
	t.Helper()
	p.Write(t, "tools/only-there", "#!/bin/sh\n", 0o755)
	p.Env["PATH"], p.Env["FAR_TOKEN"], p.Binds = p.Inside()+"/tools:/usr/bin:/bin", "1", binds
	m := &machine{Place: p, sb: p.Sandbox(t)}
	var err error
	if m.bridge, err = m.sb.Bridge(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return m
}

// Probe counts and asks.
func (m *machine) Probe(ctx context.Context, ask skills.Request) (skills.Facts, error) {
	m.probes.Add(1)
	return probe.In(m.sb, m.bridge).Probe(ctx, ask)
}

// load is the LoadSkills of the machine's binding.
func (m *machine) load(ctx context.Context) (skills.Discovery, error) {
	return skills.Discover(ctx, m.bridge, []skills.Root{{Path: "skills", Kind: skills.KindWorkspace}}, m, skills.Options{})
}

// front is a SKILL.md that asks for something.
func front(name, requires string) string {
	return "---\nname: " + name + "\ndescription: d\nmetadata:\n  berth: {requires: " + requires + "}\n---\n"
}

// states are the verdicts by name, with what is missing.
func states(l skills.Listing) map[string]string {
	out := map[string]string{}
	for _, v := range l.Verdicts {
		out[v.Name] = strings.TrimSpace(string(v.State) + " " + strings.Join(v.Missing, ","))
	}
	return out
}

// The skills of a workspace elsewhere are found there and judged by what is there, with one question;
// the Gateway's own are read here; its filters count for both; and when the machine is gone, nothing
// local takes the place of what it had, unless the binding is for documents only. SKL-01 SKL-02 SKL-03
// SKL-04 SKL-05 SKL-06 SKL-07 SKL-08 C159
func TestRows(t *testing.T) {
	t.Parallel()
	sandboxtest.Each(t, sandboxtest.Kinds(), func(t *testing.T, p *sandboxtest.Place) {
		src := installed(t)
		var binds []sandbox.Bind
		if p.Kind.Binds() {
			var err error
			if binds, err = mirror.Binds(src.list(t, skills.Policy{}), "/skills"); err != nil {
				t.Fatal(err)
			}
		}
		m := newMachine(t, p, binds...)
		p.Write(t, "skills/there/SKILL.md", front("there", "{bins: [only-there, sh], env: [FAR_TOKEN]}"), 0o644)
		p.Write(t, "skills/nowhere/SKILL.md", front("nowhere", "{bins: [only-there, no-such-program]}"), 0o644)
		p.Write(t, "skills/unwanted/SKILL.md", front("unwanted", "{}"), 0o644)
		p.Write(t, "skills/one/SKILL.md", front("one", "{env: [NOT_SET]}"), 0o644)
		for i := range 50 {
			p.Write(t, fmt.Sprintf("skills/many-%03d/SKILL.md", i), front(fmt.Sprintf("many-%03d", i), fmt.Sprintf("{anyBins: [none-%d, sh]}", i)), 0o644)
		}
		all, dir := m.bind(t)
		d, err := all.LoadSkills(t.Context(), dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		l, err := skills.Select(skills.Policy{Deny: []string{"unwant*"}}, d, src.discovery)
		if err != nil {
			t.Fatal(err)
		}
		is := states(l)
		if d.Platform != "linux" || is["there"] != "loaded" || is["nowhere"] != "missing binary no-such-program" || is["unwanted"] != "disabled" || is["many-049"] != "loaded" {
			t.Errorf("%q %q", d.Platform, is)
		}
		// The workspace's own skill of the name misses something, so the installed one is used.
		if n := m.probes.Load(); n != 1 || len(l.Verdicts) != 54+2 || len(l.Loaded()) != 52 || len(mirror.Eligible(l)) != 1 {
			t.Errorf("%d probes, %d verdicts, %d loaded", n, len(l.Verdicts), len(l.Loaded()))
		}
		if binds != nil {
			m.bound(t)
		}
		m.sync(t, src)
		m.watch(t)
		m.gone(t, all, dir)
	})
}

// bind registers the machine for a directory that has a skill of its own on this machine.
func (m *machine) bind(t *testing.T) (*remoteworkspace.Workspaces, string) {
	t.Helper()
	dir := t.TempDir()
	sandboxtest.Write(t, dir, "skills/stale/SKILL.md", front("stale", "{}"), 0o644)
	registry := remoteworkspace.NewRegistry(remoteworkspace.RegistryOptions{})
	if err := registry.Declare(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := registry.Register(dir, remoteworkspace.Access{Bridge: m.sb.Bridge, LoadSkills: m.load}); err != nil {
		t.Fatal(err)
	}
	all, err := remoteworkspace.New(remoteworkspace.Options{Registry: registry})
	if err != nil {
		t.Fatal(err)
	}
	return all, dir
}

// source are installed skills of this machine: one that can be used and one that wants to be a path.
type source struct {
	dir       string
	bridge    *local.Bridge
	discovery skills.Discovery
}

func installed(t *testing.T) *source {
	t.Helper()
	s := &source{dir: t.TempDir()}
	sandboxtest.Write(t, s.dir, "one/SKILL.md", "---\nname: one\ndescription: d\n---\n", 0o644)
	sandboxtest.Write(t, s.dir, "one/run.sh", "#!/bin/sh\necho ran\n", 0o755)
	sandboxtest.Write(t, s.dir, "evil/SKILL.md", "---\nname: ../../../tmp/pwnskill\ndescription: d\n---\n", 0o644)
	var err error
	if s.bridge, err = local.New(local.Options{Mounts: fsbridge.MountTable{{Path: s.dir, Kind: fsbridge.MountBind, ReadOnly: true}}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.bridge.Close() })
	s.discovery, err = skills.Discover(t.Context(), s.bridge, []skills.Root{{Path: s.dir, Kind: skills.KindInstalled}}, nil, skills.Options{Parallel: 8})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *source) list(t *testing.T, policy skills.Policy) skills.Listing {
	t.Helper()
	l, err := skills.Select(policy, s.discovery)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// sh runs a script in the sandbox.
func (m *machine) sh(t *testing.T, script string) string {
	t.Helper()
	r, err := sandbox.Run(t.Context(), m.sb, sandbox.Command{Argv: []string{"sh", "-c", script}}, nil, sandbox.RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return string(r.Stdout.Bytes())
}

// bound: installed skills are seen through read-only binds.
func (m *machine) bound(t *testing.T) {
	t.Helper()
	if got := m.sh(t, "/skills/one/run.sh; echo x 2>/dev/null >> /skills/one/SKILL.md || echo kept; ls /skills"); got != "ran\nkept\none\n" {
		t.Errorf("%q", got)
	}
}

// sync copies installed skills to the machine, twice, and again after they were changed there.
func (m *machine) sync(t *testing.T, src *source) {
	t.Helper()
	l := src.list(t, skills.Policy{})
	for _, want := range []string{"[one/SKILL.md one/run.sh] 0", "[] 2", "[one/run.sh] 1"} {
		if strings.HasPrefix(want, "[one/run.sh]") {
			m.sh(t, "cd "+mirror.DefaultDir+"/one && rm -f run.sh && echo 'echo changed' > run.sh")
		}
		res, err := mirror.Sync(t.Context(), l, src.bridge, m.bridge, mirror.Options{})
		if got := fmt.Sprint(res.Written, res.Unchanged); err != nil || got != want {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
	}
	if got := m.sh(t, mirror.DefaultDir+"/one/run.sh; ls "+mirror.DefaultDir); got != "ran\none\n" {
		t.Errorf("the copy gives %q", got)
	}
	if _, err := os.Lstat("/tmp/pwnskill"); err == nil || m.sh(t, "ls -d /tmp/pwnskill 2>/dev/null") != "" {
		t.Error("/tmp/pwnskill was made")
	}
}

// watch sees a skill that is made on the machine.
func (m *machine) watch(t *testing.T) {
	t.Helper()
	w, err := skills.Watch(t.Context(), m.bridge, []skills.Root{{Path: "skills"}, {Path: ".agents/skills"}})
	if err != nil {
		t.Fatal(err)
	}
	m.sh(t, "mkdir -p .agents/skills/new && echo x > .agents/skills/new/SKILL.md")
	select {
	case _, ok := <-w.Changed():
		if !ok {
			t.Errorf("the watcher has ended: %v", w.Err())
		}
	case <-time.After(10 * time.Second):
		t.Error("a new skill is not told")
	}
	if err := w.Close(); err != nil || w.Err() != nil {
		t.Errorf("%v, %v", err, w.Err())
	}
}

// gone kills the machine's end: the answer is an error, not what is here.
func (m *machine) gone(t *testing.T, all *remoteworkspace.Workspaces, dir string) {
	t.Helper()
	documents := m.documents(t)
	if n := m.KillHelper(); n == 0 {
		t.Error("no helper was found")
	}
	documents()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	asked := false
	_, err := all.LoadSkills(ctx, dir, func(context.Context, string) (skills.Discovery, error) { asked = true; return skills.Discovery{}, nil })
	if !errors.Is(err, remoteworkspace.ErrUnavailable) || asked {
		t.Errorf("gone: %v, local asked: %v", err, asked)
	}
}

// documents binds the machine for documents only, which keeps local discovery: also when the machine is
// gone, and when the binding was released. SKL-06 SKL-07
func (m *machine) documents(t *testing.T) (gone func()) {
	t.Helper()
	dir, registry := t.TempDir(), remoteworkspace.NewRegistry(remoteworkspace.RegistryOptions{})
	all, err := remoteworkspace.New(remoteworkspace.Options{Registry: registry})
	if err != nil {
		t.Fatal(err)
	}
	want := func(when string) {
		t.Helper()
		d, err := all.LoadSkills(t.Context(), dir, func(context.Context, string) (skills.Discovery, error) {
			return skills.Discovery{Skills: []skills.Skill{{Name: "local"}}}, nil
		})
		if err != nil || len(d.Skills) != 1 || d.Skills[0].Name != "local" {
			t.Errorf("%s: %+v, %v", when, d, err)
		}
	}
	want("unbound")
	if err := registry.Declare(dir); err != nil {
		t.Fatal(err)
	}
	release, err := registry.Register(dir, remoteworkspace.Access{Bridge: m.sb.Bridge})
	if err != nil {
		t.Fatal(err)
	}
	want("bound")
	return func() {
		want("gone")
		release()
		want("released")
	}
}

// A host that serves SFTP and runs no commands: skills are found, and those that need something miss
// it; installed ones are copied there; what cannot be done is said to be. SKL-02 SKL-04
func TestOverSFTPAlone(t *testing.T) {
	t.Parallel()
	m := newMachine(t, sandboxtest.New(t, sandboxtest.FilesOnly))
	m.Write(t, "skills/plain/SKILL.md", "---\nname: plain\ndescription: d\n---\n", 0o644)
	m.Write(t, "skills/plain/deep/er/x.txt", "x", 0o644)
	m.Write(t, "skills/needy/SKILL.md", "---\nname: needy\ndescription: d\nmetadata: {berth: {os: linux, requires: {bins: sh}}}\n---\n", 0o644)
	d, err := m.load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l, err := skills.Select(skills.Policy{}, d)
	if err != nil || len(l.Verdicts) != 2 {
		t.Fatalf("%+v, %v", l, err)
	}
	if v := l.Verdicts[0]; v.State != skills.StateMissing || len(v.Missing) != 2 {
		t.Errorf("%s: %s %q", v.Name, v.State, v.Missing)
	}
	if v := l.Verdicts[1]; v.State != skills.StateLoaded || len(v.Resources) != 1 || v.Resources[0].Path != filepath.Join("deep", "er", "x.txt") {
		t.Errorf("%+v", v)
	}
	if _, err := skills.Watch(t.Context(), m.bridge, d.Roots); !errors.Is(err, fsbridge.ErrUnsupported) {
		t.Errorf("watch: %v", err)
	}
	src := installed(t)
	for _, want := range []string{"[one/SKILL.md one/run.sh] 0", "[] 2"} {
		res, err := mirror.Sync(t.Context(), src.list(t, skills.Policy{}), src.bridge, m.bridge, mirror.Options{})
		if got := fmt.Sprint(res.Written, res.Unchanged); err != nil || got != want {
			t.Errorf("sync: %s, %v; want %s", got, err, want)
		}
	}
}
