package seed

import (
	"archive/tar"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// halfPrefix begins the name of a copy that is not whole.
const halfPrefix = ".berth-seed-"

// staleAfter is how old a half copy is that is certainly not being written.
const staleAfter = 7 * 24 * time.Hour

// copyBuffer is how much of a file is moved at a time, in bytes.
const copyBuffer = 256 << 10

// Unpack fills dir, which must not exist, from the tar stream of [Pack]. Missing parents
// are made. A failure leaves nothing behind; fs.ErrExist tells that dir exists, also when
// somebody has made it meanwhile.
func Unpack(r io.Reader, dir string) (err error) {
	if _, err := os.Lstat(dir); err == nil {
		return &fs.PathError{Op: "unpack", Path: dir, Err: fs.ErrExist}
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o777); err != nil {
		return err
	}
	removeStale(parent)
	var raw [6]byte
	_, _ = rand.Read(raw[:]) // never fails
	half := filepath.Join(parent, halfPrefix+hex.EncodeToString(raw[:]))
	if err := os.Mkdir(half, 0o700); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, removeAll(half))
		}
	}()
	root, err := os.OpenRoot(half)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := unpack(r, root); err != nil {
		return err
	}
	if err := syncTree(half); err != nil {
		return err
	}
	err = unix.Renameat2(unix.AT_FDCWD, half, unix.AT_FDCWD, dir, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		// A file system that cannot promise it; a directory never replaces one with content.
		err = os.Rename(half, dir)
	}
	if err != nil {
		return &fs.PathError{Op: "unpack", Path: dir, Err: err}
	}
	return nil
}

// removeStale removes half copies that nobody has written to for long: their helper was
// killed. What cannot be removed stays for the next.
func removeStale(parent string) {
	stale, _ := filepath.Glob(filepath.Join(globQuote(parent), halfPrefix+"*"))
	for _, dir := range stale {
		if info, err := os.Lstat(dir); err == nil && info.IsDir() && time.Since(info.ModTime()) > staleAfter {
			_ = removeAll(dir)
		}
	}
}

// globQuote makes a path one that a pattern takes literally.
func globQuote(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// directory is one whose mode and time are set last: it may have to be written to first.
type directory struct {
	name string
	h    *tar.Header
}

// stream notices its own end. An archive has one of its own, before that.
type stream struct {
	io.Reader
	over bool
}

func (s *stream) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	s.over = s.over || err != nil
	return n, err
}

// unpack writes every entry below root.
func unpack(r io.Reader, root *os.Root) error {
	archive := &stream{Reader: r}
	tr := tar.NewReader(archive)
	var dirs []directory
	buf := make([]byte, copyBuffer)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) && archive.over {
			return fmt.Errorf("the copy was cut off: %w", io.ErrUnexpectedEOF)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		name := filepath.Clean(h.Name)
		switch h.Typeflag {
		case tar.TypeDir:
			if name != "." {
				if err := root.Mkdir(name, 0o700); err != nil {
					return err
				}
			}
			dirs = append(dirs, directory{name, h})
		case tar.TypeReg:
			err = writeFile(root, name, h, tr, buf)
		case tar.TypeSymlink:
			if err = root.Symlink(h.Linkname, name); err == nil {
				_ = setLinkTime(root, name, h.ModTime) // not every file system keeps it
			}
		case tar.TypeLink:
			err = root.Link(filepath.Clean(h.Linkname), name)
		default:
			err = fmt.Errorf("an entry of kind %q", h.Typeflag)
		}
		if err != nil {
			return fmt.Errorf("%q: %w", h.Name, err)
		}
	}
	for i := len(dirs) - 1; i >= 0; i-- {
		d := dirs[i]
		if err := errors.Join(root.Chtimes(d.name, d.h.ModTime, d.h.ModTime), root.Chmod(d.name, d.h.FileInfo().Mode())); err != nil {
			return err
		}
	}
	return nil
}

func writeFile(root *os.Root, name string, h *tar.Header, r io.Reader, buf []byte) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{f}, r, buf)
	if err == nil {
		err = f.Chmod(h.FileInfo().Mode())
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return root.Chtimes(name, h.ModTime, h.ModTime)
}

// setLinkTime sets the time of a link itself.
func setLinkTime(root *os.Root, name string, t time.Time) error {
	parent, err := root.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	defer parent.Close()
	at := unix.NsecToTimespec(t.UnixNano())
	return unix.UtimesNanoAt(int(parent.Fd()), filepath.Base(name), []unix.Timespec{at, at}, unix.AT_SYMLINK_NOFOLLOW)
}

// syncTree makes the copy durable before it gets its name.
func syncTree(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return os.NewSyscallError("syncfs", unix.Syncfs(int(f.Fd())))
}

// removeAll removes a half copy, whose directories may lack the rights for it.
func removeAll(dir string) error {
	_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, _ error) error { // what fails here fails below
		if d != nil && d.IsDir() {
			_ = os.Chmod(p, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}
