package sshtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// elsewhere are the directories of system programs that an ordinary user's PATH may lack.
func elsewhere() []string {
	return []string{"/usr/sbin", "/sbin", "/usr/lib/openssh", "/usr/libexec/openssh", "/usr/lib/ssh", "/usr/libexec"}
}

// find returns the absolute path of a program, or "".
func find(name string) string {
	if path, err := exec.LookPath(name); err == nil {
		if path, err = filepath.Abs(path); err == nil {
			return path
		}
	}
	for _, dir := range elsewhere() {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path
		}
	}
	return ""
}

// Program returns the absolute path of a program, as fish or ssh. Without it the test skips, or fails
// where BERTH_REQUIRE_ENGINES=1 is set.
func Program(t testing.TB, name string) string {
	t.Helper()
	path := find(name)
	if path == "" {
		missing(t, "needs the program "+name+": scripts/setup.sh test installs it")
	}
	return path
}

// Available skips the test where no OpenSSH server can be run, or fails it where
// BERTH_REQUIRE_ENGINES=1 is set.
func Available(t testing.TB) {
	t.Helper()
	Program(t, "sshd")
	Program(t, "sftp-server")
}

// missing skips for want of a means that every machine with engines has.
func missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("BERTH_REQUIRE_ENGINES") == "1" {
		t.Fatal(what)
	}
	t.Skip(what)
}
