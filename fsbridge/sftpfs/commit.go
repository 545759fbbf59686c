package sftpfs

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"syscall"

	"github.com/pkg/sftp"

	"github.com/workberth/workberth/fsbridge"
)

// commit gives the temporary file its name.
func (c *call) commit(abs string, t temporary, opts fsbridge.WriteOptions) (created bool, err error) {
	release, err := c.hold(abs)
	if err != nil {
		return false, err
	}
	defer release()
	if err := c.holds(abs, opts.If); err != nil {
		return false, err
	}
	old, err := c.lstat(abs)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		created = true
	case err != nil:
		return false, err
	default:
		if err := regular(old); err != nil {
			return false, err
		}
	}
	if opts.If.Absent && c.b.has(extHardlink) {
		err := c.link(t, abs)
		if errors.Is(err, fs.ErrExist) {
			current, _, err := c.current(abs)
			if err != nil {
				return false, err
			}
			return false, &fsbridge.ConflictError{Current: current}
		}
		return err == nil, err
	}
	return created, c.rename(t.abs, abs, !created)
}

// rename gives a file a new name. With replace one that exists there is atomically replaced; without,
// a server that keeps to the protocol refuses when the name is taken meanwhile.
func (c *call) rename(from, to string, replace bool) error {
	if c.b.has(extPosixRename) {
		return c.full(path.Dir(to), change(c, func() error { return c.b.client.PosixRename(from, to) }))
	}
	if replace {
		return lacks(extPosixRename, "replace a file atomically")
	}
	err := change(c, func() error { return c.b.client.Rename(from, to) })
	if isFailure(err) {
		if _, e := c.lstat(to); e == nil {
			return lacks(extPosixRename, "replace the file that has appeared meanwhile")
		}
	}
	return c.full(path.Dir(to), err)
}

// link gives the temporary file a name that must be free: fs.ErrExist when it is not, ErrUnsupported
// where the file system has no hard links. The temporary name is then taken away.
func (c *call) link(t temporary, abs string) error {
	err := change(c, func() error { return c.b.client.Link(t.abs, abs) })
	if isFailure(err) || errors.Is(err, fs.ErrPermission) {
		if _, e := c.lstat(abs); e == nil {
			return fs.ErrExist
		}
		if err := c.full(path.Dir(abs), err); errors.Is(err, syscall.ENOSPC) {
			return err
		}
		return fmt.Errorf("the file system has no hard links, without which a file cannot be created as a whole: %w",
			fsbridge.ErrUnsupported)
	}
	if err != nil {
		return err
	}
	_ = c.discard(t) // the new name holds the content now, whatever becomes of the old one
	return nil
}

// full tells a full file system, at the directory dir, from other refusals: SFTP has no code for it.
func (c *call) full(dir string, err error) error {
	if !isFailure(err) || !c.b.has(extStatVFS) {
		return err
	}
	st, e := ask(c, func() (*sftp.StatVFS, error) { return something(c.b.client.StatVFS(dir)) })
	if e != nil {
		return err
	}
	if st.Frsize == 0 {
		st.Frsize = st.Bsize
	}
	space := st.Bavail < (chunk+max(st.Frsize, 1)-1)/max(st.Frsize, 1)
	nodes := st.Files > 0 && st.Favail == 0
	if space || nodes {
		return fmt.Errorf("%w (the server refuses, and its file system is full)", syscall.ENOSPC)
	}
	return err
}

// makeParents makes the missing directories above the place.
func (c *call) makeParents(pl place) error {
	if len(pl.missing) < 2 {
		return nil
	}
	dir := strings.TrimSuffix(pl.abs, "/"+strings.Join(pl.missing, "/"))
	for _, e := range pl.missing[:len(pl.missing)-1] {
		dir = dir + "/" + e
		if err := c.makeDir(dir, 0, true); err != nil {
			return err
		}
	}
	return nil
}

// makeDir makes one directory. With accept an existing one will do. Mode zero leaves the server's own.
func (c *call) makeDir(dir string, mode fsbridge.Mode, accept bool) error {
	err := prepare(c, func() error { return c.b.client.Mkdir(dir) })
	if isFailure(err) {
		// Somebody else may have made it meanwhile.
		if i, e := c.lstat(dir); e == nil {
			switch {
			case !accept:
				return fs.ErrExist
			case i.IsDir():
				return nil
			default:
				return syscall.ENOTDIR
			}
		}
		return c.full(path.Dir(dir), err)
	}
	if err != nil || mode == 0 {
		return err
	}
	return prepare(c, func() error { return c.b.client.Chmod(dir, fileMode(mode)) })
}
