package sshhost

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/workberth/workberth/internal/tail"
)

// Commands: streams, statuses, directory, environment.
func TestExec(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.dial(t)
	for _, tc := range []struct{ command, stdin, stdout, stderr, exit string }{
		{"echo out; echo err >&2; exit 7", "", "out\n", "err\n", "7"},
		{"pwd", "", "/workspace\n", "", "0"},
		{"wc -l", "1\n2\n3\n4\n", "4\n", "", "0"}, // C179
		{"cat", "", "", "", "0"},                  // C179: an empty input ends
		{"test -t 0 || test -t 1 || echo none", "", "none\n", "", "0"},
		{"kill -TERM $$", "", "", "", "TERM"},
		{"kill -9 $$", "", "", "", "KILL"},
		{"printf 'a b\\n' | tr a c", "", "c b\n", "", "0"},
		{"/nonexistent", "", "", "/bin/sh: 1: /nonexistent: not found\n", "127"},
	} {
		var stdin io.Reader
		if tc.stdin != "" {
			stdin = strings.NewReader(tc.stdin)
		}
		stdout, stderr, exit := run(t, c, tc.command, stdin)
		if stdout != tc.stdout || stderr != tc.stderr || exit != tc.exit {
			t.Errorf("%q: %q %q %q, want %q %q %q", tc.command, stdout, stderr, exit, tc.stdout, tc.stderr, tc.exit)
		}
	}
	if n := r.opener.opened(); n != 1 {
		t.Errorf("%d sandboxes were opened for one connection", n)
	}
}

// Bytes pass both ways as they are, and each direction ends by itself. C179
func TestBinary(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	data := make([]byte, 5<<20)
	_, _ = rand.Read(data)
	stdout, _, exit := run(t, r.dial(t), "cat", bytes.NewReader(data))
	if exit != "0" || stdout != string(data) {
		t.Errorf("exit %s, %d bytes came back, or others", exit, len(stdout))
	}
	sum, _, _ := run(t, r.dial(t), "sha256sum", bytes.NewReader(data))
	if want := fmt.Sprintf("%x  -\n", sha256.Sum256(data)); sum != want {
		t.Errorf("sum %q, want %q", sum, want)
	}
}

// Only what the list names comes in, within bounds; the loader's variables never.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.dial(t)
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for name, want := range map[string]bool{
		"LANG": true, "LC_ALL": true, "GIT_PROTOCOL": true, "LD_PRELOAD": false, "PATH": false, "BASH_ENV": false, "ENV": false, "LC_=x": false,
		"LC_" + strings.Repeat("A", 100): false, "BERTH_MARK": false, "PYTHONPATH": false, "": false,
	} {
		if err := s.Setenv(name, "C.UTF-8"); (err == nil) != want {
			t.Errorf("%q: %v, want taken %v", name, err, want)
		}
	}
	if s.Setenv("LC_CTYPE", strings.Repeat("x", 64<<10)) == nil {
		t.Error("a huge value was taken")
	}
	taken := 0
	for i := range 1000 {
		if s.Setenv(fmt.Sprintf("LC_%d", i), "v") == nil {
			taken++
		}
	}
	if limit := r.limits.EnvCount; taken >= limit {
		t.Errorf("%d variables were taken, limit %d", taken, limit)
	}
	out, err := s.Output("env")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"LC_ALL=C.UTF-8\n", "SSH_CLIENT=127.0.0.1 ", "HOME=/"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in %s", want, out)
		}
	}
	for _, never := range []string{"LD_PRELOAD", r.ws, r.addr[strings.LastIndex(r.addr, ":")+1:]} {
		if strings.Contains(string(out), never) {
			t.Errorf("%q in %s", never, out)
		}
	}
}

// terminal opens a shell on a terminal.
func terminal(t *testing.T, c *ssh.Client, command string) (*ssh.Session, io.WriteCloser, *tail.Buffer) {
	t.Helper()
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	out := &tail.Buffer{}
	s.Stdout = out
	in, err := s.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.RequestPty("xterm-256color", 40, 100, ssh.TerminalModes{}); err != nil {
		t.Fatal(err)
	}
	if command == "" {
		err = s.Shell()
	} else {
		err = s.Start(command)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s, in, out
}

// A login shell on a terminal: its size, a new size, its type, and its end.
func TestShell(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s, in, out := terminal(t, r.dial(t), "")
	say := func(line, want string) {
		t.Helper()
		if _, err := io.WriteString(in, line+"\n"); err != nil {
			t.Fatal(err)
		}
		eventually(t, want, func() bool { return strings.Contains(out.String(), want) })
	}
	say(`echo "size:$(stty size) term:$TERM"`, "size:40 100 term:xterm-256color")
	if err := s.WindowChange(50, 120); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the new size", func() bool {
		say(`echo "now:$(stty size):"`, "now:")
		return strings.Contains(out.String(), "now:50 120:")
	})
	say(`shopt -q login_shell && echo "login:yes"`, "login:yes")
	if _, err := io.WriteString(in, "exit 5\n"); err != nil {
		t.Fatal(err)
	}
	err := s.Wait()
	if e, ok := err.(*ssh.ExitError); !ok || e.ExitStatus() != 5 {
		t.Errorf("the shell ended with %v", err)
	}
}

