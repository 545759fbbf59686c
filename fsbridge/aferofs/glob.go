package aferofs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/workberth/workberth/fsbridge"
)

const (
	// defaultMaxMatches is what a zero GlobOptions.MaxMatches means.
	defaultMaxMatches = 100_000
	// maxAlternatives bounds what the braces of one pattern expand to.
	maxAlternatives = 4096
)

// Glob expands a pattern. Leading elements without wildcards are resolved like any path; "**"
// matches no element too, so that "a/**" matches "a".
func (b *Bridge) Glob(ctx context.Context, pattern string, opts fsbridge.GlobOptions) ([]string, error) {
	list, err := func() ([]string, error) {
		if err := b.begin(ctx, pattern); err != nil {
			return nil, err
		}
		if opts.MaxMatches < 0 {
			return nil, fmt.Errorf("a limit is negative: %w", fsbridge.ErrInvalid)
		}
		if opts.MaxMatches == 0 {
			opts.MaxMatches = defaultMaxMatches
		}
		texts, err := expandBraces(pattern, nil)
		if err != nil {
			return nil, err
		}
		s := &search{b: b, ctx: ctx, limit: opts.MaxMatches, found: map[string]bool{}, seen: map[string]bool{}}
		for _, text := range texts {
			if err := s.alternative(text); err != nil {
				return nil, err
			}
		}
		return slices.Sorted(maps.Keys(s.found)), nil
	}()
	return list, fail("glob", pattern, err)
}

// expandBraces appends every alternative of s to list. path.Match, which does the rest, works on
// bytes where the pattern has no class, so that names need not be UTF-8.
func expandBraces(s string, list []string) ([]string, error) {
	start, depth := -1, 0
	var commas []int
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '[':
			// Braces in a class stand for themselves; an unfinished class is refused by path.Match.
			if n := strings.IndexByte(s[i+1:], ']'); n > 0 {
				i += n + 1
			}
		case '{':
			if depth++; depth == 1 {
				start = i
			}
		case ',':
			if depth == 1 {
				commas = append(commas, i)
			}
		case '}':
			if depth--; depth == 0 {
				return expandGroup(s, start, append(commas, i), list)
			}
			depth = max(depth, 0)
		}
	}
	if depth > 0 {
		return nil, fmt.Errorf("%q has a brace without its partner: %w", s, path.ErrBadPattern)
	}
	if len(list) == maxAlternatives {
		return nil, &fsbridge.LimitError{What: "pattern alternatives", Limit: maxAlternatives}
	}
	return append(list, s), nil
}

// expandGroup expands the brace group that opens at start; cuts are its commas and its end.
func expandGroup(s string, start int, cuts []int, list []string) ([]string, error) {
	var err error
	from, end := start+1, cuts[len(cuts)-1]
	for _, to := range cuts {
		if list, err = expandBraces(s[:start]+s[from:to]+s[end+1:], list); err != nil {
			return nil, err
		}
		from = to + 1
	}
	return list, nil
}

// search is a running expansion.
type search struct {
	b     *Bridge
	ctx   context.Context
	limit int
	found map[string]bool
	// seen are the pairs of directory and rest of pattern that were searched; several "**" would
	// do so over and over.
	seen map[string]bool
}

// alternative searches for one pattern without braces.
func (s *search) alternative(pattern string) error {
	clear(s.seen)
	var elems []string
	for e := range strings.SplitSeq(pattern, "/") {
		if e != "" {
			elems = append(elems, e)
		}
	}
	for i, e := range elems {
		if _, err := path.Match(e, ""); err != nil {
			return fmt.Errorf("%q: %w", e, err)
		}
		if e == ".." && hasWildcard(elems[:i]...) {
			return fmt.Errorf(`".." after a wildcard: %w`, path.ErrBadPattern)
		}
	}
	n := 0
	for n < len(elems) && !hasWildcard(elems[n]) {
		elems[n] = unquote(elems[n])
		n++
	}
	start := strings.Join(elems[:n], "/")
	if strings.HasPrefix(pattern, "/") {
		start = "/" + start
	}
	return s.from(start, elems[n:])
}

// hasWildcard tells whether an element is more than a quoted name.
func hasWildcard(elems ...string) bool {
	for _, e := range elems {
		for i := 0; i < len(e); i++ {
			switch e[i] {
			case '\\':
				i++
			case '*', '?', '[':
				return true
			}
		}
	}
	return false
}

// unquote removes backslashes that quote.
func unquote(e string) string {
	var out strings.Builder
	for i := 0; i < len(e); i++ {
		if e[i] == '\\' {
			i++
		}
		out.WriteByte(e[i])
	}
	return out.String()
}

// from searches below the path start, or for start itself when nothing is left of the pattern.
func (s *search) from(start string, elems []string) error {
	p := start
	if p == "" {
		if len(elems) == 0 {
			return nil
		}
		p = "."
	}
	pl, err := s.b.existing(p, len(elems) > 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(elems) == 0 {
		return s.add(start)
	}
	if !pl.info.IsDir() {
		return nil
	}
	if start != "" && start != "/" {
		start += "/"
	}
	return s.below(pl.abs, start, elems)
}

func (s *search) add(p string) error {
	if !s.found[p] && len(s.found) == s.limit {
		return &fsbridge.LimitError{What: "matches", Limit: int64(s.limit)}
	}
	s.found[p] = true
	return nil
}

// below matches elems below the directory at abs, which the pattern spells as prefix.
func (s *search) below(abs, prefix string, elems []string) error {
	key := fmt.Sprintf("%d %s", len(elems), prefix)
	if s.seen[key] {
		return nil
	}
	s.seen[key] = true
	if err := s.b.step(s.ctx); err != nil {
		return err
	}
	e, rest := elems[0], elems[1:]
	if e == "." {
		return s.below(abs, prefix, rest)
	}
	deep := e == "**"
	if deep {
		var err error
		if p := strings.TrimSuffix(prefix, "/"); len(rest) > 0 {
			err = s.below(abs, prefix, rest)
		} else if p != "" {
			err = s.add(p)
		}
		if err != nil {
			return err
		}
	}
	list, err := s.b.entries(abs)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, i := range list {
		if err := s.entry(abs, prefix, i, deep, elems); err != nil {
			return err
		}
	}
	return nil
}

// entry matches one entry of a directory.
func (s *search) entry(abs, prefix string, i fs.FileInfo, deep bool, elems []string) error {
	name := i.Name()
	rest := elems[1:]
	if !deep {
		ok, err := path.Match(elems[0], name)
		if err != nil || !ok {
			return err
		}
	}
	if len(rest) == 0 {
		if err := s.add(prefix + name); err != nil {
			return err
		}
	}
	if !i.IsDir() || !deep && len(rest) == 0 {
		return nil
	}
	if deep {
		rest = elems
	}
	return s.below(path.Join(abs, name), prefix+name+"/", rest)
}
