package sshhost

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/workberth/workberth/internal/sshtest"
)

// useAll uses a hosted workspace in the ways that do not depend on its backend.
func (h *host) useAll(t *testing.T, workspace string) {
	t.Helper()
	if out := output(t, h.ssh(t, "demo", "echo written > file; echo $((1+2))")); out != "3\n" {
		t.Errorf("exec: %q", out)
	}
	if err := h.ssh(t, "demo", "exit 9").Run(); code(err) != 9 {
		t.Errorf("exit code: %v", err)
	}
	shell := h.ssh(t, "-tt", "demo")
	shell.Stdin = strings.NewReader("tty; exit 4\n")
	if out, err := shell.Output(); code(err) != 4 || !strings.Contains(string(out), "/dev/pts/") {
		t.Errorf("shell: %v %q", err, out)
	}
	h.write(t, "up", strings.Repeat("up", 100_000))
	h.write(t, "batch", "put up\nget file\nrename up up2\nchmod 600 up2\nput up2\n-rm none\n")
	output(t, h.command(t, "cp", "up", "up2"))
	output(t, h.command(t, "sftp", "-F", h.path("config"), "-b", h.path("batch"), "demo"))
	if data, err := os.ReadFile(h.path("file")); err != nil || string(data) != "written\n" {
		t.Errorf("%q, %v", data, err)
	}
	if data, err := os.ReadFile(filepath.Join(workspace, "up2")); err != nil || len(data) != 200_000 {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	if out := output(t, h.ssh(t, "demo", "wc -c < up2")); strings.TrimSpace(out) != "200000" {
		t.Errorf("a command sees %q", out)
	}
}

// A workspace on another machine: the host passes sessions on to its SSH server. Containment of
// files is that of the ssh backend.
func TestJump(t *testing.T) {
	t.Parallel()
	need(t, "bwrap", "ssh", "ssh-keygen", "sftp")
	far := sshtest.Start(t, sshtest.Options{ExtraConfig: []string{"SetEnv XDG_CACHE_HOME=" + t.TempDir()}})
	dir, err := os.MkdirTemp("", "bh-far-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	workspace, config := filepath.Join(dir, "ws"), filepath.Join(dir, "config")
	if err := os.WriteFile(config, []byte(far.ConfigText("far")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(workspace, 0o755); err != nil {
		t.Fatal(err)
	}
	h := start(t)
	h.berth(t, "workspace", "rm", "demo")
	h.berth(t, "workspace", "add", "demo", "--workspace", workspace, "--ssh", "far", "--ssh-config", config)
	h.berth(t, "key", "add", "demo", h.path("id.pub"))
	h.reload(t)
	h.useAll(t, workspace)
}

// Containers, with an image that has busybox and nothing else.
func TestContainers(t *testing.T) {
	for backend, engine := range map[string]struct{ from, to string }{
		"docker": {"BERTH_TEST_DOCKER", "DOCKER_HOST"}, "podman": {"BERTH_TEST_PODMAN", "CONTAINER_HOST"},
	} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			address := os.Getenv(engine.from)
			if address == "" {
				missing(t, engine.from+" names no engine")
			}
			h := prepare(t)
			h.env = append(h.env, engine.to+"="+address)
			h.berth(t, "workspace", "add", "demo", "--workspace", h.ws, "--backend", backend, "--image", "berth-busybox", "--forward")
			h.berth(t, "key", "add", "demo", h.path("id.pub"))
			h.serve(t)
			h.useAll(t, h.ws)
			h.fetch(t, "exec busybox httpd -f -p 127.0.0.1:8123 -h /workspace")
		})
	}
}
