// Package helpertest gives tests the guest helper as the source has it, built once for a test program
// and the processes it starts. It is for tests only, and imports no backend so that the tests of every
// backend can use it.
package helpertest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/workberth/workberth/internal/helperbin"
)

// Main is the TestMain of a package whose tests need the helper: it runs them with BERTH_GUEST set, and
// returns their exit code. Where that variable names a helper already, nothing is built: a run of many
// packages can build one for all of them. after, which may be nil, is asked once the tests have passed,
// and its error fails them.
func Main(m interface{ Run() int }, after func() error) int {
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if os.Getenv(helperbin.EnvPath) == "" {
		dir, err := os.MkdirTemp("", "berth-helper-")
		if err != nil {
			return fail(err)
		}
		defer os.RemoveAll(dir)
		path := filepath.Join(dir, helperbin.Name)
		// Processes of other users start it too.
		if err := errors.Join(build(path), os.Chmod(dir, 0o755), os.Setenv(helperbin.EnvPath, path)); err != nil {
			return fail(err)
		}
	}
	code := m.Run()
	if code == 0 && after != nil {
		if err := after(); err != nil {
			return fail(err)
		}
	}
	return code
}

// build builds the helper, small and static as a release does.
func build(path string) error {
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", path, "github.com/workberth/workberth/cmd/berth-guest") //nolint:noctx // short
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the helper: %w\n%s", err, out)
	}
	return nil
}

// Path is the helper in a program run by [Main].
func Path() string {
	abs, err := filepath.Abs(os.Getenv(helperbin.EnvPath))
	if err != nil {
		return ""
	}
	return abs
}

// ForArch is the helper for hosts like this machine, as the ssh backend asks for it. There is none for
// others.
func ForArch(arch string) (helperbin.Helper, error) {
	if arch != runtime.GOARCH {
		return helperbin.Helper{}, fmt.Errorf("no helper for %s in tests", arch)
	}
	path := Path()
	return helperbin.For("linux", arch, helperbin.Options{Env: func(name string) string {
		if name == helperbin.EnvPath {
			return path
		}
		return ""
	}})
}
