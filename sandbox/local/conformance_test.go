package local

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/workberth/workberth/sandbox"
	"github.com/workberth/workberth/sandbox/backendtest"
)

// helperDir has the helper under test.
var helperPath string //nolint:gochecknoglobals // set once by TestMain

func TestMain(m *testing.M) {
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	if p := os.Getenv("BERTH_TEST_HELPER"); p != "" { // a process of the suite
		helperPath = p
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "berth-local-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	helperPath = filepath.Join(dir, "berth-guest")
	build := exec.Command("go", "build", "-o", helperPath, "github.com/workberth/workberth/cmd/berth-guest")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		panic(string(out))
	}
	if err := os.Setenv("BERTH_TEST_HELPER", helperPath); err != nil {
		panic(err)
	}
	return m.Run()
}

// The suite, without the walls.
func TestConformance(t *testing.T) {
	backendtest.Run(t, backendtest.Target{
		Name: Name,
		New: func(t testing.TB, o backendtest.Options) sandbox.Backend {
			b, err := New(Options{StateDir: o.StateDir, HelperPath: helperPath, Logger: o.Logger})
			if err != nil {
				t.Fatal(err)
			}
			return b
		},
		Adapt: func(_ testing.TB, spec *sandbox.Spec) { backendtest.Unconfined(&spec.Config, DefaultConfig()) },
	})
}
