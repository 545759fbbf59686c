package bubblewrap

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/workberth/workberth/sandbox"
	"github.com/workberth/workberth/sandbox/backendtest"
)

// conformance plugs the backend into the suite.
func conformance() backendtest.Target {
	target := backendtest.Target{
		Name: Name,
		New: func(t testing.TB, o backendtest.Options) sandbox.Backend {
			needBwrap(t)
			b, err := New(Options{StateDir: o.StateDir, HelperPath: helper(t), Logger: o.Logger})
			if err != nil {
				t.Fatal(err)
			}
			return b
		},
	}
	if os.Geteuid() == 0 {
		target.Waive = map[string]string{
			"bridge/mode/owner-kept": "the helper runs without capabilities, also as root, so it cannot give a file to another user",
			"walls/helper":           "root's number is enough to list the names in /proc/1/fd; they cannot be followed. Run for a workspace of an ordinary user this passes",
		}
	} else {
		target.Waive = map[string]string{}
		for _, check := range []string{
			"bridge/rename/cross-device", "bridge/rename/cross-device-race",
			"bridge/diskfull/replace", "bridge/diskfull/every-way", "bridge/diskfull/announced",
		} {
			target.Waive[check] = "the check mounts a file system, which an ordinary user may not; run by root it passes"
		}
	}
	return target
}

// The suite, as the user that runs the tests and as an ordinary one.
func TestConformance(t *testing.T) { backendtest.Run(t, conformance()) }

func TestConformanceOrdinaryUser(t *testing.T) {
	if os.Geteuid() == 0 {
		program := filepath.Join(openTempDir(t), "testprog")
		build := exec.Command("go", "build", "-ldflags=-s -w", "-o", program, "github.com/workberth/workberth/sandbox/backendtest/testprog")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		asOrdinaryUser(t, "BERTH_TESTPROG="+program)
		return
	}
	backendtest.Run(t, conformance())
}
