package sshtest

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// Agent is a running key agent of OpenSSH.
type Agent struct {
	Socket string // what SSH_AUTH_SOCK is set to
	Client agent.ExtendedAgent
}

// StartAgent runs ssh-agent with keys until the end of the test.
func StartAgent(t testing.TB, keys ...HostKey) *Agent {
	t.Helper()
	program := Program(t, "ssh-agent")
	dir, err := os.MkdirTemp("", "sshtest-agent-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	a := &Agent{Socket: filepath.Join(dir, "socket")}
	cmd := exec.Command(program, "-D", "-a", a.Socket) //nolint:noctx // ended below
	// What it prints, the environment for its clients, says that it listens.
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("ssh-agent says nothing: %v", err)
	}
	conn, err := net.Dial("unix", a.Socket) //nolint:noctx // the socket is there
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	a.Client = agent.NewClient(conn)
	for _, key := range keys {
		private, err := ssh.ParseRawPrivateKey(key.PEM)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Client.Add(agent.AddedKey{PrivateKey: private, Comment: "sshtest"}); err != nil {
			t.Fatal(err)
		}
	}
	return a
}
