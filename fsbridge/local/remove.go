//go:build linux

package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/rooted"
	"golang.org/x/sys/unix"
)

// Remove implements fsbridge.Remover. A recursive removal stops at the first failure and at file
// systems mounted below; what is then left is still there.
func (b *Bridge) Remove(ctx context.Context, path string, opts fsbridge.RemoveOptions) error {
	if err := b.begin(ctx, opRemove, path); err != nil {
		return err
	}
	defer b.end()
	err := b.remove(ctx, path, opts)
	if opts.IgnoreMissing && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return pathError(opRemove, path, err)
}

func (b *Bridge) remove(ctx context.Context, path string, opts fsbridge.RemoveOptions) error {
	if err := validPrecondition(opts.If); err != nil {
		return err
	}
	place, err := b.tree.Parent(path, nil)
	if err != nil {
		return err
	}
	defer place.Close()
	if err := nameable(&place, path); err != nil {
		return err
	}
	if err := b.movable(&place); err != nil {
		return err
	}
	st, err := b.tree.Lstat(place.Dir.FD, place.Name)
	if err == unix.ENOENT && opts.If.Hash != "" && !opts.IgnoreMissing {
		return &fsbridge.ConflictError{Expected: opts.If.Hash}
	}
	if err != nil {
		return err
	}
	if place.MustDir && !st.IsDir() {
		return unix.ENOTDIR
	}
	defer b.commits.lock(place.Name)()
	if opts.If.Absent {
		return b.conflict(ctx, &place.Dir, place.Name, "")
	}
	if opts.If.Hash != "" {
		held, err := b.hold(ctx, &place, opts.If.Hash)
		if err != nil {
			return err
		}
		defer rooted.Close(held)
	}
	if err := b.check(ctx); err != nil {
		return err
	}
	return b.unlink(ctx, &place.Dir, place.Name, &st, opts.Recursive)
}

// unlink removes one name, with all content where that is wanted.
func (b *Bridge) unlink(ctx context.Context, dir *rooted.Handle, name string, st *rooted.Stat, recursive bool) error {
	if !st.IsDir() {
		return unix.Unlinkat(dir.FD, name, 0)
	}
	err := unix.Unlinkat(dir.FD, name, unix.AT_REMOVEDIR)
	if !recursive || err != unix.ENOTEMPTY && err != unix.EEXIST {
		return err
	}
	return b.removeTree(ctx, dir, name, false)
}

// passes bounds how often a directory is emptied that others keep filling.
const passes = 100

// removeTree removes a directory with its content, by handles, never through a link. With force set
// directories are given the permissions that it takes: for trees this bridge has made.
func (b *Bridge) removeTree(ctx context.Context, dir *rooted.Handle, name string, force bool) error {
	h, err := b.tree.Child(dir, name)
	if err != nil {
		return err
	}
	defer h.Close()
	if !h.Stat.IsDir() {
		return unix.ENOTDIR
	}
	if force {
		if err := b.tree.Chmod(&h, 0o700); err != nil {
			return err
		}
	}
	l, err := b.tree.Ladder(&h)
	if err != nil {
		return err
	}
	defer l.Close()
	r := remover{b: b, ctx: ctx, l: l, mount: h.Stat.Mount, force: force}
	for range passes {
		if err := r.empty(); err != nil {
			return r.at(err)
		}
		err := unix.Unlinkat(dir.FD, name, unix.AT_REMOVEDIR)
		if err != unix.ENOTEMPTY && err != unix.EEXIST {
			return err
		}
	}
	return rooted.ErrBusy
}

type remover struct {
	b     *Bridge
	ctx   context.Context // lives for one call
	l     *rooted.Ladder
	mount uint64
	count int
	force bool
}

// at tells where below the asked path an error came up.
func (r *remover) at(err error) error { return below(r.l, err) }

func below(l *rooted.Ladder, err error) error {
	if len(l.Names()) == 0 || err == nil {
		return err
	}
	return fmt.Errorf("in %s: %w", fsbridge.DisplayPath(strings.Join(l.Names(), "/")), err)
}

// empty removes the content of the lowest directory: names that are no directories as they are
// read, directories after that.
func (r *remover) empty() error {
	dirs, err := r.files()
	if err != nil {
		return err
	}
	for _, name := range dirs {
		if err := r.dir(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (r *remover) files() (dirs []string, err error) {
	if err := r.b.check(r.ctx); err != nil {
		return nil, err
	}
	if _, err := unix.Seek(r.l.FD(), 0, io.SeekStart); err != nil {
		return nil, err
	}
	buf := r.b.tree.Buffer()
	defer r.b.tree.Release(buf)
	for d := rooted.ReadDir(r.l.FD(), *buf); ; {
		e, err := d.Next()
		if err == io.EOF {
			return dirs, nil
		}
		if err != nil {
			return nil, err
		}
		if r.count++; r.count%checkEvery == 0 {
			if err := r.b.check(r.ctx); err != nil {
				return nil, err
			}
		}
		if e.Type != fsbridge.TypeDir {
			err = unix.Unlinkat(r.l.FD(), e.Name, 0)
			if err == nil || err == unix.ENOENT {
				continue
			}
			// A directory by now, or on a file system that does not tell.
			if st, serr := r.b.tree.Lstat(r.l.FD(), e.Name); serr != nil || !st.IsDir() {
				return nil, fmt.Errorf("%s: %w", fsbridge.DisplayPath(e.Name), err)
			}
		}
		dirs = append(dirs, e.Name)
	}
}

// dir removes one directory in the lowest one.
func (r *remover) dir(name string) error {
	for range passes {
		err := unix.Unlinkat(r.l.FD(), name, unix.AT_REMOVEDIR)
		if err == unix.ENOTDIR {
			err = unix.Unlinkat(r.l.FD(), name, 0)
		}
		if err != unix.ENOTEMPTY && err != unix.EEXIST {
			return err
		}
		if err := r.down(name); err != nil {
			return err
		}
		if r.l.Stat().Mount != r.mount {
			return fmt.Errorf("another file system is mounted here: %w", unix.EBUSY)
		}
		if err := r.empty(); err != nil {
			return err
		}
		if err := r.l.Up(); err != nil {
			return err
		}
	}
	return rooted.ErrBusy
}

func (r *remover) down(name string) error {
	if r.force {
		here := r.l.Handle()
		h, err := r.b.tree.Child(&here, name)
		if err != nil {
			return err
		}
		defer h.Close()
		if h.Stat.IsDir() {
			if err := r.b.tree.Chmod(&h, 0o700); err != nil {
				return err
			}
		}
	}
	return r.l.Down(name)
}
