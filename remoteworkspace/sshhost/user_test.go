package sshhost

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/workberth/workberth/internal/asuser"
	"github.com/workberth/workberth/internal/helperbin"
)

// The server needs no privilege: the same as an ordinary user.
func TestOrdinaryUser(t *testing.T) {
	if err := os.Chmod(helperDir, 0o755); err != nil {
		t.Fatal(err)
	}
	if asuser.Rerun(t, helperbin.EnvPath+"="+filepath.Join(helperDir, helperbin.Name)) {
		return
	}
	r := newRig(t, withForward)
	if out, stderr, exit := run(t, r.dial(t), "id -u; echo x > byexec", nil); out != fmt.Sprintf("%d\n", os.Getuid()) || exit != "0" {
		t.Errorf("%q %q %s", out, stderr, exit)
	}
	c := r.client(t)
	f, err := c.Create("bysftp")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(f, "y"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"byexec": "x\n", "bysftp": "y"} {
		if got := r.content(t, name); got != want {
			t.Errorf("%s holds %q", name, got)
		}
	}
	if err := c.Chtimes("bysftp", r.clock.Now(), r.clock.Now()); err != nil {
		t.Error(err)
	}
	s, in, _ := terminal(t, r.dial(t), "")
	if _, err := io.WriteString(in, "exit 3\n"); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(); err == nil || err.Error() != "Process exited with status 3" {
		t.Errorf("the shell: %v", err)
	}
}
