package config

import (
	"fmt"
	"strings"
	"testing"
)

func TestSkills(t *testing.T) {
	f, err := Parse("c.yaml", []byte(`skills:
  roots: [skills, tools/skills]
  installed: []
  links: [~/src/skills]
  allow: ["a-*"]
  deny: [pdf]
  limits: {skills: 9, fileSize: 2KiB, depth: 3, entries: 100}
`))
	if err != nil {
		t.Fatal(err)
	}
	s := f.Skills()
	if got := fmt.Sprintf("%+v", s); got != "{Roots:[skills tools/skills] Installed:[] Bundled:[] Links:[~/src/skills] Allow:[a-*] Deny:[pdf] MaxSkills:9 FileSize:2048 Depth:3 Entries:100}" {
		t.Error(got)
	}
	if s.Installed == nil || s.Bundled != nil {
		t.Error("an empty list and none are not the same")
	}
	if got := (&File{}).Skills(); got.Roots != nil {
		t.Errorf("%+v", got)
	}
}

func TestSkillFaults(t *testing.T) {
	for text, want := range map[string]string{
		"  roots: [/x]\n":           "c.yaml:2: skills.roots: \"/x\" is no directory below the workspace",
		"  roots: [../x]\n":         "is no directory below",
		"  installed: [x]\n":        "c.yaml:2: skills.installed: \"x\" must be an absolute path",
		"  links: [x]\n":            "skills.links",
		"  bundled: ['']\n":         "skills.bundled",
		"  deny: ['[']\n":           "c.yaml:2: skills.deny: \"[\" is no pattern",
		"  allow: ['']\n":           "skills.allow",
		"  limits: {depth: 0}\n":    "skills.limits.depth: must be at least 1",
		"  root: [x]\n":             "unknown field \"root\"",
		"  limits: {fileSize: x}\n": "is not a size",
	} {
		_, err := Parse("c.yaml", []byte("skills:\n"+text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
