package local

import (
	"fmt"
	"path"
	"strings"

	"github.com/workberth/workberth/fsbridge"
)

// pattern is one alternative of a glob pattern, split at its slashes.
type pattern struct {
	absolute bool
	elems    []element
	dirOnly  bool // it ends in a slash
}

// element matches one element of a path, or any number of them.
type element struct {
	literal string // what it stands for when it is no pattern
	match   string // the pattern, empty for a literal
	any     bool   // "**"
}

// matches reports whether a name matches. The pattern was proven well formed when it was parsed.
func (e element) matches(name string) bool {
	if e.match == "" {
		return e.literal == name
	}
	ok, err := path.Match(e.match, name)
	return ok && err == nil
}

// maxAlternatives bounds what the braces of one pattern expand to.
const maxAlternatives = 4096

// parsePattern splits a pattern into its alternatives. The error is path.ErrBadPattern or a limit.
func parsePattern(s string) ([]pattern, error) {
	texts, err := expandBraces(s, nil)
	if err != nil {
		return nil, err
	}
	list := make([]pattern, 0, len(texts))
	for _, text := range texts {
		if text == "" {
			continue // "{a,}" alone may be empty, and an empty path matches nothing
		}
		p, err := parseAlternative(text)
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

func parseAlternative(s string) (pattern, error) {
	p := pattern{absolute: s[0] == '/', dirOnly: strings.HasSuffix(s, "/")}
	wild := false
	for part := range strings.SplitSeq(s, "/") {
		if part == "" {
			continue
		}
		e, err := parseElement(part)
		if err != nil {
			return pattern{}, err
		}
		if wild && e.match == "" && !e.any {
			if e.literal == "." {
				continue
			}
			if e.literal == ".." {
				return pattern{}, fmt.Errorf(`".." after a wildcard: %w`, path.ErrBadPattern)
			}
		}
		if e.any && wild && p.elems[len(p.elems)-1].any {
			continue
		}
		wild = wild || e.any || e.match != ""
		p.elems = append(p.elems, e)
	}
	return p, nil
}

func parseElement(s string) (element, error) {
	if s == "**" {
		return element{any: true}, nil
	}
	if _, err := path.Match(s, ""); err != nil {
		return element{}, fmt.Errorf("%q: %w", s, err)
	}
	var lit strings.Builder
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '*', '?', '[':
			return element{match: s}, nil
		case '\\':
			i++ // path.Match has refused a final backslash
		}
		lit.WriteByte(s[i])
	}
	return element{literal: lit.String()}, nil
}

// prefix returns the leading elements that are literal.
func (p pattern) prefix() (lits []string, rest []element) {
	for i, e := range p.elems {
		if e.any || e.match != "" {
			return lits, p.elems[i:]
		}
		lits = append(lits, e.literal)
	}
	return lits, nil
}

// expandBraces appends every alternative of s to list.
func expandBraces(s string, list []string) ([]string, error) {
	open, end, commas, err := findBraces(s)
	if err != nil {
		return nil, err
	}
	if open < 0 {
		if len(list) == maxAlternatives {
			return nil, &fsbridge.LimitError{What: "pattern alternatives", Limit: maxAlternatives}
		}
		return append(list, s), nil
	}
	from := open + 1
	for _, to := range append(commas, end) {
		if list, err = expandBraces(s[:open]+s[from:to]+s[end+1:], list); err != nil {
			return nil, err
		}
		from = to + 1
	}
	return list, nil
}

// findBraces finds the first brace group of a pattern and the commas that part it; open is -1 when
// there is none. Quoted characters and character classes are passed over.
func findBraces(s string) (open, end int, commas []int, err error) {
	open = -1
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '[':
			i = classEnd(s, i)
		case '{':
			if depth++; depth == 1 {
				open = i
			}
		case ',':
			if depth == 1 {
				commas = append(commas, i)
			}
		case '}':
			if depth == 1 {
				return open, i, commas, nil
			}
			depth = max(depth-1, 0)
		}
	}
	if depth > 0 {
		return 0, 0, nil, fmt.Errorf("%q has a brace without its partner: %w", s, path.ErrBadPattern)
	}
	return -1, 0, nil, nil
}

// classEnd returns the index of the bracket that ends the character class at i, or i when none
// does: path.Match then refuses it.
func classEnd(s string, i int) int {
	j := i + 1
	if j < len(s) && s[j] == '^' {
		j++
	}
	for first := true; j < len(s); j++ {
		switch {
		case s[j] == '\\':
			j++
		case s[j] == ']' && !first:
			return j
		}
		first = false
	}
	return i
}
