//go:build linux

package local

import (
	"context"
	"fmt"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/rooted"
	"golang.org/x/sys/unix"
)

// Rename implements fsbridge.Renamer. A final link is renamed itself. The error names oldPath.
func (b *Bridge) Rename(ctx context.Context, oldPath, newPath string, opts fsbridge.RenameOptions) error {
	if err := b.begin(ctx, opRename, oldPath); err != nil {
		return err
	}
	defer b.end()
	if err := fsbridge.ValidPath(newPath); err != nil {
		return pathError(opRename, newPath, err)
	}
	from, err := b.renameFrom(oldPath)
	if err != nil {
		return pathError(opRename, oldPath, err)
	}
	defer from.Close()
	to, err := b.renameTo(ctx, newPath, &from, opts)
	if err != nil {
		return pathError(opRename, newPath, err)
	}
	defer to.Close()
	defer b.commits.lockTwo(from.Name, to.Name)()
	if err := b.check(ctx); err != nil {
		return pathError(opRename, oldPath, err)
	}
	if opts.NoReplace {
		err = b.renameNew(&from, &to)
	} else {
		err = unix.Renameat(from.Dir.FD, from.Name, to.Dir.FD, to.Name)
	}
	switch {
	case err == unix.EXDEV:
		err = b.move(ctx, &from, &to, opts.NoReplace)
	case err == unix.EEXIST:
		return pathError(opRename, newPath, err)
	}
	return pathError(opRename, oldPath, err)
}

// renameFrom finds what is to be renamed.
func (b *Bridge) renameFrom(path string) (rooted.Place, error) {
	place, err := b.tree.Parent(path, nil)
	if err != nil {
		return rooted.Place{}, err
	}
	if err = nameable(&place, path); err == nil {
		err = b.movable(&place)
	}
	if err == nil {
		place.Child, err = b.tree.Lstat(place.Dir.FD, place.Name)
	}
	if err == nil && place.MustDir && !place.Child.IsDir() {
		err = unix.ENOTDIR
	}
	if err != nil {
		place.Close()
		return rooted.Place{}, err
	}
	return place, nil
}

// renameTo finds the new place.
func (b *Bridge) renameTo(ctx context.Context, path string, from *rooted.Place, opts fsbridge.RenameOptions) (rooted.Place, error) {
	var mk rooted.Maker
	if opts.Parents {
		mk = b.maker(ctx, 0, false)
	}
	place, err := b.tree.Parent(path, mk)
	if err != nil {
		return rooted.Place{}, err
	}
	if err = nameable(&place, path); err == nil {
		err = b.movable(&place)
	}
	if err == nil && place.MustDir && !from.Child.IsDir() {
		err = unix.ENOTDIR
	}
	if err != nil {
		place.Close()
		return rooted.Place{}, err
	}
	return place, nil
}

// renameNew renames to a name that must be free.
func (b *Bridge) renameNew(from, to *rooted.Place) error {
	err := rooted.RenameNew(from.Dir.FD, from.Name, to.Dir.FD, to.Name)
	if err != unix.EINVAL && err != unix.ENOSYS {
		return err
	}
	// A file system without RENAME_NOREPLACE, or a directory into itself, which fails again.
	if from.Child.IsDir() {
		// Between the look and the rename only an empty directory could be lost.
		if _, err := b.tree.Lstat(to.Dir.FD, to.Name); err == nil {
			return unix.EEXIST
		}
		return unix.Renameat(from.Dir.FD, from.Name, to.Dir.FD, to.Name)
	}
	if err := unix.Linkat(from.Dir.FD, from.Name, to.Dir.FD, to.Name, 0); err != nil {
		return err
	}
	return unix.Unlinkat(from.Dir.FD, from.Name, 0)
}

// move brings a regular file to another file system: a complete copy gets the new name, then the
// old name is removed if it still stands for the very file, in the very state, that was copied.
// Both happen relative to handles that were found inside the mounts, so that no exchange of a
// directory for a link can lead elsewhere.
func (b *Bridge) move(ctx context.Context, from, to *rooted.Place, noReplace bool) error {
	if !from.Child.IsRegular() {
		what := "a " + string(from.Child.Type)
		return hint(&both{fsbridge.ErrCrossDevice, unix.EXDEV}, "%s cannot be renamed to another file system; copy and remove it", what)
	}
	fd, err := b.tree.OpenChild(from.Dir.FD, from.Name, unix.O_RDONLY, &from.Child)
	if err != nil {
		if rooted.IsBusy(err) {
			err = rooted.ErrBusy
		}
		return err
	}
	defer rooted.Close(fd)
	before, err := b.tree.Fstat(fd)
	if err != nil {
		return err
	}
	if err := b.free(to, noReplace); err != nil {
		return err
	}
	tmp, err := b.tree.NewTemp(&to.Dir, uint32(before.Mode&fsbridge.ModePerm), b.names)
	if err != nil {
		return err
	}
	defer tmp.Discard()
	if _, err := (fileContent{fd}).fill(ctx, b, tmp.FD); err != nil {
		return err
	}
	if err := b.dressAs(tmp, from, &before); err != nil {
		return err
	}
	if err := b.stillThere(from, &before); err != nil {
		return err
	}
	if err := b.check(ctx); err != nil {
		return err
	}
	if noReplace {
		err = tmp.LinkNew(&to.Dir, to.Name)
	} else {
		err = tmp.Replace(&to.Dir, to.Name)
	}
	if err != nil {
		return err
	}
	if err := b.stillThere(from, &before); err != nil {
		return hint(err, "the new name has a complete copy, the old name was left alone")
	}
	return unix.Unlinkat(from.Dir.FD, from.Name, 0)
}

// free refuses new names that a rename could not take either.
func (b *Bridge) free(to *rooted.Place, noReplace bool) error {
	st, err := b.tree.Lstat(to.Dir.FD, to.Name)
	switch {
	case err == unix.ENOENT:
		return nil
	case err != nil:
		return err
	case noReplace:
		return unix.EEXIST
	case st.IsDir():
		return unix.EISDIR
	}
	return nil
}

// dressAs gives a copy everything that a rename would have kept, set-id bits excepted.
func (b *Bridge) dressAs(tmp *rooted.Temp, from *rooted.Place, as *rooted.Stat) error {
	b.tree.CopyOwner(tmp.FD, as)
	if err := unix.Fchmod(tmp.FD, uint32(as.Mode&fsbridge.ModePerm)); err != nil {
		return err
	}
	b.tree.CopyAttributes(tmp.FD, from.Dir.FD, from.Name)
	b.tree.CopyModTime(tmp.FD, as)
	return nil
}

// stillThere refuses to go on when a name no longer stands for a file in a known state.
func (b *Bridge) stillThere(place *rooted.Place, want *rooted.Stat) error {
	now, err := b.tree.Lstat(place.Dir.FD, place.Name)
	if err != nil {
		return err
	}
	if !now.Unchanged(want) {
		return fmt.Errorf("the file was changed while it was moved: %w", fsbridge.ErrConflict)
	}
	return nil
}
