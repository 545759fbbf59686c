package containertest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/workberth/workberth/internal/asuser"
	"github.com/workberth/workberth/internal/helperbin"
	"github.com/workberth/workberth/sandbox"
	"github.com/workberth/workberth/sandbox/backendtest"
)

// mounting are the checks that mount a file system below a workspace.
var mounting = []string{ //nolint:gochecknoglobals // constant
	"bridge/rename/cross-device", "bridge/rename/cross-device-race",
	"bridge/diskfull/replace", "bridge/diskfull/every-way", "bridge/diskfull/announced",
}

// Target plugs the backend into the suite. Without an engine the test is skipped.
func (s Subject) Target(t testing.TB) backendtest.Target {
	t.Helper()
	s.Address(t)
	target := backendtest.Target{
		Name: s.Name,
		New: func(t testing.TB, o backendtest.Options) sandbox.Backend {
			b, err := s.Open(s.Address(t), Options{StateDir: o.StateDir, Logger: o.Logger})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = b.Close() })
			return b
		},
		Adapt: func(_ testing.TB, spec *sandbox.Spec) { spec.Config.Image = Image },
		Waive: map[string]string{},
	}
	if os.Geteuid() == 0 {
		target.Waive["bridge/mode/owner-kept"] = "the helper runs without capabilities, also as root, so it cannot give a file to another user"
		target.Waive["walls/helper"] = "root's number is enough to list the names in the helper's /proc/PID/fd; they cannot be followed. Run for a workspace of an ordinary user this passes"
		target.Waive["walls/read-only"] = "the engine's /dev is memory of the container's own, which user 0 can write to. Run for a workspace of an ordinary user this passes"
		if s.BlindToMounts {
			for _, check := range mounting {
				target.Waive[check] = "the check mounts a file system, which this engine of the tests, in a mount namespace of its own, does not see"
			}
		}
		return target
	}
	for _, check := range mounting {
		target.Waive[check] = "the check mounts a file system, which an ordinary user may not; run by root it passes"
	}
	return target
}

// OrdinaryUser runs the suite as an ordinary user, who may use the engine.
func (s Subject) OrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		backendtest.Run(t, s.Target(t))
		return
	}
	s.rerun(t, asuser.UID, passage(t, s.Address(t)))
}

// Rootless runs the suite as the ordinary user whose engine it is.
func (s Subject) Rootless(t *testing.T) {
	if os.Geteuid() != 0 {
		backendtest.Run(t, s.Target(t))
		return
	}
	s.rerunAsOwner(t)
}

// rerunAsOwner runs the test as the ordinary user whose engine it is.
func (s Subject) rerunAsOwner(t *testing.T) {
	t.Helper()
	address := s.Address(t)
	uid, err := strconv.Atoi(os.Getenv(s.Var + "_USER"))
	if err != nil {
		Need(t, fmt.Sprintf("%s_USER does not tell whose engine it is: %v", s.Var, err))
	}
	s.rerun(t, uid, address)
}

// rerun runs the test as the ordinary user.
func (s Subject) rerun(t *testing.T, uid int, address string) {
	t.Helper()
	program := filepath.Join(asuser.DirOf(t, uid), "testprog")
	if err := build(program, "sandbox/backendtest/testprog"); err != nil {
		t.Fatal(err)
	}
	asuser.RerunAs(t, uid, "BERTH_TESTPROG="+program, s.Var+"="+address, helperbin.EnvPath+"="+os.Getenv(helperbin.EnvPath))
}
