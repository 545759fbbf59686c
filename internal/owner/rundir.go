package owner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/workberth/workberth/sandbox"
)

// maxSocketPath is the longest path of a Unix socket on Linux, in bytes, without
// the final NUL.
const maxSocketPath = 107

// DefaultRuntimeDir is where sockets and locks live when nothing else is said:
// $BERTH_RUNTIME_DIR, $XDG_RUNTIME_DIR/berth, or /tmp/berth-UID.
func DefaultRuntimeDir(getenv func(string) string) string {
	if d := getenv("BERTH_RUNTIME_DIR"); d != "" {
		return d
	}
	if d := getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(d) {
		return filepath.Join(d, "berth")
	}
	return filepath.Join(os.TempDir(), "berth-"+strconv.Itoa(os.Getuid()))
}

// DefaultStateDir is where the registry lives when nothing else is said:
// $BERTH_STATE_DIR, $XDG_STATE_HOME/berth, or $HOME/.local/state/berth. It is
// empty when there is no home directory either.
func DefaultStateDir(getenv func(string) string) string {
	if d := getenv("BERTH_STATE_DIR"); d != "" {
		return d
	}
	if d := getenv("XDG_STATE_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "berth")
	}
	if h := getenv("HOME"); filepath.IsAbs(h) {
		return filepath.Join(h, ".local", "state", "berth")
	}
	return ""
}

// privateDir makes dir with mode 0700 if it is missing and refuses one that
// another user owns or can write to: whoever controls it could answer for the
// owner process.
func privateDir(dir string) error {
	if !filepath.IsAbs(dir) {
		return &sandbox.Problem{What: "runtime directory " + strconv.Quote(dir), Rule: "it must be an absolute path", Remedy: "set BERTH_RUNTIME_DIR to an absolute path", Err: sandbox.ErrRefused}
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("make runtime directory: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make runtime directory: %w", err)
	}
	st, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("runtime directory: %w", err)
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !st.IsDir() || !ok || int(sys.Uid) != os.Getuid() || st.Mode().Perm()&0o077 != 0 {
		return &sandbox.Problem{
			What:   "runtime directory " + strconv.Quote(dir),
			Rule:   "it must be a directory of this user that nobody else can enter (mode 0700)",
			Remedy: "remove it, or set BERTH_RUNTIME_DIR to a private directory",
			Err:    sandbox.ErrRefused,
		}
	}
	return nil
}

// socketPath is the socket of the owner of sandbox id.
func socketPath(dir string, id sandbox.ID) (string, error) {
	p := filepath.Join(dir, string(id)+".sock")
	if len(p) > maxSocketPath {
		return "", &sandbox.Problem{
			What:   "socket path " + strconv.Quote(p),
			Rule:   fmt.Sprintf("a Unix socket's path has at most %d bytes", maxSocketPath),
			Remedy: "set BERTH_RUNTIME_DIR to a shorter path",
			Err:    sandbox.ErrRefused,
		}
	}
	return p, nil
}
