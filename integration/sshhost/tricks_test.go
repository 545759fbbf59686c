package sshhost

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A client that has logged in and breaks the protocol, each trick on connections of its own: windows that
// overflow or are ignored, channels that do not exist, floods, lengths that lie, new keys without end. Its own
// connection may end; the memory stays bounded, another's session goes on, and the trick leaves nothing behind.
func TestProtocolTricks(t *testing.T) {
	t.Parallel()
	python := "/usr/bin/python3" // of the distribution, as the module is
	need(t, python)
	if err := exec.Command(python, "-c", "import paramiko").Run(); err != nil {
		missing(t, "paramiko is not installed")
	}
	script, err := filepath.Abs("testdata/tricks.py")
	if err != nil {
		t.Fatal(err)
	}
	h := start(t)
	other := h.ssh(t, "demo", "cat")
	in, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	back := bufio.NewReader(out)
	alive := func(word string) {
		t.Helper()
		if _, err := io.WriteString(in, word+"\n"); err != nil {
			t.Fatal(err)
		}
		if line, err := back.ReadString('\n'); err != nil || line != word+"\n" {
			t.Fatalf("the other session: %q, %v", line, err)
		}
	}
	alive("before")
	trick := func(name string) string {
		return output(t, h.command(t, python, script, h.port, h.path("id"), name))
	}
	for name := range strings.FieldsSeq(trick("list")) {
		t.Logf("%s: %s", name, strings.TrimSpace(trick(name)))
		alive("after " + name)
	}
	// The connections have ended, and with them what they had started.
	eventually(t, "the end of what the tricks have started", func() bool {
		return procsWith("head -c 100000000") == 0 && procsWith("sleep 98701") == 0 && connections(t, h) == 1
	})
	if peak := peakMemory(t, h.cmd.Process.Pid); peak > 256<<10 {
		t.Errorf("the server took %d KiB at most", peak)
	}
	if got := output(t, h.ssh(t, "demo", "echo", "fresh")); got != "fresh\n" {
		t.Errorf("a new session: %q", got)
	}
	in.Close()
	if err := other.Wait(); err != nil {
		t.Error(err)
	}
}

// connections are those that the server counts as open, in any state.
func connections(t testing.TB, h *host) (n int) {
	t.Helper()
	for line := range strings.Lines(h.get(t, "/metrics")) {
		if strings.HasPrefix(line, "berth_host_connections{") {
			var some int
			if _, err := fmt.Sscan(line[strings.IndexByte(line, '}')+1:], &some); err != nil {
				t.Fatal(err)
			}
			n += some
		}
	}
	return n
}

// peakMemory is the most memory a process has had, in KiB.
func peakMemory(t testing.TB, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		var n int
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &n); err == nil {
			return n
		}
	}
	t.Fatalf("no peak in\n%s", status)
	return 0
}
