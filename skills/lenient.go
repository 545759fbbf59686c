package skills

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// entryLine is the first line of a top-level field.
var entryLine = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_.-]*)[ \t]*:(?:[ \t]+(.*))?$`)

// textField reports whether the format says that a field is a text.
func textField(key string) bool {
	return slices.Contains([]string{"name", "description", "license", "compatibility"}, key)
}

// entry is a top-level field as its lines have it.
type entry struct {
	key string
	// value is what follows the colon on its line, without white space around it.
	value string
	// more are the lines below that belong to it and have content.
	more []string
	// first and last are its lines in the text, from 1.
	first, last int
}

// entries splits a text into top-level fields. Lines that belong to none are left out: they
// are the parser's to judge.
func entries(text string) []entry {
	var out []entry
	for i, l := range strings.Split(text, "\n") {
		if m := entryLine.FindStringSubmatch(l); m != nil {
			out = append(out, entry{key: m[1], value: strings.TrimSpace(m[2]), first: i + 1, last: i + 1})
			continue
		}
		blank := strings.TrimSpace(l) == ""
		if len(out) == 0 || !blank && !strings.HasPrefix(l, " ") && !strings.HasPrefix(l, "\t") && !strings.HasPrefix(l, "-") {
			continue
		}
		e := &out[len(out)-1]
		if !blank {
			e.more = append(e.more, strings.TrimSpace(l))
		}
		e.last = i + 1
	}
	return out
}

// text is the value as it stands, its lines joined with a space.
func (e *entry) text() string {
	return strings.TrimSpace(strings.Join(append([]string{e.value}, e.more...), " "))
}

// literal is the value as its writer meant it, where YAML reads something else: the characters
// as they stand, without a pair of quotes around them.
func (e *entry) literal() string {
	t := e.text()
	if len(t) >= 2 && (t[0] == '"' || t[0] == '\'') && t[len(t)-1] == t[0] {
		return t[1 : len(t)-1]
	}
	return t
}

// blockScalar reports whether the value is given in the lines below, by "|" or ">".
func (e *entry) blockScalar() bool {
	return e.value != "" && (e.value[0] == '|' || e.value[0] == '>') && strings.Trim(e.value[1:], "+-123456789 ") == "" ||
		strings.HasPrefix(e.value, "|") && strings.Contains(e.value, " #") || strings.HasPrefix(e.value, ">-") && strings.Contains(e.value, " #")
}

// alone parses the entry on its own.
func (e *entry) alone(lines []string) (any, error) {
	fields, err := parseMapping(strings.Join(lines[e.first-1:e.last], "\n"))
	if err != nil {
		return nil, err
	}
	if len(fields) != 1 {
		return nil, &yamlError{line: 1, rule: RuleYAML, text: "not one field"}
	}
	return fields[0].value, nil
}

// meant reports whether a text field's value is read by YAML otherwise than its writer must have
// meant it, and why.
func (e *entry) meant(lines []string) (why string, repair bool) {
	if e.value == "" || e.blockScalar() {
		return "", false
	}
	v, err := e.alone(lines)
	if err != nil {
		var p *yamlError
		if errors.As(err, &p) && p.rule == RuleSize {
			return "", false
		}
		return e.trouble(), true
	}
	quoted := e.value[0] == '"' || e.value[0] == '\''
	switch v := v.(type) {
	case nil:
		return "", false
	case string:
		before, comment, cut := strings.Cut(e.value, " #")
		if e.key == "description" && cut && !quoted && comment != "" && len(e.more) == 0 && strings.TrimSpace(before) == v {
			return `to YAML, what follows " #" is a comment`, true
		}
		return "", false
	case map[string]any:
		return `to YAML, ": " makes it a mapping`, true
	case []any:
		return "to YAML it is a list", true
	default:
		return fmt.Sprintf("to YAML it is no text but %v", v), true
	}
}

// trouble says what in a one-line text YAML takes for something else.
func (e *entry) trouble() string {
	switch t := e.text(); {
	case strings.ContainsRune("\"'", rune(t[0])):
		return "to YAML, the quotes end before the text does"
	case strings.ContainsRune("@`%*&!|>[]{},#-?", rune(t[0])):
		return fmt.Sprintf("to YAML, %c at the beginning has a meaning of its own", t[0])
	case strings.Contains(t, ": ") || strings.HasSuffix(t, ":"):
		return `to YAML, ": " makes it a mapping`
	}
	return "YAML cannot read it"
}

// readFields parses a frontmatter. Text fields whose meaning is plain are taken as they stand,
// where YAML refuses them or would read them otherwise; each such leniency is a warning. Lines
// of problems are those of the text, from 1.
func readFields(text string) (fields []field, warnings []yamlError, err error) {
	if err := tooComplex(text); err != nil {
		return nil, nil, err
	}
	lines := strings.Split(text, "\n")
	list := entries(text)
	var own []field
	take := func(e *entry, why string) {
		own = append(own, field{key: e.key, value: e.literal(), line: e.first})
		warnings = append(warnings, yamlError{
			line: e.first, rule: RuleQuoting, text: fmt.Sprintf("the value of %s was read as it stands: %s", e.key, why),
			fix: fmt.Sprintf("put it in quotes, or write %s: >- and the text on the next line, indented", e.key),
		})
		for i := e.first - 1; i < e.last; i++ {
			lines[i] = ""
		}
	}
	left := list[:0:0]
	for _, e := range list {
		if why, repair := e.meant(lines); textField(e.key) && repair {
			take(&e, why)
			continue
		}
		left = append(left, e)
	}
	fields, err = parseMapping(strings.Join(lines, "\n"))
	if err != nil {
		// What is wrong may be a one-line text in a field of another program.
		for _, e := range left {
			if _, bad := e.alone(lines); bad != nil && e.value != "" && len(e.more) == 0 && !e.blockScalar() && !hasRule(bad, RuleSize) {
				take(&e, e.trouble())
			}
		}
		if fields, err = parseMapping(strings.Join(lines, "\n")); err != nil {
			return nil, nil, err
		}
	}
	fields = append(fields, own...)
	slices.SortStableFunc(fields, func(a, b field) int { return cmp.Compare(a.line, b.line) })
	slices.SortStableFunc(warnings, func(a, b yamlError) int { return cmp.Compare(a.line, b.line) })
	seen := map[string]bool{}
	for _, f := range fields {
		if seen[f.key] {
			return nil, nil, &yamlError{line: f.line, rule: RuleDuplicate, text: fmt.Sprintf("%s is given twice", f.key), fix: "keep one of the two"}
		}
		seen[f.key] = true
	}
	return fields, warnings, nil
}

func hasRule(err error, r Rule) bool {
	var p *yamlError
	return errors.As(err, &p) && p.rule == r
}
