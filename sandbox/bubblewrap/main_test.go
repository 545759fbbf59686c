package bubblewrap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/workberth/workberth/internal/helperbin"
	"github.com/workberth/workberth/internal/tail"
	"github.com/workberth/workberth/sandbox"
)

// The test program plays further roles, named by this variable: see roles.
const roleVar = "BUBBLEWRAP_TEST_ROLE"

func TestMain(m *testing.M) {
	if role, ok := roles()[os.Getenv(roleVar)]; ok {
		os.Exit(role(os.Args[1:]))
	}
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if dir := builtHelper.dir; dir != "" {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// builtHelper is the guest helper, built once for all tests.
var builtHelper = struct {
	once sync.Once
	dir  string
	err  error
}{}

// helper returns a guest helper that everybody may execute.
func helper(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("BUBBLEWRAP_TEST_HELPER"); path != "" {
		return path // built by the test program that started this one
	}
	builtHelper.once.Do(func() {
		dir, err := os.MkdirTemp("", "bubblewrap-helper-")
		if err != nil {
			builtHelper.err = err
			return
		}
		builtHelper.dir = dir
		path := filepath.Join(dir, helperbin.Name)
		if given := os.Getenv(helperbin.EnvPath); given != "" {
			data, err := os.ReadFile(given)
			builtHelper.err = errors.Join(err, os.WriteFile(path, data, 0o755))
		} else {
			build := exec.Command("go", "build", "-ldflags=-s -w", "-o", path, "github.com/workberth/workberth/cmd/berth-guest")
			build.Env = append(os.Environ(), "CGO_ENABLED=0")
			if out, err := build.CombinedOutput(); err != nil {
				builtHelper.err = fmt.Errorf("build the helper: %w\n%s", err, out)
			}
		}
		builtHelper.err = errors.Join(builtHelper.err, os.Chmod(dir, 0o755))
		// Processes that this one starts, and kills, take the same.
		_ = os.Setenv("BUBBLEWRAP_TEST_HELPER", path) //nolint:usetesting // it outlives the test
	})
	if builtHelper.err != nil {
		t.Fatal(builtHelper.err)
	}
	return filepath.Join(builtHelper.dir, helperbin.Name)
}

// need skips the test where something is missing, and fails it where nothing may be.
func need(t testing.TB, what string, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if os.Getenv("BERTH_REQUIRE_ENGINES") == "1" {
		t.Fatalf("%s: %v", what, err)
	}
	t.Skipf("%s: %v", what, err)
}

// needBwrap skips where no sandbox can be made.
func needBwrap(t testing.TB) {
	t.Helper()
	_, err := exec.LookPath("bwrap")
	need(t, "bubblewrap is not installed", err)
}

// openDir makes a directory that everybody can come to, below one.
func openTempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "bubblewrap-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeAll(t, dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// removeAll removes what a test made, directories without permissions too.
func removeAll(t testing.TB, dir string) {
	_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(p, 0o700)
		}
		return nil
	})
	if err := os.RemoveAll(dir); err != nil {
		t.Error(err)
	}
}

// rig is a backend with its own state, and a workspace.
type rig struct {
	*Backend
	dir   string // holds all of it
	state string
	ws    string
	log   *logBuffer
}

// newRig makes one; the options can be changed.
func newRig(t testing.TB, change ...func(*Options)) *rig {
	t.Helper()
	needBwrap(t)
	dir := openTempDir(t)
	r := &rig{dir: dir, state: filepath.Join(dir, "state"), ws: filepath.Join(dir, "ws"), log: &logBuffer{}}
	if err := os.Mkdir(r.ws, 0o755); err != nil {
		t.Fatal(err)
	}
	r.Backend = r.open(t, change...)
	return r
}

// open opens a backend on the rig's state, as another process would.
func (r *rig) open(t testing.TB, change ...func(*Options)) *Backend {
	t.Helper()
	opts := Options{StateDir: r.state, HelperPath: helper(t), Logger: r.log.logger()}
	for _, c := range change {
		c(&opts)
	}
	b, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// spec asks for the workspace of the rig.
func (r *rig) spec(change ...func(*sandbox.Config)) sandbox.Spec {
	s := sandbox.Spec{Scope: sandbox.ScopeSession, Session: "test", Workspace: r.ws, Config: sandbox.DefaultConfig()}
	for _, c := range change {
		c(&s.Config)
	}
	return s
}

// ensure makes a sandbox that is closed with the test.
func ensure(t testing.TB, b *Backend, spec sandbox.Spec) sandbox.Sandbox {
	t.Helper()
	sb, err := b.Ensure(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sb.Close(); err != nil {
			t.Error(err)
		}
	})
	return sb
}

