//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/workberth/workberth/fsbridge/guestfs"
	"github.com/workberth/workberth/internal/guest/client"
	"github.com/workberth/workberth/internal/guest/mux"
	"github.com/workberth/workberth/internal/guest/proc"
	"github.com/workberth/workberth/internal/guest/reaper"
	"github.com/workberth/workberth/internal/guest/rendezvous"
	"github.com/workberth/workberth/internal/guest/wire"
)

// mainVar makes the test binary the helper itself.
const mainVar = "BERTH_GUEST_TEST_MAIN"

func TestMain(m *testing.M) {
	if code, played := reaper.Main(os.Args[1:]); played {
		os.Exit(code)
	}
	if os.Getenv(mainVar) != "" {
		_ = os.Unsetenv(mainVar)
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// deadline is far more than anything takes here; it only ends hangs.
const deadline = 60 * time.Second

func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	t.Cleanup(cancel)
	return ctx
}

// command is the helper with these arguments, not started.
func command(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...) //nolint:noctx // ends with its input
	cmd.Env = []string{mainVar + "=1", "PATH=" + os.Getenv("PATH")}
	return cmd
}

// helper is a helper that serves.
type helper struct {
	cmd    *exec.Cmd
	in     io.Closer // its lease
	conn   *client.Conn
	stderr *bytes.Buffer
}

// newHelper starts a helper on pipes and greets it.
func newHelper(t testing.TB, args ...string) *helper {
	t.Helper()
	h := &helper{cmd: command(t, append([]string{"serve"}, args...)...), stderr: &bytes.Buffer{}}
	h.cmd.Stderr = h.stderr
	in, err := h.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	h.in = in
	h.greet(t, mux.Join(out, in))
	return h
}

// greet starts the helper and greets it on conn.
func (h *helper) greet(t testing.TB, conn io.ReadWriteCloser) {
	t.Helper()
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = h.cmd.Process.Kill()
		_ = h.cmd.Wait()
	})
	c, err := client.New(testContext(t), conn, client.Options{})
	if err != nil {
		t.Fatalf("%v; the helper says %q", err, h.stderr)
	}
	h.conn = c
	t.Cleanup(func() { _ = c.Close() })
}

// run runs a command to its end.
func (h *helper) run(t testing.TB, spec proc.Spec) (proc.Status, string) {
	t.Helper()
	var out bytes.Buffer
	p, err := h.conn.Runner().Start(testContext(t), spec, proc.IO{Stdout: &out, Stderr: &out})
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	s, err := p.Wait(testContext(t))
	if err != nil {
		t.Fatalf("Wait: %v", err)
	}
	return s, out.String()
}

