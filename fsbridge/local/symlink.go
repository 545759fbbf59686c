//go:build linux

package local

import (
	"context"
	"fmt"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/rooted"
	"golang.org/x/sys/unix"
)

// Symlink implements fsbridge.Symlinker.
func (b *Bridge) Symlink(ctx context.Context, target, path string, opts fsbridge.SymlinkOptions) error {
	if err := b.begin(ctx, opSymlink, path); err != nil {
		return err
	}
	defer b.end()
	return pathError(opSymlink, path, b.symlink(ctx, target, path, opts))
}

func (b *Bridge) symlink(ctx context.Context, target, path string, opts fsbridge.SymlinkOptions) error {
	if err := fsbridge.ValidPath(target); err != nil {
		return fmt.Errorf("target: %w", err)
	}
	place, err := b.tree.Named(path, nil)
	if err != nil {
		return err
	}
	defer place.Close()
	if place.Name == "" {
		return unix.EEXIST
	}
	if place.MustDir {
		return fmt.Errorf("a path that ends in a slash names a directory: %w", unix.EISDIR)
	}
	if err := writable(place.Dir.Root); err != nil {
		return err
	}
	if err := b.tree.Stays(&place.Dir, place.Name, target); err != nil {
		return err
	}
	defer b.commits.lock(place.Name)()
	if err := b.check(ctx); err != nil {
		return err
	}
	err = unix.Symlinkat(target, place.Dir.FD, place.Name)
	if err != unix.EEXIST || !opts.Replace {
		return err
	}
	st, err := b.tree.Lstat(place.Dir.FD, place.Name)
	if err == nil && st.IsDir() {
		return fmt.Errorf("a directory is never replaced: %w", unix.EISDIR)
	}
	return rooted.ReplaceWithLink(b.names, target, &place.Dir, place.Name)
}
