package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/workberth/workberth/sandbox"
)

func builtin(string) sandbox.Config {
	return sandbox.Config{
		Access: sandbox.AccessReadWrite, ReadOnlyRoot: true, Network: "none", SeccompProfile: "default",
		Limits: sandbox.Limits{Pids: 512}, Env: map[string]string{"LANG": "C.UTF-8"},
	}
}

const sample = `# a comment
backend: local
defaults:
  access: ro
  env:
    A: one
    B: two
  limits:
    memory: 2GiB
    pids: 100
backends:
  bubblewrap:
    network: none
    binds:
      - {source: /srv/data, target: /data}
      - {source: /srv/out, target: /out, readOnly: false}
    tmpfs:
      - {path: /tmp, size: 64MiB}
agents:
  main:
    backend: bubblewrap
    workspace: /srv/ws
    workdir: sub
    env:
      B: three
    prune: {idleHours: 24, maxAgeDays: 7}
`

func TestMergeLayersAndSources(t *testing.T) {
	f, err := Parse("c.yaml", []byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	e, err := f.Merge(Request{Agent: "main", Access: "rw"}, builtin)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, source string
		got, want    any
	}{
		{"backend", "c.yaml:21", e.Backend, "bubblewrap"},
		{"workspace", "c.yaml:22", e.Workspace, "/srv/ws"},
		{"workdir", "c.yaml:23", e.Config.Workdir, "sub"},
		{"access", "flag", e.Config.Access, sandbox.AccessReadWrite},
		{"env.A", "c.yaml:6", e.Config.Env["A"], "one"},
		{"env.B", "c.yaml:25", e.Config.Env["B"], "three"},
		{"env.LANG", "default", e.Config.Env["LANG"], "C.UTF-8"},
		{"limits.memory", "c.yaml:9", e.Config.Limits.MemoryBytes, int64(2 << 30)},
		{"limits.pids", "c.yaml:10", e.Config.Limits.Pids, int64(100)},
		{"scope", "default", e.Scope, sandbox.ScopeAgent},
		{"prune.idleHours", "c.yaml:26", e.Config.Prune.IdleHours, 24.0},
		{"readOnlyRoot", "default", e.Config.ReadOnlyRoot, true},
	} {
		if c.got != c.want {
			t.Errorf("%s = %v, want %v", c.name, c.got, c.want)
		}
		if got := e.Source(c.name); got != c.source {
			t.Errorf("source of %s = %q, want %q", c.name, got, c.source)
		}
	}
	if len(e.Config.Binds) != 2 || !e.Config.Binds[0].ReadOnly || e.Config.Binds[1].ReadOnly {
		t.Errorf("binds are read-only unless they say otherwise, got %+v", e.Config.Binds)
	}
	if e.Config.Tmpfs[0].SizeBytes != 64<<20 {
		t.Errorf("tmpfs size = %d", e.Config.Tmpfs[0].SizeBytes)
	}
}

func TestBackendPrecedence(t *testing.T) {
	f, err := Parse("c.yaml", []byte("backend: local\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		req          Request
		want, source string
	}{
		{Request{}, "local", "c.yaml:1"},
		{Request{EnvBackend: "e"}, "e", SourceEnv},
		{Request{EnvBackend: "e", Backend: "f"}, "f", SourceFlag},
	} {
		e, err := f.Merge(c.req, builtin)
		if err != nil {
			t.Fatal(err)
		}
		if e.Backend != c.want || e.Source("backend") != c.source {
			t.Errorf("%+v: backend %q from %q, want %q from %q", c.req, e.Backend, e.Source("backend"), c.want, c.source)
		}
	}
	e, err := (&File{}).Merge(Request{}, builtin)
	if err != nil || e.Backend != DefaultBackend || e.Session != "default" {
		t.Errorf("no file: %+v %v", e, err)
	}
}

// C081: an unknown field is refused, with its line.
func TestFaultsNameTheirLine(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"unknown top field", "backend: local\nworkdirr: x\n", "c.yaml:2: unknown field \"workdirr\""},
		{"unknown nested field", "defaults:\n  access: rw\n  acces: ro\n", "c.yaml:3: unknown field \"acces\""},
		{"unknown agent field", "agents:\n  a:\n    backend: local\n    cwd: /x\n", "c.yaml:4: unknown field \"cwd\""},
		{"unknown limit", "defaults:\n  limits:\n    mem: 1\n", "c.yaml:3: unknown field \"mem\""},
		{"duplicate key", "backend: a\nbackend: b\n", "c.yaml:2:"},
		{"bad access", "defaults:\n  access: all\n", "c.yaml:2: defaults.access: must be none, ro or rw"},
		{"bad scope", "agents:\n  a:\n    scope: all\n", "c.yaml:3: agents.a.scope: must be"},
		{"bad size", "defaults:\n  limits:\n    memory: lots\n", "\"lots\" is not a size"},
		{"negative pids", "defaults:\n  limits:\n    pids: -1\n", "c.yaml:3: defaults.limits.pids: must not be negative"},
		{"NaN cpus", "defaults:\n  limits:\n    cpus: .nan\n", "c.yaml:3: defaults.limits.cpus"},
		{"negative prune", "defaults:\n  prune:\n    idleHours: -2\n", "c.yaml:3: defaults.prune.idleHours"},
		{"wrong type", "defaults:\n  readOnlyRoot: maybe\n", "c.yaml:2:"},
		{"bind without target", "defaults:\n  binds:\n    - source: /x\n", "needs a source and a target"},
		{"tmpfs without path", "defaults:\n  tmpfs:\n    - size: 1\n", "needs a path"},
		{"syntax", "defaults: [\n", "c.yaml:"},
		{"a list", "- a\n", "c.yaml:1:"},
		{"two documents", "backend: a\n---\nbackend: b\n", "more than one"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("c.yaml", []byte(c.text))
			var ce *Error
			if !errors.As(err, &ce) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want %q", err, c.want)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
		})
	}
}

