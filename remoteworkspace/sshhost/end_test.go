package sshhost

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/workberth/workberth/internal/tail"
)

// A sandbox that ends under a command is told to the client; the next session gets another one.
func TestSandboxLost(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.dial(t)
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	out := &tail.Buffer{}
	s.Stdout, s.Stderr = out, out
	if err := s.Start("echo ready; sleep 1000"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the command", func() bool { return strings.Contains(out.String(), "ready") })
	files := r.client(t)
	if err := r.opener.last.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(); err == nil {
		t.Error("the command ended well")
	}
	if err := files.Wait(); err == nil {
		t.Error("the sftp session ended well")
	}
	if out, stderr, exit := run(t, c, "echo again", nil); out != "again\n" {
		t.Errorf("%q %q %s", out, stderr, exit)
	}
	if _, err := r.client(t).Stat("/workspace"); err != nil {
		t.Error(err)
	}
}

// The end of one session of a connection ends its processes and leaves the others alone. C177
func TestOneSessionEnds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.dial(t)
	mark := fmt.Sprintf("%d", time.Now().UnixNano())
	first, _, _ := terminal(t, c, "sleep 5"+mark)
	_, in, out := terminal(t, c, "cat")
	eventually(t, "the command", func() bool { return procsWith(t, mark) > 0 })
	first.Close()
	eventually(t, "its end", func() bool { return procsWith(t, mark) == 0 })
	if _, err := in.Write([]byte("still\n")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the other session", func() bool { return strings.Contains(out.String(), "still") })
}
