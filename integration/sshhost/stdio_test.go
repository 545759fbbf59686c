package sshhost

import (
	"bytes"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// proxy is "berth host stdio".
func (h *host) proxy() string {
	return filepath.Join(built, "berth") + " host --dir " + h.dir + " stdio"
}

// prepareStdio makes a host that no server serves, and the client's settings for it.
func prepareStdio(t testing.TB) *host {
	t.Helper()
	h := prepare(t)
	h.berth(t, "workspace", "add", "demo", "--workspace", h.ws)
	h.berth(t, "key", "add", "demo", h.path("id.pub"))
	h.configure(t, "demo", "  ProxyCommand env "+strings.Join(h.env[2:4], " ")+" "+h.proxy()+"\n")
	return h
}

// ssh, sftp and scp over standard input and output, without a server or a port. C183
func TestStdio(t *testing.T) {
	t.Parallel()
	h := prepareStdio(t)
	if out := output(t, h.ssh(t, "demo", "echo in > f; cat f")); out != "in\n" {
		t.Errorf("%q", out)
	}
	if err := h.ssh(t, "demo", "exit 5").Run(); code(err) != 5 {
		t.Errorf("%v", err)
	}
	output(t, h.command(t, "scp", "-F", h.path("config"), "demo:f", "back"))
	if out := output(t, h.command(t, "cat", "back")); out != "in\n" {
		t.Errorf("%q", out)
	}
	eventually(t, "the end of all proxies", func() bool { return procsWith(h.dir+"\x00stdio") == 0 })
}

// The proxy ends with its input at every stage, and its output holds nothing but SSH. C183
func TestStdioEnds(t *testing.T) {
	t.Parallel()
	h := prepareStdio(t)
	for name, said := range map[string]string{"before anything": "", "after hello": "SSH-2.0-client\r\n", "garbage": "GET / HTTP/1.0\r\n\r\n"} {
		cmd := exec.Command(filepath.Join(built, "berth"), "host", "--dir", h.dir, "stdio")
		cmd.Env = h.env
		var out, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(in, said) // it may have ended
		in.Close()
		begun := time.Now()
		_ = cmd.Wait() // any end will do
		if took := time.Since(begun); took > 2*time.Second {
			t.Errorf("%s: it took %s", name, took)
		}
		if !strings.HasPrefix(out.String(), "SSH-2.0-") || strings.Contains(out.String(), "berth host") {
			t.Errorf("%s: standard output %q, standard error %q", name, &out, &stderr)
		}
	}
	cmd := h.ssh(t, "demo", "echo ready; sleep 1000")
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
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // it was killed
	eventually(t, "the end of the proxy", func() bool { return procsWith(h.dir+"\x00stdio") == 0 })
}
