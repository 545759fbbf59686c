package bubblewrap

import (
	"os/exec"
	"testing"

	"github.com/workberth/workberth/sandbox"
)

// BenchmarkCreate is a sandbox from nothing to the end of its first command;
// closing it is not counted. To be compared with BenchmarkPlainBwrap.
func BenchmarkCreate(b *testing.B) {
	r := newRig(b)
	for b.Loop() {
		sb, err := r.Ensure(b.Context(), r.spec())
		if err != nil {
			b.Fatal(err)
		}
		runTrue(b, sb)
		b.StopTimer()
		if err := sb.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// BenchmarkPlainBwrap is what a person would write by hand for the same purpose.
func BenchmarkPlainBwrap(b *testing.B) {
	needBwrap(b)
	dir := b.TempDir()
	for b.Loop() {
		cmd := exec.Command("bwrap", "--unshare-all", "--die-with-parent", "--tmpfs", "/", "--ro-bind", "/usr", "/usr",
			"--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64",
			"--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--bind", dir, "/workspace", "--chdir", "/workspace", "/bin/true")
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
	}
}

// BenchmarkTrue is a command in a warm sandbox.
func BenchmarkTrue(b *testing.B) {
	r := newRig(b)
	sb := ensure(b, r.Backend, r.spec())
	for b.Loop() {
		runTrue(b, sb)
	}
}

// BenchmarkStat is one file operation in a warm sandbox.
func BenchmarkStat(b *testing.B) {
	r := newRig(b)
	sb := ensure(b, r.Backend, r.spec())
	bridge, err := sb.Bridge(b.Context(), nil)
	if err != nil {
		b.Fatal(err)
	}
	if err := bridge.WriteFile(b.Context(), "f", []byte("x")); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := bridge.Stat(b.Context(), "f"); err != nil {
			b.Fatal(err)
		}
	}
}

// runTrue runs /bin/true.
func runTrue(b *testing.B, sb sandbox.Sandbox) {
	b.Helper()
	run, err := sandbox.Start(b.Context(), sb, sandbox.Command{Argv: []string{"/bin/true"}}, nil, sandbox.IO{}, sandbox.StartOptions{})
	if err != nil {
		b.Fatal(err)
	}
	if status, err := run.Wait(b.Context()); err != nil || status.Code != 0 {
		b.Fatal(status, err)
	}
}
