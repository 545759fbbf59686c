package sshhost

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Commands and pipes by OpenSSH. C179
func TestOpenSSH(t *testing.T) {
	t.Parallel()
	h := start(t)
	data := make([]byte, 5<<20)
	_, _ = rand.Read(data)
	for name, tc := range map[string]struct {
		args  []string
		stdin string
		want  string
		code  int
	}{
		"exit code":        {[]string{"demo", "exit 7"}, "", "", 7},
		"lines":            {[]string{"demo", "wc", "-l"}, "1\n2\n3\n4\n", "4\n", 0},
		"no input":         {[]string{"-n", "demo", "cat"}, "not read", "", 0},
		"no terminal":      {[]string{"-T", "demo", "tty; true"}, "", "not a tty\n", 0},
		"binary both ways": {[]string{"demo", "cat"}, string(data), string(data), 0},
		"terminal and ^D":  {[]string{"-tt", "demo", "stty -echo; cat"}, "line\n\x04", "line\r\n", 0},
		"shell":            {[]string{"-T", "demo"}, "echo $0; exit 3\n", "/bin/bash\n", 3},
		"killed":           {[]string{"demo", "kill -9 $$"}, "", "", 255},
		"environment":      {[]string{"-o", "SetEnv=LC_X=y LD_PRELOAD=z", "demo", "echo $LC_X:$LD_PRELOAD"}, "", "y:\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := h.ssh(t, tc.args...)
			cmd.Stdin = strings.NewReader(tc.stdin)
			var out bytes.Buffer
			cmd.Stdout = &out
			err := cmd.Run()
			got := out.String()
			if name == "terminal and ^D" { // what was typed before stty is echoed
				got = got[max(0, len(got)-len(tc.want)):]
			}
			if code(err) != tc.code || got != tc.want {
				t.Errorf("code %d, %d bytes %.100q, want %d %.100q", code(err), len(got), got, tc.code, tc.want)
			}
		})
	}
}

// The key that signs decides, with OpenSSH as the client: the key of workspace two is offered
// first, accepted as far as the offer goes, and cannot sign. C175
func TestOfferedKey(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.keygen(t, "b")
	h.berth(t, "key", "add", "demo", h.path("b.pub"))
	h.reload(t)
	// Only the public part of b is there: ssh offers it and has nothing to sign with.
	if err := os.Remove(h.path("b")); err != nil {
		t.Fatal(err)
	}
	cmd := h.ssh(t, "-v", "-o", "LogLevel=DEBUG1", "-o", "IdentityFile="+h.path("b"), "-i", h.path("b.pub"), "demo", "echo in")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || string(out) != "in\n" {
		t.Fatalf("%v %q\n%s", err, out, &stderr)
	}
	fingerprint := strings.Fields(output(t, h.command(t, "ssh-keygen", "-lf", h.path("id.pub"))))[1]
	var login string
	eventually(t, "the record", func() bool {
		for _, line := range h.audit(t) {
			if strings.Contains(line, `"event":"login"`) {
				login = line
			}
		}
		return login != ""
	})
	if !strings.Contains(login, fingerprint) {
		t.Errorf("%s is not in %s", fingerprint, login)
	}
}

// audit reads the lines of the audit log.
func (h *host) audit(t testing.TB) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(h.dir, "audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(data), "\n")
}

// Certificates that ssh-keygen has signed.
func TestCertificate(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.keygen(t, "ca")
	h.berth(t, "ca", "add", "demo", h.path("ca.pub"))
	h.reload(t)
	for name, tc := range map[string]struct {
		sign []string
		code int
	}{
		"right":     {[]string{"-n", "demo", "-V", "-1m:+1h"}, 0},
		"expired":   {[]string{"-n", "demo", "-V", "-2h:-1h"}, 255},
		"principal": {[]string{"-n", "other", "-V", "+1h"}, 255},
		"address":   {[]string{"-n", "demo", "-V", "+1h", "-O", "source-address=192.0.2.0/24"}, 255},
		"command":   {[]string{"-n", "demo", "-V", "+1h", "-O", "force-command=true"}, 255},
	} {
		h.keygen(t, name)
		args := append([]string{"-q", "-s", h.path("ca"), "-I", "somebody"}, tc.sign...)
		output(t, h.command(t, "ssh-keygen", append(args, h.path(name+".pub"))...))
		config, err := os.ReadFile(h.path("config"))
		if err != nil {
			t.Fatal(err)
		}
		h.write(t, "config-"+name, strings.ReplaceAll(string(config), h.path("id")+"\n", h.path(name)+"\n"))
		if err := h.command(t, "ssh", "-F", h.path("config-"+name), "demo", "true").Run(); code(err) != tc.code {
			t.Errorf("%s: %v, want code %d", name, err, tc.code)
		}
	}
}

