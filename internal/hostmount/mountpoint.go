package hostmount

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/workberth/workberth/sandbox"
)

// MakeMountpoints makes what is missing of the places of mounts that lie in a
// directory of this machine, with the account as owner. Who mounts would make them too,
// but follows links on the way, and a link in a workspace may have been put
// there by the last one who worked in it. What is made stays: another sandbox may
// be using it.
func MakeMountpoints(a Account, mounts []Mount) error {
	for _, m := range mounts {
		parent, rest, ok := Above(mounts, m)
		if !ok || parent.Source == "" {
			continue
		}
		if err := makeMountpoint(a, parent, rest, m.File); err != nil {
			return mountpointProblem(m, parent, err)
		}
	}
	return nil
}

// errLinkInTheWay reports an element that is a link.
var errLinkInTheWay = errors.New("a symbolic link is in the way")

// makeMountpoint walks down from the parent's source, element by element and
// without following a link.
func makeMountpoint(a Account, parent Mount, rest string, file bool) error {
	dir, err := unix.Open(parent.Source, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(dir) }()
	names := strings.Split(path.Clean(rest), "/")
	for i, name := range names {
		if file && i == len(names)-1 {
			return makeFile(a, dir, name, parent.ReadOnly)
		}
		next, err := openDir(a, dir, name, parent.ReadOnly)
		if err != nil {
			return err
		}
		_ = unix.Close(dir)
		dir = next
	}
	return nil
}

// openDir opens the directory name in dir and makes it when it is missing.
func openDir(a Account, dir int, name string, readOnly bool) (int, error) {
	const flags = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(dir, name, flags, 0)
	if errors.Is(err, fs.ErrNotExist) {
		if readOnly {
			return -1, unix.EROFS
		}
		err = unix.Mkdirat(dir, name, 0o755)
		made := err == nil
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return -1, err
		}
		if fd, err = unix.Openat(dir, name, flags, 0); err == nil && made && a.Other {
			// The descriptor is of what is there now, be it ours or a replacement:
			// only an empty directory of ours is given away.
			var st unix.Stat_t
			if unix.Fstat(fd, &st) == nil && st.Uid == 0 {
				err = unix.Fchownat(fd, "", a.UID, a.GID, unix.AT_EMPTY_PATH)
			}
		}
	}
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		var st unix.Stat_t
		if unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK {
			err = errLinkInTheWay
		}
	}
	if err != nil {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
		return -1, fmt.Errorf("%q: %w", name, err)
	}
	return fd, nil
}

// makeFile makes the empty file name in dir when there is nothing.
func makeFile(a Account, dir int, name string, readOnly bool) error {
	var st unix.Stat_t
	err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case err == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK:
		return fmt.Errorf("%q: %w", name, errLinkInTheWay)
	case err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR:
		return fmt.Errorf("%q: %w", name, unix.EISDIR)
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%q: %w", name, err)
	case readOnly:
		return fmt.Errorf("%q: %w", name, unix.EROFS)
	}
	fd, err := unix.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	defer unix.Close(fd)
	if a.Other {
		return unix.Fchown(fd, a.UID, a.GID)
	}
	return nil
}

// mountpointProblem says for people what stands in the way of a mount.
func mountpointProblem(m, parent Mount, err error) error {
	p := &sandbox.Problem{
		Field: "binds", What: fmt.Sprintf("mount at %q", m.Path),
		Rule: fmt.Sprintf("its place in %s cannot be made: %v", parent.Path, err),
		Err:  fmt.Errorf("%w: %w", sandbox.ErrRefused, err),
	}
	if m.Source == "" {
		p.Field = "tmpfs"
	}
	switch {
	case errors.Is(err, unix.EROFS) && parent.ReadOnly:
		p.Rule = fmt.Sprintf("it lies in %s, which is read-only, and does not exist there", parent.Path)
		p.Remedy = fmt.Sprintf("make it in %s, or choose a target outside %s", parent.Source, parent.Path)
	case errors.Is(err, errLinkInTheWay):
		p.Remedy = "replace the link by a directory, or choose another target"
	default:
		p.Remedy = fmt.Sprintf("make it in %s, or choose another target", parent.Source)
	}
	return p
}
