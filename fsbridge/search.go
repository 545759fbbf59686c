package fsbridge

import (
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"
)

// PatternSource is what [MatchPatterns] searches: the files of a bridge that works by path names.
type PatternSource interface {
	// Find looks for the file at a path, which is spelled as the pattern spells it, and tells
	// where that leads and whether it is a directory. follow says that a final link is followed. A
	// missing file is fs.ErrNotExist or syscall.ENOTDIR.
	Find(path string, follow bool) (place string, dir bool, err error)
	// List lists the directory at a place; of the entries only names and types count. One that is
	// gone or may not be read, fs.ErrNotExist or fs.ErrPermission, has no content.
	List(place string) ([]DirEntry, error)
}

// MatchPatterns finds the paths that match one of the patterns, as [Globber] says, sorted. Leading
// elements without wildcards are resolved like any path; "**" matches no element too, so that
// "a/**" matches "a". More than most paths are a [*LimitError].
func MatchPatterns(list []Pattern, most int, source PatternSource) ([]string, error) {
	s := &patternSearch{source: source, most: most, found: map[string]bool{}}
	for _, p := range list {
		if err := s.run(p); err != nil {
			return nil, err
		}
	}
	return slices.Sorted(maps.Keys(s.found)), nil
}

// patternSearch is a running search.
type patternSearch struct {
	source PatternSource
	most   int
	found  map[string]bool

	dirOnly bool
	// visited has the directories that were searched for a rest of the pattern of some length,
	// which several "**" would search over and over.
	visited map[patternVisit]bool
}

type patternVisit struct {
	dir  string
	rest int
}

func (s *patternSearch) run(p Pattern) error {
	literals, rest := p.Prefix()
	start := strings.Join(literals, "/")
	if p.Absolute {
		start = "/" + start
	}
	if start == "" && len(rest) == 0 {
		return nil
	}
	s.dirOnly = p.DirOnly
	s.visited = map[patternVisit]bool{}
	at := start
	if at == "" {
		at = "."
	}
	if err := ValidPath(at); err != nil {
		return err
	}
	place, dir, err := s.source.Find(at, len(rest) > 0 || p.DirOnly)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
		return nil
	case err != nil:
		return err
	case len(rest) == 0:
		return s.emit(start, dir)
	case !dir:
		return nil
	}
	if start != "" && start != "/" {
		start += "/"
	}
	return s.below(place, start, rest)
}

// emit adds a match.
func (s *patternSearch) emit(p string, dir bool) error {
	if s.dirOnly {
		if !dir {
			return nil
		}
		if p != "/" {
			p += "/"
		}
	}
	if !s.found[p] && len(s.found) == s.most {
		return &LimitError{What: "matches", Limit: int64(s.most)}
	}
	s.found[p] = true
	return nil
}

// below matches elements below the directory at place. before is how the pattern spells that
// directory, with a trailing slash unless it is empty.
func (s *patternSearch) below(place, before string, elems []PatternElement) error {
	key := patternVisit{before, len(elems)}
	if s.visited[key] {
		return nil
	}
	s.visited[key] = true
	e, rest := elems[0], elems[1:]
	if e.Any {
		if err := s.none(place, before, rest); err != nil {
			return err
		}
	}
	list, err := s.source.List(place)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range list {
		if !e.Any && !e.Matches(entry.Name) {
			continue
		}
		dir := entry.Info.IsDir()
		if len(rest) == 0 {
			if err := s.emit(before+entry.Name, dir); err != nil {
				return err
			}
		}
		next := rest
		if e.Any {
			next = elems
		}
		if !dir || len(next) == 0 {
			continue
		}
		if err := s.below(path.Join(place, entry.Name), before+entry.Name+"/", next); err != nil {
			return err
		}
	}
	return nil
}

// none lets "**" stand for nothing.
func (s *patternSearch) none(place, before string, rest []PatternElement) error {
	if len(rest) > 0 {
		return s.below(place, before, rest)
	}
	if p := strings.TrimRight(before, "/"); p != "" {
		return s.emit(p, true)
	}
	return nil
}
