package sandbox

import (
	"bytes"
	"errors"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
)

// C017: every spelling of a dangerous setting is refused before anything is made, the
// message naming the field; an explicit override exists.
func TestDangerousSettings(t *testing.T) {
	bind := func(source string) func(*Spec) {
		return func(s *Spec) { s.Config.Binds = []Bind{{Source: source, Target: "/data", ReadOnly: true}} }
	}
	at := func(target string) func(*Spec) {
		return func(s *Spec) { s.Config.Binds = []Bind{{Source: "/home/ann/data", Target: target}} }
	}
	network := func(n string) func(*Spec) { return func(s *Spec) { s.Config.Network = n } }
	profile := func(p string) func(*Spec) { return func(s *Spec) { s.Config.SeccompProfile = p } }
	pid := func(m string) func(*Spec) { return func(s *Spec) { s.Config.PidMode = m } }
	workspace := func(w string) func(*Spec) { return func(s *Spec) { s.Workspace = w } }
	tmpfs := func(p string) func(*Spec) {
		return func(s *Spec) { s.Config.Tmpfs = []Tmpfs{{Path: p}} }
	}
	for name, tc := range map[string]struct {
		field string
		set   func(*Spec)
	}{
		"network host":             {"network", network("host")},
		"network HOST":             {"network", network("HOST")},
		"network blank host":       {"network", network(" Host\t")},
		"network container":        {"network", network("container:abc")},
		"network CONTAINER":        {"network", network("CONTAINER:abc")},
		"network ns":               {"network", network("ns:/proc/1/ns/net")},
		"network path":             {"network", network("/proc/1/ns/net")},
		"network slirp":            {"network", network("slirp4netns:allow_host_loopback=true")},
		"seccomp unconfined":       {"seccompProfile", profile("unconfined")},
		"seccomp Unconfined":       {"seccompProfile", profile("Unconfined ")},
		"seccomp assignment":       {"seccompProfile", profile("seccomp=unconfined")},
		"seccomp colon":            {"seccompProfile", profile("seccomp:unconfined")},
		"seccomp lets all pass":    {"seccompProfile", profile("/home/ann/open.json")},
		"privileged":               {"privileged", func(s *Spec) { s.Config.Privileged = true }},
		"pid host":                 {"pidMode", pid("host")},
		"pid Host":                 {"pidMode", pid("HOST")},
		"pid container":            {"pidMode", pid("container:x")},
		"cap ALL":                  {"capAdd", func(s *Spec) { s.Config.CapAdd = []string{"ALL"} }},
		"cap net_raw":              {"capAdd", func(s *Spec) { s.Config.CapAdd = []string{"net_raw"} }},
		"bind root":                {"binds", bind("/")},
		"bind root spelled":        {"binds", bind("//./")},
		"bind etc":                 {"binds", bind("/etc")},
		"bind below etc":           {"binds", bind("/etc/hostname")},
		"bind etc dotdot":          {"binds", bind("/x/../etc")},
		"bind etc by link":         {"binds", bind("/home/ann/tools/away")},
		"bind below etc by link":   {"binds", bind("/home/ann/tools/away/ssl")},
		"bind proc":                {"binds", bind("/proc")},
		"bind proc 1":              {"binds", bind("/proc/1")},
		"bind sys":                 {"binds", bind("/sys/")},
		"bind dev":                 {"binds", bind("/dev")},
		"bind device":              {"binds", bind("/dev/sda")},
		"bind boot":                {"binds", bind("/boot")},
		"bind root home":           {"binds", bind("/root")},
		"bind below root home":     {"binds", bind("/root/x")},
		"bind docker socket":       {"binds", bind("/var/run/docker.sock")},
		"bind docker socket real":  {"binds", bind("/run/docker.sock")},
		"bind docker socket link":  {"binds", bind("/home/ann/tools/dock")},
		"bind run":                 {"binds", bind("/run")},
		"bind var run":             {"binds", bind("/var/run")},
		"bind a service directory": {"binds", bind("/run/other")},
		"bind all removable disks": {"binds", bind("/run/media/../user")},
		"bind podman directory":    {"binds", bind("/run/podman")},
		"bind user podman":         {"binds", bind("/run/user/1000/podman/podman.sock")},
		"bind any socket":          {"binds", bind("/run/other/service.sock")},
		"bind a pipe":              {"binds", bind("/run/other/pipe")},
		"bind docker data":         {"binds", bind("/var/lib/docker")},
		"bind all homes":           {"binds", bind("/home")},
		"bind home":                {"binds", bind("/home/ann")},
		"bind home by link":        {"binds", bind("/h/ann")},
		"bind home by up link":     {"binds", bind("/home/ann/tools/up/ann")},
		"bind ssh":                 {"binds", bind("/home/ann/.ssh")},
		"bind an ssh key":          {"binds", bind("/home/ann/.ssh/id")},
		"bind ssh by link":         {"binds", bind("/home/ann/tools/keys")},
		"bind ssh by dotdot":       {"binds", bind("/home/ann/work/../.ssh")},
		"bind ssh by other home":   {"binds", bind("/h/ann/.ssh")},
		"bind gnupg":               {"binds", bind("/home/ann/.gnupg")},
		"bind aws":                 {"binds", bind("/home/ann/.aws")},
		"bind kube":                {"binds", bind("/home/ann/.kube")},
		"bind docker config":       {"binds", bind("/home/ann/.docker")},
		"bind gcloud":              {"binds", bind("/home/ann/.config/gcloud")},
		"bind above gcloud":        {"binds", bind("/home/ann/.config")},
		"bind own configuration":   {"binds", bind("/home/ann/.config/berth")},
		"bind own state":           {"binds", bind("/home/ann/state/berth")},
		"bind above own state":     {"binds", bind("/home/ann/state")},
		"bind below own state":     {"binds", bind("/home/ann/state/berth/x")},
		"target root":              {"binds", at("/")},
		"target proc":              {"binds", at("/proc")},
		"target below proc":        {"binds", at("/proc/sys")},
		"target dotdot":            {"binds", at("/data/../proc")},
		"target sys":               {"binds", at("/sys/fs")},
		"target dev":               {"binds", at("/dev/shm")},
		"target usr":               {"binds", at("/usr")},
		"target usr bin":           {"binds", at("/usr/bin/")},
		"target etc":               {"binds", at("/etc")},
		"target passwd":            {"binds", at("/etc/passwd")},
		"target helper":            {"binds", at("/run/berth/berth-guest")},
		"tmpfs over usr":           {"tmpfs", tmpfs("/usr")},
		"tmpfs over dev":           {"tmpfs", tmpfs("/dev")},
		"tmpfs over root":          {"tmpfs", tmpfs("/")},
		"workspace root":           {"workspace", workspace("/")},
		"workspace home":           {"workspace", workspace("/home/ann")},
		"workspace ssh":            {"workspace", workspace("/home/ann/.ssh")},
		"workspace ssh by link":    {"workspace", workspace("/home/ann/tools/keys")},
		"workspace etc":            {"workspace", workspace("/etc")},
		"workspace own state":      {"workspace", workspace("/home/ann/state/berth")},
		"writable bind around ro": {"binds", func(s *Spec) {
			s.Config.Access = AccessReadOnly
			s.Config.Binds = []Bind{{Source: "/home/ann/tools/work", Target: "/data"}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := goodSpec()
			tc.set(&spec)
			findings, err := Validate(spec, annFacts())
			var p *Problem
			if !errors.As(err, &p) || !errors.Is(err, ErrRefused) {
				t.Fatalf("Validate = %v, want a refusal", err)
			}
			if p.Field != tc.field || !strings.HasPrefix(err.Error(), tc.field+": ") {
				t.Errorf("refusal %q is about field %q, want %q", err, p.Field, tc.field)
			}
			if p.Rule == "" || !strings.Contains(p.Remedy, "allowDangerous: ["+tc.field+"]") {
				t.Errorf("refusal without rule or remedy: %+v", p)
			}
			if len(findings) == 0 || findings[0].Allowed {
				t.Errorf("findings %+v", findings)
			}

			spec.Config.AllowDangerous = []string{tc.field}
			findings, err = Validate(spec, annFacts())
			if err != nil {
				t.Fatalf("permitted and still refused: %v", err)
			}
			if len(findings) == 0 || !findings[0].Allowed || findings[0].Field != tc.field {
				t.Errorf("permitted finding is not told: %+v", findings)
			}

			// Another permission does not help.
			spec.Config.AllowDangerous = slices.DeleteFunc(dangerousFields(), func(f string) bool { return f == tc.field })
			if _, err := Validate(spec, annFacts()); !errors.Is(err, ErrRefused) {
				t.Errorf("refusal lifted by the permission of other fields: %v", err)
			}
		})
	}
}

// Settings that make no sense cannot be permitted.
func TestMalformedSettings(t *testing.T) {
	limits := func(set func(*Limits)) func(*Spec) { return func(s *Spec) { set(&s.Config.Limits) } }
	env := func(name, value string) func(*Spec) {
		return func(s *Spec) { s.Config.Env = map[string]string{name: value} }
	}
	binds := func(b ...Bind) func(*Spec) { return func(s *Spec) { s.Config.Binds = b } }
	for name, tc := range map[string]struct {
		field string
		set   func(*Spec)
	}{
		"no scope":             {"scope", func(s *Spec) { s.Scope = "" }},
		"odd scope":            {"scope", func(s *Spec) { s.Scope = "Session" }},
		"no session":           {"session", func(s *Spec) { s.Session = "" }},
		"no agent":             {"agent", func(s *Spec) { s.Scope = ScopeAgent }},
		"session with NUL":     {"session", func(s *Spec) { s.Session = "a\x00" }},
		"long session":         {"session", func(s *Spec) { s.Session = strings.Repeat("a", 1025) }},
		"odd access":           {"access", func(s *Spec) { s.Config.Access = "write" }},
		"no workspace":         {"workspace", func(s *Spec) { s.Workspace = "" }},
		"relative workspace":   {"workspace", func(s *Spec) { s.Workspace = "work" }},
		"tilde workspace":      {"workspace", func(s *Spec) { s.Workspace = "~/work" }},
		"missing workspace":    {"workspace", func(s *Spec) { s.Workspace = "/home/ann/none" }},
		"workspace is a file":  {"workspace", func(s *Spec) { s.Workspace = "/home/ann/work/file.txt" }},
		"workspace with NUL":   {"workspace", func(s *Spec) { s.Workspace = "/home\x00" }},
		"workspace loops":      {"workspace", func(s *Spec) { s.Workspace = "/home/ann/tools/loop" }},
		"no network":           {"network", func(s *Spec) { s.Config.Network = "" }},
		"odd network":          {"network", func(s *Spec) { s.Config.Network = "a b" }},
		"option network":       {"network", func(s *Spec) { s.Config.Network = "--net" }},
		"bind relative":        {"binds", binds(Bind{Source: "data", Target: "/data"})},
		"bind tilde":           {"binds", binds(Bind{Source: "~/data", Target: "/data"})},
		"bind without source":  {"binds", binds(Bind{Target: "/data"})},
		"bind target relative": {"binds", binds(Bind{Source: "/home/ann/data", Target: "data"})},
		"bind source missing":  {"binds", binds(Bind{Source: "/home/ann/none", Target: "/data"})},
		"bind with NUL":        {"binds", binds(Bind{Source: "/home/ann/data\x00", Target: "/data"})},
		"bind over workspace":  {"binds", binds(Bind{Source: "/home/ann/data", Target: "/workspace/"})},
		"bind over tmpfs":      {"binds", binds(Bind{Source: "/home/ann/data", Target: "/tmp"})},
		"two binds":            {"binds", binds(Bind{Source: "/home/ann/data", Target: "/d"}, Bind{Source: "/opt/tools", Target: "/x/../d"})},
		"tmpfs relative":       {"tmpfs", func(s *Spec) { s.Config.Tmpfs = []Tmpfs{{Path: "tmp"}} }},
		"tmpfs negative":       {"tmpfs", func(s *Spec) { s.Config.Tmpfs = []Tmpfs{{Path: "/tmp", SizeBytes: -1}} }},
		"tmpfs absurd":         {"tmpfs", func(s *Spec) { s.Config.Tmpfs = []Tmpfs{{Path: "/tmp", SizeBytes: 1 << 50}} }},
		"tmpfs twice":          {"tmpfs", func(s *Spec) { s.Config.Tmpfs = []Tmpfs{{Path: "/tmp"}, {Path: "/tmp/"}} }},
		"tmpfs over workspace": {"tmpfs", func(s *Spec) { s.Config.Tmpfs = []Tmpfs{{Path: "/workspace"}} }},
		"profile missing":      {"seccompProfile", func(s *Spec) { s.Config.SeccompProfile = "/home/ann/none.json" }},
		"profile broken":       {"seccompProfile", func(s *Spec) { s.Config.SeccompProfile = "/home/ann/broken.json" }},
		"profile is a dir":     {"seccompProfile", func(s *Spec) { s.Config.SeccompProfile = "/home/ann/work" }},
		"profile relative":     {"seccompProfile", func(s *Spec) { s.Config.SeccompProfile = "strict.json" }},
		"profile Default":      {"seccompProfile", func(s *Spec) { s.Config.SeccompProfile = "Default" }},
		"pids negative":        {"limits", limits(func(l *Limits) { l.Pids = -1 })},
		"pids too few":         {"limits", limits(func(l *Limits) { l.Pids = 3 })},
		"pids absurd":          {"limits", limits(func(l *Limits) { l.Pids = 1 << 40 })},
		"memory negative":      {"limits", limits(func(l *Limits) { l.MemoryBytes = -1 })},
		"memory too little":    {"limits", limits(func(l *Limits) { l.MemoryBytes = 4096 })},
		"memory absurd":        {"limits", limits(func(l *Limits) { l.MemoryBytes = 1 << 60 })},
		"cpus negative":        {"limits", limits(func(l *Limits) { l.CPUs = -0.5 })},
		"cpus NaN":             {"limits", limits(func(l *Limits) { l.CPUs = math.NaN() })},
		"cpus infinite":        {"limits", limits(func(l *Limits) { l.CPUs = math.Inf(1) })},
		"files negative":       {"limits", limits(func(l *Limits) { l.OpenFiles = -5 })},
		"file size negative":   {"limits", limits(func(l *Limits) { l.FileSizeBytes = -5 })},
		"prune negative":       {"prune", func(s *Spec) { s.Config.Prune.IdleHours = -1 }},
		"prune NaN":            {"prune", func(s *Spec) { s.Config.Prune.MaxAgeDays = math.NaN() }},
		"env without name":     {"env", env("", "x")},
		"env with =":           {"env", env("A=B", "x")},
		"env with blank":       {"env", env("A B", "x")},
		"env with newline":     {"env", env("A\n", "x")},
		"env value NUL":        {"env", env("A", "x\x00")},
		"env too long":         {"env", env("A", strings.Repeat("x", 1<<17))},
		"env marker":           {"env", env(MarkerVar, "x")},
		"user name":            {"user", func(s *Spec) { s.Config.User = "root" }},
		"user without group":   {"user", func(s *Spec) { s.Config.User = "1000" }},
		"user negative":        {"user", func(s *Spec) { s.Config.User = "-1:0" }},
		"user nobody":          {"user", func(s *Spec) { s.Config.User = "4294967295:0" }},
		"user spelled":         {"user", func(s *Spec) { s.Config.User = "0x0:00" }},
		"image option":         {"image", func(s *Spec) { s.Config.Image = "--privileged" }},
		"workdir NUL":          {"workdir", func(s *Spec) { s.Config.Workdir = "/a\x00" }},
		"workdir tilde":        {"workdir", func(s *Spec) { s.Config.Workdir = "~/x" }},
		"setup NUL":            {"setupCommand", func(s *Spec) { s.Config.SetupCommand = "a\x00" }},
		"unknown permission":   {"allowDangerous", func(s *Spec) { s.Config.AllowDangerous = []string{"netwrok"} }},
	} {
		t.Run(name, func(t *testing.T) {
			spec := goodSpec()
			tc.set(&spec)
			_, err := Validate(spec, annFacts())
			var p *Problem
			if !errors.As(err, &p) || !errors.Is(err, ErrRefused) || p.Field != tc.field || p.Remedy == "" || p.Rule == "" {
				t.Fatalf("Validate = %v (%+v), want a refusal of field %q with rule and remedy", err, p, tc.field)
			}
			spec.Config.AllowDangerous = append(spec.Config.AllowDangerous, dangerousFields()...)
			if _, err := Validate(spec, annFacts()); !errors.Is(err, ErrRefused) {
				t.Errorf("a setting without sense was permitted: %v", err)
			}
		})
	}
}

// Honest settings pass: too strict is a fault too.
func TestHonestSettings(t *testing.T) {
	for name, set := range map[string]func(*Spec){
		"defaults":                 func(*Spec) {},
		"agent":                    func(s *Spec) { s.Scope, s.Agent = ScopeAgent, "main" },
		"shared without workspace": func(s *Spec) { s.Scope, s.Workspace, s.Config.Access = ScopeShared, "", AccessNone },
		"home with access none":    func(s *Spec) { s.Workspace, s.Config.Access = "/home/ann", AccessNone },
		"workspace by a link":      func(s *Spec) { s.Workspace = "/home/ann/tools/work" },
		"bind a data directory":    func(s *Spec) { s.Config.Binds = []Bind{{Source: "/home/ann/data", Target: "/data"}} },
		"bind a file":              func(s *Spec) { s.Config.Binds = []Bind{{Source: "/home/ann/work/file.txt", Target: "/f"}} },
		"bind other configuration": func(s *Spec) {
			s.Config.Binds = []Bind{{Source: "/home/ann/.config/other", Target: "/c", ReadOnly: true}}
		},
		"bind tools": func(s *Spec) {
			s.Config.Binds = []Bind{{Source: "/opt/tools", Target: "/usr/local/tools", ReadOnly: true}}
		},
		"bind in the workspace": func(s *Spec) { s.Config.Binds = []Bind{{Source: "/home/ann/data", Target: "/workspace/.x/y"}} },
		"a removable disk":      func(s *Spec) { s.Workspace = "/run/media/ann/usb/work" },
		"bind below tmpfs":      func(s *Spec) { s.Config.Binds = []Bind{{Source: "/home/ann/data", Target: "/tmp/data"}} },
		"bind ro beside ro workspace": func(s *Spec) {
			s.Config.Access = AccessReadOnly
			s.Config.Binds = []Bind{{Source: "/home/ann/work", Target: "/w", ReadOnly: true}}
		},
		"a network by name":   func(s *Spec) { s.Config.Network = "my-net_1" },
		"a strict profile":    func(s *Spec) { s.Config.SeccompProfile = "/home/ann/strict.json" },
		"a deny list profile": func(s *Spec) { s.Config.SeccompProfile = "/home/ann/deny.json" },
		"pid private":         func(s *Spec) { s.Config.PidMode = "private" },
		"no limits":           func(s *Spec) { s.Config.Limits = Limits{} },
		"limits": func(s *Spec) {
			s.Config.Limits = Limits{Pids: 64, MemoryBytes: 1 << 30, CPUs: 1.5, OpenFiles: 1024, FileSizeBytes: 1}
		},
		"user": func(s *Spec) { s.Config.User = "1000:1000" },
		"odd env values": func(s *Spec) {
			s.Config.Env = map[string]string{"K": "-----A\nB\n", "E": "", "a.b-c": "é\xff", "P": "a=b=c"}
		},
		"several words in setup": func(s *Spec) { s.Config.SetupCommand = "echo a\necho b" },
	} {
		t.Run(name, func(t *testing.T) {
			spec := goodSpec()
			set(&spec)
			if findings, err := Validate(spec, annFacts()); err != nil || len(findings) > 0 {
				t.Errorf("Validate = %v, %+v", err, findings)
			}
		})
	}
}

// All problems are told, not only the first.
func TestValidateTellsAll(t *testing.T) {
	spec := goodSpec()
	spec.Config.Network = "host"
	spec.Config.Privileged = true
	spec.Config.Limits.Pids = -1
	findings, err := Validate(spec, annFacts())
	if len(findings) != 3 || err == nil {
		t.Fatalf("findings %+v, error %v", findings, err)
	}
	for _, field := range []string{"network: ", "privileged: ", "limits: "} {
		if !strings.Contains(err.Error(), field) {
			t.Errorf("error %q does not tell about %s", err, field)
		}
	}
}

// The administrator's own work is below /root, which is protected for everybody else.
func TestAdministratorHome(t *testing.T) {
	spec := goodSpec()
	spec.Workspace = "/root/x"
	if _, err := Validate(spec, testHost().facts("/root")); err != nil {
		t.Errorf("the administrator cannot work below the own home directory: %v", err)
	}
	if _, err := Validate(spec, annFacts()); !errors.Is(err, ErrRefused) {
		t.Errorf("somebody else can: %v", err)
	}
}

// C017: a permitted danger is logged; values of variables never are.
func TestResolveLogsPermittedDangers(t *testing.T) {
	var log bytes.Buffer
	spec := goodSpec()
	spec.Config.Network = "host"
	spec.Config.AllowDangerous = []string{"network"}
	spec.Config.Env = map[string]string{"TOKEN": "hunter2"}
	r, err := Resolve("bubblewrap", spec, annFacts(), slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), "field=network") || !strings.Contains(log.String(), string(r.ID)) {
		t.Errorf("log %q does not tell of the permitted setting", log.String())
	}
	if strings.Contains(log.String(), "hunter2") {
		t.Error("the value of a variable was logged")
	}
	if len(r.Findings) != 1 {
		t.Errorf("findings %+v", r.Findings)
	}
}

