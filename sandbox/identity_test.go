package sandbox

import (
	"errors"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// genSpec draws specs that Identity accepts on testHost.
func genSpec() *rapid.Generator[Spec] {
	return rapid.Custom(func(t *rapid.T) Spec {
		dirs := []string{"/home/ann/work", "/home/bob/work", "/x", "/home/ann/data"}
		text := rapid.StringMatching(`[a-zé\xff ]{0,6}`)
		s := Spec{
			Scope:     rapid.SampledFrom([]Scope{ScopeSession, ScopeAgent, ScopeShared}).Draw(t, "scope"),
			Session:   rapid.StringMatching(`[a-z]{1,4}`).Draw(t, "session"),
			Agent:     rapid.StringMatching(`[a-z]{1,4}`).Draw(t, "agent"),
			Workspace: rapid.SampledFrom(dirs).Draw(t, "workspace"),
		}
		c := &s.Config
		c.Access = rapid.SampledFrom([]Access{AccessNone, AccessReadOnly, AccessReadWrite}).Draw(t, "access")
		c.Network = rapid.SampledFrom([]string{"none", "bridge"}).Draw(t, "network")
		c.SeccompProfile = rapid.SampledFrom([]string{"default", "/home/ann/strict.json", "/home/ann/deny.json"}).Draw(t, "profile")
		c.ReadOnlyRoot = rapid.Bool().Draw(t, "readOnlyRoot")
		c.Workdir = text.Draw(t, "workdir")
		c.SetupCommand = text.Draw(t, "setup")
		c.Limits.Pids = rapid.Int64Range(0, 3).Draw(t, "pids")
		c.Limits.CPUs = rapid.Float64Range(0, 2).Draw(t, "cpus")
		c.Env = rapid.MapOfN(rapid.StringMatching(`[A-C]`), text, 0, 3).Draw(t, "env")
		for i, path := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"/tmp", "/a", "/b"}), 0, 3, rapid.ID).Draw(t, "tmpfs") {
			c.Tmpfs = append(c.Tmpfs, Tmpfs{Path: path, SizeBytes: int64(i + 1)})
		}
		for _, target := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"/d", "/e", "/f"}), 0, 3, rapid.ID).Draw(t, "binds") {
			c.Binds = append(c.Binds, Bind{Source: rapid.SampledFrom(dirs).Draw(t, "source"), Target: target, ReadOnly: rapid.Bool().Draw(t, "ro")})
		}
		c.CapAdd = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"A", "B", "C"}), 0, 3, rapid.ID).Draw(t, "caps")
		return s
	})
}

// shuffled is the same spec written in another order and spelling.
func shuffled(s Spec, seed uint64) Spec {
	r := rand.New(rand.NewPCG(seed, 0))
	s.Config.Tmpfs = slices.Clone(s.Config.Tmpfs)
	s.Config.Binds = slices.Clone(s.Config.Binds)
	s.Config.CapAdd = slices.Clone(s.Config.CapAdd)
	s.Config.Env = maps.Clone(s.Config.Env)
	r.Shuffle(len(s.Config.Tmpfs), func(i, j int) {
		s.Config.Tmpfs[i], s.Config.Tmpfs[j] = s.Config.Tmpfs[j], s.Config.Tmpfs[i]
	})
	r.Shuffle(len(s.Config.Binds), func(i, j int) {
		s.Config.Binds[i], s.Config.Binds[j] = s.Config.Binds[j], s.Config.Binds[i]
	})
	r.Shuffle(len(s.Config.CapAdd), func(i, j int) {
		s.Config.CapAdd[i], s.Config.CapAdd[j] = s.Config.CapAdd[j], s.Config.CapAdd[i]
	})
	if s.Workspace == "/home/ann/work" {
		s.Workspace = "/h/ann/tools/../tools/work"
	}
	for i := range s.Config.Binds {
		s.Config.Binds[i].Source = strings.Replace(s.Config.Binds[i].Source, "/home/ann", "/h/ann", 1)
		s.Config.Binds[i].Target += "/"
	}
	s.Config.Prune = Prune{IdleHours: r.Float64()}
	s.Config.AllowDangerous = []string{"network"}
	if s.Scope != ScopeAgent {
		s.Agent = "somebody"
	}
	if s.Scope != ScopeSession {
		s.Session = "something"
	}
	return s
}

func identify(t testing.TB, s Spec) ID {
	t.Helper()
	id, hash, err := Identity("fake", s, annFacts())
	if err != nil {
		t.Fatalf("Identity(%+v): %v", s, err)
	}
	if !id.Valid() || id.Backend() != "fake" || len(hash) != 64 {
		t.Fatalf("Identity = %q, %q", id, hash)
	}
	return id
}

