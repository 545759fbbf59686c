package skills_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/skills"
)

// C153: other spellings, and things that are no file.
func TestSpelling(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"skills/lower/skill.md":    good("lower"),
		"skills/title/Skill.md":    good("title"),
		"skills/ext/SKILL.MD":      good("ext"),
		"skills/both/SKILL.md":     good("both"),
		"skills/both/skill.md":     good("wrong"),
		"skills/folder/SKILL.md/":  "",
		"skills/dangling/SKILL.md": "-> nowhere",
		"skills/leaves/SKILL.md":   "-> /etc/hostname",
		"skills/nothing/README.md": "x",
	})
	d, l := found(t, bridge(t, dir))
	for file, want := range map[string]struct {
		state skills.State
		rules string
	}{
		"skills/lower/skill.md":    {skills.StateLoaded, "file-name"},
		"skills/title/Skill.md":    {skills.StateLoaded, "file-name"},
		"skills/ext/SKILL.MD":      {skills.StateLoaded, "file-name"},
		"skills/both/SKILL.md":     {skills.StateLoaded, "file-name"},
		"skills/folder/SKILL.md":   {skills.StateRejected, "regular-file"},
		"skills/dangling/SKILL.md": {skills.StateRejected, "link"},
		"skills/leaves/SKILL.md":   {skills.StateRejected, "link"},
	} {
		v := at(t, l, file)
		if v.State != want.state || rules(v.Skill) != want.rules {
			t.Errorf("%s: %s %v", file, v.State, v.Faults)
		}
	}
	if len(l.Verdicts) != 7 {
		t.Errorf("%d verdicts", len(l.Verdicts))
	}
	if len(d.Notices) != 1 || d.Notices[0].Path != "skills/nothing" || d.Notices[0].Rule != skills.RuleEmpty {
		t.Errorf("notices %v", d.Notices)
	}
}

// C155 SKL-03: the order of kinds, roots and paths decides, whatever order the files were made in;
// what is shadowed is listed, and an invalid winner leaves its name to the next.
func TestPrecedence(t *testing.T) {
	files := map[string]string{
		"skills/a/SKILL.md":           good("a"),
		".agents/skills/a/SKILL.md":   good("a"),
		"installed/a/SKILL.md":        good("a"),
		"bundled/a/SKILL.md":          good("a"),
		"skills/twice1/SKILL.md":      good("twice"),
		"skills/twice2/SKILL.md":      good("twice"),
		"skills/case/SKILL.md":        good("CASE"),
		"installed/case/SKILL.md":     good("case"),
		"skills/broken/SKILL.md":      "---\nname: broken\n---\n",
		"installed/broken/SKILL.md":   good("broken"),
		"skills/needs/SKILL.md":       "---\nname: needs\ndescription: d\nmetadata:\n  berth:\n    os: [plan9]\n---\n",
		"bundled/needs/SKILL.md":      good("needs"),
		"installed/only/SKILL.md":     good("only"),
		"bundled/group/deep/SKILL.md": good("deep"),
	}
	roots := append(workspace(), skills.Root{Path: "installed", Kind: skills.KindInstalled}, skills.Root{Path: "bundled", Kind: skills.KindBundled})
	var first string
	for run := range 20 {
		dir := t.TempDir()
		names := make([]string, 0, len(files))
		for n := range files {
			names = append(names, n)
		}
		slices.Sort(names)
		rnd := rand.New(rand.NewPCG(uint64(run), 1))
		rnd.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		for _, n := range names {
			write(t, dir, map[string]string{n: files[n]})
		}
		_, l := found(t, bridge(t, dir), roots...)
		var b strings.Builder
		for _, v := range l.Verdicts {
			fmt.Fprintf(&b, "%s %s %s %q\n", v.File, v.State, v.By, v.Notes)
		}
		if first == "" {
			first = b.String()
		}
		if b.String() != first {
			t.Fatalf("run %d differs:\n%s\nfrom\n%s", run, b.String(), first)
		}
	}
	want := `skills/a/SKILL.md loaded  ["shadows .agents/skills/a/SKILL.md" "shadows installed/a/SKILL.md" "shadows bundled/a/SKILL.md"]
.agents/skills/a/SKILL.md shadowed skills/a/SKILL.md []
installed/a/SKILL.md shadowed skills/a/SKILL.md []
bundled/a/SKILL.md shadowed skills/a/SKILL.md []
skills/broken/SKILL.md rejected  ["in its place: installed/broken/SKILL.md"]
installed/broken/SKILL.md loaded  ["would be shadowed by skills/broken/SKILL.md, which is rejected"]
skills/case/SKILL.md loaded  ["shadows installed/case/SKILL.md"]
installed/case/SKILL.md shadowed skills/case/SKILL.md []
bundled/group/deep/SKILL.md loaded  []
skills/needs/SKILL.md missing  ["in its place: bundled/needs/SKILL.md"]
bundled/needs/SKILL.md loaded  ["would be shadowed by skills/needs/SKILL.md, which is missing"]
installed/only/SKILL.md loaded  []
skills/twice1/SKILL.md loaded  ["shadows skills/twice2/SKILL.md"]
skills/twice2/SKILL.md shadowed skills/twice1/SKILL.md []
`
	if first != want {
		t.Errorf("got\n%s\nwant\n%s", first, want)
	}
}

