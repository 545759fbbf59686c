package helperbin

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// programMode lets every user execute and nobody write: inside a container the helper may run as
// another user than the one that owns the cache.
const programMode fs.FileMode = 0o555

// tempPrefix begins the names of files that are being written.
const tempPrefix = ".tmp-"

// cache is the directory in which embedded helpers become files.
type cache struct {
	dir string
	log *slog.Logger
}

// defaultCacheDir returns the cache directory for a user with the given environment.
func defaultCacheDir(env func(string) string) string {
	if dir := env("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "workberth")
	}
	if home := env("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".cache", "workberth")
	}
	return filepath.Join(os.TempDir(), "workberth-"+strconv.Itoa(os.Geteuid()))
}

// place makes sure that the file for sum exists and holds exactly content, and returns its
// absolute path without links. It may be called by any number of goroutines and processes at once.
func (c cache) place(content []byte, sum string) (string, error) {
	dir, err := c.privateDir(sum)
	if err != nil {
		return "", fmt.Errorf("prepare the cache directory for the guest helper: %w", err)
	}
	path := filepath.Join(dir, Name)
	if differs(path, content) == nil {
		return path, nil
	}
	if err := c.replace(dir, path, content); err != nil {
		return "", fmt.Errorf("write the guest helper to the cache directory: %w", err)
	}
	return path, nil
}

// privateDir creates <dir>/helper/<sum> and checks that nobody else can write to any of the three.
func (c cache) privateDir(sum string) (string, error) {
	dir, err := filepath.Abs(c.dir)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	// From here on links count as foreign: resolved once, the path cannot be re-pointed.
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", err
	}
	if err := checkPrivate(dir); err != nil {
		return "", err
	}
	for _, name := range []string{"helper", sum} {
		dir = filepath.Join(dir, name)
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", err
		}
		if err := checkPrivate(dir); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// checkPrivate reports a directory that another user could use to exchange the helper.
func checkPrivate(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	const remedy = "choose another one with XDG_CACHE_HOME, or remove it"
	if !info.IsDir() {
		return fmt.Errorf("%s is no directory (%v): %s", dir, info.Mode().Type(), remedy)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to user %d, not to user %d: %s", dir, st.Uid, os.Geteuid(), remedy)
	}
	if perm := info.Mode().Perm(); perm&0o022 != 0 {
		return fmt.Errorf("%s can be written by other users (mode %04o): run chmod go-w on it, or %s", dir, perm, remedy)
	}
	return nil
}

// differs returns nil when the file at path is ours, unwritable, and holds exactly content.
func differs(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return bare(err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return bare(err)
	}
	if info.Mode() != programMode {
		return fmt.Errorf("mode %v instead of %v", info.Mode(), programMode)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("owned by user %d", st.Uid)
	}
	if info.Size() != int64(len(content)) {
		return fmt.Errorf("%d bytes instead of %d", info.Size(), len(content))
	}
	buf := make([]byte, 256<<10)
	for rest := content; ; {
		n, err := f.Read(buf)
		if n > len(rest) || !bytes.Equal(buf[:n], rest[:n]) {
			return errors.New("different content")
		}
		rest = rest[n:]
		if errors.Is(err, io.EOF) && len(rest) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// replace puts content at path under the directory's lock, unless somebody did it meanwhile.
func (c cache) replace(dir, path string, content []byte) error {
	lock, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }() // which releases the lock
	if err := flock(lock); err != nil {
		return fmt.Errorf("lock %s: %w", dir, err)
	}
	reason := differs(path, content)
	if reason == nil {
		return nil
	}
	if !errors.Is(reason, fs.ErrNotExist) {
		c.log.Warn("the cached guest helper is not the one this program carries; replacing it",
			"path", path, "reason", reason.Error())
	}
	if err := removeTemps(dir); err != nil {
		return err
	}
	if err := write(dir, path, content); err != nil {
		return err
	}
	if err := differs(path, content); err != nil {
		return fmt.Errorf("%s does not hold what was written to it: %w", path, err)
	}
	return nil
}

// flock takes the exclusive lock of an open directory.
func flock(f *os.File) error {
	for {
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// removeTemps removes what a writer left behind that was killed. The caller holds the lock, so
// no living writer has one.
func removeTemps(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), tempPrefix) {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// write puts content at path by way of a temporary file and rename. There is no fsync: the file
// is compared before each use, so one torn by a power failure is found and written again.
//
// While the file is open for writing no process is started: it would have the file open too until
// it has become its own program, and for that long the file cannot be started.
func write(dir, path string, content []byte) (err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	f, err := os.CreateTemp(dir, tempPrefix)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	if _, err := f.Write(content); err != nil {
		_ = f.Close()
		return err
	}
	if err := f.Chmod(programMode); err != nil {
		_ = f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
