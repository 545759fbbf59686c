package bridgetest_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// nobody is a user without rights.
const nobody = 65534

// TestUnprivileged runs the suite, races left out, as a user without rights: checks of permissions
// mean something only then.
func TestUnprivileged(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this process has no rights to give up; the other tests run as an ordinary user already")
	}
	if testing.Short() {
		t.Skip("left out under -short")
	}
	program := shared(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := mutantCommand(ctx, t, program, "none", "^TestMutant$/^([^r]|r[^a])")
	own := t.TempDir()
	if err := os.Chmod(filepath.Dir(own), 0o755); err != nil { // the parent of all of them
		t.Fatal(err)
	}
	for _, dir := range []string{own, cmd.Dir} {
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	cmd.Env = append(cmd.Env, "TMPDIR="+own, "BERTH_REQUIRE_ENGINES=", "HOME="+own)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	if !strings.Contains(string(out), "--- PASS: TestMutant/walk/unreadable ") {
		t.Errorf("the check of unreadable directories did not run:\n%s", out)
	}
}

// shared copies this program to where every user may start it.
func shared(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(self)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	program := filepath.Join(t.TempDir(), "bridgetest.test")
	out, err := os.OpenFile(program, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return program
}
