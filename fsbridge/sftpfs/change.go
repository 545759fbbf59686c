package sftpfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"syscall"

	"github.com/pkg/sftp"

	"github.com/workberth/workberth/fsbridge"
)

// Mkdir makes a directory.
func (b *Bridge) Mkdir(ctx context.Context, p string, opts fsbridge.MkdirOptions) error {
	c := b.call(ctx)
	return c.fail("mkdir", p, func() error {
		if opts.Mode&^fsbridge.ModePerm != 0 {
			return fmt.Errorf("mode %#o has more than nine bits: %w", opts.Mode, fsbridge.ErrInvalid)
		}
		if err := c.begin(p); err != nil {
			return err
		}
		pl, err := c.resolve(p, opts.Parents, opts.Parents)
		if err != nil {
			return err
		}
		if pl.exists {
			if opts.Parents && pl.info.IsDir() {
				return nil
			}
			return fs.ErrExist
		}
		if err := pl.changeable(); err != nil {
			return err
		}
		c.decided.Store(true)
		dir := strings.TrimSuffix(pl.abs, "/"+strings.Join(pl.missing, "/"))
		for _, e := range pl.missing {
			dir = dir + "/" + e
			if err := c.makeDir(dir, opts.Mode, opts.Parents); err != nil {
				return err
			}
		}
		return nil
	}())
}

// movable refuses to take away mount points and files of read-only mounts.
func (b *Bridge) movable(pl place) error {
	if err := pl.changeable(); err != nil {
		return err
	}
	if b.opts.Mounts.Holds(pl.abs) {
		return fmt.Errorf("%s is a mount point or holds one: %w", pl.abs, syscall.EBUSY)
	}
	return nil
}

// Remove removes a file, a link or a directory. Recursively it stops where another file system is mounted,
// if the server can tell.
func (b *Bridge) Remove(ctx context.Context, p string, opts fsbridge.RemoveOptions) error {
	c := b.call(ctx)
	err := c.remove(p, opts)
	if opts.IgnoreMissing && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return c.fail("remove", p, err)
}

func (c *call) remove(p string, opts fsbridge.RemoveOptions) error {
	if err := opts.If.Check(); err != nil {
		return err
	}
	if err := c.begin(p); err != nil {
		return err
	}
	pl, err := c.existing(p, false)
	if err != nil {
		return err
	}
	if err := c.b.movable(pl); err != nil {
		return err
	}
	release, err := c.hold(pl.abs)
	if err != nil {
		return err
	}
	defer release()
	if opts.If != (fsbridge.Precondition{}) {
		if err := regular(pl.info); err != nil {
			return err
		}
		if err := c.holds(pl.abs, opts.If); err != nil {
			return err
		}
	}
	switch {
	case !pl.info.IsDir():
		return c.removeFile(pl.abs)
	case !opts.Recursive:
		return c.removeDir(pl.abs)
	}
	return c.removeTree(pl.abs)
}

// removeFile removes what is no directory.
func (c *call) removeFile(abs string) error {
	return bare(change(c, func() error { return c.b.client.Remove(abs) }))
}

// removeDir removes an empty directory.
func (c *call) removeDir(abs string) error {
	err := bare(change(c, func() error { return c.b.client.RemoveDirectory(abs) }))
	if isFailure(err) {
		if list, e := c.list(abs); e == nil && len(list) > 0 {
			return syscall.ENOTEMPTY
		}
	}
	return err
}

// bare takes off the layer that names the path as the server knows it.
func bare(err error) error {
	if pe, ok := err.(*fs.PathError); ok { //nolint:errorlint // one layer, the client's own
		return pe.Err
	}
	return err
}

// device tells file systems apart; known is false where the server cannot.
func (c *call) device(dir string) (id uint64, known bool, err error) {
	if !c.b.has(extStatVFS) {
		return 0, false, nil
	}
	st, err := ask(c, func() (*sftp.StatVFS, error) { return something(c.b.client.StatVFS(dir)) })
	if isFailure(err) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	return st.Fsid, true, nil
}

// removeTree removes a directory with its content, which lies in the directory above. What is gone by
// then is no fault.
func (c *call) removeTree(abs string) error {
	if len(abs) > fsbridge.MaxPath {
		return &fsbridge.LimitError{What: "the path of a directory below", Limit: fsbridge.MaxPath}
	}
	above, known1, err1 := c.device(path.Dir(abs))
	here, known2, err2 := c.device(abs)
	if err := errors.Join(err1, err2); err != nil {
		return gone(err)
	}
	if known1 && known2 && here != above {
		return fmt.Errorf("%s is a mount point: %w", abs, syscall.EBUSY)
	}
	list, err := c.list(abs)
	if err != nil {
		return gone(err)
	}
	for _, i := range list {
		child := path.Join(abs, i.Name)
		if i.IsDir() {
			err = c.removeTree(child)
		} else {
			err = gone(c.removeFile(child))
		}
		if err != nil {
			return err
		}
	}
	return gone(c.removeDir(abs))
}

// gone makes a missing file a success.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Chmod sets permission bits.
func (b *Bridge) Chmod(ctx context.Context, p string, mode fsbridge.Mode) error {
	c := b.call(ctx)
	return c.fail("chmod", p, func() error {
		if mode&^fsbridge.ModePerm != 0 {
			return fmt.Errorf("mode %#o has more than nine bits: %w", mode, fsbridge.ErrInvalid)
		}
		if err := c.begin(p); err != nil {
			return err
		}
		pl, err := c.existing(p, true)
		if err != nil {
			return err
		}
		if err := pl.changeable(); err != nil {
			return err
		}
		return change(c, func() error { return c.b.client.Chmod(pl.abs, fileMode(mode)) })
	}())
}
