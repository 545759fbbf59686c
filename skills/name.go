package skills

import (
	"fmt"
	"path"
	"strings"
	"unicode"

	"github.com/workberth/workberth/fsbridge"
)

const (
	// maxName is the longest name, in characters.
	maxName = 64
	// maxFaults is how many faults of one skill are told.
	maxFaults = 100
)

// ValidName reports whether a name is one of the format: 1 to 64 lower-case letters, digits and
// hyphens, no hyphen at an end or beside another. Such a name is safe as an element of a path.
func ValidName(name string) bool {
	if name == "" || len(name) > maxName || name[0] == '-' || name[len(name)-1] == '-' || strings.Contains(name, "--") {
		return false
	}
	for i := range len(name) {
		if c := name[i]; !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-') {
			return false
		}
	}
	return true
}

// slug makes a valid name of one whose meaning is plain: letters in lower case, and a hyphen for
// white space and punctuation. A name that could be meant as a path, or that has control
// characters, gives "".
func slug(name string) string {
	name = strings.TrimSpace(name)
	if strings.Contains(name, "..") || strings.ContainsAny(name, "/\\") {
		return ""
	}
	var b strings.Builder
	hyphen := false
	for _, r := range name {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
		case r >= 'A' && r <= 'Z':
			r = unicode.ToLower(r)
		case r < 0x80 && unicode.IsPrint(r):
			hyphen = true
			continue
		default:
			return ""
		}
		if hyphen && b.Len() > 0 {
			b.WriteByte('-')
		}
		hyphen = false
		b.WriteRune(r)
	}
	if s := b.String(); ValidName(s) {
		return s
	}
	return ""
}

// setName decides the name a skill is known by.
func (s *Skill) setName(given string, line int) {
	dir := path.Base(s.Dir)
	if s.Dir == "." || s.Dir == "/" {
		dir = "" // a root that is a skill folder itself has no name of its own
	}
	const fix = "give a name of 1 to 64 lower-case letters, digits and single hyphens"
	if strings.TrimSpace(given) == "" {
		s.Name = slug(dir)
		if s.Name == "" {
			s.fault(SeverityError, line, RuleName, "it has no name, and that of its folder cannot be one", fix)
			return
		}
		s.fault(SeverityWarning, line, RuleName, fmt.Sprintf("it has no name; that of its folder is used: %s", s.Name), "add a line name: "+s.Name)
		return
	}
	s.Name = slug(given)
	switch {
	case s.Name == "":
		s.Title = oneLine(clip(given, 80))
		s.fault(SeverityError, line, RuleName, fmt.Sprintf("%q cannot be a name: it may become part of a path", clip(given, 80)), fix)
		return
	case s.Name != given:
		s.Title = oneLine(clip(given, 80))
		s.fault(SeverityWarning, line, RuleName, fmt.Sprintf("%q is used as %s", given, s.Name), "write name: "+s.Name)
	}
	if dir != "" && dir != s.Name && !strings.EqualFold(dir, given) {
		s.fault(SeverityWarning, line, RuleDirName, fmt.Sprintf("the folder is called %s and the skill %s", fsbridge.DisplayPath(dir), s.Name), "give both one name; other programs may refuse it")
	}
}

// fault adds a fault about the skill's file.
func (s *Skill) fault(sev Severity, line int, rule Rule, text, fix string) {
	switch more := len(s.Faults) - maxFaults; {
	case more < 0:
		s.Faults = append(s.Faults, Fault{Path: s.File, Line: line, Severity: sev, Rule: rule, Text: oneLine(text), Fix: oneLine(fix)})
	case more == 0:
		s.Faults = append(s.Faults, Fault{Path: s.File, Severity: SeverityError, Rule: RuleLimit, Text: fmt.Sprintf("it has more than %d faults; the others are not told", maxFaults), Fix: "correct these first"})
	}
}

// clip cuts a text for a message.
func clip(s string, most int) string {
	r := []rune(s)
	if len(r) <= most {
		return s
	}
	return string(r[:most]) + "..."
}
