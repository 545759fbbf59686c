package seccomp

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// profileWithEverything uses every field of the format.
const profileWithEverything = `{
  "defaultAction": "SCMP_ACT_ERRNO",
  "defaultErrnoRet": 38,
  "defaultErrno": "ENOSYS",
  "archMap": [{"architecture": "SCMP_ARCH_X86_64", "subArchitectures": ["SCMP_ARCH_X86"]}],
  "architectures": [],
  "flags": [],
  "comment": "ours",
  "syscalls": [
    {"names": ["read", "write"], "action": "SCMP_ACT_ALLOW", "args": null, "errnoRet": 1},
    {"name": "openat", "action": "SCMP_ACT_LOG"},
    {"names": ["close"], "action": "SCMP_ACT_KILL"},
    {"names": ["dup"], "action": "SCMP_ACT_TRAP", "errnoRet": 7},
    {"names": ["dup2"], "action": "SCMP_ACT_ERRNO", "errno": "EACCES", "comment": "no"},
    {"names": ["clone"], "action": "SCMP_ACT_ALLOW",
     "args": [{"index": 0, "value": 255, "valueTwo": 17, "op": "SCMP_CMP_MASKED_EQ"},
              {"index": 1, "value": 0, "op": "SCMP_CMP_EQ"}],
     "excludes": {"caps": ["CAP_SYS_ADMIN"], "arches": ["s390x"]}},
    {"names": ["personality"], "action": "SCMP_ACT_ALLOW",
     "args": [{"index": 0, "value": 0, "op": "SCMP_CMP_EQ"}, {"index": 0, "value": 8, "op": "SCMP_CMP_EQ"}]},
    {"names": ["mount"], "action": "SCMP_ACT_ALLOW",
     "includes": {"caps": ["CAP_SYS_ADMIN"], "arches": ["amd64"], "minKernel": "4.8"}}
  ]
}
`