func TestIdentityIsStable(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := genSpec().Draw(rt, "spec")
		before := s.Config.String()
		id := identify(t, s)
		if again := identify(t, s); again != id {
			rt.Fatalf("twice: %s, %s", id, again)
		}
		if other := identify(t, shuffled(s, rapid.Uint64().Draw(rt, "seed"))); other != id {
			rt.Fatalf("another order or spelling of the same: %s, %s", id, other)
		}
		completed := s
		completed.Config = ApplyDefaults(s.Config)
		if other := identify(t, completed); other != id {
			rt.Fatalf("defaults spelled out: %s, %s", id, other)
		}
		if s.Config.String() != before {
			rt.Fatal("Identity changed its argument")
		}
	})
}

// C057: what changes the sandbox changes its identity, and two workspaces never share.
func TestIdentityTellsApart(t *testing.T) {
	changes := map[string]func(*Spec){
		"workspace": func(s *Spec) {
			s.Workspace = map[bool]string{true: "/opt/tools", false: "/usr/share"}[s.Workspace != "/opt/tools"]
		},
		"session":         func(s *Spec) { s.Session += "x" },
		"agent":           func(s *Spec) { s.Agent += "x" },
		"readOnlyRoot":    func(s *Spec) { s.Config.ReadOnlyRoot = !s.Config.ReadOnlyRoot },
		"workdir":         func(s *Spec) { s.Config.Workdir += "/x" },
		"setupCommand":    func(s *Spec) { s.Config.SetupCommand += "x" },
		"setup byte":      func(s *Spec) { s.Config.SetupCommand += "\xfe" },
		"network":         func(s *Spec) { s.Config.Network += "x" },
		"env name":        func(s *Spec) { s.Config.Env = map[string]string{"NEW": "1"} },
		"env value":       func(s *Spec) { s.Config.Env = map[string]string{"A": "unlikely\xff"} },
		"env other byte":  func(s *Spec) { s.Config.Env = map[string]string{"A": "unlikely\xfe"} },
		"pids":            func(s *Spec) { s.Config.Limits.Pids += 5 },
		"memory":          func(s *Spec) { s.Config.Limits.MemoryBytes += 5 },
		"cpus":            func(s *Spec) { s.Config.Limits.CPUs += 5 },
		"openFiles":       func(s *Spec) { s.Config.Limits.OpenFiles += 5 },
		"fileSize":        func(s *Spec) { s.Config.Limits.FileSizeBytes += 5 },
		"user":            func(s *Spec) { s.Config.User = "7:7" },
		"image":           func(s *Spec) { s.Config.Image = "img" },
		"privileged":      func(s *Spec) { s.Config.Privileged = true },
		"pidMode":         func(s *Spec) { s.Config.PidMode = "private" },
		"capAdd":          func(s *Spec) { s.Config.CapAdd = append(s.Config.CapAdd, "Z") },
		"one more tmpfs":  func(s *Spec) { s.Config.Tmpfs = append(s.Config.Tmpfs, Tmpfs{Path: "/new", SizeBytes: 1}) },
		"one more bind":   func(s *Spec) { s.Config.Binds = append(s.Config.Binds, Bind{Source: "/x", Target: "/new"}) },
		"read-only bind":  func(s *Spec) { s.Config.Binds = []Bind{{Source: "/x", Target: "/new", ReadOnly: true}} },
		"another profile": func(s *Spec) { s.Config.SeccompProfile = "/home/ann/open.json" },
	}
	rapid.Check(t, func(rt *rapid.T) {
		s := genSpec().Draw(rt, "spec")
		seen := map[ID]string{identify(t, s): "unchanged"}
		for _, name := range slices.Sorted(maps.Keys(changes)) {
			switch {
			case name == "workspace" && s.Scope == ScopeShared && s.Config.Access == AccessNone,
				name == "session" && s.Scope != ScopeSession,
				name == "agent" && s.Scope != ScopeAgent:
				continue
			}
			changed := s
			changed.Config = ApplyDefaults(s.Config)
			changes[name](&changed)
			id := identify(t, changed)
			if other, taken := seen[id]; taken {
				rt.Fatalf("%q and %q have the same identity", name, other)
			}
			seen[id] = name
		}
	})
}

