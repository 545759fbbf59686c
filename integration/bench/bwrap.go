package bench

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
)

// bwrap is the bubblewrap program with nothing around it: the least that gives a command the same
// namespaces and the same view of the file system as the backend does.
type bwrap struct{ path string }

// newBwrap finds the program.
func newBwrap() (bwrap, error) {
	path, err := exec.LookPath("bwrap")
	return bwrap{path}, err
}

// command runs argv in a sandbox of its own with the directory at /workspace.
func (w bwrap) command(ctx context.Context, workspace string, argv ...string) *exec.Cmd {
	args := []string{
		"--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try",
		"--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv",
		"--setenv", "PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"--tmpfs", "/", "--proc", "/proc", "--dev", "/dev",
		"--tmpfs", "/tmp", "--tmpfs", "/var/tmp", "--tmpfs", "/run",
		"--ro-bind", "/usr", "/usr", "--ro-bind-try", "/etc", "/etc",
	}
	for _, name := range []string{"bin", "sbin", "lib", "lib32", "lib64", "libx32"} {
		path := filepath.Join("/", name)
		if target, err := os.Readlink(path); err == nil {
			args = append(args, "--symlink", target, path)
		} else if _, err := os.Stat(path); err == nil {
			args = append(args, "--ro-bind", path, path)
		}
	}
	args = append(args, "--bind", workspace, "/workspace", "--remount-ro", "/", "--chdir", "/workspace", "--")
	return exec.CommandContext(ctx, w.path, append(args, argv...)...)
}