// Several sessions over one connection, and the end of it.
func TestMultiplexing(t *testing.T) {
	t.Parallel()
	h := start(t)
	control := h.path("cm")
	master := h.ssh(t, "-o", "ControlMaster=yes", "-o", "ControlPath="+control, "-N", "demo")
	if err := master.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the control socket", func() bool { _, err := os.Stat(control); return err == nil })
	for i := range 5 {
		if out := output(t, h.ssh(t, "-o", "ControlPath="+control, "demo", fmt.Sprintf("echo %d", i))); out != fmt.Sprintf("%d\n", i) {
			t.Errorf("session %d: %q", i, out)
		}
	}
	output(t, h.ssh(t, "-o", "ControlPath="+control, "-O", "check", "demo"))
	output(t, h.ssh(t, "-o", "ControlPath="+control, "-O", "exit", "demo"))
	_ = master.Wait() // it was told to end
	logins := 0
	for _, line := range h.audit(t) {
		if strings.Contains(line, `"event":"login"`) {
			logins++
		}
	}
	if logins != 1 {
		t.Errorf("%d logins for five sessions", logins)
	}
}

// Terminals that are closed without a word leave nothing. C177
func TestClosedTerminals(t *testing.T) {
	t.Parallel()
	h := start(t)
	n := 6
	if testing.Short() {
		n = 3
	}
	mark := fmt.Sprintf("%d", time.Now().UnixNano())
	for i := range n {
		cmd := h.ssh(t, "-tt", "demo")
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// A background job of the shell and one in a session of its own, both deaf to a hangup.
		if _, err := fmt.Fprintf(in, "trap '' HUP; (sleep 3%s) & setsid nohup sleep 4%s & echo rea''dy%d\n", mark, mark, i); err != nil {
			t.Fatal(err)
		}
		seen, buf := "", make([]byte, 4096)
		for !strings.Contains(seen, fmt.Sprintf("ready%d", i)) {
			k, err := out.Read(buf)
			if err != nil {
				t.Fatal(err, seen)
			}
			seen += string(buf[:k])
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // it was killed
	}
	eventually(t, "the end of all processes", func() bool { return procsWith(mark) == 0 })
	eventually(t, "the end of all shells", func() bool {
		return output(t, h.ssh(t, "demo", "ps -eo comm= | grep -c bash; true")) == "0\n"
	})
}

// ssh -L to a server inside the sandbox; nothing is listened to on the host.
func TestLocalForward(t *testing.T) {
	t.Parallel()
	need(t, "python3")
	h := start(t, "--forward")
	h.fetch(t, "python3 -m http.server --bind 127.0.0.1 8123 >/dev/null 2>&1")
	if err := h.ssh(t, "-o", "ExitOnForwardFailure=yes", "-R", "0:localhost:1", "demo", "true").Run(); code(err) != 255 {
		t.Errorf("a remote forward: %v", err)
	}
}

// fetch gets a page of the workspace from a web server that a command starts on port 8123 inside.
func (h *host) fetch(t testing.TB, server string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(h.ws, "page"), []byte("served from inside"), 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	local := l.Addr().String()
	l.Close()
	cmd := h.ssh(t, "-o", "ExitOnForwardFailure=yes", "-L", local+":localhost:8123", "demo", server)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the page", func() bool {
		nc, err := net.Dial("tcp", local)
		if err != nil {
			return false
		}
		defer nc.Close()
		_, _ = io.WriteString(nc, "GET /page HTTP/1.0\r\n\r\n")
		_ = nc.SetDeadline(time.Now().Add(10 * time.Second))
		data, _ := io.ReadAll(nc)
		return strings.HasSuffix(string(data), "served from inside")
	})
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // it was killed
}

