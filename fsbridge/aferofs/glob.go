package aferofs

import (
	"context"
	"fmt"

	"github.com/workberth/workberth/fsbridge"
)

// Glob expands a pattern. Leading elements without wildcards are resolved like any path; "**"
// matches no element too, so that "a/**" matches "a".
func (b *Bridge) Glob(ctx context.Context, pattern string, opts fsbridge.GlobOptions) ([]string, error) {
	list, err := func() ([]string, error) {
		if err := fsbridge.ValidPattern(pattern); err != nil {
			return nil, err
		}
		if err := b.step(ctx); err != nil {
			return nil, err
		}
		if opts.MaxMatches < 0 {
			return nil, fmt.Errorf("a limit is negative: %w", fsbridge.ErrInvalid)
		}
		if opts.MaxMatches == 0 {
			opts.MaxMatches = fsbridge.DefaultMatches
		}
		patterns, err := fsbridge.ParsePattern(pattern)
		if err != nil {
			return nil, err
		}
		return fsbridge.MatchPatterns(patterns, opts.MaxMatches, &globSource{b: b, ctx: ctx})
	}()
	return list, fail("glob", pattern, err)
}

// globSource is what one search looks at.
type globSource struct {
	b   *Bridge
	ctx context.Context // lives for one call
}

var _ fsbridge.PatternSource = (*globSource)(nil)

// Find implements fsbridge.PatternSource.
func (s *globSource) Find(p string, follow bool) (place string, dir bool, err error) {
	pl, err := s.b.existing(p, follow)
	if err != nil {
		return "", false, err
	}
	return pl.abs, pl.info.IsDir(), nil
}

// List implements fsbridge.PatternSource.
func (s *globSource) List(place string) ([]fsbridge.DirEntry, error) {
	if err := s.b.step(s.ctx); err != nil {
		return nil, err
	}
	infos, err := s.b.entries(place)
	if err != nil {
		return nil, err
	}
	list := make([]fsbridge.DirEntry, len(infos))
	for i, info := range infos {
		list[i] = fsbridge.DirEntry{Name: info.Name(), Info: infoOf(info.Name(), info)}
	}
	return list, nil
}
