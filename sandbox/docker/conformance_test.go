package docker_test

import (
	"errors"
	"os"
	"testing"

	"github.com/workberth/workberth/sandbox"
	"github.com/workberth/workberth/sandbox/backendtest"
	"github.com/workberth/workberth/sandbox/docker"
)

// engine is the address of an engine to test with.
func engine(t testing.TB) string {
	t.Helper()
	host := os.Getenv("BERTH_TEST_DOCKER")
	if host == "" {
		need(t, "a Docker engine", errors.New("BERTH_TEST_DOCKER names none"))
	}
	return host
}

// need skips the test where something is missing, and fails it where nothing may be.
func need(t testing.TB, what string, err error) {
	t.Helper()
	if os.Getenv("BERTH_REQUIRE_ENGINES") == "1" {
		t.Fatalf("%s: %v", what, err)
	}
	t.Skipf("%s: %v", what, err)
}

// conformance plugs the backend into the suite.
func conformance() backendtest.Target {
	target := backendtest.Target{
		Name: docker.Name,
		New: func(t testing.TB, o backendtest.Options) sandbox.Backend {
			b, err := docker.New(docker.Options{Host: engine(t), StateDir: o.StateDir, Logger: o.Logger})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = b.Close() })
			return b
		},
		Adapt: func(t testing.TB, spec *sandbox.Spec) { spec.Config.Image = "busybox" },
	}
	if os.Geteuid() == 0 {
		target.Waive = map[string]string{
			"bridge/mode/owner-kept": "the helper runs without capabilities, also as root, so it cannot give a file to another user",
			"walls/helper":           "root's number is enough to list the names in the helper's /proc/PID/fd; they cannot be followed. Run for a workspace of an ordinary user this passes",
			"walls/read-only":        "the engine's /dev is memory of the container's own, which user 0 can write to. Run for a workspace of an ordinary user this passes",
		}
	}
	return target
}

func TestConformance(t *testing.T) { backendtest.Run(t, conformance()) }
