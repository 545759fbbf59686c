package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// privateDir makes sure that path is a directory that only this user can change,
// and creates it with mode 0700 where it is missing.
func privateDir(path string) error {
	if !filepath.IsAbs(path) {
		return refused("stateDir", fmt.Sprintf("state directory %q", path), "it must be an absolute path", "write the absolute path")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("make state directory: %w", err)
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make state directory: %w", err)
	}
	return checkPrivate(path)
}

// checkPrivate refuses a directory that somebody else could change.
func checkPrivate(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	what := fmt.Sprintf("state directory %q", path)
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return refused("stateDir", what, "it is not a directory", "remove it, or name another state directory")
	case ok && int(stat.Uid) != os.Geteuid():
		return refused("stateDir", what, fmt.Sprintf("it belongs to user %d, not to user %d", stat.Uid, os.Geteuid()), "name another state directory, or give this one back to its user")
	case info.Mode().Perm()&0o022 != 0:
		return refused("stateDir", what, fmt.Sprintf("others may write into it (mode %04o)", info.Mode().Perm()), "chmod go-w it after looking at what is in there")
	}
	return nil
}
