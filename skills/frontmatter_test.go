package skills_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/workberth/workberth/skills"
)

// C147: a text that YAML reads otherwise is loaded as it is meant, with a warning that names line
// and fix, or it is listed with the fault.
func TestUnquoted(t *testing.T) {
	cases := []struct{ line, want string }{
		{`description: Use when: fixing tests, e.g. "x"`, `Use when: fixing tests, e.g. "x"`},
		{`description: Fixes issue #12 and #13`, `Fixes issue #12 and #13`},
		{`description: @mention things`, `@mention things`},
		{"description: `code` first", "`code` first"},
		{`description: %percent`, `%percent`},
		{`description: *star and more`, `*star and more`},
		{`description: - a dash`, `- a dash`},
		{"description: a\ttab: inside", "a\ttab: inside"},
		{"description:\ttab before", "tab before"},
		{`description: 'don't stop'`, `don't stop`},
		{`description: "quoted" and not: quoted`, `"quoted" and not: quoted`},
		{`description: [WIP] Something`, `[WIP] Something`},
		{`description: {curly} thing: x`, `{curly} thing: x`},
		{`description: & and !`, `& and !`},
		{`description: 42`, `42`},
		{`description: true`, `true`},
		{`description: ends with colon:`, `ends with colon:`},
		{"description: first line: and\n  second: line", "first line: and second: line"},
		{`description: it's fine`, `it's fine`},
		{`description: "Use when: quoted # too"`, `Use when: quoted # too`},
		{"description: >-\n  Use when: folded\n  text", "Use when: folded text"},
		{"description: |\n  Use when: literal\n  text", "Use when: literal\ntext"},
	}
	dir := t.TempDir()
	for i, c := range cases {
		name := fmt.Sprintf("s%02d", i)
		write(t, dir, map[string]string{"skills/" + name + "/SKILL.md": "---\nname: " + name + "\n" + c.line + "\nlicense: MIT # a comment\n---\nbody\n"})
	}
	_, l := found(t, bridge(t, dir))
	if len(l.Verdicts) != len(cases) {
		t.Fatalf("%d listed, want %d", len(l.Verdicts), len(cases))
	}
	for i, c := range cases {
		v := at(t, l, fmt.Sprintf("skills/s%02d/SKILL.md", i))
		if v.State != skills.StateLoaded || v.Description != c.want || v.License != "MIT" {
			t.Errorf("%s:\n got %q, %s, license %q, %v\nwant %q", c.line, v.Description, v.State, v.License, v.Faults, c.want)
		}
		for _, f := range v.Faults {
			if f.Severity != skills.SeverityWarning || f.Rule != skills.RuleQuoting || f.Line != 3 || f.Fix == "" {
				t.Errorf("%s: %+v", c.line, f)
			}
		}
		if i < 8 && len(v.Faults) != 1 {
			t.Errorf("%s: %d warnings, want one: %v", c.line, len(v.Faults), v.Faults)
		}
	}
}

// C149: any line ends.
func TestLineEnds(t *testing.T) {
	dir := t.TempDir()
	text := "---\nname: %s\ndescription: >-\n  one\n  two\nmetadata:\n  a: |\n    x\n    y\n---\nbody\n"
	ends := map[string]func(string) string{
		"crlf": func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") },
		"cr":   func(s string) string { return strings.ReplaceAll(s, "\n", "\r") },
		"mixed": func(s string) string {
			return strings.Replace(strings.Replace(s, "\n", "\r\n", 2), "two\n", "two\r", 1)
		},
		"bom": func(s string) string { return "\xef\xbb\xbf" + strings.ReplaceAll(s, "\n", "\r\n") },
	}
	for name, end := range ends {
		write(t, dir, map[string]string{"skills/" + name + "/SKILL.md": end(fmt.Sprintf(text, name))})
	}
	_, l := found(t, bridge(t, dir))
	for name := range ends {
		v := at(t, l, "skills/"+name+"/SKILL.md")
		if v.State != skills.StateLoaded || v.Description != "one two" || len(v.Faults) != 0 || v.Body != 11 {
			t.Errorf("%s: %q, %s, body at %d, %v", name, v.Description, v.State, v.Body, v.Faults)
		}
		if got := fmt.Sprint(v.Metadata["a"]); strings.TrimSpace(got) != "x\ny" {
			t.Errorf("%s: metadata %q", name, got)
		}
		if got := skills.Body([]byte(ends[name](fmt.Sprintf(text, name)))); got != "body\n" {
			t.Errorf("%s: body %q", name, got)
		}
	}
}

// C151: what comes before the frontmatter is accepted where its meaning is plain, and is a fault
// with its line otherwise.
func TestBeforeFrontmatter(t *testing.T) {
	block := "---\nname: x\ndescription: d\n---\n"
	for text, line := range map[string]int{
		"<!-- c -->\n" + block:                    0,
		"<!-- a\nb -->\n\n" + block:               0,
		"\n\n" + block:                            0,
		" " + block:                               0,
		"\xef\xbb\xbf" + block:                    0,
		strings.Replace(block, "---", "---  ", 1): 0,
		"---\nname: x\ndescription: d\n...\n":     0,
		"# Title\n" + block:                       1,
		"\n# Title\n":                             2,
		"":                                        1,
		"text":                                    1,
		"---\nname: x\ndescription: d\n":          1,
		"<!-- never closed\n" + block:             1,
	} {
		dir := t.TempDir()
		write(t, dir, map[string]string{"skills/x/SKILL.md": text})
		_, l := found(t, bridge(t, dir))
		v := at(t, l, "skills/x/SKILL.md")
		if line == 0 {
			if v.State != skills.StateLoaded || len(v.Faults) != 0 {
				t.Errorf("%q: %s %v", text, v.State, v.Faults)
			}
			continue
		}
		if v.State != skills.StateRejected || len(v.Faults) != 1 || v.Faults[0].Rule != skills.RuleFrontmatter || v.Faults[0].Line != line || v.Faults[0].Fix == "" {
			t.Errorf("%q: %s %+v, want line %d", text, v.State, v.Faults, line)
		}
	}
}

