package sshhost

import (
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/workberth/workberth/internal/tail"
)

// withForward permits forwarding in workspace one.
func withForward(o *Options) {
	ws := o.Policy.Workspaces["one"]
	ws.Forward = true
	o.Policy.Workspaces["one"] = ws
}

// A forwarded connection reaches the sandbox's own loopback, both ways, and nothing of the
// host's.
func TestForward(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 plays the server in the sandbox")
	}
	r := newRig(t, withForward)
	c := r.dial(t)
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	out := &tail.Buffer{}
	s.Stdout, s.Stderr = out, out
	in, err := s.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := s.Start(`python3 -c '
import socket
l = socket.socket(); l.bind(("127.0.0.1", 0)); l.listen(); print("port", l.getsockname()[1], "", flush=True)
while True:
    c, _ = l.accept(); data = b""
    while True:
        p = c.recv(65536)
        if not p: break
        data += p
    c.sendall(b"got " + data); c.close()'`); err != nil {
		t.Fatal(err)
	}
	var port int
	eventually(t, "the server inside", func() bool { n, _ := fmt.Sscanf(out.String(), "port %d ", &port); return n == 1 })
	data := strings.Repeat("0123456789", 100_000)
	for _, host := range []string{"127.0.0.1", "localhost"} {
		nc, err := c.Dial("tcp", fmt.Sprintf("%s:%d", host, port))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(nc, data); err != nil {
			t.Fatal(err)
		}
		if err := nc.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(nc); err != nil || string(got) != "got "+data {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		nc.Close()
	}
	// The host listens here; the sandbox does not.
	_, hostPort, _ := net.SplitHostPort(r.addr)
	begun := time.Now()
	if _, err := c.Dial("tcp", "127.0.0.1:"+hostPort); err == nil || !strings.Contains(err.Error(), "nothing answers") {
		t.Errorf("the host's port: %v", err)
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
	for _, target := range []string{"192.0.2.1:80", "example.org:80", "169.254.169.254:80", "0.0.0.0:80", "127.0.0.1:0"} {
		if _, err := c.Dial("tcp", target); err == nil {
			t.Errorf("%s was reached", target)
		}
	}
	// A client that leaves in the middle leaves no process.
	nc, err := c.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	dialing := fmt.Sprintf("dial\x00%d", port)
	eventually(t, "the connector", func() bool { return procsWith(t, dialing) == 1 })
	nc.Close()
	eventually(t, "its end", func() bool { return procsWith(t, dialing) == 0 })
	if got := linesWith(r.audit.String(), `"event":"forward"`); len(got) < 7 {
		t.Errorf("the record: %q", got)
	}
}

// Loopback addresses, in their spellings.
func TestIsLoopback(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"localhost": true, "127.0.0.1": true, "127.1.2.3": true, "::1": true, "::ffff:127.0.0.1": true,
		"0.0.0.0": false, "::": false, "10.0.0.1": false, "": false, "localhost.example.org": false, "2130706433": false, "127.1": false,
	} {
		if isLoopback(host) != want {
			t.Errorf("%q: want %v", host, want)
		}
	}
}
