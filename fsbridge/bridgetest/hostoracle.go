//go:build unix

package bridgetest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/workberth/workberth/fsbridge"
)

// HostOracle looks at an environment through host directories: it maps a directory of the
// environment to the host directory that holds its content. The longest matching key wins.
type HostOracle map[string]string

var (
	_ Oracle     = HostOracle{}
	_ HostPather = HostOracle{}
)

// HostPath gives the host's path for a path of the environment.
func (o HostOracle) HostPath(p string) (string, bool) {
	best, ok := "", false
	for dir := range o {
		if (p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")) && len(dir) >= len(best) {
			best, ok = dir, true
		}
	}
	if !ok {
		return "", false
	}
	// No cleaning: what stands in p, dots included, is what the kernel shall see.
	return o[best] + strings.TrimPrefix(p, strings.TrimSuffix(best, "/")), true
}

func (o HostOracle) host(p string) (string, error) {
	h, ok := o.HostPath(p)
	if !ok {
		return "", fmt.Errorf("path %q lies in no host directory: %w", p, errors.ErrUnsupported)
	}
	return h, nil
}

// Make creates a file.
func (o HostOracle) Make(p string, n Node) error {
	h, err := o.host(p)
	if err != nil {
		return err
	}
	if err := makeParents(filepath.Dir(h)); err != nil {
		return err
	}
	if n.HardLink != "" {
		old, err := o.host(n.HardLink)
		if err != nil {
			return err
		}
		return os.Link(old, h)
	}
	mode := n.Mode
	if mode == 0 {
		mode = 0o644
		if n.Type == fsbridge.TypeDir {
			mode = 0o755
		}
	}
	switch n.Type {
	case fsbridge.TypeSymlink:
		return os.Symlink(n.Target, h)
	case fsbridge.TypeDir:
		err = os.Mkdir(h, 0o700)
		if i, e := os.Lstat(h); errors.Is(err, os.ErrExist) && e == nil && i.IsDir() {
			err = nil
		}
	case fsbridge.TypeFIFO:
		err = unix.Mkfifo(h, 0o600)
	case fsbridge.TypeSocket:
		err = makeSocket(h)
	case fsbridge.TypeChar:
		err = makeDevice(h)
	case fsbridge.TypeRegular:
		err = makeRegular(h, n)
	default:
		return fmt.Errorf("make a file of type %q: %w", n.Type, errors.ErrUnsupported)
	}
	if err != nil {
		return err
	}
	if n.UID != 0 || n.GID != 0 {
		err := unix.Lchown(h, int(n.UID), int(n.GID))
		if errors.Is(err, unix.EPERM) {
			return fmt.Errorf("give a file away: %w (%w)", err, errors.ErrUnsupported)
		}
		if err != nil {
			return &os.PathError{Op: "chown", Path: h, Err: err}
		}
	}
	if err := unix.Chmod(h, uint32(mode)); err != nil {
		return &os.PathError{Op: "chmod", Path: h, Err: err}
	}
	if !n.ModTime.IsZero() {
		return os.Chtimes(h, n.ModTime, n.ModTime)
	}
	return nil
}

// makeParents is MkdirAll with mode 0755 under any umask.
func makeParents(dir string) error {
	if i, err := os.Stat(dir); err == nil && i.IsDir() {
		return nil
	}
	if err := makeParents(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	return os.Chmod(dir, 0o755)
}

func makeRegular(h string, n Node) error {
	f, err := os.OpenFile(h, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(n.Data)
	if err == nil && n.Size > int64(len(n.Data)) {
		err = f.Truncate(n.Size)
	}
	return errors.Join(err, f.Close())
}

// makeSocket binds through the open parent directory, because a socket's address holds no more
// than about a hundred bytes of path.
func makeSocket(h string) (err error) {
	dir, err := os.Open(filepath.Dir(h))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	name := fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(h))
	err = os.NewSyscallError("bind", unix.Bind(fd, &unix.SockaddrUnix{Name: name}))
	return errors.Join(err, unix.Close(fd))
}

// makeDevice makes the null device's twin, which only a privileged process may do.
func makeDevice(h string) error {
	err := unix.Mknod(h, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3)))
	if errors.Is(err, unix.EPERM) {
		return fmt.Errorf("make a device node: %w (%w)", err, errors.ErrUnsupported)
	}
	return os.NewSyscallError("mknod", err)
}

// Look describes a file itself.
func (o HostOracle) Look(p string) (Node, error) {
	h, err := o.host(p)
	if err != nil {
		return Node{}, err
	}
	var st unix.Stat_t
	if err := unix.Lstat(h, &st); err != nil {
		return Node{}, &os.PathError{Op: "lstat", Path: h, Err: err}
	}
	i, err := os.Lstat(h)
	if err != nil {
		return Node{}, err
	}
	n := Node{
		Mode: fsbridge.Mode(st.Mode) & fsbridge.ModeAll, Size: st.Size, ModTime: i.ModTime(),
		UID: st.Uid, GID: st.Gid, Inode: uint64(st.Ino), Nlink: uint64(st.Nlink),
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		n.Type = fsbridge.TypeRegular
	case unix.S_IFDIR:
		n.Type = fsbridge.TypeDir
	case unix.S_IFIFO:
		n.Type = fsbridge.TypeFIFO
	case unix.S_IFSOCK:
		n.Type = fsbridge.TypeSocket
	case unix.S_IFCHR:
		n.Type = fsbridge.TypeChar
	case unix.S_IFBLK:
		n.Type = fsbridge.TypeBlock
	case unix.S_IFLNK:
		n.Type = fsbridge.TypeSymlink
		if n.Target, err = os.Readlink(h); err != nil {
			return Node{}, err
		}
	}
	return n, nil
}

// Names lists a directory.
func (o HostOracle) Names(p string) ([]string, error) {
	h, err := o.host(p)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(h)
	if err != nil {
		return nil, err
	}
	names, err := f.Readdirnames(-1)
	return names, errors.Join(err, f.Close())
}

// Open opens a regular file.
func (o HostOracle) Open(p string) (io.ReadCloser, error) {
	h, err := o.host(p)
	if err != nil {
		return nil, err
	}
	return os.OpenFile(h, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// Rename renames a file.
func (o HostOracle) Rename(oldPath, newPath string) error {
	from, err := o.host(oldPath)
	if err != nil {
		return err
	}
	to, err := o.host(newPath)
	if err != nil {
		return err
	}
	return os.Rename(from, to)
}

// Remove removes a file or a whole directory.
func (o HostOracle) Remove(p string) error {
	h, err := o.host(p)
	if err != nil {
		return err
	}
	return os.RemoveAll(h)
}
