package backendtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/workberth/workberth/sandbox"
)

const (
	// programPackage is what runs inside.
	programPackage = "github.com/workberth/workberth/sandbox/backendtest/testprog"
	// programPath is where it appears in a confined sandbox.
	programPath = "/opt/berth-test/testprog"
	// programVar hands a built program to other processes of the suite.
	programVar = "BERTH_TESTPROG"
)

// buildProgram builds the program once per run. BERTH_TESTPROG names one that is built already.
func buildProgram(t *testing.T) string {
	t.Helper()
	if path := os.Getenv(programVar); path != "" {
		return path
	}
	dir := t.TempDir()
	open(t, dir)
	path := filepath.Join(dir, "testprog")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, programPackage)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("backendtest: building the program that runs inside (BERTH_TESTPROG can name it): %v\n%s", err, out)
	}
	return path
}

// program makes the program available to sandboxes of the spec.
func (target *Target) program(t testing.TB, host string, f sandbox.Features, spec *sandbox.Spec) string {
	t.Helper()
	switch {
	case target.Program != nil:
		return target.Program(t, host, spec)
	case !f.Confined:
		return host
	}
	spec.Config.Binds = append(spec.Config.Binds, sandbox.Bind{Source: host, Target: programPath, ReadOnly: true})
	return programPath
}

// open makes a temporary directory searchable for helpers that run as another user.
func open(t testing.TB, dir string) {
	t.Helper()
	for range 2 {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatalf("backendtest: %v", err)
		}
		dir = filepath.Dir(dir)
	}
}
