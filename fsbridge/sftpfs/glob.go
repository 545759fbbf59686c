package sftpfs

import (
	"context"
	"fmt"

	"github.com/workberth/workberth/fsbridge"
)

// Glob expands a pattern.
func (b *Bridge) Glob(ctx context.Context, pattern string, opts fsbridge.GlobOptions) ([]string, error) {
	c := b.call(ctx)
	list, err := func() ([]string, error) {
		if err := fsbridge.ValidPattern(pattern); err != nil {
			return nil, err
		}
		if err := c.step(); err != nil {
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
		return fsbridge.MatchPatterns(patterns, opts.MaxMatches, globSource{c})
	}()
	return list, c.fail("glob", pattern, err)
}

// globSource is what one search looks at.
type globSource struct{ c *call }

// Find implements fsbridge.PatternSource.
func (s globSource) Find(p string, follow bool) (place string, dir bool, err error) {
	pl, err := s.c.existing(p, follow)
	return pl.abs, pl.info.IsDir(), err
}

// List implements fsbridge.PatternSource.
func (s globSource) List(place string) ([]fsbridge.DirEntry, error) {
	infos, err := s.c.list(place)
	list := make([]fsbridge.DirEntry, len(infos))
	for i, info := range infos {
		list[i] = fsbridge.DirEntry{Name: info.Name, Info: info}
	}
	return list, err
}
