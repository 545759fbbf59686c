package guestfs

import (
	"context"
	"errors"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/guest/wire"
)

func (r *request) listFrame() *wire.Frame {
	f := wire.NewOpen(r.op, len(r.path)+16)
	f.B = wire.ListRequest{Path: r.path, Window: wire.BulkWindow}.Append(f.B)
	return f
}

// ReadDirectory implements fsbridge.DirReader. Keeps FSB-07.
func (b *Bridge) ReadDirectory(ctx context.Context, path string) ([]fsbridge.DirEntry, error) {
	r, err := b.begin(ctx, wire.OpList, path)
	if err != nil {
		return nil, err
	}
	list := []fsbridge.DirEntry{}
	err = r.records(r.listFrame(), func(d *wire.Decoder) error {
		if len(list) == cap(list) {
			list = slices.Grow(list, min(1+d.Left()/usualEntry, b.opts.EntryLimit-len(list)+1))
		}
		e := d.DirEntry()
		switch {
		case d.Err() != nil:
			return nil
		case len(list) == b.opts.EntryLimit:
			return r.tooMany("directory entries", b.opts.EntryLimit, "list it as a stream")
		case len(list) > 0 && list[len(list)-1].Name >= e.Name:
			return r.violated(wire.Violation("directory entry %q after %q",
				wire.Printable(e.Name, wire.MaxQuote), wire.Printable(list[len(list)-1].Name, wire.MaxQuote)))
		}
		list = append(list, e)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// usualEntry is about how many bytes the description of a directory entry takes.
const usualEntry = 36

func (r *request) tooMany(what string, limit int, hint string) error {
	return &fsbridge.PathError{
		Op: r.op.String(), Path: r.path, Hint: hint, Err: &fsbridge.LimitError{What: what, Limit: int64(limit)},
	}
}

// StreamDirectory implements fsbridge.DirStreamer.
func (b *Bridge) StreamDirectory(ctx context.Context, path string) iter.Seq2[fsbridge.DirEntry, error] {
	return func(yield func(fsbridge.DirEntry, error) bool) {
		r, err := b.begin(ctx, wire.OpListStream, path)
		if err == nil {
			err = r.records(r.listFrame(), func(d *wire.Decoder) error {
				if e := d.DirEntry(); d.Err() == nil && !yield(e, nil) {
					return errStop
				}
				return nil
			})
		}
		if err != nil && !errors.Is(err, errStop) {
			yield(fsbridge.DirEntry{}, err)
		}
	}
}

// Glob implements fsbridge.Globber. Matches must be spelled like the pattern:
// absolute where it is, and without "..", unless it has some.
func (b *Bridge) Glob(ctx context.Context, pattern string, opts fsbridge.GlobOptions) ([]string, error) {
	r, err := b.begin(ctx, wire.OpGlob, pattern)
	if err != nil {
		return nil, err
	}
	limit := opts.MaxMatches
	if limit <= 0 {
		limit = defaultMatches
	}
	f := wire.NewOpen(r.op, len(pattern)+24)
	f.B = wire.GlobRequest{Pattern: pattern, Options: opts, Window: wire.BulkWindow}.Append(f.B)
	var list []string
	err = r.records(f, func(d *wire.Decoder) error {
		m := d.String(wire.MaxPath)
		if d.Err() != nil {
			return nil
		}
		if err := checkMatch(pattern, list, m); err != nil {
			return r.violated(err)
		}
		if len(list) == limit {
			return r.tooMany("matches", limit, "use a narrower pattern")
		}
		list = append(list, m)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// defaultMatches is what GlobOptions.MaxMatches means when it is zero.
const defaultMatches = 100_000

func checkMatch(pattern string, before []string, m string) error {
	quoted := wire.Printable(m, wire.MaxQuote)
	switch {
	case fsbridge.ValidPath(m) != nil:
		return wire.Violation("match %q is no path", quoted)
	case path.IsAbs(m) != absolutePattern(pattern):
		return wire.Violation("match %q of a pattern that begins elsewhere", quoted)
	case climbs(m) && !strings.Contains(pattern, ".."):
		return wire.Violation("match %q climbs", quoted)
	case len(before) > 0 && before[len(before)-1] >= m:
		return wire.Violation("match %q out of order", quoted)
	}
	return nil
}

// absolutePattern tells whether matches begin with a slash. An alternative may
// decide that, in which case the pattern begins with neither.
func absolutePattern(pattern string) bool {
	return strings.HasPrefix(pattern, "/") || strings.HasPrefix(pattern, `\/`)
}

func climbs(p string) bool {
	for e := range strings.SplitSeq(p, "/") {
		if e == ".." {
			return true
		}
	}
	return false
}
