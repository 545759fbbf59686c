//go:build linux

package local

import (
	"context"
	"fmt"
	"io"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/rooted"
	"golang.org/x/sys/unix"
)

// treeCopy copies the content of one directory to another, new one, by handles on both sides.
type treeCopy struct {
	b        *Bridge
	ctx      context.Context // lives for one call
	src, dst *rooted.Ladder
	root     rooted.Stat // the new directory, in case it is met in the original
}

// dir copies the content of the lowest directory, and its mode in the end, so that a directory
// without write permission can be filled.
func (c *treeCopy) dir() error {
	names, err := c.b.entryNames(c.ctx, c.src.FD())
	if err != nil {
		return err
	}
	for i, name := range names {
		if i%checkEvery == checkEvery-1 {
			if err := c.b.check(c.ctx); err != nil {
				return err
			}
		}
		if err := c.entry(name); err != nil {
			return err
		}
	}
	return unix.Fchmod(c.dst.FD(), uint32(c.mode()))
}

// fillMode is what a directory is made with: filling it needs the owner's permissions.
func fillMode(original fsbridge.Mode) uint32 { return uint32(original&fsbridge.ModePerm | 0o700) }

// mode is what the lowest new directory is to have in the end: the mode of the original less the
// umask, and the set-id bit of its parent.
func (c *treeCopy) mode() fsbridge.Mode {
	original, made := c.src.Stat().Mode&fsbridge.ModePerm, c.dst.Stat().Mode
	if c.b.umask != nil {
		return original&^fsbridge.Mode(*c.b.umask) | made&fsbridge.ModeSetGID
	}
	return made &^ (0o700 &^ original)
}

func (c *treeCopy) entry(name string) error {
	st, err := c.b.tree.Lstat(c.src.FD(), name)
	if err == unix.ENOENT {
		return nil // removed since it was listed
	}
	if err != nil {
		return err
	}
	switch st.Type {
	case fsbridge.TypeDir:
		if st.Same(&c.root) {
			return fmt.Errorf("the directory is copied into itself: %w", fsbridge.ErrInvalid)
		}
		return c.down(name)
	case fsbridge.TypeRegular:
		return named(name, c.file(name, &st))
	case fsbridge.TypeSymlink:
		return named(name, c.link(name))
	}
	return named(name, &rooted.NotRegularError{Type: st.Type})
}

// named tells which entry an error is about.
func named(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fsbridge.DisplayPath(name), err)
}

func (c *treeCopy) down(name string) error {
	if err := c.src.Down(name); err != nil {
		return named(name, err)
	}
	if err := unix.Mkdirat(c.dst.FD(), name, fillMode(c.src.Stat().Mode)); err != nil {
		return err
	}
	if err := c.dst.Down(name); err != nil {
		return err
	}
	if err := c.dir(); err != nil {
		return err
	}
	if err := c.dst.Up(); err != nil {
		return err
	}
	return c.src.Up()
}

func (c *treeCopy) file(name string, st *rooted.Stat) error {
	from, err := c.b.tree.OpenChild(c.src.FD(), name, unix.O_RDONLY, st)
	if err != nil {
		if rooted.IsBusy(err) {
			err = rooted.ErrBusy
		}
		return err
	}
	defer rooted.Close(from)
	to, err := rooted.CreateChild(c.dst.FD(), name, uint32(st.Mode&fsbridge.ModePerm))
	if err != nil {
		return err
	}
	defer rooted.Close(to)
	if _, err := (fileContent{from}).fill(c.ctx, c.b, to); err != nil {
		return err
	}
	if c.b.umask == nil {
		return nil
	}
	return unix.Fchmod(to, uint32(st.Mode&fsbridge.ModePerm)&^*c.b.umask)
}

// link copies a link as it is, if it stays inside the mounts at its new place too.
func (c *treeCopy) link(name string) error {
	text, err := rooted.Readlink(c.src.FD(), name)
	if err != nil {
		return err
	}
	dir := c.dst.Handle()
	if err := c.b.tree.Stays(&dir, name, text); err != nil {
		return err
	}
	return unix.Symlinkat(text, dir.FD, name)
}

// entryNames reads the names in an open directory, in the order of the file system, without those
// of our own temporary files.
func (b *Bridge) entryNames(ctx context.Context, fd int) ([]string, error) {
	if err := b.check(ctx); err != nil {
		return nil, err
	}
	if _, err := unix.Seek(fd, 0, io.SeekStart); err != nil {
		return nil, err
	}
	buf := b.tree.Buffer()
	defer b.tree.Release(buf)
	var names []string
	for d := rooted.ReadDir(fd, *buf); ; {
		e, err := d.Next()
		if err == io.EOF {
			return names, nil
		}
		if err != nil {
			return nil, err
		}
		if len(names)%checkEvery == checkEvery-1 {
			if err := b.check(ctx); err != nil {
				return nil, err
			}
		}
		if !b.names.Ours(e.Name) {
			names = append(names, e.Name)
		}
	}
}
