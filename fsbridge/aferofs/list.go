package aferofs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/workberth/workberth/fsbridge"
)

// writeNew opens a file that must not exist.
const writeNew = os.O_WRONLY | os.O_CREATE | os.O_EXCL

// defaultMaxEntries is what a zero WalkOptions.MaxEntries means.
const defaultMaxEntries = 10_000_000

// entries lists the directory at abs, sorted by the bytes of the names, without temporary files.
func (b *Bridge) entries(abs string) ([]fs.FileInfo, error) {
	f, err := b.fs.Open(abs)
	if err != nil {
		return nil, err
	}
	list, err := f.Readdir(-1)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(i fs.FileInfo) bool { return strings.HasPrefix(i.Name(), tempPrefix) })
	slices.SortFunc(list, func(x, y fs.FileInfo) int { return strings.Compare(x.Name(), y.Name()) })
	return list, nil
}

// directory resolves a path that must be a directory.
func (b *Bridge) directory(ctx context.Context, p string) (place, error) {
	if err := b.begin(ctx, p); err != nil {
		return place{}, err
	}
	pl, err := b.existing(p, true)
	if err == nil && !pl.info.IsDir() {
		err = syscall.ENOTDIR
	}
	return pl, err
}

// ReadDirectory lists a directory.
func (b *Bridge) ReadDirectory(ctx context.Context, p string) ([]fsbridge.DirEntry, error) {
	list, err := func() ([]fsbridge.DirEntry, error) {
		pl, err := b.directory(ctx, p)
		if err != nil {
			return nil, err
		}
		infos, err := b.entries(pl.abs)
		if err != nil {
			return nil, err
		}
		out := make([]fsbridge.DirEntry, 0, len(infos))
		for _, i := range infos {
			e := fsbridge.DirEntry{Name: i.Name(), Info: infoOf(i.Name(), i)}
			if e.Info.Type == fsbridge.TypeSymlink {
				if e.LinkTarget, err = b.readlink(path.Join(pl.abs, i.Name())); errors.Is(err, fs.ErrNotExist) {
					continue // it is gone by now
				}
				if err != nil {
					return nil, err
				}
			}
			out = append(out, e)
		}
		return out, nil
	}()
	return list, fail("list", p, err)
}

// callbackError carries an error of the caller's function out of the walk as it is.
type callbackError struct{ error }

// Walk visits everything below a directory.
func (b *Bridge) Walk(ctx context.Context, p string, opts fsbridge.WalkOptions, fn func(fsbridge.WalkEntry) error) error {
	err := func() error {
		if opts.MaxDepth < 0 || opts.MaxEntries < 0 {
			return fmt.Errorf("a limit is negative: %w", fsbridge.ErrInvalid)
		}
		if opts.MaxEntries == 0 {
			opts.MaxEntries = defaultMaxEntries
		}
		pl, err := b.directory(ctx, p)
		if err != nil {
			return err
		}
		list, err := b.entries(pl.abs)
		if err != nil {
			return err
		}
		w := &treeWalk{b: b, ctx: ctx, opts: opts, fn: fn}
		return w.visit(pl.abs, "", list, 1)
	}()
	var ce callbackError
	if errors.As(err, &ce) {
		return ce.error
	}
	return fail("walk", p, err)
}

// treeWalk is a running walk.
type treeWalk struct {
	b    *Bridge
	ctx  context.Context
	opts fsbridge.WalkOptions
	fn   func(fsbridge.WalkEntry) error
	seen int
}

// visit reports the entries of the directory at abs, which is rel below the root.
func (w *treeWalk) visit(abs, rel string, list []fs.FileInfo, depth int) error {
	for _, i := range list {
		if err := w.b.step(w.ctx); err != nil {
			return err
		}
		name := i.Name()
		e := fsbridge.WalkEntry{Path: path.Join(rel, name), Info: infoOf(name, i)}
		child := path.Join(abs, name)
		if w.opts.Hash && e.Info.IsRegular() {
			if err := w.hash(child, i, &e); err != nil {
				return err
			}
		}
		enter := e.Info.IsDir() && (w.opts.MaxDepth == 0 || depth < w.opts.MaxDepth) && !slices.Contains(w.opts.SkipDirs, name)
		var below []fs.FileInfo
		if enter {
			below, e.Err = w.b.entries(child)
		}
		if errors.Is(e.Err, fs.ErrNotExist) {
			continue // it is gone by now
		}
		if w.seen++; w.seen > w.opts.MaxEntries {
			return &fsbridge.LimitError{What: "directory entries", Limit: int64(w.opts.MaxEntries)}
		}
		if err := w.fn(e); err != nil {
			if errors.Is(err, fs.SkipDir) && e.Info.IsDir() {
				continue
			}
			return callbackError{err}
		}
		if err := w.visit(child, e.Path, below, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// hash adds the digest, or the reason why there is none.
func (w *treeWalk) hash(p string, i fs.FileInfo, e *fsbridge.WalkEntry) error {
	f, _, err := w.b.openAt(p, i)
	if err == nil {
		var h fsbridge.FileHash
		h, err = w.b.hashOpen(w.ctx, f)
		e.Digest = h.Digest
	}
	e.Err = err
	return w.b.step(w.ctx)
}