func TestParse(t *testing.T) {
	got, err := Parse([]byte(profileWithEverything))
	if err != nil {
		t.Fatal(err)
	}
	want := Policy{
		Default: Errno(unix.ENOSYS),
		Rules: []Rule{
			{Names: []string{"read", "write"}, Action: Allow, line: 10},
			{Names: []string{"openat"}, Action: Log, line: 11},
			{Names: []string{"close"}, Action: KillThread, line: 12},
			{Names: []string{"dup"}, Action: Trap | 7, line: 13},
			{Names: []string{"dup2"}, Action: Errno(unix.EACCES), line: 14},
			{
				Names: []string{"clone"}, Action: Allow, line: 15,
				Conds:  []Cond{{Arg: 0, Op: MaskedEqual, Mask: 255, Value: 17}, {Arg: 1, Op: Equal}},
				Unless: When{Caps: []string{"CAP_SYS_ADMIN"}, Arches: []string{"s390x"}},
			},
			{Names: []string{"personality"}, Action: Allow, line: 19, Conds: []Cond{{Op: Equal}}},
			{Names: []string{"personality"}, Action: Allow, line: 19, Conds: []Cond{{Op: Equal, Value: 8}}},
			{
				Names: []string{"mount"}, Action: Allow, line: 21,
				Only: When{Caps: []string{"CAP_SYS_ADMIN"}, Arches: []string{"amd64"}, MinKernel: Version{4, 8}},
			},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestParseErrors(t *testing.T) {
	rule := func(r string) string {
		return "{\n \"defaultAction\": \"SCMP_ACT_ERRNO\",\n \"syscalls\": [\n  {\"names\": [\"read\"], \"action\": \"SCMP_ACT_ALLOW\"},\n  " + r + "\n ]\n}"
	}
	for name, c := range map[string]struct {
		in   string
		line int
		text string
	}{
		"empty":               {"", 1, "ends too early"},
		"not an object":       {"[]", 1, "JSON object"},
		"number":              {"7", 1, "JSON object"},
		"cut":                 {"{\n\"defaultAction\": \"SCMP_ACT_ALLOW\",\n", 3, "ends too early"},
		"cut in a rule":       {"{\n\"syscalls\": [\n{\"names\": [", 3, "ends too early"},
		"comma missing":       {"{\n\"defaultAction\": \"SCMP_ACT_ALLOW\"\n\"syscalls\": []}", 3, "invalid character"},
		"trailing text":       {"{\"defaultAction\": \"SCMP_ACT_ALLOW\"}\n\n{}", 3, "follows"},
		"no default":          {"{\"syscalls\": []}", 0, "defaultAction"},
		"unknown default":     {"{\n\"defaultAction\": \"SCMP_ACT_YES\"}", 2, `unknown action "SCMP_ACT_YES"`},
		"default of a number": {"{\n\n\"defaultAction\": 1}", 3, "cannot be number"},
		"unknown field":       {"{\n\"defaultAction\": \"SCMP_ACT_ALLOW\",\n\"syscals\": []}", 3, `unknown field "syscals"`},
		"field twice":         {"{\n\"defaultAction\": \"SCMP_ACT_ALLOW\",\n\"defaultAction\": \"SCMP_ACT_ERRNO\"}", 3, "twice"},
		"listener":            {"{\"listenerPath\": \"/x\"}", 1, "listenerPath"},
		"rules an object":     {"{\n\"syscalls\": {}}", 2, "array"},
		"rule a string":       {rule(`"read"`), 5, "cannot be string"},
		"rule field":          {rule(`{"names": ["a"], "action": "SCMP_ACT_ALLOW", "arg": []}`), 5, `unknown field "arg"`},
		"no names":            {rule(`{"action": "SCMP_ACT_ALLOW"}`), 5, "names no system call"},
		"empty name":          {rule(`{"names": [""], "action": "SCMP_ACT_ALLOW"}`), 5, "empty"},
		"name and names":      {rule(`{"name": "a", "names": ["b"], "action": "SCMP_ACT_ALLOW"}`), 5, "not both"},
		"no action":           {rule(`{"names": ["read"]}`), 5, "action"},
		"notify":              {rule(`{"names": ["read"], "action": "SCMP_ACT_NOTIFY"}`), 5, "listens"},
		"errno too large":     {rule(`{"names": ["read"], "action": "SCMP_ACT_ERRNO", "errnoRet": 4096}`), 5, "4095"},
		"errno negative":      {rule(`{"names": ["read"], "action": "SCMP_ACT_ERRNO", "errnoRet": -1}`), 5, "cannot be number"},
		"errno unknown":       {rule(`{"names": ["read"], "action": "SCMP_ACT_ERRNO", "errno": "EPREM"}`), 5, "EPREM"},
		"errno differs":       {rule(`{"names": ["read"], "action": "SCMP_ACT_ERRNO", "errno": "EPERM", "errnoRet": 2}`), 5, "differ"},
		"op":                  {rule(`{"names": ["read"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 0, "op": "EQ"}]}`), 5, `unknown comparison "EQ"`},
		"no index":            {rule(`{"names": ["read"], "action": "SCMP_ACT_ALLOW", "args": [{"value": 0, "op": "SCMP_CMP_EQ"}]}`), 5, "index"},
		"index":               {rule(`{"names": ["read"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 6, "op": "SCMP_CMP_EQ"}]}`), 5, "0 to 5"},
		"value negative":      {rule(`{"names": ["read"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 0, "value": -1, "op": "SCMP_CMP_EQ"}]}`), 5, "cannot be number"},
		"valueTwo":            {rule(`{"names": ["read"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 0, "valueTwo": 1, "op": "SCMP_CMP_EQ"}]}`), 5, "valueTwo"},
		"kernel":              {rule(`{"names": ["read"], "action": "SCMP_ACT_ALLOW", "includes": {"minKernel": "new"}}`), 5, "kernel version"},
		"too large":           {strings.Repeat(" ", MaxProfile+1), 0, "at most"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(c.in))
			var pe *ParseError
			if !errors.As(err, &pe) {
				t.Fatalf("error %v is no ParseError", err)
			}
			if pe.Line != c.line || !strings.Contains(pe.Msg, c.text) {
				t.Errorf("got line %d %q, want line %d with %q", pe.Line, pe.Msg, c.line, c.text)
			}
		})
	}
}

// What a policy says but cannot be kept is refused when it is compiled.
func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	write := func(text string) string {
		path := filepath.Join(dir, "profile.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, c := range map[string]struct{ in, text string }{
		"contradiction": {`{"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [
			{"names": ["read"], "action": "SCMP_ACT_ALLOW"},
			{"names": ["read"], "action": "SCMP_ACT_KILL"}]}`, "line 3"},
		"denied misspelled": {`{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
			{"names": ["moutn"], "action": "SCMP_ACT_ERRNO"}]}`, `"moutn"`},
	} {
		path := write(c.in)
		_, err := Load(path, facts("amd64"))
		if err == nil || !strings.Contains(err.Error(), c.text) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Load(dir, facts("amd64")); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("directory: %v", err)
	}
	if _, err := Load(filepath.Join(dir, "none"), facts("amd64")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	if _, err := Load("profile.json", facts("amd64")); err == nil || !strings.Contains(err.Error(), "absolute") {
		t.Errorf("relative path: %v", err)
	}
	if _, err := Load("default", facts("riscv64")); err == nil || !strings.Contains(err.Error(), "riscv64") {
		t.Errorf("architecture: %v", err)
	}
	if _, err := Compile(Policy{Default: Allow, Rules: []Rule{{Names: []string{"read"}, Conds: []Cond{{Arg: 6}}}}}, facts("amd64")); err == nil {
		t.Error("argument 6 was accepted")
	}
	if _, err := Compile(Policy{Default: Allow, Rules: []Rule{{Names: []string{"read"}, Conds: make([]Cond, 7)}}}, facts("amd64")); err == nil {
		t.Error("seven conditions were accepted")
	}
}

// Rules that depend on the machine.
func TestConditionalRules(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.json")
	if err := os.WriteFile(path, []byte(`{"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [
		{"names": ["mount", "s390_runtime_instr"], "action": "SCMP_ACT_ALLOW", "includes": {"caps": ["CAP_SYS_ADMIN"]}},
		{"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38, "excludes": {"caps": ["CAP_SYS_ADMIN"]}},
		{"names": ["clone3"], "action": "SCMP_ACT_ALLOW", "includes": {"caps": ["CAP_SYS_ADMIN"]}},
		{"names": ["ptrace"], "action": "SCMP_ACT_ALLOW", "includes": {"minKernel": "6.2"}},
		{"names": ["kcmp"], "action": "SCMP_ACT_ALLOW", "excludes": {"minKernel": "6.2"}},
		{"names": ["read"], "action": "SCMP_ACT_ALLOW", "includes": {"arches": ["arm64"]}},
		{"names": ["write"], "action": "SCMP_ACT_ALLOW", "excludes": {"arches": ["arm64"]}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		f     Facts
		allow string
	}{
		{Facts{Arch: "amd64", Kernel: Version{6, 1}}, "kcmp write"},
		{Facts{Arch: "arm64", Kernel: Version{6, 2}}, "ptrace read"},
		{Facts{Arch: "amd64", Kernel: Version{7, 0}, Caps: []string{"CAP_SYS_ADMIN"}}, "mount clone3 ptrace write"},
	} {
		f := must(Load(path, c.f))(t)
		m, info := newMachine(t, f), must(archInfo(c.f.Arch))(t)
		for _, name := range []string{"mount", "clone3", "ptrace", "kcmp", "read", "write"} {
			got := m.run(t, uint32(info.ID), uint32(info.SyscallNames[name]), [6]uint64{})
			want := strings.Contains(" "+c.allow+" ", " "+name+" ")
			if got.permits() != want {
				t.Errorf("%+v: %s: %s", c.f, name, got)
			}
		}
		if c.f.Caps != nil && !reflect.DeepEqual(f.Ignored, []string{"s390_runtime_instr"}) {
			t.Errorf("ignored names: %q", f.Ignored)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(profileWithEverything))
	f.Add([]byte(`{"defaultAction":"SCMP_ACT_ALLOW"}`))
	f.Add([]byte(`{"defaultAction":"SCMP_ACT_ERRNO","syscalls":[{"names":["read"],"action":"SCMP_ACT_ALLOW","args":[{"index":5,"value":18446744073709551615,"op":"SCMP_CMP_LE"}]}]}`))
	f.Add([]byte("{\"a\":\n}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Parse(data)
		if err != nil {
			var pe *ParseError
			if !errors.As(err, &pe) || pe.Msg == "" || pe.Line < 0 {
				t.Fatalf("error %#v", err)
			}
			return
		}
		filter, err := Compile(p, facts("amd64"))
		if err != nil {
			return
		}
		tab := must(resolve(p, facts("amd64")))(t)
		m := newMachine(t, filter)
		for nr := range uint32(460) {
			if got, want := m.run(t, uint32(tab.arch.ID), nr, [6]uint64{1, 2, 3}), tab.decide(nr, [6]uint64{1, 2, 3}); got != want {
				t.Fatalf("call %d: %s, want %s", nr, got, want)
			}
		}
	})
}
