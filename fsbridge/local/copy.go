//go:build linux

package local

import (
	"context"
	"errors"
	"fmt"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/rooted"
	"golang.org/x/sys/unix"
)

// Copy implements fsbridge.Copier. Both paths are followed, as in reading and writing; parents of
// dst must exist. A new file gets the mode of the original less the umask, an existing one keeps
// its own. A directory appears complete or not at all. The error names the path it is about.
func (b *Bridge) Copy(ctx context.Context, src, dst string, opts fsbridge.CopyOptions) error {
	if err := b.begin(ctx, opCopy, src); err != nil {
		return err
	}
	defer b.end()
	if err := fsbridge.ValidPath(dst); err != nil {
		return pathError(opCopy, dst, err)
	}
	h, err := b.tree.Open(src, 0)
	if err != nil {
		return pathError(opCopy, src, err)
	}
	defer h.Close()
	if !h.Stat.IsDir() {
		return b.copyFile(ctx, src, dst, opts)
	}
	if !opts.Recursive {
		return pathError(opCopy, src, hint(&rooted.NotRegularError{Type: fsbridge.TypeDir}, "set Recursive to copy a directory"))
	}
	return b.copyDir(ctx, src, &h, dst)
}

func (b *Bridge) copyFile(ctx context.Context, src, dst string, opts fsbridge.CopyOptions) error {
	f, err := b.tree.OpenFile(src, unix.O_RDONLY, nil)
	if err != nil {
		return pathError(opCopy, src, err)
	}
	defer f.Close()
	w := &writing{content: fileContent{f.FD}, exclusive: opts.NoReplace, like: &f.Stat}
	w.opts.NoParents = true
	err = b.writeAt(ctx, dst, w)
	var dir *rooted.NotRegularError
	if errors.As(err, &dir) && dir.Type == fsbridge.TypeDir {
		err = hint(fmt.Errorf("an existing directory is never replaced: %w", unix.EEXIST), "name the new file inside it")
	}
	return pathError(opCopy, dst, err)
}

// copyDir copies a directory under a temporary name and renames it when it is complete.
func (b *Bridge) copyDir(ctx context.Context, src string, from *rooted.Handle, dst string) error {
	to, err := b.tree.Named(dst, nil)
	if err != nil {
		return pathError(opCopy, dst, err)
	}
	defer to.Close()
	if err := b.admitCopy(from, &to, dst); err != nil {
		return pathError(opCopy, dst, err)
	}
	if err := b.check(ctx); err != nil {
		return pathError(opCopy, dst, err)
	}
	temp, err := rooted.MakeTempDir(b.names, &to.Dir, fillMode(from.Stat.Mode))
	if err != nil {
		return pathError(opCopy, dst, err)
	}
	defer b.names.Done(temp)
	if err := b.fillDir(ctx, from, &to, temp); err != nil {
		// The guard may be what failed: what this call has made is removed all the same.
		if rerr := b.unguarded().removeTemp(&to.Dir, temp); rerr != nil {
			err = fmt.Errorf("%w; then the incomplete copy %s could not be removed: %w", err, temp, rerr)
		}
		return pathError(opCopy, src, err)
	}
	return nil
}

// admitCopy refuses places a directory cannot be copied to.
func (b *Bridge) admitCopy(from *rooted.Handle, to *rooted.Place, dst string) error {
	if to.Name == "" {
		return unix.EEXIST
	}
	if err := nameable(to, dst); err != nil {
		return err
	}
	if err := writable(to.Dir.Root); err != nil {
		return err
	}
	if _, err := b.tree.Lstat(to.Dir.FD, to.Name); err != unix.ENOENT {
		if err == nil {
			err = hint(fmt.Errorf("a directory replaces nothing: %w", unix.EEXIST), "choose a new name or remove this one")
		}
		return err
	}
	at, err := b.tree.Location(&to.Dir)
	if err != nil {
		return err
	}
	origin, err := b.tree.Location(from)
	if err != nil {
		return err
	}
	if _, inside := rooted.Below(origin, at); inside {
		return fmt.Errorf("a directory cannot be copied into itself: %w", fsbridge.ErrInvalid)
	}
	return nil
}

// fillDir copies into the temporary directory and gives it its name.
func (b *Bridge) fillDir(ctx context.Context, from *rooted.Handle, to *rooted.Place, temp string) error {
	h, err := b.tree.Child(&to.Dir, temp)
	if err != nil {
		return err
	}
	defer h.Close()
	c := treeCopy{b: b, ctx: ctx, root: h.Stat}
	if c.src, err = b.tree.Ladder(from); err != nil {
		return err
	}
	defer c.src.Close()
	if c.dst, err = b.tree.Ladder(&h); err != nil {
		return err
	}
	defer c.dst.Close()
	if err := c.dir(); err != nil {
		return below(c.src, err)
	}
	defer b.commits.lock(to.Name)()
	if err := b.check(ctx); err != nil {
		return err
	}
	err = rooted.RenameNew(to.Dir.FD, temp, to.Dir.FD, to.Name)
	if err == unix.EINVAL || err == unix.ENOSYS {
		// Without RENAME_NOREPLACE only an empty directory could be replaced.
		err = unix.Renameat(to.Dir.FD, temp, to.Dir.FD, to.Name)
	}
	return err
}

// unguarded is the bridge for cleaning up.
func (b *Bridge) unguarded() *Bridge { return &Bridge{state: b.state, view: true} }

func (b *Bridge) removeTemp(dir *rooted.Handle, name string) error {
	st, err := b.tree.Lstat(dir.FD, name)
	if err == unix.ENOENT {
		return nil
	}
	if err != nil {
		return err
	}
	if !st.IsDir() {
		return unix.Unlinkat(dir.FD, name, 0)
	}
	return b.removeTree(context.Background(), dir, name, true)
}
