package remoteworkspace

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/workberth/workberth/fsbridge"
)

// parsePattern parses a pattern that stays below the workspace.
func parsePattern(s string) ([]fsbridge.Pattern, error) {
	if err := fsbridge.ValidPattern(s); err != nil {
		return nil, fmt.Errorf("pattern %s: %w", fsbridge.DisplayPath(s), err)
	}
	list, err := fsbridge.ParsePattern(s)
	if err != nil {
		return nil, fmt.Errorf("pattern %s: %w", fsbridge.DisplayPath(s), err)
	}
	for _, p := range list {
		if p.Absolute || slices.ContainsFunc(p.Elems, func(e fsbridge.PatternElement) bool { return e.Literal == ".." }) {
			return nil, fmt.Errorf("pattern %s: it leaves the workspace: %w", fsbridge.DisplayPath(s), fsbridge.ErrOutsideRoot)
		}
	}
	return list, nil
}

// hasWildcard reports whether a pattern is more than a path.
func hasWildcard(s string) bool { return strings.ContainsAny(s, `*?[{\`) }

// expand lists what a pattern matches, sorted, with the matched directories among it.
// It takes the bridge's own search, which costs one command, or else lists directory
// after directory. The bridge can list (RWS-14).
func expand(ctx context.Context, b fsbridge.Bridge, pattern string, most int) ([]string, error) {
	if fsbridge.Has(b, fsbridge.CapGlob) {
		return fsbridge.Glob(ctx, b, pattern, fsbridge.GlobOptions{MaxMatches: most})
	}
	list, err := parsePattern(pattern)
	if err != nil {
		return nil, err
	}
	found, err := fsbridge.MatchPatterns(list, most, listing{ctx, b})
	if err != nil {
		return nil, fmt.Errorf("pattern %s: %w", fsbridge.DisplayPath(pattern), err)
	}
	return found, nil
}

// listing searches a bridge that can only list.
type listing struct {
	ctx context.Context //nolint:containedctx // it lives for one search
	b   fsbridge.Bridge
}

// Find implements fsbridge.PatternSource.
func (l listing) Find(path string, _ bool) (place string, dir bool, err error) {
	info, err := l.b.Stat(l.ctx, path)
	return path, err == nil && info.IsDir(), err
}

// List implements fsbridge.PatternSource.
func (l listing) List(place string) ([]fsbridge.DirEntry, error) {
	return fsbridge.ReadDirectory(l.ctx, l.b, place)
}