func TestUnknownAgentIsRefused(t *testing.T) {
	f, err := Parse("c.yaml", []byte("agents:\n  main: {}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Merge(Request{Agent: "mian"}, builtin); err == nil || !strings.Contains(err.Error(), "known are main") {
		t.Errorf("error = %v", err)
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	ws := filepath.Join(dir, "ws")
	if err := os.Mkdir(ws, 0o700); err != nil {
		t.Fatal(err)
	}
	inside := filepath.Join(ws, "config.yaml")
	if err := os.WriteFile(inside, []byte("backend: local\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link.yaml")
	if err := os.Symlink(inside, link); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{inside, link} {
		if _, err := Load(p, true, ws); err == nil || !strings.Contains(err.Error(), "inside the workspace") {
			t.Errorf("Load(%s) = %v, want a refusal: the workspace is not trusted", p, err)
		}
		if _, err := Load(p, true, filepath.Join(dir, "other")); err != nil {
			t.Errorf("Load(%s) with another workspace: %v", p, err)
		}
	}
	missing := filepath.Join(dir, "none.yaml")
	if _, err := Load(missing, false, ws); err != nil {
		t.Errorf("a missing default file: %v", err)
	}
	if _, err := Load(missing, true, ws); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing explicit file: %v", err)
	}
	if _, err := Load(dir, true, ""); err == nil {
		t.Error("a directory was accepted")
	}
	big := filepath.Join(dir, "big.yaml")
	if err := os.WriteFile(big, make([]byte, maxFileBytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(big, true, ""); err == nil || !strings.Contains(err.Error(), "larger") {
		t.Errorf("big file: %v", err)
	}
}

func TestDefaultPath(t *testing.T) {
	for _, c := range []struct{ xdg, home, want string }{
		{"/x", "/h", "/x/berth/config.yaml"},
		{"", "/h", "/h/.config/berth/config.yaml"},
		{"relative", "/h", "/h/.config/berth/config.yaml"},
		{"", "", ""},
	} {
		env := map[string]string{"XDG_CONFIG_HOME": c.xdg, "HOME": c.home}
		if got := DefaultPath(func(k string) string { return env[k] }); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

func TestParseSize(t *testing.T) {
	for in, want := range map[string]int64{"0": 0, "5": 5, "1k": 1024, "1KiB": 1024, "2 MiB": 2 << 20, "3GB": 3 << 30, "1T": 1 << 40, " 7 ": 7, "8b": 8} {
		if got, err := ParseSize(in); err != nil || got != want {
			t.Errorf("ParseSize(%q) = %d, %v; want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"", "-1", "x", "1.5G", "1X", "9999999999G", "1kk", "iB"} {
		if got, err := ParseSize(in); err == nil {
			t.Errorf("ParseSize(%q) = %d, want an error", in, got)
		}
	}
}

// A file of arbitrary bytes never crashes the parser, and its errors stay on one line.
func TestParseArbitrary(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		data := rapid.SliceOf(rapid.Byte()).Draw(rt, "data")
		if f, err := Parse("c.yaml", data); err != nil {
			if strings.Contains(err.Error(), "\n") {
				rt.Fatalf("more than one line: %q", err)
			}
		} else if _, err := f.Merge(Request{}, builtin); err != nil {
			rt.Fatal(err)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(sample))
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte("? [x]\n: y\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if file, err := Parse("c.yaml", data); err == nil {
			if _, err := file.Merge(Request{}, builtin); err != nil {
				t.Fatal(err)
			}
		}
	})
}
