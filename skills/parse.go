package skills

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/workberth/workberth/fsbridge"
)

// Bounds of the format, in characters.
const (
	maxDescription   = 1024
	maxCompatibility = 500
)

// parse fills a skill from the content of its SKILL.md. Whatever the content is, it ends with a
// skill that can be listed.
func (s *Skill) parse(data []byte) {
	sum := sha256.Sum256(data)
	s.Digest, s.Size = fsbridge.DigestOf(sum[:]), int64(len(data))
	b, f := frontmatter(data)
	if f != nil {
		s.fault(SeverityError, f.Line, f.Rule, f.Text, f.Fix)
		return
	}
	s.Body = b.body
	fields, warnings, err := readFields(b.text)
	if err != nil {
		var p *yamlError
		if !errors.As(err, &p) {
			p = &yamlError{line: 1, rule: RuleYAML, text: err.Error()}
		}
		s.fault(SeverityError, b.line+p.line-1, p.rule, p.text, cmp.Or(p.fix, "correct the YAML of this line; text with colons or quotes needs quotes around it"))
		return
	}
	for _, w := range warnings {
		s.fault(SeverityWarning, b.line+w.line-1, w.rule, w.text, w.fix)
	}
	s.take(fields, b.line)
	slices.SortStableFunc(s.Faults, func(a, b Fault) int { return cmp.Compare(a.Line, b.Line) })
}

// take reads the fields of the format.
func (s *Skill) take(fields []field, first int) {
	var name string
	nameLine := first - 1
	described := false
	s.Metadata = nil
	for _, f := range fields {
		line := first + f.line - 1
		switch f.key {
		case "name":
			name, nameLine = s.text(f, line), line
		case "description":
			described = true
			s.Description = s.text(f, line)
			s.checkDescription(line)
		case "license":
			s.License = s.text(f, line)
		case "compatibility":
			s.Compatibility = s.text(f, line)
			if n := utf8.RuneCountInString(s.Compatibility); n > maxCompatibility {
				s.fault(SeverityWarning, line, RuleField, fmt.Sprintf("compatibility has %d characters, the format allows %d", n, maxCompatibility), "shorten it")
			}
		case "allowed-tools":
			s.takeTools(f, line)
		case "metadata":
			switch m := f.value.(type) {
			case nil:
			case map[string]any:
				s.Metadata = m
				s.Requires = s.requirements(m, line)
			default:
				s.fault(SeverityWarning, line, RuleField, "metadata is no mapping and is left out", "write metadata: and below it, indented, key: value")
			}
		default:
			s.Other = append(s.Other, oneLine(clip(f.key, 64)))
		}
	}
	slices.Sort(s.Other)
	s.setName(name, nameLine)
	if !described {
		s.fault(SeverityError, first-1, RuleDescription, "it has no description, by which an agent would choose it", "add a line description: and what the skill is for and when to use it")
	}
}

// text is the value of a text field.
func (s *Skill) text(f field, line int) string {
	switch v := f.value.(type) {
	case nil:
		return ""
	case string:
		text, had := shown(v)
		switch {
		case had && f.key == "name": // it is refused, and not made to look like another one
			return v
		case had:
			s.hides(f.key, line)
		}
		return strings.TrimSpace(text)
	case bool, int64, uint64, float64, int:
		return fmt.Sprint(v)
	}
	s.fault(SeverityWarning, line, RuleField, f.key+" is no text and is left out", "write "+f.key+": and a text on one line")
	return ""
}

// hides says that a field had hidden characters.
func (s *Skill) hides(key string, line int) {
	s.fault(SeverityWarning, line, RuleHidden, key+" has characters that are not seen; they are left out", "remove them; see them with: sed -n "+fmt.Sprint(line)+"p | cat -A")
}

func (s *Skill) checkDescription(line int) {
	n := utf8.RuneCountInString(s.Description)
	switch {
	case n == 0:
		s.fault(SeverityError, line, RuleDescription, "the description is empty", "say what the skill is for and when to use it")
	case n > maxDescription:
		s.fault(SeverityWarning, line, RuleDescription, fmt.Sprintf("the description has %d characters, the format allows %d", n, maxDescription), "shorten it; other programs may refuse it")
	}
}

// takeTools reads allowed-tools: names separated by spaces or commas, outside parentheses, or a
// list.
func (s *Skill) takeTools(f field, line int) {
	switch v := f.value.(type) {
	case nil:
	case string:
		v, had := shown(v)
		if had {
			s.hides(f.key, line)
		}
		s.AllowedTools = splitTools(v)
	case []any:
		for _, x := range v {
			t, ok := x.(string)
			if !ok {
				s.fault(SeverityWarning, line, RuleField, "allowed-tools has something that is no text", "list names of tools")
				continue
			}
			t, had := shown(t)
			if had {
				s.hides(f.key, line)
			}
			s.AllowedTools = append(s.AllowedTools, strings.TrimSpace(t))
		}
	default:
		s.fault(SeverityWarning, line, RuleField, "allowed-tools is no text and is left out", "list names of tools, separated by spaces")
	}
}

func splitTools(s string) []string {
	depth := 0
	return strings.FieldsFunc(s, func(r rune) bool {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		}
		return depth <= 0 && (r == ' ' || r == ',' || r == '\n' || r == '\t')
	})
}

// sortedKeys are the keys of a mapping.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
