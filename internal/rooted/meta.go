//go:build linux

package rooted

import (
	"strings"

	"golang.org/x/sys/unix"
)

// CopyOwner gives the open file fd the owner and group of from, as far as the process may: both,
// or the group alone, or nothing.
func (t *Tree) CopyOwner(fd int, from *Stat) {
	st, err := t.Fstat(fd)
	if err != nil || st.UID == from.UID && st.GID == from.GID {
		return
	}
	if unix.Fchown(fd, int(from.UID), int(from.GID)) != nil && st.GID != from.GID {
		_ = unix.Fchown(fd, -1, int(from.GID))
	}
}

// CopyAttributes gives the open file fd the user attributes and the access list of the file name in
// a directory, as far as the process may and the file system can. A link is not followed.
func (t *Tree) CopyAttributes(fd, dir int, name string) {
	if t.proc == nil {
		return
	}
	if n, err := unix.Llistxattr(t.proc.name(dir)+"/"+name, nil); err != nil || n == 0 {
		return // as for nearly every file
	}
	h, err := t.childAt(dir, name)
	if err != nil {
		return
	}
	defer h.Close()
	if h.Stat.IsRegular() {
		t.copyAttributes(fd, t.proc.name(h.FD))
	}
}

// copyAttributes copies from the file that the path src stands for.
func (t *Tree) copyAttributes(fd int, src string) {
	n, err := unix.Listxattr(src, nil)
	if err != nil || n == 0 {
		return
	}
	list := make([]byte, n)
	if n, err = unix.Listxattr(src, list); err != nil {
		return
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(list[:n]), "\x00"), "\x00") {
		if !strings.HasPrefix(name, "user.") && name != "system.posix_acl_access" {
			continue
		}
		size, err := unix.Getxattr(src, name, nil)
		if err != nil {
			continue
		}
		value := make([]byte, size)
		if size, err = unix.Getxattr(src, name, value); err == nil {
			_ = unix.Fsetxattr(fd, name, value[:size], 0)
		}
	}
}

// ProcessUmask reads the umask of this process, which cannot be asked for without changing it
// elsewhere; false where the kernel does not tell.
func ProcessUmask() (uint32, bool) {
	fd, err := retryOpen(unix.AT_FDCWD, "/proc/self/status", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, false
	}
	defer Close(fd)
	buf := make([]byte, 4096)
	n, err := Read(fd, buf)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(buf[:n])) {
		if v, ok := strings.CutPrefix(line, "Umask:"); ok {
			return parseOctal(strings.TrimSpace(v))
		}
	}
	return 0, false
}

func parseOctal(s string) (v uint32, ok bool) {
	if s == "" || len(s) > 5 {
		return 0, false
	}
	for _, c := range []byte(s) {
		if c < '0' || c > '7' {
			return 0, false
		}
		v = v<<3 | uint32(c-'0')
	}
	return v, true
}

// CopyModTime gives an open file the modification time of another one, if it can.
func (t *Tree) CopyModTime(fd int, from *Stat) {
	ts := []unix.Timespec{
		{Nsec: unix.UTIME_OMIT},
		unix.NsecToTimespec(from.ModTime.UnixNano()),
	}
	if t.proc != nil {
		_ = unix.UtimesNanoAt(t.proc.dir, fdName(fd), ts, 0)
		return
	}
	_ = unix.UtimesNanoAt(fd, "", ts, unix.AT_EMPTY_PATH)
}

// CreateChild makes a new file in a directory, open for writing, with mode less the umask.
func CreateChild(dir int, name string, mode uint32) (int, error) {
	return retryOpen(dir, name, unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_WRONLY|unix.O_CLOEXEC, mode)
}
