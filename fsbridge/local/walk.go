//go:build linux

package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/rooted"
	"golang.org/x/sys/unix"
)

// DefaultWalkEntries bounds a walk where the options say nothing.
const DefaultWalkEntries = 10_000_000

// Walk implements fsbridge.Walker. It needs memory for the names of the directories on the way to
// the present one, and a bounded number of descriptors, however deep the tree is. What cannot be
// read is reported in the entry it is about; a directory whose reading fails half-way is reported a
// second time, with the error. File systems mounted below are entered.
func (b *Bridge) Walk(ctx context.Context, path string, opts fsbridge.WalkOptions, fn func(fsbridge.WalkEntry) error) error {
	if err := b.begin(ctx, opWalk, path); err != nil {
		return err
	}
	defer b.end()
	if opts.MaxDepth < 0 || opts.MaxEntries < 0 {
		return pathError(opWalk, path, fmt.Errorf("a limit is negative: %w", fsbridge.ErrInvalid))
	}
	if opts.MaxEntries == 0 {
		opts.MaxEntries = DefaultWalkEntries
	}
	w := walker{b: b, ctx: ctx, opts: opts, fn: fn}
	err := w.run(path)
	var own *fnError
	if errors.As(err, &own) {
		return own.err
	}
	return pathError(opWalk, path, err)
}

// fnError carries the error of the caller's function out.
type fnError struct{ err error }

func (e *fnError) Error() string { return e.err.Error() }

type walker struct {
	b     *Bridge
	ctx   context.Context // lives for one call
	opts  fsbridge.WalkOptions
	fn    func(fsbridge.WalkEntry) error
	l     *rooted.Ladder
	path  []byte // of the lowest directory, with a trailing slash unless empty
	count int
}

func (w *walker) run(path string) error {
	h, err := w.b.tree.Open(path, rooted.Directory)
	if err != nil {
		return err
	}
	defer h.Close()
	if w.l, err = w.b.tree.Ladder(&h); err != nil {
		return err
	}
	defer w.l.Close()
	names, err := w.names()
	if err != nil {
		return err
	}
	return w.entries(names)
}

// names lists the lowest directory.
func (w *walker) names() ([]string, error) {
	names, err := w.b.entryNames(w.ctx, w.l.FD())
	slices.Sort(names)
	return names, err
}

// entries visits what the lowest directory holds.
func (w *walker) entries(names []string) error {
	for _, name := range names {
		if err := w.entry(name); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) entry(name string) error {
	if w.count++; w.count%checkEvery == 0 {
		if err := w.b.check(w.ctx); err != nil {
			return err
		}
	}
	if w.count > w.opts.MaxEntries {
		return &fsbridge.LimitError{What: "walk entries", Limit: int64(w.opts.MaxEntries)}
	}
	e := fsbridge.WalkEntry{Path: string(w.path) + name}
	st, err := w.b.tree.Lstat(w.l.FD(), name)
	if err == unix.ENOENT {
		w.count--
		return nil // removed since it was listed
	}
	e.Info = st.FileInfo
	e.Info.Name = name
	e.Err = err
	entered := false
	switch {
	case err != nil:
	case st.IsDir() && w.enters(name):
		e.Err = w.l.Down(name)
		entered = e.Err == nil
	case st.IsRegular() && w.opts.Hash:
		if e.Digest, err = w.digest(name, &st); err != nil {
			if ended := w.b.check(w.ctx); ended != nil {
				return ended
			}
			e.Err = err
		}
	}
	if e.Err != nil {
		e.Err = pathError(opWalk, e.Path, e.Err)
	}
	err = w.fn(e)
	switch {
	case err == nil && entered:
		return w.content(e)
	case err == nil:
		return nil
	case !st.IsDir() || !errors.Is(err, fs.SkipDir):
		return &fnError{err}
	case entered:
		return w.l.Up()
	}
	return nil
}

// content visits what a directory holds that was just entered, and leaves it.
func (w *walker) content(e fsbridge.WalkEntry) error {
	names, err := w.names()
	if err != nil {
		if ended := w.b.check(w.ctx); ended != nil {
			return ended
		}
		e.Err = pathError(opWalk, e.Path, err)
		if err := w.fn(e); err != nil && !errors.Is(err, fs.SkipDir) {
			return &fnError{err}
		}
		return w.l.Up()
	}
	mark := len(w.path)
	w.path = append(append(w.path[:0], e.Path...), '/')
	if err := w.entries(names); err != nil {
		return err
	}
	w.path = w.path[:mark]
	return w.l.Up()
}

// enters reports whether a directory's content is wanted.
func (w *walker) enters(name string) bool {
	if w.opts.MaxDepth > 0 && w.l.Depth()+1 >= w.opts.MaxDepth {
		return false
	}
	return !slices.Contains(w.opts.SkipDirs, name)
}

func (w *walker) digest(name string, st *rooted.Stat) (fsbridge.Digest, error) {
	fd, err := w.b.tree.OpenChild(w.l.FD(), name, unix.O_RDONLY, st)
	if rooted.IsBusy(err) {
		err = rooted.ErrBusy
	}
	if err != nil {
		return "", err
	}
	defer rooted.Close(fd)
	h, err := w.b.hash(w.ctx, fd)
	return h.Digest, err
}