// C157: link loops, a link to the root of the system and deep folders end the search soon, and are
// told.
func TestLoops(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"skills/a/SKILL.md":   good("a"),
		"skills/a/loop":       "-> ../..",
		"skills/b":            "-> .",
		"skills/c":            "-> a",
		"skills/top":          "-> /",
		"big/1/2/3/x.txt":     "x",
		"skills/a/self/again": "-> ../self",
	})
	deep := filepath.Join(dir, "skills/deep") + strings.Repeat("/d", 800)
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	d, l := found(t, bridge(t, dir))
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("it took %v", took)
	}
	if len(l.Verdicts) != 1 || l.Verdicts[0].State != skills.StateLoaded || len(l.Verdicts[0].Resources) != 0 {
		t.Errorf("%+v", l.Verdicts)
	}
	told := map[string]skills.Rule{}
	for _, n := range d.Notices {
		told[n.Path] = n.Rule
	}
	for p, r := range map[string]skills.Rule{
		"skills/a/loop": skills.RuleLoop, "skills/b": skills.RuleLoop, "skills/c": skills.RuleLoop, "skills/top": skills.RuleLink,
		"skills/a/self/again": skills.RuleLoop, "skills/deep" + strings.Repeat("/d", 23): skills.RuleLimit,
	} {
		if told[p] != r {
			t.Errorf("%s: told %q, want %q", p, told[p], r)
		}
	}
}

