package skills_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/skills"
)

// asking is a skill with requirements.
func asking(name, meta string) string {
	return "---\nname: " + name + "\ndescription: d\nmetadata:\n  openclaw: " + meta + "\n---\n"
}

// SKL-04: requirements of the workspace's skills are judged by what its machine has, those of
// installed skills by what this one has; a fact that nobody knows is not taken for met.
func TestRequirements(t *testing.T) {
	dir := t.TempDir()
	for _, root := range []string{"skills", "installed"} {
		write(t, dir, map[string]string{
			root + "/os/SKILL.md":   asking(root[:2]+"-os", `{os: [macos]}`),
			root + "/bin/SKILL.md":  asking(root[:2]+"-bin", `{requires: {bins: [jq, rg]}}`),
			root + "/any/SKILL.md":  asking(root[:2]+"-any", `{requires: {anyBins: [ag, rg]}}`),
			root + "/env/SKILL.md":  asking(root[:2]+"-env", `{requires: {env: [TOKEN]}}`),
			root + "/none/SKILL.md": asking(root[:2]+"-none", `{emoji: x}`),
		})
	}
	b := bridge(t, dir)
	there := has{Platform: "darwin", Binaries: map[string]bool{"jq": true, "rg": true}}
	here := has{Platform: "linux", Binaries: map[string]bool{"jq": true, "ag": true}, Env: map[string]bool{"TOKEN": true}}
	far, err := skills.Discover(t.Context(), b, []skills.Root{{Path: "skills", Kind: skills.KindWorkspace}}, there, skills.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if far.Platform != "darwin" || !far.Binaries["jq"] || !far.Binaries["rg"] || far.Binaries["ag"] || len(far.Binaries) != 3 {
		t.Errorf("facts %+v", far.Facts)
	}
	near, err := skills.Discover(t.Context(), b, []skills.Root{{Path: "installed", Kind: skills.KindInstalled}}, here, skills.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := skills.Select(skills.Policy{}, far, near)
	if err != nil {
		t.Fatal(err)
	}
	for file, missing := range map[string]string{
		"skills/os/SKILL.md": "", "skills/bin/SKILL.md": "", "skills/any/SKILL.md": "", "skills/none/SKILL.md": "",
		"skills/env/SKILL.md":    "environment variable TOKEN",
		"installed/os/SKILL.md":  "platform darwin, its machine has linux",
		"installed/bin/SKILL.md": "binary rg",
		"installed/any/SKILL.md": "", "installed/env/SKILL.md": "", "installed/none/SKILL.md": "",
	} {
		v := at(t, l, file)
		if got := strings.Join(v.Missing, "; "); got != missing || (v.State == skills.StateLoaded) != (missing == "") {
			t.Errorf("%s: %s, missing %q, want %q", file, v.State, got, missing)
		}
	}
	unknown, err := skills.Discover(t.Context(), b, []skills.Root{{Path: "skills"}}, nil, skills.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, _ = skills.Select(skills.Policy{}, unknown)
	if n := len(l.Loaded()); n != 1 {
		t.Errorf("%d load without facts", n)
	}
}

// SKL-05: configuration and filters hold for skills from everywhere.
func TestPolicy(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"skills/a-one/SKILL.md": good("a-one"), "skills/a-two/SKILL.md": good("a-two"), "skills/b/SKILL.md": good("b"),
		"installed/a-two/SKILL.md": good("a-two"), "installed/b/SKILL.md": good("b"), "installed/c/SKILL.md": good("c"),
	})
	b := bridge(t, dir)
	d, _ := found(t, b, skills.Root{Path: "skills", Kind: skills.KindWorkspace}, skills.Root{Path: "installed", Kind: skills.KindInstalled})
	for _, c := range []struct {
		policy skills.Policy
		loaded string
		by     string // of skills/b
	}{
		{skills.Policy{}, "skills/a-one skills/a-two skills/b installed/c", ""},
		{skills.Policy{Deny: []string{"b"}}, "skills/a-one skills/a-two installed/c", "skills.deny: b"},
		{skills.Policy{Allow: []string{"a-*", "c"}}, "skills/a-one skills/a-two installed/c", "skills.allow has no pattern for it"},
		{skills.Policy{Allow: []string{"*"}, Deny: []string{"a-*"}}, "skills/b installed/c", ""},
		{skills.Policy{Kinds: []skills.Kind{skills.KindInstalled}}, "installed/a-two installed/b installed/c", "skills.kinds has no workspace"},
		{skills.Policy{Filter: func(s skills.Skill) string { return strings.TrimPrefix("no "+s.Name, "no c") }}, "installed/c", "no b"},
	} {
		l, err := skills.Select(c.policy, d)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, v := range l.Loaded() {
			got = append(got, v.Dir)
		}
		v := at(t, l, "skills/b/SKILL.md")
		if strings.Join(got, " ") != c.loaded || v.By != c.by || (c.by != "") != (v.State == skills.StateDisabled) {
			t.Errorf("%+v: loaded %q, b %s by %q", c.policy, got, v.State, v.By)
		}
	}
	for _, bad := range []string{"[", ""} {
		if _, err := skills.Select(skills.Policy{Deny: []string{bad}}, d); !errors.Is(err, fsbridge.ErrInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