// ^D ends cat on a terminal. C179
func TestTerminalEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s, in, out := terminal(t, r.dial(t), "cat")
	if _, err := io.WriteString(in, "line\n\x04"); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(); err != nil || !strings.Contains(out.String(), "line\r\nline\r\n") {
		t.Errorf("%v, %q", err, out.String())
	}
}

// Signals of the client reach the command.
func TestSignal(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s, err := r.dial(t).NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	out := &tail.Buffer{}
	s.Stdout = out
	if err := s.Start(`trap 'echo usr1' USR1; echo ready; while :; do sleep 0.05; done`); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the trap", func() bool { return strings.Contains(out.String(), "ready") })
	for _, sig := range []ssh.Signal{ssh.SIGUSR1, "NONSENSE", "STOP"} {
		if err := s.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the signal", func() bool { return strings.Contains(out.String(), "usr1") })
	if err := s.Signal(ssh.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if e, ok := s.Wait().(*ssh.ExitError); !ok || e.Signal() != "KILL" {
		t.Errorf("ended with %v", e)
	}
}

// A client that vanishes leaves nothing behind, whatever its processes do against it: the
// command hears SIGHUP first. C177
func TestVanishedClient(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"hears the hangup": `trap 'echo hup > hup; exit' HUP; echo ready; while :; do sleep 0.05; done; : MARK`,
		"deaf":             `trap '' HUP TERM; (trap '' HUP TERM; setsid sleep 77.MARK) & echo ready; while :; do sleep 0.05; done; : MARK`,
		"reads its input":  `echo ready; cat > half; echo whole > whole; : MARK`,
		"floods":           `echo ready; yes MARK`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			mark := fmt.Sprintf("%d", time.Now().UnixNano())
			c := r.dial(t)
			s, err := c.NewSession()
			if err != nil {
				t.Fatal(err)
			}
			out := &tail.Buffer{}
			if name == "floods" { // and nobody reads
				pipe, err := s.StdoutPipe()
				if err != nil {
					t.Fatal(err)
				}
				if _, err := s.StdinPipe(); err != nil {
					t.Fatal(err)
				}
				if err := s.Start(strings.ReplaceAll(script, "MARK", mark)); err != nil {
					t.Fatal(err)
				}
				if _, err := io.ReadFull(pipe, make([]byte, 100)); err != nil {
					t.Fatal(err)
				}
			} else {
				s.Stdout = out
				in, err := s.StdinPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := s.Start(strings.ReplaceAll(script, "MARK", mark)); err != nil {
					t.Fatal(err)
				}
				if _, err := io.WriteString(in, "half an input"); err != nil {
					t.Fatal(err)
				}
				eventually(t, "the command", func() bool { return strings.Contains(out.String(), "ready") })
			}
			if procsWith(t, mark) == 0 {
				t.Fatal("the command cannot be seen")
			}
			c.Close()
			eventually(t, "the end of its processes", func() bool { return procsWith(t, mark) == 0 })
			eventually(t, "the record of its end", func() bool { return len(linesWith(r.audit.String(), `"event":"logout"`)) == 1 })
			left, _, _ := run(t, r.dial(t), "ls", nil)
			switch name {
			case "hears the hangup":
				if left != "hup\n" {
					t.Errorf("no hangup was heard: %q", left)
				}
			case "reads its input":
				if left != "half\n" {
					t.Errorf("half an input was taken for the whole: %q", left)
				}
			}
		})
	}
}

// A client whose packets are dropped is found by keepalives, and its processes end. C177
func TestSilentClient(t *testing.T) {
	t.Parallel()
	clock := newFakeClock()
	r := newRig(t, func(o *Options) { o.Clock = clock })
	p := newProxy(t, r.addr)
	c, err := ssh.Dial("tcp", p.addr, &ssh.ClientConfig{User: "one", Auth: []ssh.AuthMethod{ssh.PublicKeys(r.key)}, HostKeyCallback: ssh.FixedHostKey(r.host.PublicKey())})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	mark := fmt.Sprintf("%d", time.Now().UnixNano())
	if err := s.Start("sleep 7" + mark); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the command", func() bool { return procsWith(t, mark) > 0 })
	// A client that answers stays, however long.
	for range 10 {
		before := clock.asked(r.limits.Keepalive)
		clock.advance(r.limits.Keepalive)
		eventually(t, "a question and its answer", func() bool { return clock.asked(r.limits.Keepalive) >= before+2 })
	}
	if procsWith(t, mark) == 0 {
		t.Fatal("a client that answers was cut off")
	}
	p.cut() // packets are dropped from now on; nobody is told
	passed := time.Duration(0)
	for clock.asked(hangupGrace) == 0 {
		before := clock.asked(r.limits.Keepalive)
		clock.advance(r.limits.Keepalive)
		passed += r.limits.Keepalive
		eventually(t, "the next wait", func() bool { return clock.asked(r.limits.Keepalive) > before || clock.asked(hangupGrace) > 0 })
	}
	if bound := 28 * time.Second; passed > bound {
		t.Errorf("it was noticed after %s, more than %s", passed, bound)
	}
	clock.advance(hangupGrace)
	eventually(t, "the end of its processes", func() bool { return procsWith(t, mark) == 0 })
	eventually(t, "the record", func() bool { return strings.Contains(r.audit.String(), errNoAnswer.Error()) })
}

