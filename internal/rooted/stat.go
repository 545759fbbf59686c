//go:build linux

package rooted

import (
	"time"

	"github.com/workberth/workberth/fsbridge"
	"golang.org/x/sys/unix"
)

// Stat describes a file: what callers see and what tells two states of a file apart.
type Stat struct {
	fsbridge.FileInfo
	// Mount is the kernel's id of the mount the file lies in, zero where it does not tell.
	Mount uint64
	// Change is the time of the last change of the inode, in nanoseconds.
	Change int64
}

// HasMount reports whether Mount is known.
func (s *Stat) HasMount() bool { return s.Mount != 0 }

// Same reports whether two descriptions are of one file.
func (s *Stat) Same(o *Stat) bool { return s.Dev == o.Dev && s.Inode == o.Inode }

// Unchanged reports whether two descriptions are of one file in one state, as far as size and
// times can tell.
func (s *Stat) Unchanged(o *Stat) bool {
	return s.Same(o) && s.Size == o.Size && s.Change == o.Change && s.ModTime.Equal(o.ModTime)
}

// fstat describes the file behind a descriptor.
func (t *Tree) fstat(fd int, s *Stat) error { return t.statAt(fd, "", unix.AT_EMPTY_PATH, s) }

// Fstat describes the file behind a descriptor.
func (t *Tree) Fstat(fd int) (s Stat, err error) {
	err = t.fstat(fd, &s)
	return s, err
}

// Lstat describes one name in a directory without following it.
func (t *Tree) Lstat(dir int, name string) (s Stat, err error) {
	err = t.statAt(dir, name, unix.AT_SYMLINK_NOFOLLOW, &s)
	return s, err
}

func (t *Tree) statAt(dir int, name string, flags int, s *Stat) error {
	flags |= unix.AT_NO_AUTOMOUNT
	if !t.statx {
		var st unix.Stat_t
		if err := retryStat(func() error { return unix.Fstatat(dir, name, &st, flags) }); err != nil {
			return err
		}
		fromStat(s, &st)
		return nil
	}
	var stx unix.Statx_t
	err := retryStat(func() error {
		return unix.Statx(dir, name, flags, unix.STATX_BASIC_STATS|unix.STATX_MNT_ID, &stx)
	})
	if err != nil {
		return err
	}
	s.Type = fileType(uint32(stx.Mode))
	s.Mode = fsbridge.Mode(stx.Mode) & fsbridge.ModeAll
	s.Size = int64(stx.Size)
	s.ModTime = time.Unix(stx.Mtime.Sec, int64(stx.Mtime.Nsec))
	s.UID, s.GID = stx.Uid, stx.Gid
	s.Nlink = uint64(stx.Nlink)
	s.Dev = unix.Mkdev(stx.Dev_major, stx.Dev_minor)
	s.Inode = stx.Ino
	s.Change = stx.Ctime.Sec*1e9 + int64(stx.Ctime.Nsec)
	s.Mount = 0
	if stx.Mask&unix.STATX_MNT_ID != 0 {
		s.Mount = stx.Mnt_id
	}
	return nil
}

func retryStat(f func() error) error {
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}

func fromStat(s *Stat, st *unix.Stat_t) {
	s.Type = fileType(st.Mode)
	s.Mode = fsbridge.Mode(st.Mode) & fsbridge.ModeAll
	s.Size = st.Size
	s.ModTime = time.Unix(st.Mtim.Unix())
	s.UID, s.GID = st.Uid, st.Gid
	s.Nlink = uint64(st.Nlink) //nolint:unconvert // 32 bits on some architectures
	s.Dev = uint64(st.Dev)     //nolint:unconvert // 32 bits on some architectures
	s.Inode = st.Ino
	s.Change = st.Ctim.Nano()
	s.Mount = 0
}

func fileType(mode uint32) fsbridge.FileType {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return fsbridge.TypeRegular
	case unix.S_IFDIR:
		return fsbridge.TypeDir
	case unix.S_IFLNK:
		return fsbridge.TypeSymlink
	case unix.S_IFIFO:
		return fsbridge.TypeFIFO
	case unix.S_IFSOCK:
		return fsbridge.TypeSocket
	case unix.S_IFCHR:
		return fsbridge.TypeChar
	case unix.S_IFBLK:
		return fsbridge.TypeBlock
	}
	return fsbridge.TypeUnknown
}
