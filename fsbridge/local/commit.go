//go:build linux

package local

import (
	"context"
	"time"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/rooted"
	"golang.org/x/sys/unix"
)

// commit gives the prepared file its name.
func (b *Bridge) commit(ctx context.Context, place *rooted.Place, w *writing) error {
	if err := b.dress(place, w); err != nil {
		return err
	}
	if w.opts.Sync {
		if err := unix.Fsync(w.tmp.FD); err != nil {
			return err
		}
	}
	if err := b.name(ctx, place, w); err != nil {
		return err
	}
	if w.opts.Sync {
		return b.syncDir(&place.Dir)
	}
	return nil
}

// dress gives the prepared file its owner, mode and attributes: those of the file it replaces, or
// those of a new one.
func (b *Bridge) dress(place *rooted.Place, w *writing) error {
	mode, exact := w.opts.Mode, false
	switch {
	case place.Exists:
		b.tree.CopyOwner(w.tmp.FD, &place.Child)
		if mode == 0 {
			mode = place.Child.Mode
			if !w.opts.AllowSetID {
				mode &= fsbridge.ModePerm
			}
		}
		exact = true
	case mode == 0 && b.umask != nil:
		mode, exact = 0o666, true
		if w.like != nil {
			mode = w.like.Mode & fsbridge.ModePerm
		}
		mode &^= fsbridge.Mode(*b.umask)
	case mode != 0:
		exact = true
	}
	if exact {
		if err := unix.Fchmod(w.tmp.FD, uint32(mode)); err != nil {
			return err
		}
	}
	if place.Exists {
		b.tree.CopyAttributes(w.tmp.FD, place.Dir.FD, place.Name)
	}
	return nil
}

// name is the moment of a write: before it nothing is changed, after it everything.
func (b *Bridge) name(ctx context.Context, place *rooted.Place, w *writing) error {
	defer b.commits.lock(place.Name)()
	if w.opts.If.Hash != "" {
		held, err := b.hold(ctx, place, w.opts.If.Hash)
		if err != nil {
			return err
		}
		defer rooted.Close(held)
	}
	if err := b.check(ctx); err != nil {
		return err
	}
	if !place.Exists {
		w.result.Created = true
		err := w.tmp.LinkNew(&place.Dir, place.Name)
		switch {
		case err != unix.EEXIST:
			return err
		case w.exclusive:
			return err
		case w.opts.If.Absent:
			return b.conflict(ctx, &place.Dir, place.Name, "")
		}
		// Another writer was first: the last one wins, and keeps what the first one set.
		if err := b.appeared(place, w); err != nil {
			return err
		}
	}
	w.result.Created = false
	return w.tmp.Replace(&place.Dir, place.Name)
}

// appeared takes account of a file that came into being since the place was found.
func (b *Bridge) appeared(place *rooted.Place, w *writing) error {
	st, err := b.tree.Lstat(place.Dir.FD, place.Name)
	switch {
	case err == unix.ENOENT:
		return nil
	case err != nil:
		return err
	case st.Type == fsbridge.TypeSymlink:
		return rooted.ErrBusy
	case !st.IsRegular():
		return &rooted.NotRegularError{Type: st.Type}
	}
	place.Exists, place.Child = true, st
	return b.dress(place, w)
}

// lockPatience bounds the wait for another bridge's lock on a file.
const lockPatience = 2 * time.Second

// hold opens the file at a place, locks it against other bridges and proves that it has the content
// a precondition demands and is still what the name stands for. The lock ends with the descriptor.
// Whoever holds the lock for longer than lockPatience is not waited for: the lock makes lost
// updates between bridges impossible, it is not needed for detecting those of anyone else.
func (b *Bridge) hold(ctx context.Context, place *rooted.Place, want fsbridge.Digest) (fd int, err error) {
	for range rooted.Attempts {
		st, err := b.tree.Lstat(place.Dir.FD, place.Name)
		if err == unix.ENOENT {
			return -1, &fsbridge.ConflictError{Expected: want}
		}
		if err != nil {
			return -1, err
		}
		if !st.IsRegular() {
			return -1, &fsbridge.ConflictError{Expected: want}
		}
		fd, err := b.tree.OpenChild(place.Dir.FD, place.Name, unix.O_RDONLY, &st)
		if rooted.IsBusy(err) {
			continue
		}
		if err != nil {
			return -1, err
		}
		ok, err := b.prove(ctx, place, fd, &st, want)
		if err == nil && ok {
			return fd, nil
		}
		rooted.Close(fd)
		if err != nil {
			return -1, err
		}
	}
	return -1, rooted.ErrBusy
}

// prove reports false when the name stands for another file by now.
func (b *Bridge) prove(ctx context.Context, place *rooted.Place, fd int, st *rooted.Stat, want fsbridge.Digest) (bool, error) {
	if err := lockFile(ctx, fd); err != nil {
		return false, err
	}
	h, err := b.hash(ctx, fd)
	if err != nil {
		return false, err
	}
	now, err := b.tree.Lstat(place.Dir.FD, place.Name)
	if err == unix.ENOENT {
		return false, nil
	}
	if err != nil || !now.Same(st) {
		return false, err
	}
	if h.Digest != want {
		return false, &fsbridge.ConflictError{Current: h.Digest, Expected: want}
	}
	return true, nil
}

// lockFile takes the advisory lock of an open file, waiting a bounded time.
func lockFile(ctx context.Context, fd int) error {
	deadline := time.Now().Add(lockPatience)
	for wait := 100 * time.Microsecond; ; wait = min(2*wait, 20*time.Millisecond) {
		if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != unix.EWOULDBLOCK && err != unix.EINTR {
			return nil // taken, or this file system has no locks
		}
		if time.Now().After(deadline) {
			return nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
	}
}

// conflict reports a precondition that failed, with the present content's hash where there is one.
func (b *Bridge) conflict(ctx context.Context, dir *rooted.Handle, name string, want fsbridge.Digest) error {
	c := &fsbridge.ConflictError{Expected: want}
	st, err := b.tree.Lstat(dir.FD, name)
	if err != nil || !st.IsRegular() {
		return c
	}
	fd, err := b.tree.OpenChild(dir.FD, name, unix.O_RDONLY, &st)
	if err != nil {
		return c
	}
	defer rooted.Close(fd)
	if h, err := b.hash(ctx, fd); err == nil {
		c.Current = h.Digest
	}
	return c
}

// syncDir flushes a directory's entries.
func (b *Bridge) syncDir(dir *rooted.Handle) error {
	fd, err := b.tree.OpenDir(dir)
	if err != nil {
		return err
	}
	defer rooted.Close(fd)
	if err := unix.Fsync(fd); err != unix.EINVAL { // EINVAL: nothing to flush here
		return err
	}
	return nil
}
