package guestfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/guest/wire"
)

// defaultWalk is what WalkOptions.MaxEntries means when it is zero.
const defaultWalk = 10_000_000

// Walk implements fsbridge.Walker. fn runs on the calling goroutine; while it
// does, the server walks on by at most wire.BulkWindow bytes of entries.
func (b *Bridge) Walk(ctx context.Context, path string, opts fsbridge.WalkOptions, fn func(fsbridge.WalkEntry) error) error {
	r, err := b.begin(ctx, wire.OpWalk, path)
	if err != nil {
		return err
	}
	if opts.SkipDirs, err = skippable(opts.SkipDirs); err != nil {
		return r.refuse(err)
	}
	f := wire.NewOpen(r.op, len(path)+64)
	f.B = wire.WalkRequest{Path: path, Options: opts, Window: wire.BulkWindow}.Append(f.B)
	w := &walk{r: r, limit: opts.MaxEntries, fn: fn}
	if w.limit <= 0 {
		w.limit = defaultWalk
	}
	return r.records(f, w.step)
}

// skippable leaves out what can be no base name, and so matches nothing.
func skippable(names []string) ([]string, error) {
	var out []string
	for _, n := range names {
		if wire.CheckName(n) == nil {
			out = append(out, n)
		}
	}
	if len(out) > wire.MaxList {
		return nil, fmt.Errorf("%d names of directories to skip, at most %d are possible: %w",
			len(out), wire.MaxList, fsbridge.ErrInvalid)
	}
	return out, nil
}

type walk struct {
	r     *request
	fn    func(fsbridge.WalkEntry) error
	limit int
	seen  int
	skip  string // with a slash at the end: what fn does not want to see
}

// step takes one entry off the decoder and hands it on.
func (w *walk) step(d *wire.Decoder) error {
	e := d.WalkEntry()
	if d.Err() != nil {
		return nil
	}
	if w.seen++; w.seen > w.limit {
		return w.r.tooMany("entries of a walk", w.limit, "walk a smaller tree, or raise the limit")
	}
	if w.skip != "" && strings.HasPrefix(e.Path, w.skip) {
		return nil
	}
	e.Info.Name = base(e.Path)
	var remote *fsbridge.PathError
	if errors.As(e.Err, &remote) {
		remote.Path = below(w.r.path, e.Path)
	}
	err := w.fn(e)
	if err == fs.SkipDir && e.Info.IsDir() { //nolint:errorlint // the sentinel itself, as for fs.WalkDir
		w.skip = e.Path + "/"
		return nil
	}
	return err
}

// below spells the path of an entry as its caller would.
func below(root, entry string) string {
	switch {
	case root == ".":
		return entry
	case strings.HasSuffix(root, "/"):
		return root + entry
	}
	return root + "/" + entry
}
