package backendtest_test

import (
	"os"
	"strings"
	"testing"

	"github.com/workberth/workberth/sandbox"
	"github.com/workberth/workberth/sandbox/backendtest"
)

// pretenderVar makes the reference backend say that it has walls.
const pretenderVar = "BERTH_BACKENDTEST_PRETENDER"

// pretender says that it confines commands, and does not.
type pretender struct{ *reference }

func (*pretender) Features() sandbox.Features {
	return sandbox.Features{
		Confined: true, Networks: []string{"none"}, TTY: true, ProcessCleanup: true, ProcessNamespace: true, Seccomp: true, ReadOnlyRoot: true, Tmpfs: true,
		Access: []sandbox.Access{sandbox.AccessNone, sandbox.AccessReadOnly, sandbox.AccessReadWrite},
	}
}

// TestPretender is played by TestPretenderIsFound in a process of its own.
func TestPretender(t *testing.T) {
	if os.Getenv(pretenderVar) == "" {
		t.Skip("a part of TestPretenderIsFound")
	}
	target := referenceTarget("")
	inner := target.New
	target.New = func(t testing.TB, o backendtest.Options) sandbox.Backend { return &pretender{inner(t, o).(*reference)} }
	target.Program = func(_ testing.TB, host string, _ *sandbox.Spec) string { return host }
	backendtest.Run(t, target)
}

// TestPretenderIsFound: a backend without walls fails every check of walls.
func TestPretenderIsFound(t *testing.T) {
	prog := buildTestprog(t)
	for i, check := range []string{
		"walls/rights", "walls/files", "walls/read-only", "walls/processes", "walls/network", "walls/system-calls",
		"limits/open-files", "limits/file-size", "access/none", "access/read-only", "files/tmpfs", "files/owner", "custody/foreign",
	} {
		if testing.Short() && i%4 != 0 {
			continue
		}
		t.Run(check, func(t *testing.T) {
			t.Parallel()
			if os.Geteuid() != 0 && strings.HasPrefix(check, "files/owner") {
				t.Skip("only root can have a workspace of another user")
			}
			if out, passed := runCheckOf(t, "TestPretender", check, prog, pretenderVar+"=1"); passed {
				t.Errorf("%s passes without a wall:\n%s", check, out)
			}
		})
	}
}