func TestIdentityScopes(t *testing.T) {
	s := goodSpec()
	s.Agent = s.Session
	ids := map[ID]bool{}
	for _, scope := range []Scope{ScopeSession, ScopeAgent, ScopeShared} {
		s.Scope = scope
		ids[identify(t, s)] = true
	}
	if len(ids) != 3 {
		t.Error("two scopes with the same key share a sandbox")
	}
	// Without a workspace inside, a shared sandbox is one for everybody.
	s.Scope, s.Config.Access = ScopeShared, AccessNone
	one := identify(t, s)
	s.Workspace = "/home/bob/work"
	if identify(t, s) != one {
		t.Error("a shared sandbox that shows no workspace depends on one")
	}
	if a, _, _ := Identity("fake", s, annFacts()); a != one {
		t.Error("not stable")
	}
	if b, _, _ := Identity("other", s, annFacts()); b[len("other"):] == one[len("fake"):] {
		t.Error("two backends share an identity")
	}
}

// A profile counts with its content.
func TestIdentityProfileContent(t *testing.T) {
	host := testHost()
	s := goodSpec()
	s.Config.SeccompProfile = "/home/ann/strict.json"
	before, _, err := Identity("fake", s, host.facts("/home/ann"))
	if err != nil {
		t.Fatal(err)
	}
	host["/home/ann/strict.json"] += " "
	after, _, err := Identity("fake", s, host.facts("/home/ann"))
	if err != nil || before == after {
		t.Errorf("a changed profile keeps the identity (%v)", err)
	}
}

func TestIdentityRefuses(t *testing.T) {
	for name, set := range map[string]func(*Spec){
		"no session":        func(s *Spec) { s.Session = "" },
		"no scope":          func(s *Spec) { s.Scope = "" },
		"missing workspace": func(s *Spec) { s.Workspace = "/none" },
		"missing source":    func(s *Spec) { s.Config.Binds = []Bind{{Source: "/none", Target: "/d"}} },
		"missing profile":   func(s *Spec) { s.Config.SeccompProfile = "/none" },
	} {
		s := goodSpec()
		set(&s)
		var p *Problem
		if id, _, err := Identity("fake", s, annFacts()); !errors.As(err, &p) || !errors.Is(err, ErrRefused) || id != "" {
			t.Errorf("%s: %q, %v", name, id, err)
		}
	}
	for _, backend := range []string{"", "Docker", "a-b", "a/b", "a b"} {
		if _, _, err := Identity(backend, goodSpec(), annFacts()); !errors.Is(err, ErrRefused) {
			t.Errorf("backend %q: %v", backend, err)
		}
	}
}

func TestIDValid(t *testing.T) {
	for id, want := range map[ID]bool{
		"local-0123456789abcdef": true, "": false, "local": false, "../local-0123456789abcdef": false,
		"local-0123456789ABCDEF": false, "local-0123456789abcdef0": false, "local-0123456789abcde/": false, "-0123456789abcdef": false,
		"local-0123456789abcdef\n": false,
	} {
		if id.Valid() != want {
			t.Errorf("ID(%q).Valid() = %v", id, !want)
		}
	}
}

// C017: on the real file system, a hard link to a protected file and a socket under any
// name are found.
func TestSystemFacts(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	work, engine := filepath.Join(dir, "work"), filepath.Join(dir, "engine")
	alias, sock := filepath.Join(work, "alias"), filepath.Join(work, "s")
	for _, d := range []string{work, engine} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(engine, "sock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(engine, "sock"), alias); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", sock)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	env := map[string]string{"HOME": dir + "/home", "DOCKER_HOST": "unix://" + filepath.Join(engine, "sock")}
	facts := SystemFacts(func(k string) string { return env[k] }, dir+"/state")
	if len(facts.Homes) == 0 || facts.Homes[0] != dir+"/home" || !slices.Contains(facts.EngineSockets, filepath.Join(engine, "sock")) {
		t.Errorf("facts %+v", facts)
	}
	for _, source := range []string{alias, sock, engine, dir} {
		s := Spec{Scope: ScopeSession, Session: "s", Workspace: work, Config: DefaultConfig()}
		s.Config.Binds = []Bind{{Source: source, Target: "/data", ReadOnly: true}}
		findings, err := Validate(s, facts)
		if !errors.Is(err, ErrRefused) || len(findings) != 1 || !findings[0].Dangerous {
			t.Errorf("bind of %s: %v", source, err)
		}
	}
	s := Spec{Scope: ScopeSession, Session: "s", Workspace: work, Config: DefaultConfig()}
	s.Config.SeccompProfile = sock
	if _, err := Validate(s, facts); !errors.Is(err, ErrRefused) {
		t.Errorf("a socket as profile: %v", err)
	}
}
