package aferofs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"syscall"

	"github.com/spf13/afero"

	"github.com/workberth/workberth/fsbridge"
)

// makeParents makes the missing directories above the place. b.mu is held.
func (b *Bridge) makeParents(ctx context.Context, pl place) error {
	if len(pl.missing) == 0 {
		return nil
	}
	return b.makeDirs(ctx, path.Dir(pl.abs), len(pl.missing)-1, 0o777&^*b.opts.Umask)
}

// makeDirs makes the last n elements of the directory dir, those that do not exist yet, and
// demands that everything is a directory. b.mu is held.
func (b *Bridge) makeDirs(ctx context.Context, dir string, n int, mode fsbridge.Mode) error {
	if n == 0 {
		return b.isDir(dir)
	}
	if err := b.makeDirs(ctx, path.Dir(dir), n-1, mode); err != nil {
		return err
	}
	err := b.isDir(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return b.makeDir(ctx, dir, mode)
}

func (b *Bridge) makeDir(ctx context.Context, dir string, mode fsbridge.Mode) error {
	if err := b.step(ctx); err != nil {
		return err
	}
	if err := b.fs.Mkdir(dir, fileMode(mode)); err != nil {
		return err
	}
	return b.fs.Chmod(dir, fileMode(mode))
}

// Mkdir makes a directory.
func (b *Bridge) Mkdir(ctx context.Context, p string, opts fsbridge.MkdirOptions) error {
	return fail("mkdir", p, func() error {
		mode := opts.Mode
		if mode&^fsbridge.ModePerm != 0 {
			return fmt.Errorf("mode %#o has more than nine bits: %w", mode, fsbridge.ErrInvalid)
		}
		if mode == 0 {
			mode = 0o777 &^ *b.opts.Umask
		}
		if err := b.begin(ctx, p); err != nil {
			return err
		}
		pl, err := b.resolve(p, opts.Parents, opts.Parents)
		if err != nil {
			return err
		}
		if pl.info != nil {
			if opts.Parents && pl.info.IsDir() {
				return nil
			}
			return fs.ErrExist
		}
		if err := pl.changeable(); err != nil {
			return err
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if opts.Parents {
			return b.makeDirs(ctx, pl.abs, len(pl.missing), mode)
		}
		if err := b.isDir(path.Dir(pl.abs)); err != nil {
			return err
		}
		return b.makeDir(ctx, pl.abs, mode)
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

// Remove removes a file, a link or a directory.
func (b *Bridge) Remove(ctx context.Context, p string, opts fsbridge.RemoveOptions) error {
	err := func() error {
		if err := opts.If.Check(); err != nil {
			return err
		}
		if err := b.begin(ctx, p); err != nil {
			return err
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		pl, err := b.existing(p, false)
		if err != nil {
			return err
		}
		if err := b.movable(pl); err != nil {
			return err
		}
		if opts.If != (fsbridge.Precondition{}) {
			if err := regular(pl.info); err != nil {
				return err
			}
			if err := b.holds(ctx, pl.abs, opts.If); err != nil {
				return err
			}
		}
		if err := b.step(ctx); err != nil {
			return err
		}
		if opts.Recursive && pl.info.IsDir() {
			return b.fs.RemoveAll(pl.abs)
		}
		if pl.info.IsDir() {
			if err := b.empty(pl.abs); err != nil {
				return err
			}
		}
		return b.fs.Remove(pl.abs)
	}()
	if opts.IgnoreMissing && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fail("remove", p, err)
}

// empty demands an empty directory: some file systems remove full ones and lose what they hold.
func (b *Bridge) empty(p string) error {
	l, err := b.entries(p)
	if err == nil && len(l) > 0 {
		err = syscall.ENOTEMPTY
	}
	return err
}

// Rename renames a file, a link or a directory.
func (b *Bridge) Rename(ctx context.Context, oldPath, newPath string, opts fsbridge.RenameOptions) error {
	if !b.opts.Private {
		return fail("rename", oldPath, &fsbridge.UnsupportedError{Capability: fsbridge.CapRename})
	}
	if err := errors.Join(b.begin(ctx, oldPath)); err != nil {
		return fail("rename", oldPath, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	from, err := b.existing(oldPath, false)
	if err == nil {
		err = b.movable(from)
	}
	if err != nil {
		return fail("rename", oldPath, err)
	}
	return fail("rename", newPath, func() error {
		if err := b.begin(ctx, newPath); err != nil {
			return err
		}
		to, err := b.resolve(newPath, false, opts.Parents)
		if err != nil {
			return err
		}
		if err := b.movable(to); err != nil {
			return err
		}
		same, err := b.replaceable(from, to, opts.NoReplace)
		if err != nil || same {
			return err
		}
		if err := b.makeParents(ctx, to); err != nil {
			return err
		}
		if err := b.step(ctx); err != nil {
			return err
		}
		if to.info != nil && to.info.IsDir() { // empty; not every Fs replaces it
			if err := b.fs.Remove(to.abs); err != nil {
				return err
			}
		}
		err = b.fs.Rename(from.abs, to.abs)
		if errors.Is(err, syscall.EXDEV) {
			return b.moveAcross(ctx, from, to)
		}
		return err
	}())
}

// replaceable applies the rules of rename(2), which not every Fs keeps. same means that there is
// nothing to do.
func (b *Bridge) replaceable(from, to place, noReplace bool) (same bool, err error) {
	dir := from.info.IsDir()
	switch {
	case to.info != nil && noReplace:
		return false, fs.ErrExist
	case from.abs == to.abs:
		return true, nil
	case dir && strings.HasPrefix(to.abs, from.abs+"/"):
		return false, fmt.Errorf("a directory cannot be moved into itself: %w", fsbridge.ErrInvalid)
	case to.info == nil && !dir && to.dirOnly:
		return false, syscall.ENOTDIR
	case to.info == nil:
		return false, nil
	case dir && !to.info.IsDir():
		return false, syscall.ENOTDIR
	case !dir && to.info.IsDir():
		return false, syscall.EISDIR
	case dir:
		return false, b.empty(to.abs)
	}
	return false, nil
}

// moveAcross moves a regular file between file systems below the Fs. b.mu is held.
func (b *Bridge) moveAcross(ctx context.Context, from, to place) error {
	if from.info.IsDir() {
		return fsbridge.ErrCrossDevice
	}
	t, mode, err := b.duplicate(ctx, from, path.Dir(to.abs))
	if err != nil {
		return err
	}
	if _, err := b.commit(ctx, to.abs, t, fsbridge.WriteOptions{Mode: mode, AllowSetID: true}); err != nil {
		return errors.Join(err, b.fs.Remove(t.abs))
	}
	return b.fs.Remove(from.abs)
}

// Chmod sets permission bits.
func (b *Bridge) Chmod(ctx context.Context, p string, mode fsbridge.Mode) error {
	return fail("chmod", p, func() error {
		if mode&^fsbridge.ModePerm != 0 {
			return fmt.Errorf("mode %#o has more than nine bits: %w", mode, fsbridge.ErrInvalid)
		}
		if err := b.begin(ctx, p); err != nil {
			return err
		}
		pl, err := b.existing(p, true)
		if err != nil {
			return err
		}
		if err := pl.changeable(); err != nil {
			return err
		}
		if err := b.step(ctx); err != nil {
			return err
		}
		return b.fs.Chmod(pl.abs, fileMode(mode))
	}())
}

// Symlink makes a link.
func (b *Bridge) Symlink(ctx context.Context, target, p string, opts fsbridge.SymlinkOptions) error {
	return fail("symlink", p, func() error {
		l, ok := b.fs.(afero.Linker)
		if !ok || !b.links {
			return &fsbridge.UnsupportedError{Capability: fsbridge.CapSymlink}
		}
		if err := b.begin(ctx, p); err != nil {
			return err
		}
		if err := fsbridge.ValidPath(target); err != nil {
			return fmt.Errorf("target: %w", err)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		pl, err := b.resolve(p, false, false)
		if err != nil {
			return err
		}
		if err := pl.changeable(); err != nil {
			return err
		}
		if err := b.leads(path.Dir(pl.abs), pl.mount, target); err != nil {
			return fmt.Errorf("target: %w", err)
		}
		if pl.info != nil && (!opts.Replace || pl.info.IsDir()) {
			return fs.ErrExist
		}
		if err := b.step(ctx); err != nil {
			return err
		}
		if pl.info == nil {
			return l.SymlinkIfPossible(target, pl.abs)
		}
		tmp := path.Join(path.Dir(pl.abs), b.tempName())
		if err := l.SymlinkIfPossible(target, tmp); err != nil {
			return err
		}
		if err := b.fs.Rename(tmp, pl.abs); err != nil {
			return errors.Join(err, b.fs.Remove(tmp))
		}
		return nil
	}())
}

// leads demands that target, seen from the directory dir, stays inside the mounts. It need not
// exist.
func (b *Bridge) leads(dir string, m fsbridge.Mount, target string) error {
	w := &walker{b: b, mount: m, cur: dir, links: 0}
	lexical := target
	var todo []string
	if strings.HasPrefix(target, "/") {
		m, rest, ok := b.opts.Mounts.Find(target)
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
	case err != nil: // it leads nowhere now; what its text says must still stay inside
		if m, _, ok := b.opts.Mounts.Find(path.Clean(lexical)); !ok || m.Kind == fsbridge.MountSystem {
			return fsbridge.ErrOutsideRoot
		}
	}
	return nil
}
