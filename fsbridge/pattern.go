package fsbridge

import (
	"fmt"
	"path"
	"strings"
)

// DefaultMatches bounds a glob whose options say nothing.
const DefaultMatches = 100_000

// Pattern is one alternative of a pattern of [Globber], split at its slashes. Bridges that search
// share it, so that a pattern means the same on all of them.
type Pattern struct {
	// Absolute says that the pattern begins with a slash.
	Absolute bool
	// Elems are what stands between the slashes.
	Elems []PatternElement
	// DirOnly says that it ends in a slash: it matches directories, with the slash.
	DirOnly bool
}

// PatternElement matches one element of a path, or with Any any number of them.
type PatternElement struct {
	// Literal is what it stands for when it is no pattern.
	Literal string
	// Match is the pattern, for path.Match; empty for a literal.
	Match string
	// Any is set for "**".
	Any bool
}

// Matches reports whether a name matches.
func (e PatternElement) Matches(name string) bool {
	if e.Match == "" {
		return e.Literal == name
	}
	ok, err := path.Match(e.Match, name) // proven well formed when it was parsed
	return ok && err == nil
}

// ValidPattern is [ValidPath] without the limit on elements, which braces lengthen.
func ValidPattern(p string) error {
	switch {
	case p == "":
		return fmt.Errorf("empty pattern: %w", ErrInvalidPath)
	case strings.IndexByte(p, 0) >= 0:
		return fmt.Errorf("NUL byte in pattern: %w", ErrInvalidPath)
	case len(p) > MaxPath:
		return fmt.Errorf("pattern of %d bytes, at most %d are possible: %w", len(p), MaxPath, ErrInvalidPath)
	}
	return nil
}

// maxAlternatives bounds what the braces of one pattern expand to.
const maxAlternatives = 4096

// ParsePattern splits a pattern into its alternatives. The error matches path.ErrBadPattern or
// ErrTooLarge.
func ParsePattern(s string) ([]Pattern, error) {
	texts, err := expandBraces(s, nil)
	if err != nil {
		return nil, err
	}
	list := make([]Pattern, 0, len(texts))
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

func parseAlternative(s string) (Pattern, error) {
	p := Pattern{Absolute: s[0] == '/', DirOnly: strings.HasSuffix(s, "/")}
	wild := false
	for part := range strings.SplitSeq(s, "/") {
		if part == "" {
			continue
		}
		e, err := parseElement(part)
		if err != nil {
			return Pattern{}, err
		}
		if wild && e.Match == "" && !e.Any {
			if e.Literal == "." {
				continue
			}
			if e.Literal == ".." {
				return Pattern{}, fmt.Errorf(`".." after a wildcard: %w`, path.ErrBadPattern)
			}
		}
		if e.Any && wild && p.Elems[len(p.Elems)-1].Any {
			continue
		}
		wild = wild || e.Any || e.Match != ""
		p.Elems = append(p.Elems, e)
	}
	return p, nil
}

func parseElement(s string) (PatternElement, error) {
	if s == "**" {
		return PatternElement{Any: true}, nil
	}
	if _, err := path.Match(s, ""); err != nil {
		return PatternElement{}, fmt.Errorf("%q: %w", s, err)
	}
	var lit strings.Builder
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '*', '?', '[':
			return PatternElement{Match: s}, nil
		case '\\':
			i++ // path.Match has refused a final backslash
		}
		lit.WriteByte(s[i])
	}
	return PatternElement{Literal: lit.String()}, nil
}

// Prefix returns the leading elements that are literal, and the others.
func (p Pattern) Prefix() (literals []string, rest []PatternElement) {
	for i, e := range p.Elems {
		if e.Any || e.Match != "" {
			return literals, p.Elems[i:]
		}
		literals = append(literals, e.Literal)
	}
	return literals, nil
}

// expandBraces appends every alternative of s to list.
func expandBraces(s string, list []string) ([]string, error) {
	open, end, commas, err := findBraces(s)
	if err != nil {
		return nil, err
	}
	if open < 0 {
		if len(list) == maxAlternatives {
			return nil, &LimitError{What: "pattern alternatives", Limit: maxAlternatives}
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
