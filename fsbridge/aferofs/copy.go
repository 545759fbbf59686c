package aferofs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/spf13/afero"

	"github.com/workberth/workberth/fsbridge"
)

// Copy copies a file, or with Recursive a directory. A copied directory appears complete.
func (b *Bridge) Copy(ctx context.Context, src, dst string, opts fsbridge.CopyOptions) error {
	from, err := b.copySource(ctx, src, opts)
	if err != nil {
		return fail("copy", src, err)
	}
	return fail("copy", dst, func() error {
		if err := b.begin(ctx, dst); err != nil {
			return err
		}
		to, err := b.resolve(dst, true, false)
		if err != nil {
			return err
		}
		if err := to.changeable(); err != nil {
			return err
		}
		if to.info != nil && (opts.NoReplace || from.info.IsDir() || to.info.IsDir()) {
			return fs.ErrExist
		}
		if from.info.IsDir() {
			return b.copyTree(ctx, from, to)
		}
		if err := writable(to); err != nil {
			return err
		}
		return b.copyFile(ctx, from, to, opts.NoReplace)
	}())
}

// copySource resolves what is to be copied.
func (b *Bridge) copySource(ctx context.Context, src string, opts fsbridge.CopyOptions) (place, error) {
	if err := b.begin(ctx, src); err != nil {
		return place{}, err
	}
	from, err := b.existing(src, true)
	if err != nil {
		return place{}, err
	}
	if from.info.IsDir() && !opts.Recursive {
		return place{}, fmt.Errorf("is a directory, %w", fsbridge.ErrNotRegular)
	}
	if !from.info.IsDir() {
		return from, regular(from.info)
	}
	return from, nil
}

// duplicate copies a regular file to a temporary file in the directory dir and tells its mode.
func (b *Bridge) duplicate(ctx context.Context, from place, dir string) (temporary, fsbridge.Mode, error) {
	f, info, err := b.openAt(from.abs, from.info)
	if err != nil {
		return temporary{}, 0, err
	}
	t := temporary{abs: path.Join(dir, b.tempName())}
	out, err := b.fs.OpenFile(t.abs, writeNew, 0o600)
	if err != nil {
		return t, 0, errors.Join(err, f.Close())
	}
	t.hash, err = b.fill(ctx, out, f, fsbridge.WriteOptions{})
	if err = errors.Join(err, out.Close(), f.Close()); err != nil {
		return t, 0, errors.Join(err, b.fs.Remove(t.abs))
	}
	return t, modeOf(info.Mode()) & fsbridge.ModePerm, nil
}

// copyFile puts a copy of a regular file at the place to.
func (b *Bridge) copyFile(ctx context.Context, from, to place, noReplace bool) error {
	t, mode, err := b.duplicate(ctx, from, path.Dir(to.abs))
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	old, err := b.lstat(to.abs)
	switch {
	case err == nil && noReplace:
		err = fs.ErrExist
	case err == nil:
		mode = modeOf(old.Mode()) // an existing file keeps its mode
		fallthrough
	case errors.Is(err, fs.ErrNotExist):
		_, err = b.commit(ctx, to.abs, t, fsbridge.WriteOptions{Mode: mode})
	}
	if err != nil {
		return errors.Join(err, b.fs.Remove(t.abs))
	}
	return nil
}

// copyTree copies a directory to a temporary name and renames it.
func (b *Bridge) copyTree(ctx context.Context, from, to place) error {
	if to.abs == from.abs || strings.HasPrefix(to.abs, strings.TrimSuffix(from.abs, "/")+"/") {
		return fmt.Errorf("a directory cannot be copied into itself: %w", fsbridge.ErrInvalid)
	}
	tmp := path.Join(path.Dir(to.abs), b.tempName())
	err := b.copyDir(ctx, from, tmp)
	if err == nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		if _, e := b.lstat(to.abs); e == nil {
			err = fs.ErrExist
		} else if err = b.step(ctx); err == nil {
			err = b.fs.Rename(tmp, to.abs)
		}
	}
	if err != nil {
		return errors.Join(err, b.fs.RemoveAll(tmp))
	}
	return nil
}

// copyDir copies the directory from to the new directory at abs.
func (b *Bridge) copyDir(ctx context.Context, from place, abs string) error {
	mode := modeOf(from.info.Mode()) & fsbridge.ModePerm
	b.mu.Lock()
	err := b.makeDir(ctx, abs, mode|0o700)
	b.mu.Unlock()
	if err != nil {
		return err
	}
	list, err := b.entries(from.abs)
	if err != nil {
		return err
	}
	for _, i := range list {
		child := place{abs: path.Join(from.abs, i.Name()), mount: from.mount, info: i}
		to := path.Join(abs, i.Name())
		switch typeOf(i) {
		case fsbridge.TypeDir:
			err = b.copyDir(ctx, child, to)
		case fsbridge.TypeSymlink:
			err = b.copyLink(ctx, child, to)
		default:
			err = b.copyFile(ctx, child, place{abs: to, mount: from.mount}, true)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", i.Name(), err)
		}
	}
	return b.fs.Chmod(abs, fileMode(mode))
}

// copyLink makes a link of the same text, if it stays inside.
func (b *Bridge) copyLink(ctx context.Context, from place, abs string) error {
	target, err := b.readlink(from.abs)
	if err != nil {
		return err
	}
	if err := b.leads(path.Dir(from.abs), from.mount, target); err != nil {
		return err
	}
	if err := b.step(ctx); err != nil {
		return err
	}
	l, ok := b.fs.(afero.Linker)
	if !ok {
		return afero.ErrNoSymlink
	}
	return l.SymlinkIfPossible(target, abs)
}
