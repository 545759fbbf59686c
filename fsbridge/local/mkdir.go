//go:build linux

package local

import (
	"context"
	"fmt"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/rooted"
	"golang.org/x/sys/unix"
)

// Mkdir implements fsbridge.Mkdirer. With Parents, Mode is the permission of every directory that
// is made.
func (b *Bridge) Mkdir(ctx context.Context, path string, opts fsbridge.MkdirOptions) error {
	if err := b.begin(ctx, opMkdir, path); err != nil {
		return err
	}
	defer b.end()
	return pathError(opMkdir, path, b.mkdir(ctx, path, opts))
}

func (b *Bridge) mkdir(ctx context.Context, path string, opts fsbridge.MkdirOptions) error {
	if opts.Mode&^fsbridge.ModePerm != 0 {
		return fmt.Errorf("mode %#o has more than nine bits: %w", uint32(opts.Mode), fsbridge.ErrInvalid)
	}
	mk := b.maker(ctx, opts.Mode, false)
	var parents rooted.Maker
	if opts.Parents {
		parents = mk
	}
	place, err := b.tree.Parent(path, parents)
	if err != nil {
		return err
	}
	defer place.Close()
	err = unix.EEXIST
	if place.Name != "" {
		if _, serr := b.tree.Lstat(place.Dir.FD, place.Name); serr == unix.ENOENT {
			err = mk(&place.Dir, place.Name)
		} else if serr != nil {
			err = serr
		}
	}
	if err != unix.EEXIST || !opts.Parents {
		return err
	}
	h, err := b.tree.Open(path, rooted.Directory)
	if err == unix.ENOTDIR || err == unix.ENOENT {
		return unix.EEXIST
	}
	if err == nil {
		h.Close()
	}
	return err
}

// maker makes one directory: where that is permitted, with the guard's consent, with the mode asked
// for or the default.
func (b *Bridge) maker(ctx context.Context, mode fsbridge.Mode, sync bool) rooted.Maker {
	exact := mode != 0 && uint32(mode)&b.applied != 0
	switch {
	case mode == 0 && b.umask != nil:
		mode, exact = 0o777&^fsbridge.Mode(*b.umask), true
	case mode == 0:
		mode = 0o777
	}
	return func(dir *rooted.Handle, name string) error {
		if err := writable(dir.Root); err != nil {
			return err
		}
		if err := b.check(ctx); err != nil {
			return err
		}
		if err := unix.Mkdirat(dir.FD, name, uint32(mode)); err != nil {
			return err
		}
		if exact {
			if err := b.exactMode(dir, name, mode); err != nil {
				return err
			}
		}
		if sync {
			return b.syncDir(dir)
		}
		return nil
	}
}

// exactMode sets the mode of a directory that was just made, which the umask has narrowed. A set-id
// bit that it got from its parent stays.
func (b *Bridge) exactMode(dir *rooted.Handle, name string, mode fsbridge.Mode) error {
	h, err := b.tree.Child(dir, name)
	if err != nil {
		return err
	}
	defer h.Close()
	if !h.Stat.IsDir() {
		return unix.ENOTDIR
	}
	return b.tree.Chmod(&h, mode|h.Stat.Mode&fsbridge.ModeSetGID)
}
