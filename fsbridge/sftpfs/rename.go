package sftpfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"syscall"

	"github.com/workberth/workberth/fsbridge"
)

// Rename renames a file, a link or a directory within one file system. Across, it is ErrCrossDevice for
// files too: SFTP cannot tell whether the source is still the file that was copied.
func (b *Bridge) Rename(ctx context.Context, oldPath, newPath string, opts fsbridge.RenameOptions) error {
	c := b.call(ctx)
	if err := c.begin(oldPath); err != nil {
		return c.fail("rename", oldPath, err)
	}
	from, err := c.existing(oldPath, false)
	if err == nil {
		err = b.movable(from)
	}
	if err != nil {
		return c.fail("rename", oldPath, err)
	}
	return c.fail("rename", newPath, func() error {
		if err := c.begin(newPath); err != nil {
			return err
		}
		to, err := c.resolve(newPath, false, opts.Parents)
		if err != nil {
			return err
		}
		if err := b.movable(to); err != nil {
			return err
		}
		same, err := c.replaceable(from, to, opts.NoReplace)
		if err != nil || same {
			return err
		}
		if to.exists && !b.has(extPosixRename) {
			return lacks(extPosixRename, "replace a file atomically")
		}
		if err := c.makeParents(to); err != nil {
			return err
		}
		release, err := c.hold(from.abs, to.abs)
		if err != nil {
			return err
		}
		defer release()
		if opts.NoReplace {
			err = c.renameFree(from.abs, to.abs)
		} else {
			err = c.rename(from.abs, to.abs, to.exists)
		}
		return c.across(from, to, err)
	}())
}

// renameFree renames to a name that must be free. The plain request of the protocol refuses one that is
// taken, which it says without a reason.
func (c *call) renameFree(from, to string) error {
	// Some servers replace all the same.
	if _, err := c.lstat(to); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = fs.ErrExist
		}
		return err
	}
	err := change(c, func() error { return c.b.client.Rename(from, to) })
	if isFailure(err) {
		if _, e := c.lstat(to); e == nil {
			return fs.ErrExist
		}
	}
	return c.full(path.Dir(to), err)
}

// across tells another file system from other refusals: SFTP has no code for it.
func (c *call) across(from, to place, err error) error {
	if !isFailure(err) {
		return err
	}
	a, known1, err1 := c.device(path.Dir(from.abs))
	b, known2, err2 := c.device(path.Dir(to.abs))
	if errors.Join(err1, err2) == nil && known1 && known2 && a != b {
		return fsbridge.ErrCrossDevice
	}
	return err
}

// replaceable applies the rules of rename(2), so that their errors have a name. same means that there is
// nothing to do.
func (c *call) replaceable(from, to place, noReplace bool) (same bool, err error) {
	dir := from.info.IsDir()
	switch {
	case to.exists && noReplace:
		return false, fs.ErrExist
	case from.abs == to.abs:
		return true, nil
	case dir && strings.HasPrefix(to.abs, from.abs+"/"):
		return false, fmt.Errorf("a directory cannot be moved into itself: %w", fsbridge.ErrInvalid)
	case !to.exists && !dir && to.dirOnly:
		return false, syscall.ENOTDIR
	case !to.exists:
		return false, nil
	case dir && !to.info.IsDir():
		return false, syscall.ENOTDIR
	case !dir && to.info.IsDir():
		return false, syscall.EISDIR
	case dir:
		list, err := c.list(to.abs)
		if err == nil && len(list) > 0 {
			err = syscall.ENOTEMPTY
		}
		return false, err
	}
	return false, nil
}

// Symlink makes a link.
func (b *Bridge) Symlink(ctx context.Context, target, p string, opts fsbridge.SymlinkOptions) error {
	c := b.call(ctx)
	return c.fail("symlink", p, func() error {
		if err := c.begin(p); err != nil {
			return err
		}
		if err := fsbridge.ValidPath(target); err != nil {
			return fmt.Errorf("target: %w", err)
		}
		pl, err := c.resolve(p, false, false)
		if err != nil {
			return err
		}
		if err := pl.changeable(); err != nil {
			return err
		}
		if err := c.leads(path.Dir(pl.abs), pl.mount, target); err != nil {
			return fmt.Errorf("target: %w", err)
		}
		if pl.exists && (!opts.Replace || pl.info.IsDir()) {
			return fs.ErrExist
		}
		if !pl.exists {
			return c.makeLink(target, pl.abs, change)
		}
		if !b.has(extPosixRename) {
			return lacks(extPosixRename, "replace a file atomically")
		}
		t := temporary{abs: path.Join(path.Dir(pl.abs), tempName())}
		err = c.makeLink(target, t.abs, prepare)
		if err == nil {
			err = c.rename(t.abs, pl.abs, true)
		}
		if err != nil {
			return also(err, c.discard(t))
		}
		return nil
	}())
}

// makeLink makes a link with one of the two ways to send, and looks at the result: some servers take the
// two paths in the order of the protocol's text and not in that of OpenSSH, which everybody else takes.
func (c *call) makeLink(target, abs string, by func(*call, func() error) error) error {
	err := by(c, func() error { return c.b.client.Symlink(target, abs) })
	if isFailure(err) {
		if _, e := c.lstat(abs); e == nil {
			return fs.ErrExist
		}
		return c.full(path.Dir(abs), err)
	}
	if err != nil {
		return err
	}
	if got, err := c.readlink(abs); err != nil || got != target {
		return fmt.Errorf("the server takes the paths of a link in another order than OpenSSH, and may have made a link at %s: %w",
			fsbridge.DisplayPath(target), fsbridge.ErrOutcomeUnknown)
	}
	return nil
}

// leads demands that target, seen from the directory dir, stays inside the mounts. It need not exist.
func (c *call) leads(dir string, m fsbridge.Mount, target string) error {
	w := &walker{c: c, mount: m, cur: dir}
	lexical := target
	var todo []string
	mounts := c.b.opts.Mounts
	if strings.HasPrefix(target, "/") {
		m, rest, ok := mounts.Find(target)
		if !ok || m.Kind == fsbridge.MountSystem {
			return fsbridge.ErrOutsideRoot
		}
		w.mount, w.cur, todo = m, m.Path, strings.Split(rest, "/")
	} else {
		lexical, todo = dir+"/"+target, strings.Split(target, "/")
	}
	_, err := w.run(todo, true, true)
	switch {
	case errors.Is(err, fsbridge.ErrOutsideRoot):
		return err
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ELOOP), errors.Is(err, fs.ErrPermission):
		// It leads nowhere now; what its text says must still stay inside.
		if m, _, ok := mounts.Find(path.Clean(lexical)); !ok || m.Kind == fsbridge.MountSystem {
			return fsbridge.ErrOutsideRoot
		}
		return nil
	}
	return err
}
