package sandbox

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
)

// maxProfile bounds a system call profile, in bytes.
const maxProfile = 1 << 20

// HostFacts is what validation and identity ask about this machine. Tests give
// their own; [SystemFacts] gives the real one. Functions must be set.
type HostFacts struct {
	// Homes are the home directories of the user: the one of the environment and
	// the one of the account. Others than absolute ones do not count.
	Homes []string
	// StateDirs are the directories in which this program keeps its own state,
	// configuration and sockets. They are never made available inside.
	StateDirs []string
	// EngineSockets are sockets of container engines beside the usual places.
	EngineSockets []string
	// Lstat, EvalSymlinks are those of the standard library.
	Lstat        func(path string) (fs.FileInfo, error)
	EvalSymlinks func(path string) (string, error)
	// ReadFile reads a small regular file, and no other.
	ReadFile func(path string) ([]byte, error)
}

// SystemFacts are the facts of this machine for the current user, as told by
// getenv (os.Getenv) and the file system. stateDirs are the program's own
// directories.
func SystemFacts(getenv func(string) string, stateDirs ...string) HostFacts {
	f := HostFacts{
		Homes:        []string{getenv("HOME")},
		StateDirs:    stateDirs,
		Lstat:        os.Lstat,
		EvalSymlinks: filepath.EvalSymlinks,
		ReadFile:     readSmallFile,
	}
	if u, err := user.Current(); err == nil && u.HomeDir != f.Homes[0] {
		f.Homes = append(f.Homes, u.HomeDir)
	}
	for _, name := range []string{"DOCKER_HOST", "CONTAINER_HOST", "CONTAINERD_ADDRESS", "BUILDKIT_HOST", "SSH_AUTH_SOCK"} {
		if p, ok := strings.CutPrefix(getenv(name), "unix://"); ok || strings.HasPrefix(p, "/") {
			f.EngineSockets = append(f.EngineSockets, p)
		}
	}
	return f
}

// readSmallFile opens without waiting, so that a FIFO cannot hold it up, and
// reads what is a regular file of at most maxProfile bytes.
func readSmallFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	switch info, err := f.Stat(); {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("not a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, maxProfile+1))
	if err == nil && len(data) > maxProfile {
		err = fmt.Errorf("larger than %d bytes", maxProfile)
	}
	return data, err
}

// resolve returns path without links. It is not cleaned first: behind a link ".."
// leads somewhere else than the text says. A path whose last elements do not exist
// is resolved as far as it exists, so that two spellings of it compare equal.
func (f HostFacts) resolve(path string) string {
	rest := ""
	for p := path; p != ""; {
		if r, err := f.EvalSymlinks(p); err == nil {
			return filepath.Join(r, rest)
		}
		p = strings.TrimRight(p, "/")
		i := strings.LastIndexByte(p, '/')
		rest = filepath.Join(p[i+1:], rest)
		p = p[:i+1]
	}
	return filepath.Clean(path)
}