// sh runs a script by /bin/sh and returns its output, both streams in one.
func sh(t testing.TB, sb sandbox.Sandbox, script string) string {
	t.Helper()
	out, status := shStatus(t, sb, script)
	if status.Code != 0 || status.Unknown {
		t.Fatalf("%q ended with %+v:\n%s", script, status, out)
	}
	return out
}

// shStatus is sh for scripts that may fail.
func shStatus(t testing.TB, sb sandbox.Sandbox, script string) (string, sandbox.ExitStatus) {
	t.Helper()
	var out tail.Buffer
	run, err := sandbox.Start(t.Context(), sb, sandbox.Command{Argv: []string{"/bin/sh", "-c", script}}, nil,
		sandbox.IO{Stdout: &out, Stderr: &out}, sandbox.StartOptions{})
	if err != nil {
		t.Fatalf("%q: %v", script, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	status, err := run.Wait(ctx)
	if err != nil {
		t.Fatalf("%q: %v\n%s", script, err, out.String())
	}
	return out.String(), status
}

// within fails the test when ch is not closed in good time.
func within(t testing.TB, what string, ch <-chan struct{}) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(60 * time.Second):
		t.Fatalf("waited in vain for %s", what)
	}
}

// eventually polls a fact of the operating system that comes without an event.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(60 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(2 * time.Millisecond) //sleep: polls what the kernel gives no event for
	}
}

// problem is the error as one for people, about a field, of a kind.
func problem(t testing.TB, err error, field string, kind error) *sandbox.Problem {
	t.Helper()
	var p *sandbox.Problem
	if !errors.As(err, &p) || !errors.Is(err, kind) {
		t.Fatalf("error %v is no problem that matches %q", err, kind)
	}
	if p.Field != field || p.What == "" || p.Rule == "" || p.Remedy == "" {
		t.Errorf("problem %+v, want one about field %q with what, rule and remedy", p, field)
	}
	return p
}

// unprivileged is the user that tests of ordinary users run as.
const unprivileged = 54321

// asOrdinaryUser runs the calling test again in a process of an ordinary user, when
// this one is root's, and reports whether it did: then the test returns.
func asOrdinaryUser(t *testing.T, env ...string) bool {
	t.Helper()
	if os.Geteuid() != 0 {
		return false
	}
	needBwrap(t)
	dir := openTempDir(t)
	if err := os.Chown(dir, unprivileged, unprivileged); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$", "-test.v", "-test.timeout=15m")
	if testing.Short() {
		cmd.Args = append(cmd.Args, "-test.short")
	}
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, "BUBBLEWRAP_TEST_HELPER=" + helper(t),
		"BERTH_REQUIRE_ENGINES=" + os.Getenv("BERTH_REQUIRE_ENGINES"),
	}
	cmd.Env = append(cmd.Env, env...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: unprivileged, Gid: unprivileged}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("as user %d: %v\n%s", unprivileged, err, withoutPassed(out))
	}
	if bytes.Contains(out, []byte("--- SKIP")) && !bytes.Contains(out, []byte("--- PASS")) {
		t.Skipf("as user %d:\n%s", unprivileged, out)
	}
	return true
}

// withoutPassed is the output of a verbose test run without the lines that only tell of
// a start or a success.
func withoutPassed(out []byte) []byte {
	var kept [][]byte
	for line := range bytes.Lines(out) {
		word := bytes.TrimSpace(line)
		if !bytes.HasPrefix(word, []byte("=== RUN")) && !bytes.HasPrefix(word, []byte("--- PASS")) {
			kept = append(kept, line)
		}
	}
	return bytes.Join(kept, nil)
}

// pidsOf lists the processes of this machine whose command line or environment
// holds a text.
func pidsOf(t testing.TB, text string) []int {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, d := range dirs {
		cmdline, _ := os.ReadFile(d + "/cmdline")
		environ, _ := os.ReadFile(d + "/environ")
		if bytes.Contains(cmdline, []byte(text)) || bytes.Contains(environ, []byte(text)) {
			var pid int
			if _, err := fmt.Sscanf(filepath.Base(d), "%d", &pid); err == nil && pid != os.Getpid() {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// groupsOf lists the control groups of a sandbox.
func groupsOf(t testing.TB, id sandbox.ID) []string {
	t.Helper()
	var found []string
	_ = filepath.WalkDir("/sys/fs/cgroup", func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), "berth-"+string(id)) {
			found = append(found, p)
		}
		return nil
	})
	slices.Sort(found)
	return found
}

// ownerOf is the user a file belongs to.
func ownerOf(t testing.TB, path string) int {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return int(st.Uid)
}
