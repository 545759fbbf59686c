// Package asuser lets a test that root runs go through once more as an ordinary user. It is for tests
// only.
package asuser

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// UID is the number of the ordinary user and of its group. It needs no name.
const UID = 54321

// Dir makes a directory that belongs to the ordinary user and that everybody can reach.
func Dir(t testing.TB) string {
	t.Helper()
	return DirOf(t, UID)
}

// DirOf is Dir for another user.
func DirOf(t testing.TB, uid int) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "asuser-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if os.Geteuid() == 0 {
		if err := os.Chown(dir, uid, uid); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Rerun runs the calling test, and no other, in a process of the ordinary user, when root runs it, and
// reports whether it did. The process gets PATH, a home and a directory for temporary files of its
// own, BERTH_REQUIRE_ENGINES, and env.
func Rerun(t *testing.T, env ...string) bool {
	t.Helper()
	return RerunAs(t, UID, env...)
}

// RerunAs is Rerun for another user.
func RerunAs(t *testing.T, uid int, env ...string) bool {
	t.Helper()
	if os.Geteuid() != 0 {
		return false
	}
	dir := DirOf(t, uid)
	program := dir + "/test"
	if err := copyProgram(program); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-test.run=^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$", "-test.v", "-test.timeout=15m") //nolint:noctx // bounded by its own timeout
	if testing.Short() {
		cmd.Args = append(cmd.Args, "-test.short")
	}
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, "BERTH_REQUIRE_ENGINES=" + os.Getenv("BERTH_REQUIRE_ENGINES"),
	}, env...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("as user %d: %v\n%s", uid, err, telling(out))
	}
	if bytes.Contains(out, []byte("--- SKIP")) && !bytes.Contains(out, []byte("--- PASS")) {
		t.Skipf("as user %d:\n%s", uid, out)
	}
	return true
}

// copyProgram copies the test program, which root may have built where nobody else comes.
func copyProgram(path string) error {
	data, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("the test program: %w", err)
	}
	syscall.ForkLock.RLock() // a process started meanwhile would keep it busy
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, data, 0o755)
}

// telling is the output of a verbose test run without the lines that only tell of a start or a success.
func telling(out []byte) []byte {
	var kept [][]byte
	for line := range bytes.Lines(out) {
		word := bytes.TrimSpace(line)
		if !bytes.HasPrefix(word, []byte("=== RUN")) && !bytes.HasPrefix(word, []byte("--- PASS")) {
			kept = append(kept, line)
		}
	}
	return bytes.Join(kept, nil)
}