func TestFields(t *testing.T) {
	for _, c := range []struct{ front, rules, name string }{
		{"name: x\ndescription: d", "", "x"},
		{"description: d", "name", "x"},
		{"name: x", "description", "x"},
		{"name: x\ndescription:", "description", "x"},
		{"name: x\ndescription: ''", "description", "x"},
		{"name: X\ndescription: d", "name", "x"},
		{"name: Other Skill\ndescription: d", "name dir-name", "other-skill"},
		{"name: x\nname: y\ndescription: d", "duplicate-key", ""},
		{"name: x\ndescription: d\nmetadata: text", "field", "x"},
		{"name: x\ndescription: d\nmetadata:\n  a: &x 1\n  b: *x", "yaml", ""},
		{"name: x\ndescription: d\nargument-hint: [file] [line]", "quoting", "x"},
		{"name: x\ndescription: d\nallowed-tools: 7", "field", "x"},
		{"name: x\ndescription: " + strings.Repeat("d", 1025), "description", "x"},
		{"name: x\ndescription: d\ncompatibility: " + strings.Repeat("d", 501), "field", "x"},
		{"- a\n- b", "yaml", ""},
		{"name: x\ndescription: d\nmetadata:\n   a: 1\n  b: 2", "yaml", ""},
		{"name: x\ndescription: d\nmetadata: {openclaw: {os: [linux], requires: {bins: ['a b']}}}", "requirements", "x"},
		{"name: x\ndescription: d\nmetadata: {openclaw: {requires: 3}}", "requirements", "x"},
		{"name: x\ndescription: d\nmetadata: {openclaw: {requires: {bins: " + "'" + strings.Repeat("b ", 70) + "'}}}", "requirements", "x"},
		{"name: " + strings.Repeat("x", 65) + "\ndescription: d", "name", ""},
		{"a: " + strings.Repeat("[", 60) + strings.Repeat("]", 60) + "\nname: x\ndescription: d", "size", ""},
	} {
		dir := t.TempDir()
		write(t, dir, map[string]string{"skills/x/SKILL.md": "---\n" + c.front + "\n---\n"})
		_, l := found(t, bridge(t, dir))
		v := at(t, l, "skills/x/SKILL.md")
		if got := rules(v.Skill); got != c.rules || v.Name != c.name {
			t.Errorf("%.80q: rules %q name %q, want %q %q: %v", c.front, got, v.Name, c.rules, c.name, v.Faults)
		}
	}
	dir := t.TempDir()
	write(t, dir, map[string]string{"skills/x/SKILL.md": "---\nname: x\ndescription: d\nallowed-tools: Bash(git add *), Read Write\nmodel: opus\nmetadata:\n  openclaw: '{\"os\":[\"win32\",\"macos\"],\"requires\":{\"bins\":[\"jq\"],\"anyBins\":[\"a\",\"b\"],\"env\":[\"K\"]}}'\n---\n"})
	_, l := found(t, bridge(t, dir))
	v := at(t, l, "skills/x/SKILL.md")
	if got := fmt.Sprintf("%q %q %v", v.AllowedTools, v.Other, v.Requires); got != `["Bash(git add *)" "Read" "Write"] ["model"] {[windows darwin] [jq] [a b] [K]}` {
		t.Error(got)
	}
}

func TestEncoding(t *testing.T) {
	for text, line := range map[string]int{
		"\xff\xfe-\x00-\x00": 1, "---\nname: x\x00": 2, "---\r\nname: x\r\ndescription: \xff\n---\n": 3,
	} {
		dir := t.TempDir()
		write(t, dir, map[string]string{"skills/x/SKILL.md": text})
		_, l := found(t, bridge(t, dir))
		v := at(t, l, "skills/x/SKILL.md")
		if v.State != skills.StateRejected || len(v.Faults) != 1 || v.Faults[0].Rule != skills.RuleEncoding || v.Faults[0].Line != line {
			t.Errorf("%q: %v", text, v.Faults)
		}
	}
}

// A frontmatter is looked for at the beginning of a file alone, however long that is.
func TestLongFile(t *testing.T) {
	const million = 1_000_000
	for text, want := range map[string]string{
		strings.Repeat("\n", million): "frontmatter", "<!--" + strings.Repeat("\n", million) + "-->\n" + good("x"): "frontmatter", "---\n" + strings.Repeat("\n", million) + "---\n": "size",
		strings.Repeat("\n", 60_000) + good("x"): "", good("x") + strings.Repeat("text\r\n", million/6): "", "---\nname: x\n" + strings.Repeat("a", million): "size",
	} {
		dir := t.TempDir()
		write(t, dir, map[string]string{"skills/x/SKILL.md": text})
		_, l := found(t, bridge(t, dir))
		if v := at(t, l, "skills/x/SKILL.md"); rules(v.Skill) != want {
			t.Errorf("%.20q: %v, want %q", text, v.Faults, want)
		}
	}
}
