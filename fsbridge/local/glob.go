//go:build linux

package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/rooted"
	"golang.org/x/sys/unix"
)

// Glob implements fsbridge.Globber. Leading elements without wildcards are resolved like any path:
// links inside the mounts are followed there. "**" matches no element too, so that "a/**" matches
// "a". "*" matches names that begin with a dot. Directories that may not be read match as names and
// have no content.
func (b *Bridge) Glob(ctx context.Context, pattern string, opts fsbridge.GlobOptions) ([]string, error) {
	if err := b.beginWith(ctx, opGlob, pattern, fsbridge.ValidPattern(pattern)); err != nil {
		return nil, err
	}
	defer b.end()
	if opts.MaxMatches < 0 {
		return nil, pathError(opGlob, pattern, fmt.Errorf("a limit is negative: %w", fsbridge.ErrInvalid))
	}
	if opts.MaxMatches == 0 {
		opts.MaxMatches = fsbridge.DefaultMatches
	}
	list, err := fsbridge.ParsePattern(pattern)
	if err != nil {
		return nil, pathError(opGlob, pattern, err)
	}
	g := globber{b: b, ctx: ctx, most: opts.MaxMatches, found: make(map[string]struct{})}
	for _, p := range list {
		if err := g.run(p); err != nil {
			return nil, pathError(opGlob, pattern, err)
		}
	}
	matches := make([]string, 0, len(g.found))
	for m := range g.found {
		matches = append(matches, m)
	}
	slices.Sort(matches)
	return matches, nil
}

type globber struct {
	b     *Bridge
	ctx   context.Context // lives for one call
	most  int
	found map[string]struct{}

	l       *rooted.Ladder
	dirOnly bool
	// visited has the directories that were searched for a rest of the pattern of some length,
	// which several "**" would search over and over.
	visited map[visit]struct{}
}

type visit struct {
	dir  string
	rest int
}

func (g *globber) run(p fsbridge.Pattern) error {
	lits, rest := p.Prefix()
	start := strings.Join(lits, "/")
	if p.Absolute {
		start = "/" + start
	}
	if len(rest) == 0 {
		return g.literal(start, p.DirOnly)
	}
	at := start
	if at == "" {
		at = "."
	}
	if err := fsbridge.ValidPath(at); err != nil {
		return err
	}
	h, err := g.b.tree.Open(at, rooted.Directory)
	if isNothing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer h.Close()
	if g.l, err = g.b.tree.Ladder(&h); err != nil {
		if err == unix.EACCES {
			return nil
		}
		return err
	}
	defer g.l.Close()
	if start != "" && start != "/" {
		start += "/"
	}
	g.dirOnly = p.DirOnly
	g.visited = make(map[visit]struct{})
	return g.search(start, rest)
}

// isNothing reports errors that mean no match.
func isNothing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || err == unix.ENOTDIR
}

// literal matches a pattern without wildcards.
func (g *globber) literal(p string, dirOnly bool) error {
	if err := fsbridge.ValidPath(p); err != nil {
		return err
	}
	f := rooted.NoFollow
	if dirOnly {
		f = rooted.Directory
	}
	h, err := g.b.tree.Open(p, f)
	if isNothing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	h.Close()
	if dirOnly && p != "/" {
		p += "/"
	}
	return g.add(p)
}

func (g *globber) add(p string) error {
	if _, ok := g.found[p]; ok {
		return nil
	}
	if len(g.found) == g.most {
		return hint(&fsbridge.LimitError{What: "matches", Limit: int64(g.most)}, "narrow the pattern or raise MaxMatches")
	}
	g.found[p] = struct{}{}
	return nil
}

// emit adds a match that is a name in the lowest directory.
func (g *globber) emit(p string, dir bool) error {
	if g.dirOnly {
		if !dir {
			return nil
		}
		p += "/"
	}
	return g.add(p)
}

// search matches the elements below the lowest directory. before is how the pattern spells that
// directory, with a trailing slash unless it is empty.
func (g *globber) search(before string, elems []fsbridge.PatternElement) error {
	key := visit{before, len(elems)}
	if _, done := g.visited[key]; done {
		return nil
	}
	g.visited[key] = struct{}{}
	e, rest := elems[0], elems[1:]
	if e.Any {
		return g.searchAny(before, elems)
	}
	if e.Match == "" {
		st, err := g.b.tree.Lstat(g.l.FD(), e.Literal)
		if err != nil {
			return nil
		}
		return g.step(before, e.Literal, st.IsDir(), rest)
	}
	return g.each(func(name string, dir bool) error {
		if !e.Matches(name) {
			return nil
		}
		return g.step(before, name, dir, rest)
	})
}

// step goes on with a name that has matched.
func (g *globber) step(before, name string, dir bool, rest []fsbridge.PatternElement) error {
	if len(rest) == 0 {
		return g.emit(before+name, dir)
	}
	if !dir {
		return nil
	}
	return g.below(before, name, rest)
}

// searchAny matches "**": nothing, or one directory more.
func (g *globber) searchAny(before string, elems []fsbridge.PatternElement) error {
	rest := elems[1:]
	if len(rest) > 0 {
		if err := g.search(before, rest); err != nil {
			return err
		}
	} else if p := strings.TrimRight(before, "/"); p != "" {
		if err := g.emit(p, true); err != nil {
			return err
		}
	}
	return g.each(func(name string, dir bool) error {
		if len(rest) == 0 {
			if err := g.emit(before+name, dir); err != nil {
				return err
			}
		}
		if !dir {
			return nil
		}
		return g.below(before, name, elems)
	})
}

// below searches one directory in the lowest one.
func (g *globber) below(before, name string, elems []fsbridge.PatternElement) error {
	switch err := g.l.Down(name); err {
	case nil:
	case unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.EACCES:
		return nil
	default:
		return err
	}
	if err := g.search(before+name+"/", elems); err != nil {
		return err
	}
	return g.l.Up()
}

// each calls f for every name in the lowest directory.
func (g *globber) each(f func(name string, dir bool) error) error {
	names, err := g.b.entryNames(g.ctx, g.l.FD())
	if err != nil {
		return err
	}
	for _, name := range names {
		st, err := g.b.tree.Lstat(g.l.FD(), name)
		if err == unix.ENOENT || err == unix.EACCES {
			continue
		}
		if err != nil {
			return err
		}
		if err := f(name, st.IsDir()); err != nil {
			return err
		}
	}
	return nil
}
