package sftpfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/workberth/workberth/fsbridge"
)

// defaultMaxEntries is what a zero WalkOptions.MaxEntries means.
const defaultMaxEntries = 10_000_000

// list lists the directory at abs, sorted by the bytes of the names, without temporary files.
func (c *call) list(abs string) ([]fsbridge.FileInfo, error) {
	// The client collects what the server sends until this context ends, whoever waits.
	ctx, timeout := c.ctx, c.b.opts.RequestTimeout
	infos, err := ask(c, func() ([]fs.FileInfo, error) {
		ctx, cancel := context.WithTimeoutCause(ctx, timeout, &silenceError{timeout})
		defer cancel()
		list, err := c.b.client.ReadDirContext(ctx, abs)
		if errors.Is(err, context.DeadlineExceeded) {
			err = context.Cause(ctx)
		}
		return list, err
	})
	if err != nil {
		return nil, err
	}
	list := make([]fsbridge.FileInfo, 0, len(infos))
	for _, i := range infos {
		name := i.Name()
		if err := validName(name); err != nil {
			return nil, err
		}
		if strings.HasPrefix(name, tempPrefix) {
			continue
		}
		info, err := infoOf(name, i)
		if err != nil {
			return nil, err
		}
		list = append(list, info)
	}
	slices.SortFunc(list, func(x, y fsbridge.FileInfo) int { return strings.Compare(x.Name, y.Name) })
	for i := 1; i < len(list); i++ {
		if list[i].Name == list[i-1].Name {
			return nil, &protocolError{"a directory with two entries of one name"}
		}
	}
	return list, nil
}

// directory resolves a path that must be a directory.
func (c *call) directory(p string) (place, error) {
	if err := c.begin(p); err != nil {
		return place{}, err
	}
	pl, err := c.existing(p, true)
	if err == nil && !pl.info.IsDir() {
		err = syscall.ENOTDIR
	}
	return pl, err
}

// ReadDirectory lists a directory. The text of each link is one more request.
func (b *Bridge) ReadDirectory(ctx context.Context, p string) ([]fsbridge.DirEntry, error) {
	c := b.call(ctx)
	list, err := func() ([]fsbridge.DirEntry, error) {
		pl, err := c.directory(p)
		if err != nil {
			return nil, err
		}
		infos, err := c.list(pl.abs)
		if err != nil {
			return nil, err
		}
		out := make([]fsbridge.DirEntry, 0, len(infos))
		for _, i := range infos {
			e := fsbridge.DirEntry{Name: i.Name, Info: i}
			if i.Type == fsbridge.TypeSymlink {
				if e.LinkTarget, err = c.readlink(path.Join(pl.abs, i.Name)); errors.Is(err, fs.ErrNotExist) {
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
	return list, c.fail("list", p, err)
}

// walkError carries an error of the caller's function out of the walk as it is.
type walkError struct{ error }

// Walk visits everything below a directory.
func (b *Bridge) Walk(ctx context.Context, p string, opts fsbridge.WalkOptions, fn func(fsbridge.WalkEntry) error) error {
	c := b.call(ctx)
	err := func() error {
		if opts.MaxDepth < 0 || opts.MaxEntries < 0 {
			return fmt.Errorf("a limit is negative: %w", fsbridge.ErrInvalid)
		}
		if opts.MaxEntries == 0 {
			opts.MaxEntries = defaultMaxEntries
		}
		pl, err := c.directory(p)
		if err != nil {
			return err
		}
		list, err := c.list(pl.abs)
		if err != nil {
			return err
		}
		w := &treeWalk{c: c, opts: opts, fn: fn}
		return w.visit(pl.abs, "", list, 1)
	}()
	var own walkError
	if errors.As(err, &own) {
		return own.error
	}
	return c.fail("walk", p, err)
}

// treeWalk is a running walk.
type treeWalk struct {
	c    *call
	opts fsbridge.WalkOptions
	fn   func(fsbridge.WalkEntry) error
	seen int
}

// visit reports the entries of the directory at abs, which is rel below the root.
func (w *treeWalk) visit(abs, rel string, list []fsbridge.FileInfo, depth int) error {
	for _, i := range list {
		if err := w.c.step(); err != nil {
			return err
		}
		e := fsbridge.WalkEntry{Path: path.Join(rel, i.Name), Info: i}
		child := path.Join(abs, i.Name)
		if w.opts.Hash && i.IsRegular() {
			e.Digest, e.Err = w.hash(child, i)
		}
		enter := i.IsDir() && (w.opts.MaxDepth == 0 || depth < w.opts.MaxDepth) && !slices.Contains(w.opts.SkipDirs, i.Name)
		var below []fsbridge.FileInfo
		if enter {
			below, e.Err = w.c.list(child)
		}
		if errors.Is(e.Err, fs.ErrNotExist) {
			continue // it is gone by now
		}
		if e.Err != nil && !w.local(e.Err) {
			return e.Err
		}
		if w.seen++; w.seen > w.opts.MaxEntries {
			return &fsbridge.LimitError{What: "directory entries", Limit: int64(w.opts.MaxEntries)}
		}
		if err := w.fn(e); err != nil {
			if errors.Is(err, fs.SkipDir) && i.IsDir() {
				continue
			}
			return walkError{err}
		}
		if err := w.visit(child, e.Path, below, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// hash returns the digest, or the reason why there is none.
func (w *treeWalk) hash(p string, i fsbridge.FileInfo) (fsbridge.Digest, error) {
	f, info, err := w.c.open(p, i)
	if err != nil {
		return "", err
	}
	h, err := w.c.hash(f, info)
	return h.Digest, err
}

// local tells whether an error concerns one file only, so that the walk can go on.
func (w *treeWalk) local(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, fsbridge.ErrNotRegular) || isFailure(err)
}
