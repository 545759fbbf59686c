package ssh

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/workberth/workberth/internal/sshtest"
	"github.com/workberth/workberth/sandbox"
)

// seeded asks for a workspace that is filled from a directory.
func seeded(dir string) func(*sandbox.Spec) {
	return func(s *sandbox.Spec) { s.Config.Seed = dir }
}

// files writes files below a new directory; a name with an arrow is a link.
func files(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		link, target, ok := strings.Cut(name, " -> ")
		path := filepath.Join(dir, link)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if ok {
			err = errors.Join(err, os.Symlink(target, path))
		} else {
			err = errors.Join(err, os.WriteFile(path, []byte("content of "+name), 0o644))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// C011 C107: what leads out stays behind and is told, in a directory whose name has spaces.
func TestSeedLinks(t *testing.T) {
	t.Parallel()
	r := newRig(t, sshtest.Options{})
	dir := files(t, "sub/file", "ok -> sub/file", "out -> ../../etc", "abs -> /etc/passwd", "chain -> out")
	ws := filepath.Join(t.TempDir(), "a", "it's b c", "d")
	sb := r.ensure(ws, seeded(dir))
	if got := r.run(sb, "find", ".", "-type", "l", "-printf", `%p %l\n`); got != "./ok sub/file\n" {
		t.Errorf("links %q", got)
	}
	if got := strings.TrimSpace(r.run(sb, "cat", "ok")); got != "content of sub/file" {
		t.Errorf("through the link %q", got)
	}
	if got := strings.TrimSpace(r.run(sb, "pwd")); got != ws {
		t.Errorf("the directory is %q, want %q", got, ws)
	}
	for _, name := range []string{"out", "abs", "chain"} {
		if said := sb.Info().Runtime["seedLeftOut"]; !strings.Contains(said, fmt.Sprintf("%q", name)) {
			t.Errorf("%s is not told: %s", name, said)
		}
	}
	bridge, err := sb.Bridge(r.ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	before, err1 := os.ReadFile("/etc/passwd")
	_ = bridge.WriteFile(r.ctx, "abs", []byte("x")) // makes a file of that name in the workspace
	after, err2 := os.ReadFile("/etc/passwd")
	if err := errors.Join(err1, err2); err != nil || !bytes.Equal(before, after) {
		t.Fatalf("/etc/passwd was written: %v", err)
	}
}

// C119: git on the host sees no change.
func TestSeedGit(t *testing.T) {
	t.Parallel()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip(err)
	}
	r := newRig(t, sshtest.Options{})
	dir := files(t, "f", "real-dir/g", "run.sh", "l -> real-dir", "f2 -> f")
	if err := errors.Join(os.Chmod(filepath.Join(dir, "run.sh"), 0o755), os.Mkdir(filepath.Join(dir, "empty"), 0o755)); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"}} {
		cmd := exec.CommandContext(r.ctx, git, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	sb := r.ensure(filepath.Join(t.TempDir(), "ws"), seeded(dir))
	if got := r.run(sb, "git", "-c", "core.filemode=true", "status", "--porcelain"); got != "" {
		t.Errorf("git status: %s", got)
	}
	if got := r.run(sb, "/bin/sh", "-c", "test -x run.sh && test -d empty && test -L l && echo all"); got != "all\n" {
		t.Errorf("got %q", got)
	}
}

// A workspace that exists is used as it is; Reseed keeps the old one beside the new one.
func TestSeedOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, sshtest.Options{})
	dir := files(t, "f")
	ws := filepath.Join(t.TempDir(), "ws")
	sb := r.ensure(ws, seeded(dir))
	r.run(sb, "/bin/sh", "-c", "echo work > f; echo more > g")
	if err := sb.Close(); err != nil {
		t.Fatal(err)
	}
	sb = r.ensure(ws, seeded(dir))
	if got := r.run(sb, "cat", "f", "g"); got != "work\nmore\n" {
		t.Errorf("the second time: %q", got)
	}
	if err := errors.Join(sb.Close(), r.Remove(r.ctx, sb.Info().ID)); err != nil {
		t.Fatal(err)
	}
	kept, err := r.Reseed(r.ctx, r.spec(ws, seeded(dir)))
	if err != nil || filepath.Dir(kept) != filepath.Dir(ws) {
		t.Fatalf("kept %q, %v", kept, err)
	}
	if data, err := os.ReadFile(filepath.Join(kept, "f")); err != nil || string(data) != "work\n" {
		t.Errorf("kept is %q, %v", data, err)
	}
	sb = r.ensure(ws, seeded(dir))
	if got := r.run(sb, "cat", "f"); got != "content of f" {
		t.Errorf("after Reseed: %q", got)
	}
	if kept, err := r.Reseed(r.ctx, r.spec(filepath.Join(t.TempDir(), "none"), seeded(dir))); kept != "" || err != nil {
		t.Errorf("nothing to keep: %q, %v", kept, err)
	}
	// A file in the place of the workspace is none.
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Ensure(r.ctx, r.spec(file, seeded(dir))); !errors.Is(err, sandbox.ErrRefused) {
		t.Errorf("a file as workspace: %v", err)
	}
}

// A connection that is cut while the workspace is filled leaves none: the next attempt
// fills it whole. C011
func TestSeedIsCut(t *testing.T) {
	t.Parallel()
	r := newRig(t, sshtest.Options{})
	dir := t.TempDir()
	const count = 40
	for i := range count {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), make([]byte, 1<<20), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	parent := t.TempDir()
	ws := filepath.Join(parent, "ws")
	r.ensure(t.TempDir(), func(s *sandbox.Spec) { s.Session = "other" }) // the helper is in place
	for part := range 2 {
		failed := make(chan error, 1)
		go func() {
			_, err := r.Ensure(r.ctx, r.spec(ws, seeded(dir)))
			failed <- err
		}()
		reached := func() bool {
			got, _ := filepath.Glob(filepath.Join(parent, ".berth-seed-*", "*"))
			return len(got) > part*15
		}
		for !reached() && len(failed) == 0 {
			time.Sleep(time.Millisecond) //sleep: between looks
		}
		r.server.CutConnections()
		if err := <-failed; !errors.Is(err, sandbox.ErrUnavailable) {
			t.Fatalf("Ensure: %v", err)
		}
		if _, err := os.Lstat(ws); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("half a workspace: %v", err)
		}
	}
	sb := r.ensure(ws, seeded(dir))
	if got := strings.TrimSpace(r.run(sb, "/bin/sh", "-c", "ls | wc -l; find . -size 2048 | wc -l")); got != "40\n40" {
		t.Errorf("files: %q", got)
	}
	deadline := time.Now().Add(10 * time.Second)
	left := func() []string { l, _ := filepath.Glob(filepath.Join(parent, ".berth-seed-*")); return l }
	for len(left()) > 0 && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond) //sleep: between looks
	}
	if l := left(); len(l) > 0 {
		t.Errorf("left are %q", l)
	}
}

// Two at once fill it once, and whole. C121: 600 files take few connections.
func TestSeedTogether(t *testing.T) {
	t.Parallel()
	r := newRig(t, sshtest.Options{})
	dir := t.TempDir()
	for i := range 600 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f-%03d", i)), make([]byte, 2<<10), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ws := filepath.Join(t.TempDir(), "ws")
	begun := time.Now()
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() {
			sb, err := r.Ensure(r.ctx, r.spec(ws, seeded(dir), func(s *sandbox.Spec) { s.Session = fmt.Sprint("both-", i) }))
			if err != nil {
				t.Errorf("Ensure: %v", err)
				return
			}
			defer sb.Close()
			if got := strings.TrimSpace(r.run(sb, "/bin/sh", "-c", "find . -type f -size 4 | wc -l")); got != "600" {
				t.Errorf("files: %q", got)
			}
		})
	}
	wg.Wait()
	if took := time.Since(begun); took > 15*time.Second {
		t.Errorf("it took %v", took)
	}
	if n := strings.Count(r.server.Log(), "Accepted publickey"); n > 3 {
		t.Errorf("%d connections", n)
	}
}