// Background processes end with their command, unless the workspace keeps them.
func TestBackground(t *testing.T) {
	t.Parallel()
	for name, keep := range map[string]bool{"ended": false, "kept": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, func(o *Options) {
				ws := o.Policy.Workspaces["one"]
				ws.KeepBackground = keep
				o.Policy.Workspaces["one"] = ws
			})
			mark := fmt.Sprintf("%d", time.Now().UnixNano())
			if _, _, exit := run(t, r.dial(t), "setsid sleep 9"+mark+" >/dev/null 2>&1 </dev/null & sleep 0.1", nil); exit != "0" {
				t.Fatal(exit)
			}
			if !keep {
				eventually(t, "its end", func() bool { return procsWith(t, mark) == 0 })
				return
			}
			if _, _, exit := run(t, r.dial(t), "true", nil); exit != "0" || procsWith(t, mark) == 0 {
				t.Errorf("exit %s, and it was ended", exit)
			}
		})
	}
}

// What a client may not have: agents, X11, other subsystems, a second command, listening,
// forwarding that is off, a command beyond the limit.
func TestRefusals(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.dial(t)
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, request := range []string{"auth-agent-req@openssh.com", "x11-req", "nonsense", "subsystem"} {
		if ok, err := s.SendRequest(request, true, ssh.Marshal(struct{ Name string }{"netconf"})); ok || err != nil {
			t.Errorf("%s: %v %v", request, ok, err)
		}
	}
	if ok, err := s.SendRequest("exec", true, ssh.Marshal(struct{ C string }{strings.Repeat("x", 200<<10)})); ok || err != nil {
		t.Errorf("a huge command: %v %v", ok, err)
	}
	if ok, err := s.SendRequest("exec", true, ssh.Marshal(struct{ C string }{"a\x00b"})); ok || err != nil {
		t.Errorf("a command with NUL: %v %v", ok, err)
	}
	if err := s.Start("sleep 0.1"); err != nil {
		t.Fatal(err)
	}
	if ok, err := s.SendRequest("exec", true, ssh.Marshal(struct{ C string }{"echo twice"})); ok || err != nil {
		t.Errorf("a second command: %v %v", ok, err)
	}
	if _, err := c.Dial("tcp", "127.0.0.1:1"); err == nil || !strings.Contains(err.Error(), "not permitted") {
		t.Errorf("forwarding: %v", err)
	}
	if l, err := c.Listen("tcp", "127.0.0.1:0"); err == nil {
		l.Close()
		t.Error("listening was permitted")
	}
	if _, _, err := c.OpenChannel("nonsense", nil); err == nil {
		t.Error("an unknown channel was opened")
	}
}

// What the server's own failures tell clients names nothing of the host.
func TestFailureTellsNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.opener.fail = fmt.Errorf("open /secret/path: %w", syscall.EIO)
	_, stderr, exit := run(t, r.dial(t), "true", nil)
	if exit != "255" || !strings.Contains(stderr, "not to be had") || strings.Contains(stderr, "secret") {
		t.Errorf("%q %q", stderr, exit)
	}
	r.opener.mu.Lock()
	r.opener.fail = nil
	r.opener.mu.Unlock()
	if _, _, exit := run(t, r.dial(t), "true", nil); exit != "0" {
		t.Errorf("after it works again: exit %s", exit)
	}
}

// Words that need no shell.
func TestPlainWords(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		"ls -l /tmp": "ls|-l|/tmp", "a  b": "a|b", "A=b c": "", "a;b": "", "a $b": "", "a 'b'": "", "": "", " ": "", "a\nb": "", "a>b": "", "~/x": "", "x a=b": "x|a=b", "*": "", "a\\b": "",
	} {
		words, ok := plainWords(command)
		if got := strings.Join(words, "|"); got != want || ok != (want != "") {
			t.Errorf("%q: %q, want %q", command, got, want)
		}
	}
}