// SIGTERM lets a session finish and refuses new ones; SIGHUP ends what is withdrawn.
func TestSignals(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.keygen(t, "other")
	h.berth(t, "key", "add", "demo", h.path("other.pub"))
	cmd := h.ssh(t, "demo", "echo ready; read x; echo done")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line := readLine(t, out); line != "ready\n" {
		t.Fatal(line)
	}
	if err := h.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the port to close", func() bool {
		nc, err := net.Dial("tcp", "127.0.0.1:"+h.port)
		if err == nil {
			nc.Close()
		}
		return err != nil
	})
	if _, err := io.WriteString(in, "\n"); err != nil {
		t.Fatal(err)
	}
	if line := readLine(t, out); line != "done\n" {
		t.Error(line)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	eventually(t, "the end of the server", func() bool { return h.cmd.Process.Signal(syscall.Signal(0)) != nil })
	h.serve(t)
	cmd = h.ssh(t, "demo", "echo ready; sleep 1000")
	if out, err = cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line := readLine(t, out); line != "ready\n" {
		t.Fatal(line)
	}
	fingerprint := strings.Fields(output(t, h.command(t, "ssh-keygen", "-lf", h.path("id.pub"))))[1]
	h.berth(t, "key", "rm", "demo", fingerprint)
	if err := h.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); code(err) != 255 {
		t.Errorf("the session of a withdrawn key: %v", err)
	}
	if err := h.ssh(t, "demo", "true").Run(); code(err) != 255 {
		t.Errorf("a withdrawn key: %v", err)
	}
}

// A workspace whose directory is missing is told of before somebody connects; a client learns
// nothing about the host, and it works again when the directory is there.
func TestMissingDirectory(t *testing.T) {
	t.Parallel()
	h := start(t)
	if err := os.Remove(h.ws); err != nil {
		t.Fatal(err)
	}
	h.reload(t)
	if !strings.Contains(h.out.String(), "cannot be opened as things are") {
		t.Errorf("the server said %q", h.out.String())
	}
	out, err := h.ssh(t, "demo", "true").CombinedOutput()
	if code(err) != 255 || !strings.Contains(string(out), "not to be had") || strings.Contains(string(out), h.ws) {
		t.Errorf("%v %q", err, out)
	}
	if err := os.Mkdir(h.ws, 0o755); err != nil {
		t.Fatal(err)
	}
	output(t, h.ssh(t, "demo", "true"))
}

// What cannot be read at a reload changes nothing: neither who may come in nor who is in.
func TestBadReload(t *testing.T) {
	t.Parallel()
	h := start(t)
	keys := filepath.Join(h.dir, "workspaces", "demo", "authorized_keys")
	good, err := os.ReadFile(keys)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(keys, append([]byte(`command="true" `), good...), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := h.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the server's complaint", func() bool { return strings.Contains(h.out.String(), "not reloaded") })
	if !strings.Contains(h.out.String(), "authorized_keys:1") {
		t.Errorf("it does not say where: %s", h.out.String())
	}
	output(t, h.ssh(t, "demo", "true"))
}

// get reads a page of the server's address for metrics.
func (h *host) get(t testing.TB, path string) string {
	t.Helper()
	_, rest, _ := strings.Cut(h.out.String(), "metrics on ")
	res, err := http.Get(strings.TrimSuffix(strings.TrimSpace(rest), "/metrics") + path)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// healthy looks at the metrics of a server that has served something.
func (h *host) healthy(t testing.TB) {
	t.Helper()
	if got := h.get(t, "/healthz"); got != "ok\n" {
		t.Errorf("health: %q", got)
	}
	got := h.get(t, "/metrics")
	for _, want := range []string{`berth_host_auth_total{outcome="ok"}`, `berth_host_sandboxes 1`, `berth_host_sessions_total{kind="exec",outcome="ended"}`, `berth_host_bytes_total{direction="in"}`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	if strings.Contains(got, "demo") {
		t.Error("metrics name a workspace")
	}
}
