package skills

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/local"
	"github.com/workberth/workberth/internal/helperbin"
	"github.com/workberth/workberth/internal/sshtest"
	"github.com/workberth/workberth/remoteworkspace"
	"github.com/workberth/workberth/sandbox"
	"github.com/workberth/workberth/sandbox/ssh"
	"github.com/workberth/workberth/skills"
	"github.com/workberth/workberth/skills/mirror"
	"github.com/workberth/workberth/skills/probe"
)

// helper builds the guest helper once.
var helper = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "berth-skills-")
	if err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-o", filepath.Join(dir, helperbin.Name), "github.com/workberth/workberth/cmd/berth-guest")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return dir, fmt.Errorf("build the helper: %w\n%s", err, out)
	}
	return dir, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, _ := helper(); dir != "" {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

func missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("BERTH_REQUIRE_ENGINES") == "1" {
		t.Fatal(what)
	}
	t.Skip(what)
}

func write(t *testing.T, dir, name, text string, mode os.FileMode) {
	t.Helper()
	p := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// machine is a workspace on a machine behind OpenSSH, which has a program that this one has not.
type machine struct {
	dir    string
	server *sshtest.Server
	sb     sandbox.Sandbox
	bridge fsbridge.Bridge
}

func newMachine(t *testing.T, opts sshtest.Options) *machine {
	t.Helper()
	sshtest.Available(t)
	built, err := helper()
	if err != nil {
		t.Fatal(err)
	}
	tools := t.TempDir()
	write(t, tools, "only-there", "#!/bin/sh\n", 0o755)
	m := &machine{dir: t.TempDir()}
	opts.ExtraConfig = []string{"SetEnv XDG_CACHE_HOME=" + t.TempDir() + " PATH=" + tools + ":/usr/bin:/bin"}
	m.server = sshtest.Start(t, opts)
	s := m.server
	config := filepath.Join(s.Dir, "config")
	write(t, s.Dir, "config", fmt.Sprintf("Host far\n  HostName %s\n  Port %d\n  User %s\n  IdentityFile %s\n  IdentitiesOnly yes\n  IdentityAgent none\n  UserKnownHostsFile %s\n  GlobalKnownHostsFile none\n",
		s.Host, s.Port, s.User, s.IdentityFile, s.KnownHostsFile), 0o600)
	backend, err := ssh.New(ssh.Options{
		StateDir: t.TempDir(), Getenv: func(string) string { return "" },
		Helper: func(arch string) (helperbin.Helper, error) {
			return helperbin.For("linux", arch, helperbin.Options{Env: func(name string) string {
				if name == helperbin.EnvPath && arch == runtime.GOARCH {
					return filepath.Join(built, helperbin.Name)
				}
				return ""
			}})
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	c := ssh.DefaultConfig()
	c.SSH, c.SSHConfig, c.Env = "far", config, map[string]string{"FAR_TOKEN": "1"}
	m.sb, err = backend.Ensure(t.Context(), sandbox.Spec{Scope: sandbox.ScopeSession, Session: "skills", Workspace: m.dir, Config: c})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.sb.Close() })
	if m.bridge, err = m.sb.Bridge(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return m
}

// load is the LoadSkills of the machine's binding.
func (m *machine) load(ctx context.Context) (skills.Discovery, error) {
	return skills.Discover(ctx, m.bridge, []skills.Root{{Path: "skills", Kind: skills.KindWorkspace}}, probe.In(m.sb, m.bridge), skills.Options{})
}

// SKL-01 SKL-02 SKL-04 SKL-08 C159: the skills of a workspace behind OpenSSH are found there and
// judged by what that machine has; installed ones are copied there; when the machine is cut off,
// nothing local is used in its place.
func TestOverSSH(t *testing.T) {
	t.Parallel()
	m := newMachine(t, sshtest.Options{})
	front := func(name, requires string) string {
		return "---\nname: " + name + "\ndescription: d\nmetadata:\n  berth: {requires: " + requires + "}\n---\n"
	}
	write(t, m.dir, "skills/there/SKILL.md", front("there", "{bins: [only-there, sh], env: [FAR_TOKEN]}"), 0o644)
	write(t, m.dir, "skills/nowhere/SKILL.md", front("nowhere", "{bins: [only-there, no-such-program]}"), 0o644)
	for i := range 200 {
		write(t, m.dir, fmt.Sprintf("skills/many-%03d/SKILL.md", i), front(fmt.Sprintf("many-%03d", i), "{}"), 0o644)
	}
	dir := t.TempDir()
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
	d, err := all.LoadSkills(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := skills.Select(skills.Policy{}, d)
	if err != nil {
		t.Fatal(err)
	}
	states := map[string]string{}
	for _, v := range l.Verdicts {
		states[v.Name] = string(v.State) + " " + strings.Join(v.Missing, ",")
	}
	if d.Platform != "linux" || states["there"] != "loaded " || states["nowhere"] != "missing binary no-such-program" || len(states) != 202 {
		t.Errorf("%s: there is %q, nowhere is %q, %d in all", d.Platform, states["there"], states["nowhere"], len(states))
	}
	m.sync(t)
	m.watch(t)

	m.server.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	asked := false
	_, err = all.LoadSkills(ctx, dir, func(context.Context, string) (skills.Discovery, error) { asked = true; return skills.Discovery{}, nil })
	if !errors.Is(err, remoteworkspace.ErrUnavailable) || asked {
		t.Errorf("cut off: %v, local asked: %v", err, asked)
	}
}

// SKL-02 SKL-04: a host that serves SFTP and runs no commands: skills are found, and those that need
// something miss it.
func TestOverSFTPAlone(t *testing.T) {
	t.Parallel()
	m := newMachine(t, sshtest.Options{SFTPOnly: true})
	write(t, m.dir, "skills/plain/SKILL.md", "---\nname: plain\ndescription: d\n---\n", 0o644)
	write(t, m.dir, "skills/plain/deep/er/x.txt", "x", 0o644)
	write(t, m.dir, "skills/needy/SKILL.md", "---\nname: needy\ndescription: d\nmetadata: {berth: {os: linux, requires: {bins: sh}}}\n---\n", 0o644)
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
	if v := l.Verdicts[1]; v.State != skills.StateLoaded || len(v.Resources) != 1 || v.Resources[0].Path != "deep/er/x.txt" {
		t.Errorf("%+v", v)
	}
}

// watch sees a skill that is made on the machine.
func (m *machine) watch(t *testing.T) {
	t.Helper()
	w, err := skills.Watch(t.Context(), m.bridge, []skills.Root{{Path: "skills"}, {Path: ".agents/skills"}})
	if err != nil {
		t.Fatal(err)
	}
	write(t, m.dir, ".agents/skills/new/SKILL.md", "---\nname: new\ndescription: d\n---\n", 0o644)
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

// sync copies installed skills to the machine, twice.
func (m *machine) sync(t *testing.T) {
	t.Helper()
	src := t.TempDir()
	write(t, src, "one/SKILL.md", "---\nname: one\ndescription: d\n---\n", 0o644)
	write(t, src, "one/run.sh", "#!/bin/sh\necho ran\n", 0o755)
	write(t, src, "evil/SKILL.md", "---\nname: ../../../tmp/pwnskill\ndescription: d\n---\n", 0o644)
	from, err := local.New(local.Options{Mounts: fsbridge.MountTable{{Path: src, Kind: fsbridge.MountBind, ReadOnly: true}}})
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	d, err := skills.Discover(t.Context(), from, []skills.Root{{Path: src, Kind: skills.KindInstalled}}, nil, skills.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := skills.Select(skills.Policy{}, d)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"[one/SKILL.md one/run.sh] 0", "[] 2"} {
		res, err := mirror.Sync(t.Context(), l, from, m.bridge, mirror.Options{})
		if got := fmt.Sprint(res.Written, res.Unchanged); err != nil || got != want {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
	}
	r, err := sandbox.Run(t.Context(), m.sb, sandbox.Command{Argv: []string{mirror.DefaultDir + "/one/run.sh"}}, nil, sandbox.RunOptions{})
	if err != nil || string(r.Stdout.Bytes()) != "ran\n" {
		t.Errorf("the copy does not run: %+v, %v", r, err)
	}
	if _, err := os.Lstat("/tmp/pwnskill"); err == nil {
		t.Error("/tmp/pwnskill was made")
	}
}
