package sshtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Account is a throwaway user of this machine.
type Account struct {
	Name     string
	UID, GID int
	Home     string
	Shell    string
}

// AccountOptions says what an account is like. The zero value is an ordinary one.
type AccountOptions struct {
	// NoWriteHome gives the home directory to root: its owner can read it and write nothing in it.
	NoWriteHome bool
	// Files are written to the home directory, as .bashrc, before anybody logs in. Keys are paths
	// below it.
	Files map[string]string
}

// NewAccount makes a user with the login shell, an absolute path, and a home below the directory for
// temporary files. Both are gone at the end of the test, and so is every process of the user. It needs
// root: without, the test skips, or fails where BERTH_REQUIRE_ENGINES=1 is set.
func NewAccount(t testing.TB, shell string, opts AccountOptions) *Account {
	t.Helper()
	if os.Geteuid() != 0 {
		missing(t, "making an account needs root")
	}
	useradd, userdel := Program(t, "useradd"), Program(t, "userdel")
	home, err := os.MkdirTemp("", "sshtest-home-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })

	// The temporary directory's own number keeps the name apart from those of tests that run now.
	a := &Account{Name: accountName(home), Home: home, Shell: shell}
	if err := run(useradd, "--system", "--no-log-init", "--no-create-home", "--user-group", "--password", "*",
		"--home-dir", home, "--shell", shell, a.Name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		killUser(a.UID)
		if err := run(userdel, "--force", a.Name); err != nil {
			t.Error(err)
		}
	})
	entry, err := user.Lookup(a.Name)
	if err != nil {
		t.Fatal(err)
	}
	uid, err1 := strconv.Atoi(entry.Uid)
	gid, err2 := strconv.Atoi(entry.Gid)
	if err := errors.Join(err1, err2); err != nil || uid == 0 {
		t.Fatalf("useradd made the user %q with number %q and group %q: %v", a.Name, entry.Uid, entry.Gid, err)
	}
	a.UID, a.GID = uid, gid
	for name, text := range opts.Files {
		a.WriteFile(t, name, text, 0o644)
	}
	if err := os.Chmod(home, 0o755); err != nil {
		t.Fatal(err)
	}
	if !opts.NoWriteHome {
		if err := os.Chown(home, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

// WriteFile writes a file of the account's below its home, with the directories on the way.
func (a *Account) WriteFile(t testing.TB, name, text string, mode os.FileMode) {
	t.Helper()
	path := filepath.Join(a.Home, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	for ; path != a.Home; path = filepath.Dir(path) {
		if err := os.Lchown(path, a.UID, a.GID); err != nil {
			t.Fatal(err)
		}
	}
}

// accountName makes a user's name from the number of its home and of this process.
func accountName(home string) string {
	_, number, _ := strings.Cut(filepath.Base(home), "sshtest-home-")
	return fmt.Sprintf("bt%d-%s", os.Getpid(), number)
}

// killUser ends every process of a user. It finds them one by one, and looks again until there is none.
func killUser(uid int) {
	if uid == 0 {
		return // the account was never finished
	}
	for range 20 {
		found := false
		for _, p := range processes() {
			info, err := os.Stat(fmt.Sprintf("/proc/%d", p.pid))
			if err != nil || p.state == 'Z' {
				continue
			}
			if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) == uid {
				found = true
				signal(syscall.SIGKILL, p.pid)
			}
		}
		if !found {
			return
		}
	}
}

// run runs a program and returns what it said if it failed.
func run(program string, args ...string) error {
	out, err := exec.Command(program, args...).CombinedOutput() //nolint:noctx // ends by itself
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", program, strings.Join(args, " "), err, out)
	}
	return nil
}
