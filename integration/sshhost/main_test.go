package sshhost

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/workberth/workberth/internal/tail"
)

// built is the directory with the programs under test.
var built string //nolint:gochecknoglobals // set once by TestMain

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

// builtVar tells the processes of a suite where the programs are.
const builtVar = "BERTH_TEST_BUILT"

func runTests(m *testing.M) int {
	if built = os.Getenv(builtVar); built != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "berth-host-bin-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	for _, name := range []string{"berth", "berth-guest"} {
		build := exec.Command("go", "build", "-o", filepath.Join(dir, name), "github.com/workberth/workberth/cmd/"+name)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build %s: %v\n%s", name, err, out)
			return 1
		}
	}
	built = dir
	if err := os.Setenv(builtVar, dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// need skips the test where a program is missing, and fails it where nothing may be.
func need(t testing.TB, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			missing(t, p+" is not installed")
		}
	}
}

func missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("BERTH_REQUIRE_ENGINES") == "1" {
		t.Fatal(what)
	}
	t.Skip(what)
}

// host is a running "berth host serve" with a workspace "demo" and a client's key and settings.
type host struct {
	dir  string // the host's directory
	home string // the client's
	ws   string // the workspace
	port string
	cmd  *exec.Cmd
	out  *tail.Buffer
	env  []string
}

// start makes a host and starts it. flags go to "workspace add".
func start(t testing.TB, flags ...string) *host {
	t.Helper()
	h := prepare(t)
	h.berth(t, append([]string{"workspace", "add", "demo", "--workspace", h.ws}, flags...)...)
	h.berth(t, "key", "add", "demo", h.path("id.pub"))
	h.serve(t)
	return h
}

// prepare makes a host without workspaces.
func prepare(t testing.TB) *host {
	t.Helper()
	need(t, "bwrap", "ssh", "ssh-keygen")
	top, err := os.MkdirTemp("", "bh-") // short: a control socket's path is bounded
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(top) })
	h := &host{dir: filepath.Join(top, "host"), home: filepath.Join(top, "home"), ws: filepath.Join(top, "ws")}
	for _, d := range []string{h.home, h.ws} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	h.env = []string{
		"PATH=" + built + ":" + os.Getenv("PATH"), "HOME=" + h.home, "BERTH_STATE_DIR=" + filepath.Join(top, "state"),
		"BERTH_RUNTIME_DIR=" + filepath.Join(top, "run"), "LANG=C.UTF-8",
	}
	h.keygen(t, "id")
	h.berth(t, "init")
	return h
}

// reload makes the server read workspaces and keys again.
func (h *host) reload(t testing.TB) {
	t.Helper()
	before := strings.Count(h.out.String(), "workspaces\n")
	if err := h.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the reload", func() bool { return strings.Count(h.out.String(), "workspaces\n") > before })
}

// path is a file of the client's.
func (h *host) path(name string) string { return filepath.Join(h.home, name) }

// keygen makes a key pair of the client's.
func (h *host) keygen(t testing.TB, name string, args ...string) {
	t.Helper()
	args = append([]string{"-q", "-t", "ed25519", "-N", "", "-f", h.path(name)}, args...)
	if out, err := exec.Command("ssh-keygen", args...).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v\n%s", err, out)
	}
}

// berth runs a "berth host" command.
func (h *host) berth(t testing.TB, args ...string) string {
	t.Helper()
	out, err := h.try(args...)
	if err != nil {
		t.Fatalf("berth host %v: %v\n%s", args, err, out)
	}
	return out
}

func (h *host) try(args ...string) (string, error) {
	cmd := exec.Command(filepath.Join(built, "berth"), append([]string{"host", "--dir", h.dir}, args...)...)
	cmd.Env = h.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// serve starts the server and writes the client's settings.
func (h *host) serve(t testing.TB) {
	t.Helper()
	h.cmd = exec.Command(filepath.Join(built, "berth"), "host", "--dir", h.dir, "serve", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0")
	h.cmd.Env = h.env
	h.out = &tail.Buffer{}
	h.cmd.Stdout, h.cmd.Stderr = h.out, h.out
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- h.cmd.Wait() }()
	t.Cleanup(func() {
		_ = h.cmd.Process.Signal(syscall.SIGTERM)
		_ = h.cmd.Process.Signal(syscall.SIGINT) // a second one ends what is left at once
		select {
		case <-ended:
		case <-time.After(30 * time.Second):
			_ = h.cmd.Process.Kill()
			t.Error("the server did not end")
		}
		if t.Failed() {
			t.Logf("the server said:\n%s", h.out.String())
		}
	})
	eventually(t, "the server", func() bool { return strings.Contains(h.out.String(), "metrics on ") })
	_, rest, _ := strings.Cut(h.out.String(), "workspaces on 127.0.0.1:")
	h.port, _, _ = strings.Cut(rest, "\n")
	h.configure(t, "[127.0.0.1]:"+h.port, "  HostName 127.0.0.1\n  Port "+h.port+"\n")
}

// configure writes the client's settings: what the host is known as, and how to come to it.
func (h *host) configure(t testing.TB, known, way string) {
	t.Helper()
	public, err := os.ReadFile(filepath.Join(h.dir, "host_ed25519.pub"))
	if err != nil {
		t.Fatal(err)
	}
	h.write(t, "known_hosts", known+" "+string(public))
	h.write(t, "config", fmt.Sprintf(`Host demo
%s  User demo
  IdentityFile %s
  IdentitiesOnly yes
  UserKnownHostsFile %s
  StrictHostKeyChecking yes
  BatchMode yes
  LogLevel ERROR
`, way, h.path("id"), h.path("known_hosts")))
}

func (h *host) write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.WriteFile(h.path(name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// command is a client's program with the client's settings; it has a bound.
func (h *host) command(t testing.TB, name string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + h.home, "LANG=C.UTF-8", "RSYNC_RSH=ssh -F " + h.path("config"),
		"GIT_SSH_COMMAND=ssh -F " + h.path("config"), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org",
	}
	cmd.Dir = h.home
	cmd.WaitDelay = time.Second
	return cmd
}

// ssh is the client itself.
func (h *host) ssh(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	return h.command(t, "ssh", append([]string{"-F", h.path("config")}, args...)...)
}

// output runs a command that has to succeed.
func output(t testing.TB, cmd *exec.Cmd) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s%s", cmd.Args, err, out, &stderr)
	}
	return string(out)
}

// code is the exit code of a command, -1 when it died.
func code(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	return -1
}

// eventually polls something that comes without an event.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(5 * time.Millisecond) //sleep: polls what gives no event
	}
}

// procsWith counts processes whose command line holds a text.
func procsWith(text string) int {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	n := 0
	for _, d := range dirs {
		if cmdline, err := os.ReadFile(d + "/cmdline"); err == nil && bytes.Contains(cmdline, []byte(text)) {
			n++
		}
	}
	return n
}

// readLine reads a line of a program's output.
func readLine(t testing.TB, r io.Reader) string {
	t.Helper()
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return line
}