func TestResolve(t *testing.T) {
	spec := Spec{Scope: ScopeSession, Session: "s", Workspace: "/h/ann/tools/work"}
	spec.Config.Binds = []Bind{{Source: "/h/ann/data", Target: "/data"}}
	r, err := Resolve("bubblewrap", spec, annFacts(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Spec.Workspace != "/home/ann/work" || r.Spec.Config.Binds[0].Source != "/home/ann/data" {
		t.Errorf("links are left: %+v", r.Spec)
	}
	if r.Spec.Config.Network != "none" || !r.Spec.Config.ReadOnlyRoot {
		t.Errorf("defaults are missing: %+v", r.Spec.Config)
	}
	if spec.Config.Binds[0].Source != "/h/ann/data" {
		t.Error("the caller's spec was changed")
	}
}

func TestApplyDefaults(t *testing.T) {
	hardened := DefaultConfig()
	for name, tc := range map[string]struct {
		in   Config
		want func(*Config)
	}{
		"nothing":        {Config{}, func(*Config) {}},
		"access only":    {Config{Access: AccessReadOnly}, func(c *Config) { c.Access = AccessReadOnly }},
		"own limits":     {Config{Limits: Limits{Pids: 9, CPUs: 1}}, func(c *Config) { c.Limits = Limits{Pids: 9, CPUs: 1} }},
		"no tmpfs":       {Config{Tmpfs: []Tmpfs{}}, func(c *Config) { c.Tmpfs = nil }},
		"complete":       {Config{Access: "rw", Network: "none", SeccompProfile: "default"}, func(c *Config) { *c = Config{Access: "rw", Network: "none", SeccompProfile: "default"} }},
		"tmpfs size":     {Config{Tmpfs: []Tmpfs{{Path: "/x"}}}, func(c *Config) { c.Tmpfs = []Tmpfs{{"/x", 64 << 20}} }},
		"hardened again": {hardened, func(*Config) {}},
	} {
		t.Run(name, func(t *testing.T) {
			want := DefaultConfig()
			tc.want(&want)
			got := ApplyDefaults(tc.in)
			if got.String() != want.String() {
				t.Errorf("got  %v\nwant %v", got, want)
			}
			if again := ApplyDefaults(got); again.String() != got.String() {
				t.Errorf("a second time: %v", again)
			}
		})
	}
}