func script(text string) proc.Spec {
	return proc.Spec{Argv: []string{"sh", "-c", text}, Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin"}}
}

// workspace is a directory that is served, as a flag.
func workspace(t testing.TB) (dir, flag string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir, "--mount=workspace:rw:" + dir
}

// alive reports whether a process exists and is not dead.
func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// awaitDead waits for the end of processes.
func awaitDead(t testing.TB, pids ...int) {
	t.Helper()
	end := time.Now().Add(deadline)
	for _, pid := range pids {
		for alive(pid) {
			if time.Now().After(end) {
				t.Fatalf("process %d is alive", pid)
			}
			time.Sleep(2 * time.Millisecond) //sleep: the process table gives no events
		}
	}
}

// A helper serves files and commands over one table of paths, and says what it is.
func TestServe(t *testing.T) {
	dir, flag := workspace(t)
	h := newHelper(t, flag, "--mount=tmpfs:rw:"+t.TempDir(), "--tag=0123456789abcdef")
	hello := h.conn.Hello()
	if hello.Tag != "0123456789abcdef" || !hello.Has(wire.FeatureExec) || !hello.Has(wire.FeatureSweep) || hello.Has(wire.FeatureCall) || len(hello.Mounts) != 2 {
		t.Errorf("greeting %+v", hello)
	}
	if hello.Pid != h.cmd.Process.Pid {
		t.Errorf("process id %d, want %d", hello.Pid, h.cmd.Process.Pid)
	}
	files := guestfs.New(h.conn, guestfs.Options{})
	if err := files.WriteFile(testContext(t), "a/b", []byte("content")); err != nil {
		t.Fatal(err)
	}
	spec := script("cat b; pwd; echo more > c")
	spec.Dir = "a"
	if s, out := h.run(t, spec); s != (proc.Status{}) || out != "content"+dir+"/a\n" {
		t.Errorf("%+v %q", s, out)
	}
	if b, err := files.ReadFile(testContext(t), "a/c"); err != nil || string(b) != "more\n" {
		t.Errorf("%q, %v", b, err)
	}
}

// C081: a working directory is the workspace, a directory in the mounts, or an
// error of its own; a command never runs elsewhere.
func TestWorkingDirectory(t *testing.T) {
	dir, flag := workspace(t)
	for _, d := range []string{"sub", "~"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc", filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("sub", filepath.Join(dir, "in")); err != nil {
		t.Fatal(err)
	}
	h := newHelper(t, flag)
	for name, tc := range map[string]struct {
		dir    string
		where  string // or
		reason proc.StartReason
	}{
		"none":              {"", dir, ""},
		"relative":          {"sub", dir + "/sub", ""},
		"absolute":          {dir + "/sub", dir + "/sub", ""},
		"by a link":         {"in", dir + "/sub", ""},
		"tilde is a name":   {"~", dir + "/~", ""},
		"below a tilde":     {"~/proj", "", proc.NoDirectory},
		"missing":           {"missing", "", proc.NoDirectory},
		"a file":            {"file", "", proc.NotDirectory},
		"up":                {"..", "", proc.OutsideDir},
		"up from inside":    {dir + "/..", "", proc.OutsideDir},
		"elsewhere":         {"/etc", "", proc.OutsideDir},
		"a link that leads": {"out", "", proc.OutsideDir},
	} {
		t.Run(name, func(t *testing.T) {
			spec := script("pwd -P; touch ran.here")
			spec.Dir = tc.dir
			if tc.reason == "" {
				if s, out := h.run(t, spec); s != (proc.Status{}) || out != tc.where+"\n" {
					t.Errorf("%+v %q, want %q", s, out, tc.where)
				}
				_ = os.Remove(filepath.Join(tc.where, "ran.here"))
				return
			}
			_, err := h.conn.Runner().Start(testContext(t), spec, proc.IO{})
			var e *proc.StartError
			if !errors.As(err, &e) || e.Reason != tc.reason {
				t.Errorf("error %v, want reason %q", err, tc.reason)
			}
			found, err := filepath.Glob(dir + "/*/ran.here")
			if err != nil || len(found) > 0 {
				t.Errorf("it ran: %v, %v", found, err)
			}
		})
	}
}

// A command inherits neither the connection nor anything else of the helper.
func TestCommandsInheritNothing(t *testing.T) {
	dir, flag := workspace(t)
	h := newHelper(t, flag)
	spec := script("for n in 0 1 2 3 4 5 6 7 8 9 10 11 12; do [ -e /proc/$$/fd/$n ] && echo $n; done; env | sort")
	spec.Marker = "00112233445566778899aabbccddeeff"
	_, out := h.run(t, spec)
	if want := "0\n1\n2\nBERTH_MARK=" + spec.Marker + "\nPATH=/usr/local/bin:/usr/bin:/bin\nPWD=" + dir + "\n"; out != want {
		t.Errorf("the command has %q, want %q", out, want)
	}
}

// tree starts a command with descendants of several kinds and returns all their
// process ids, reaper included.
func (h *helper) tree(t testing.TB) []int {
	t.Helper()
	spec := script(`trap '' TERM
sleep 3600 & echo $!
setsid sh -c 'echo $$; exec sleep 3600' &
(env -i /bin/sh -c 'echo $$; exec /bin/sleep 3600' &)
echo $PPID; echo $$
while :; do sleep 3600; done`)
	spec.Grace = 50 * time.Millisecond
	r, w := io.Pipe()
	if _, err := h.conn.Runner().Start(context.Background(), spec, proc.IO{Stdout: w}); err != nil {
		t.Fatal(err)
	}
	var pids []int
	for len(pids) < 5 {
		var pid int
		if _, err := fmt.Fscan(r, &pid); err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	t.Cleanup(func() {
		for _, pid := range pids { // only after a failure
			if alive(pid) {
				t.Errorf("process %d is left", pid)
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	})
	return pids
}

// When its input ends the helper ends what it runs, and itself, without a fault.
func TestLease(t *testing.T) {
	_, flag := workspace(t)
	for name, end := range map[string]func(h *helper) error{
		"the client closes": func(h *helper) error { return h.conn.Close() },
		"the input ends":    func(h *helper) error { return h.in.Close() },
		"SIGTERM":           func(h *helper) error { return h.cmd.Process.Signal(syscall.SIGTERM) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHelper(t, flag)
			pids := h.tree(t)
			if err := end(h); err != nil {
				t.Error(err)
			}
			if err := h.cmd.Wait(); err != nil {
				t.Errorf("%v; the helper says %q", err, h.stderr)
			}
			awaitDead(t, pids...)
		})
	}
}

// When the helper is killed, everything it ran ends all the same. C087
func TestKilled(t *testing.T) {
	_, flag := workspace(t)
	h := newHelper(t, flag)
	other := newHelper(t, flag)
	pids, others := h.tree(t), other.tree(t)
	if err := h.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	awaitDead(t, pids...)
	for _, pid := range others {
		if !alive(pid) {
			t.Errorf("process %d of another helper has ended", pid)
		}
	}
	_ = other.conn.Close()
	awaitDead(t, others...)
}

// Signals that are meant for commands do not end the helper.
func TestDeaf(t *testing.T) {
	_, flag := workspace(t)
	h := newHelper(t, flag)
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGPIPE} {
		if err := h.cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		if s, out := h.run(t, script("trap - HUP INT QUIT PIPE; echo on; kill -"+strconv.Itoa(int(sig))+" $$")); out != "on\n" || s.Signal != int(sig) {
			t.Errorf("after %v: %+v %q", sig, s, out)
		}
	}
}

// A sweep ends what an earlier helper with the same tag left, across the wire.
func TestSweep(t *testing.T) {
	_, flag := workspace(t)
	tag := fmt.Sprintf("--tag=%016x", os.Getpid())
	h := newHelper(t, flag, tag)
	spec := script("setsid sleep 3600 > /dev/null 2>&1 & echo $!")
	spec.KeepDescendants = true
	_, out := h.run(t, spec)
	pid, err := strconv.Atoi(strings.TrimSpace(out))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	if err := h.conn.Close(); err != nil {
		t.Error(err)
	}
	if err := h.cmd.Wait(); err != nil {
		t.Error(err)
	}
	if !alive(pid) {
		t.Fatal("what was to be kept has ended with the helper")
	}
	h = newHelper(t, flag, tag)
	if n, err := h.conn.Sweep(testContext(t), strings.TrimPrefix(tag, "--tag=")); err != nil || n != 1 {
		t.Errorf("swept %d, %v; want 1", n, err)
	}
	awaitDead(t, pid)
}

// A helper can call back to a socket, with the token it reads first; the end of its
// input stays its lease.
func TestConnect(t *testing.T) {
	_, flag := workspace(t)
	l, err := rendezvous.Listen(t.TempDir(), rendezvous.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	h := &helper{cmd: command(t, "connect", l.Path(), flag), stderr: &bytes.Buffer{}}
	h.cmd.Stderr = h.stderr
	in, err := h.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintln(in, l.Token()); err != nil { // waits in the pipe
		t.Fatal(err)
	}
	accepted := make(chan io.ReadWriteCloser, 1)
	go func() {
		c, err := l.Accept(testContext(t))
		if err != nil {
			t.Error(err)
			close(accepted)
			return
		}
		accepted <- c
	}()
	h.greet(t, &lateConn{conn: accepted})
	if s, out := h.run(t, script("echo called back")); s.Code != 0 || out != "called back\n" {
		t.Errorf("%+v %q", s, out)
	}
	pids := h.tree(t)
	_ = in.Close()
	if err := h.cmd.Wait(); err != nil {
		t.Errorf("%v; the helper says %q", err, h.stderr)
	}
	awaitDead(t, pids...)
}

// lateConn is a connection that is there when it is first used.
type lateConn struct {
	conn <-chan io.ReadWriteCloser
	c    io.ReadWriteCloser
}

func (l *lateConn) get() io.ReadWriteCloser {
	if c, ok := <-l.conn; ok {
		l.c = c
		ch := make(chan io.ReadWriteCloser)
		close(ch)
		l.conn = ch
	}
	return l.c
}

func (l *lateConn) Read(b []byte) (int, error)  { return l.get().Read(b) }
func (l *lateConn) Write(b []byte) (int, error) { return l.get().Write(b) }
func (l *lateConn) Close() error                { return l.get().Close() }

// A command line that no caller of ours writes is refused with the usage, a mount
// that cannot be served by its name.
func TestRefuses(t *testing.T) {
	dir, flag := workspace(t)
	for name, tc := range map[string]struct {
		args []string
		code int
		says string
	}{
		"nothing":          {nil, 2, `unknown role ""`},
		"an unknown role":  {[]string{"server"}, 2, `unknown role "server"`},
		"no mounts":        {[]string{"serve"}, 2, "no --mount"},
		"an unknown flag":  {[]string{"serve", flag, "--wat=1"}, 2, `unknown flag "--wat"`},
		"a flag in words":  {[]string{"serve", "--tag", "x"}, 2, "has no value"},
		"a bad tag":        {[]string{"serve", flag, "--tag=XYZ"}, 2, "16 hexadecimal"},
		"a bad limit":      {[]string{"serve", flag, "--read-limit=-1"}, 2, "no number"},
		"an unknown kind":  {[]string{"serve", "--mount=disk:rw:/x"}, 2, "unknown kind"},
		"a bad mode":       {[]string{"serve", "--mount=bind:rx:/x"}, 2, "neither ro nor rw"},
		"a relative mount": {[]string{"serve", "--mount=bind:rw:x"}, 2, "not an absolute clean path"},
		"an unclean mount": {[]string{"serve", "--mount=bind:rw:/x/../y"}, 2, "not an absolute clean path"},
		"no socket":        {[]string{"connect"}, 2, "path of a socket"},
		"a missing mount":  {[]string{"serve", "--mount=bind:rw:" + dir + "/missing"}, 1, "missing"},
		"no token":         {[]string{"connect", dir + "/socket", flag}, 1, "reading the token"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := command(t, tc.args...)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			err := cmd.Run()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != tc.code {
				t.Errorf("%v, want exit code %d", err, tc.code)
			}
			if !strings.Contains(stderr.String(), tc.says) || strings.Contains(stderr.String(), "usage:") != (tc.code == 2) {
				t.Errorf("it says %q, want %q", stderr.String(), tc.says)
			}
		})
	}
}

func TestVersion(t *testing.T) {
	out, err := command(t, "version").Output()
	if err != nil || !strings.HasSuffix(string(out), fmt.Sprintf(" protocol %d\n", wire.Version)) {
		t.Errorf("%q, %v", out, err)
	}
	out, err = command(t, "version", "--json").Output()
	var v struct {
		Version  string
		Protocol int
	}
	if err != nil || json.Unmarshal(out, &v) != nil || v.Version == "" || v.Protocol != wire.Version {
		t.Errorf("%q, %v", out, err)
	}
}

// What the helper logs is bounded, in whole messages.
func TestBoundedWriter(t *testing.T) {
	var out bytes.Buffer
	log := newLogger(&out)
	for i := range 10000 {
		log.Warn("a message", "number", i)
	}
	log.Info("not for people")
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if out.Len() > logBytes+100 || len(lines) < 100 || lines[len(lines)-1] != "berth-guest: further messages are dropped" {
		t.Errorf("%d bytes, %d lines, the last is %q", out.Len(), len(lines), lines[len(lines)-1])
	}
	for i, l := range lines[:len(lines)-1] {
		if !strings.HasSuffix(l, "number="+strconv.Itoa(i)) {
			t.Fatalf("line %d is %q", i, l)
		}
	}
}

// A helper is small: it needs little memory of its own, and few threads, each of
// which counts against the environment's limit on processes.
func TestSmall(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector needs memory of its own")
	}
	_, flag := workspace(t)
	h := newHelper(t, flag)
	for range 20 {
		h.run(t, script("head -c 1000000 /dev/zero"))
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", h.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for name, most := range map[string]int{"RssAnon": 12 << 10, "Threads": 24} {
		_, rest, _ := strings.Cut(string(b), "\n"+name+":")
		n, err := strconv.Atoi(strings.Fields(rest)[0])
		if err != nil || n > most {
			t.Errorf("%s is %d, %v; at most %d was wanted", name, n, err, most)
		}
	}
}
