package sshhost

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/workberth/workberth/internal/helperbin"
	"github.com/workberth/workberth/sandbox"
	"github.com/workberth/workberth/sandbox/backendtest"
	"github.com/workberth/workberth/sandbox/ssh"
)

// berth is a client of berth: files and commands in a hosted workspace, with the sandbox's own
// walls.
func TestClientOfBerth(t *testing.T) {
	t.Parallel()
	h := start(t)
	client := func(stdin, command string, args ...string) (string, error) {
		words := append(strings.Fields(command), "--ssh", "demo", "--ssh-config", h.path("config"), "--workspace", "/workspace")
		cmd := exec.CommandContext(t.Context(), filepath.Join(built, "berth"), append(words, args...)...)
		cmd.Env, cmd.Dir, cmd.Stdin = h.env, h.home, strings.NewReader(stdin)
		out, err := cmd.Output()
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			err = fmt.Errorf("%w: %s", err, failed.Stderr)
		}
		return string(out), err
	}
	t.Cleanup(func() { _, _ = client("", "sandbox stop") })
	if out, err := client("", "exec", "--", "sh", "-c", "pwd; cat /proc/net/dev | tail -n +3 | cut -d: -f1 | tr -d ' '"); err != nil || out != "/workspace\nlo\n" {
		t.Fatalf("exec: %q, %v", out, err)
	}
	if _, err := client("from afar", "fs put", "dir/note"); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(h.ws, "dir/note")); err != nil || string(got) != "from afar" {
		t.Errorf("%q, %v", got, err)
	}
	if out, err := client("", "fs cat", "/etc/shadow"); err == nil || out != "" {
		t.Errorf("read %q", out)
	}
}

// hostedVar tells the processes of the suite the client's configuration.
const hostedVar = "BERTH_TEST_HOSTED"

// The whole suite of backends, over berth's own server.
func TestSuite(t *testing.T) {
	config := os.Getenv(hostedVar)
	switch {
	case config != "":
	case os.Getenv("BERTH_SSH_HOSTS") == "":
		t.Skip("set BERTH_SSH_HOSTS=1 to run the whole suite over berth's own server; TestClientOfBerth proves it in short")
	default:
		h := prepare(t)
		h.set(t, "limits: {connections: 500, perAddress: 500, perWorkspace: 500, unauthenticated: 200, sessions: 200}\n")
		h.berth(t, "workspace", "add", "demo", "--workspace", h.ws, "--backend", "local")
		h.berth(t, "key", "add", "demo", h.path("id.pub"))
		h.serve(t)
		config = h.path("config")
		t.Setenv(hostedVar, config)
	}
	helper := filepath.Join(built, helperbin.Name)
	backendtest.Run(t, backendtest.Target{
		Name: "ssh-hosted", Remote: true,
		New: func(t testing.TB, o backendtest.Options) sandbox.Backend {
			b, err := ssh.New(ssh.Options{
				StateDir: o.StateDir, Logger: o.Logger, Getenv: func(string) string { return "" },
				Helper: func(arch string) (helperbin.Helper, error) {
					if arch != runtime.GOARCH {
						return helperbin.Helper{}, errors.New("none in tests")
					}
					return helperbin.Find(helperbin.Options{Env: func(string) string { return helper }})
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			return b
		},
		Adapt: func(_ testing.TB, spec *sandbox.Spec) {
			backendtest.Unconfined(&spec.Config, ssh.DefaultConfig())
			spec.Config.SSH, spec.Config.SSHConfig = "demo", config
		},
		Waive: map[string]string{
			"bridge/mode/umask-002": "the mask is the server's", "bridge/mode/umask-077": "the mask is the server's",
		},
	})
}

// set replaces the host's settings.
func (h *host) set(t testing.TB, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(h.dir, "config.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