// Links stay in the permitted directories: inside the workspace, and in further mounts.
func TestLinks(t *testing.T) {
	dir, store, other := t.TempDir(), t.TempDir(), t.TempDir()
	write(t, dir, map[string]string{
		"common/in/SKILL.md":     good("in"),
		"common/in/data/x.txt":   "x",
		"common/file.md":         good("file"),
		"skills/in":              "-> ../common/in",
		"skills/file/SKILL.md":   "-> ../../common/file.md",
		"skills/stored":          "-> " + store + "/stored",
		"skills/other":           "-> " + other + "/other",
		"skills/res/SKILL.md":    good("res"),
		"skills/res/in.txt":      "-> ../../common/in/data/x.txt",
		"skills/res/out.txt":     "-> /etc/hostname",
		"skills/res/more":        "-> ../../common/in/data",
		"skills/res/run.sh":      "#!/bin/sh\n",
		"skills/res/sub/b/a.txt": "a",
	})
	if err := os.Chmod(filepath.Join(dir, "skills/res/run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, store, map[string]string{"stored/SKILL.md": good("stored"), "stored/next": "-> ../two", "two/y": "y"})
	write(t, other, map[string]string{"other/SKILL.md": good("other")})
	d, l := found(t, bridge(t, dir, store))
	for _, name := range []string{"in", "file", "stored", "res"} {
		if v := at(t, l, "skills/"+name+"/SKILL.md"); v.State != skills.StateLoaded {
			t.Errorf("%s: %s %v", name, v.State, v.Faults)
		}
	}
	if v := at(t, l, "skills/stored/SKILL.md"); v.RealFile != filepath.Join(store, "stored/SKILL.md") || fmt.Sprint(paths(v)) != "[next/y]" {
		t.Errorf("stored is at %s with %v", v.RealFile, v.Resources)
	}
	if v := at(t, l, "skills/in/SKILL.md"); fmt.Sprint(paths(v)) != "[data/x.txt]" {
		t.Errorf("in has %v", v.Resources)
	}
	if len(l.Verdicts) != 4 || len(d.Notices) != 1 || d.Notices[0].Path != "skills/other" || !strings.Contains(d.Notices[0].Fix, "skills.links") {
		t.Errorf("%d verdicts, notices %v", len(l.Verdicts), d.Notices)
	}
	v := at(t, l, "skills/res/SKILL.md")
	if got := fmt.Sprint(paths(v)); got != "[in.txt more/x.txt run.sh sub/b/a.txt]" {
		t.Errorf("resources %s", got)
	}
	for _, r := range v.Resources {
		if r.Digest == "" || r.Executable != (r.Path == "run.sh") {
			t.Errorf("%+v", r)
		}
	}
	if rules(v.Skill) != "link" || !strings.Contains(v.Faults[0].Text, "out.txt") {
		t.Errorf("faults %v", v.Faults)
	}
}

func paths(v skills.Verdict) []string {
	out := []string{}
	for _, r := range v.Resources {
		out = append(out, r.Path)
	}
	return out
}

// C159: what a file says its name is never becomes a path.
func TestNames(t *testing.T) {
	for name, want := range map[string]string{
		`"../../../tmp/pwnskill"`: "", `"/tmp/pwnskill"`: "", `"a/b"`: "", `".."`: "", `"con\nx"`: "", `'a\b'`: "", `"a\0b"`: "", "中文": "", `"."`: "", `"-"`: "",
		"ok": "ok", "Two Words": "two-words", "ce:plan": "ce-plan", "under_score": "under-score", "v1.2": "v1-2", "-x-": "x", "a--b": "a-b",
	} {
		dir := t.TempDir()
		write(t, dir, map[string]string{"skills/x/SKILL.md": "---\nname: " + name + "\ndescription: d\n---\n"})
		_, l := found(t, bridge(t, dir))
		v := at(t, l, "skills/x/SKILL.md")
		if v.Name != want || (v.State == skills.StateLoaded) != (want != "") {
			t.Errorf("%s: name %q, %s %v; want %q", name, v.Name, v.State, v.Faults, want)
		}
	}
}

func TestLimits(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"skills/a/SKILL.md":         good("a") + strings.Repeat("x", 200),
		"skills/b/SKILL.md":         good("b"),
		"skills/b/1":                "1",
		"skills/b/2":                "2",
		"skills/b/3":                "3",
		"skills/c/d/e/SKILL.md":     good("e"),
		"skills/f/SKILL.md":         good("f"),
		"skills/g/SKILL.md":         good("g"),
		"skills/g/nested/SKILL.md":  good("nested"),
		"skills/g/nested/own.txt":   "x",
		"skills/g/.git/SKILL.md":    good("git"),
		"skills/node_modules/x/y/z": "x",
	})
	b := bridge(t, dir)
	d, err := skills.Discover(t.Context(), b, workspace(), nil, skills.Options{Limits: skills.Limits{Skills: 5, FileBytes: 150, Depth: 2, Resources: 2}})
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, s := range d.Skills {
		got += fmt.Sprintf("%s %s %d\n", s.Dir, rules(s), len(s.Resources))
	}
	if want := "skills/a size 0\nskills/b limit 2\nskills/c/d/e limit 0\nskills/f  0\nskills/g  0\nskills/g/nested limit 1\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	d, err = skills.Discover(t.Context(), b, workspace(), nil, skills.Options{Limits: skills.Limits{Entries: 4}})
	if err != nil || len(d.Notices) == 0 || d.Notices[len(d.Notices)-1].Rule != skills.RuleLimit || len(d.Skills) != 1 {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestRoots(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"SKILL.md": good("whole"), "x.txt": "x", "file": "x", ".claude/skills/c/SKILL.md": good("c")})
	b := bridge(t, dir)
	d, l := found(t, b, skills.Root{Path: ".", Kind: skills.KindWorkspace})
	if v := at(t, l, "SKILL.md"); v.State != skills.StateLoaded || len(v.Faults) != 0 || fmt.Sprint(paths(v)) != "[file x.txt]" || v.Dir != "." {
		t.Errorf("%+v", v)
	}
	if at(t, l, ".claude/skills/c/SKILL.md").State != skills.StateLoaded || len(d.Roots) != 1 {
		t.Errorf("%+v", d)
	}
	d, l = found(t, b)
	if len(l.Verdicts) != 1 || len(d.Roots) != 1 || d.Roots[0].Path != ".claude/skills" || len(d.Notices) != 0 {
		t.Errorf("%+v", d)
	}
	if d, _ := found(t, b, skills.Root{Path: "file"}); len(d.Notices) != 1 || d.Notices[0].Rule != skills.RuleReadable {
		t.Errorf("%+v", d)
	}
	for path, want := range map[string]error{"none": fs.ErrNotExist, "/etc": fsbridge.ErrOutsideRoot} {
		_, err := skills.Discover(t.Context(), b, []skills.Root{{Path: path, Needed: true}}, nil, skills.Options{})
		if !errors.Is(err, want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	abs, _ := found(t, b, skills.Root{Path: filepath.Join(dir, ".claude/skills"), Kind: skills.KindInstalled})
	if len(abs.Skills) != 1 || abs.Skills[0].Dir != filepath.Join(dir, ".claude/skills/c") {
		t.Errorf("%+v", abs)
	}
	// A discovery survives being sent.
	data, err := json.Marshal(d)
	var back skills.Discovery
	if err != nil || json.Unmarshal(data, &back) != nil || fmt.Sprint(back) != fmt.Sprint(d) {
		t.Errorf("%s, %v", data, err)
	}
}
