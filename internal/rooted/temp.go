//go:build linux

package rooted

import (
	"fmt"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// Names makes the names of temporary files: ".berth-<tag>-<number>". The tag says whose they are,
// so that those left by a crash can be removed and no others. It is safe for concurrent use.
type Names struct {
	tag    string
	prefix string

	mu   sync.Mutex
	next uint64
	live map[string]struct{}
}

// TagLen is the length of a tag: lower-case hexadecimal digits.
const TagLen = 16

const tempPrefix = ".berth-"

// ValidTag reports whether tag can mark temporary files.
func ValidTag(tag string) bool {
	if len(tag) != TagLen {
		return false
	}
	for _, c := range []byte(tag) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// NewNames returns the names of one tag, which must be valid.
func NewNames(tag string) *Names {
	return &Names{tag: tag, prefix: tempPrefix + tag + "-", live: make(map[string]struct{})}
}

// Tag returns the tag.
func (n *Names) Tag() string { return n.tag }

// New returns a name not given before and counts it as live until Done.
func (n *Names) New() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.next++
	name := n.prefix + strconv.FormatUint(n.next, 16)
	n.live[name] = struct{}{}
	return name
}

// Done ends the use of a name.
func (n *Names) Done(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.live, name)
}

// Live reports whether a name is in use at present.
func (n *Names) Live(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, ok := n.live[name]
	return ok
}

// Ours reports whether a name carries the tag.
func (n *Names) Ours(name string) bool { return Tagged(name, n.tag) }

// Tagged reports whether name is that of a temporary file with exactly this tag.
func Tagged(name, tag string) bool {
	const least = len(tempPrefix) + TagLen + 2
	if len(name) < least || name[:len(tempPrefix)] != tempPrefix || name[len(tempPrefix):least-2] != tag || name[least-2] != '-' {
		return false
	}
	_, err := strconv.ParseUint(name[least-1:], 16, 64)
	return err == nil
}

// Temp is a new file that has no name yet, or only a temporary one. Fill FD, then give it its name
// with LinkNew or Replace; Discard it in any case.
type Temp struct {
	// FD is open for writing and reading.
	FD    int
	t     *Tree
	names *Names
	// dir and name are set while the file has a temporary name. dir is a copy of a descriptor.
	dir  int
	name string
}

// NewTemp makes a temporary file in a directory, with mode less the umask of the process.
func (t *Tree) NewTemp(dir *Handle, mode uint32, names *Names) (*Temp, error) {
	tmp := &Temp{t: t, names: names}
	if t.tmpfile && t.proc != nil {
		fd, err := retryOpen(dir.FD, ".", unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, mode)
		switch err {
		case nil:
			tmp.FD = fd
			return tmp, nil
		case unix.EOPNOTSUPP, unix.EISDIR, unix.EINVAL, unix.ENOSYS:
		default:
			return nil, err
		}
	}
	own, err := unix.FcntlInt(uintptr(dir.FD), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	err = withName(names, func(name string) error {
		fd, err := retryOpen(own, name, unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_RDWR|unix.O_CLOEXEC, mode)
		tmp.FD, tmp.dir, tmp.name = fd, own, name
		return err
	})
	if err != nil {
		Close(own)
		return nil, err
	}
	return tmp, nil
}

// withName calls f with temporary names until one is free. The name stays live when f succeeds.
func withName(names *Names, f func(name string) error) error {
	for range Attempts {
		name := names.New()
		err := f(name)
		if err == nil {
			return nil
		}
		names.Done(name)
		if err != unix.EEXIST {
			return err
		}
	}
	return fmt.Errorf("every temporary name tried is taken: %w", unix.EEXIST)
}

// LinkNew gives the file a name in a directory; the name must be free (EEXIST otherwise).
func (tmp *Temp) LinkNew(dir *Handle, name string) error {
	if tmp.name == "" {
		return tmp.link(dir.FD, name)
	}
	err := RenameNew(tmp.dir, tmp.name, dir.FD, name)
	if err == unix.EINVAL || err == unix.ENOSYS {
		// A file system without RENAME_NOREPLACE: a hard link is as exclusive.
		if err = unix.Linkat(tmp.dir, tmp.name, dir.FD, name, 0); err == nil {
			err = unix.Unlinkat(tmp.dir, tmp.name, 0)
		}
	}
	if err == nil {
		tmp.forget()
	}
	return err
}

// Replace gives the file a name in a directory, in place of what has it now.
func (tmp *Temp) Replace(dir *Handle, name string) error {
	if tmp.name != "" {
		err := unix.Renameat(tmp.dir, tmp.name, dir.FD, name)
		if err == nil {
			tmp.forget()
		}
		return err
	}
	return replace(tmp.names, dir.FD, name, func(temp string) error { return tmp.link(dir.FD, temp) })
}

// replace has something made under a temporary name in a directory and renames it to name.
func replace(names *Names, dir int, name string, mk func(temp string) error) error {
	var temp string
	err := withName(names, func(n string) error { temp = n; return mk(n) })
	if err != nil {
		return err
	}
	defer names.Done(temp)
	if err := unix.Renameat(dir, temp, dir, name); err != nil {
		_ = unix.Unlinkat(dir, temp, 0)
		return err
	}
	return nil
}

// ReplaceWithLink makes a symbolic link in place of what has the name now.
func ReplaceWithLink(names *Names, text string, dir *Handle, name string) error {
	return replace(names, dir.FD, name, func(temp string) error { return unix.Symlinkat(text, dir.FD, temp) })
}

// MakeTempDir makes a directory with a temporary name, which stays live until the caller is done
// with it.
func MakeTempDir(names *Names, dir *Handle, mode uint32) (string, error) {
	var temp string
	err := withName(names, func(n string) error { temp = n; return unix.Mkdirat(dir.FD, n, mode) })
	return temp, err
}

// RenameNew renames to a name that must be free (EEXIST otherwise).
func RenameNew(oldDir int, oldName string, newDir int, newName string) error {
	return unix.Renameat2(oldDir, oldName, newDir, newName, unix.RENAME_NOREPLACE)
}

func (tmp *Temp) link(dir int, name string) error {
	return unix.Linkat(tmp.t.proc.dir, fdName(tmp.FD), dir, name, unix.AT_SYMLINK_FOLLOW)
}

func (tmp *Temp) forget() {
	if tmp.name != "" {
		tmp.names.Done(tmp.name)
		Close(tmp.dir)
		tmp.name = ""
	}
}

// Discard closes the file. If it has got no name it is gone.
func (tmp *Temp) Discard() {
	if tmp.name != "" {
		_ = unix.Unlinkat(tmp.dir, tmp.name, 0)
		tmp.forget()
	}
	Close(tmp.FD)
}

func fdName(fd int) string { return strconv.Itoa(fd) }
