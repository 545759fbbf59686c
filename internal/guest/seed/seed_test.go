//go:build linux

package seed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// lay makes a tree: "name" with content, "name/" for a directory, "name -> target" for a
// link, "name = other" for a further name.
func lay(t *testing.T, dir string, entries ...string) {
	t.Helper()
	for _, e := range entries {
		var err error
		name, target, isLink := strings.Cut(e, " -> ")
		hard, first, isHard := strings.Cut(e, " = ")
		switch {
		case isLink:
			err = os.Symlink(target, filepath.Join(dir, name))
		case isHard:
			err = os.Link(filepath.Join(dir, first), filepath.Join(dir, hard))
		case strings.HasSuffix(e, "/"):
			err = os.MkdirAll(filepath.Join(dir, e), 0o755)
		default:
			err = errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, e)), 0o755), os.WriteFile(filepath.Join(dir, e), []byte("content of "+e), 0o644))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// tell describes a tree, a line for each entry, in order.
func tell(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, p)
		line := fmt.Sprintf("%q %v %d", name, info.Mode(), info.ModTime().UnixNano())
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			target, _ := os.Readlink(p)
			line += " -> " + target
		case info.Mode().IsRegular():
			data, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			line += fmt.Sprintf(" %q", data)
		}
		all = append(all, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// copyOf packs and unpacks a tree.
func copyOf(t *testing.T, dir string) (string, Packed) {
	t.Helper()
	var archive bytes.Buffer
	packed, err := Pack(t.Context(), &archive, dir)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "a", "b c", "d") // C107: its parts differ, and one has a space
	if err := Unpack(&archive, to); err != nil {
		t.Fatal(err)
	}
	return to, packed
}

// Everything arrives as it is. C119
func TestWhole(t *testing.T) {
	dir := t.TempDir()
	lay(t, dir, "f", "sub dir/with space/f", "empty/", "deep/er/empty/", "bin/tool", "l -> sub dir", "f2 -> f", "up/g", "up/to -> ../f",
		"dangling -> nowhere", "hard = f", "sub dir/hard = f", "\xff\xfe not utf-8", "line\nbreak", "ünï", "-rf", strings.Repeat("n", 255),
		strings.Repeat("long/", 60)+"f", "to -> "+strings.Repeat("./", 200)+"f")
	for name, mode := range map[string]fs.FileMode{"bin/tool": 0o755, "f": 0o600, "empty": 0o700, "up": 0o555} {
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "large"), bytes.Repeat([]byte("0123456789abcdef"), 1<<16), 0o400); err != nil {
		t.Fatal(err)
	}
	when := time.Unix(1_000_000_000, 123_456_789)
	for _, name := range []string{"f", "large", "empty", "up"} {
		if err := os.Chtimes(filepath.Join(dir, name), when, when); err != nil {
			t.Fatal(err)
		}
	}
	want := tell(t, dir)
	to, packed := copyOf(t, dir)
	if got := tell(t, to); !slices.Equal(got, want) {
		t.Errorf("arrived:\n%s\nsent:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	a, err1 := os.Stat(filepath.Join(to, "f"))
	b, err2 := os.Stat(filepath.Join(to, "sub dir", "hard"))
	if err := errors.Join(err1, err2); err != nil || !os.SameFile(a, b) {
		t.Errorf("names of one file are files of their own: %v", err)
	}
	if packed.Skipped != 0 || packed.Files != 11 || packed.Links != 7 {
		t.Errorf("packed %+v", packed)
	}
}

// What leads out of the tree does not travel, and is told. C011
func TestNothingLeadsOut(t *testing.T) {
	dir := t.TempDir()
	lay(t, dir, "sub/file", "ok -> sub/file", "out -> ../../etc", "abs -> /etc/passwd", "chain -> out", "through -> out/passwd",
		"circle -> circle", "sub/up -> ../..", "sub/in -> ../sub/file", "self -> .", "inner -> "+dir+"/sub", "sneaky -> sub/../../x")
	if err := unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	to, packed := copyOf(t, dir)
	var links []string
	for _, line := range tell(t, to) {
		if name, _, ok := strings.Cut(line, " L"); ok {
			links = append(links, name)
		}
	}
	if want := []string{`"ok"`, `"self"`, `"sub/in"`}; !slices.Equal(links, want) {
		t.Errorf("links %q, want %q", links, want)
	}
	for _, name := range []string{"out", "abs", "chain", "through", "circle", "sub/up", "inner", "sneaky", "pipe"} {
		if !slices.ContainsFunc(packed.Left, func(s string) bool { return strings.HasPrefix(s, fmt.Sprintf("%q ", name)) }) {
			t.Errorf("%s is not told: %q", name, packed.Left)
		}
	}
	if packed.Skipped != 9 {
		t.Errorf("%d were left out", packed.Skipped)
	}
	if _, err := os.Stat(filepath.Join(to, "out", "passwd")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("through out: %v", err)
	}
}

// git sees no change in a copy. C119
func TestGitSeesNoChange(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	run := func(dir string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), git, append([]string{"-c", "core.filemode=true", "-c", "safe.directory=*", "-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	lay(t, dir, "f", "real-dir/g", "run.sh", "empty/", "l -> real-dir", "f2 -> f")
	if err := os.Chmod(filepath.Join(dir, "run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	run(dir, "init", "-q")
	run(dir, "add", "-A")
	run(dir, "commit", "-qm", "x")
	to, _ := copyOf(t, dir)
	if got := run(to, "status", "--porcelain"); got != "" {
		t.Errorf("git status: %s", got)
	}
}

// An archive that ends anywhere before its end leaves nothing. C011
func TestCutOff(t *testing.T) {
	dir := t.TempDir()
	lay(t, dir, "a", "b/c", "b/d/e", "l -> a", "h = a")
	var archive bytes.Buffer
	if _, err := Pack(t.Context(), &archive, dir); err != nil {
		t.Fatal(err)
	}
	whole := archive.Bytes()
	parent := t.TempDir()
	for n := 0; n < len(whole); n += 256 {
		if err := Unpack(bytes.NewReader(whole[:n]), filepath.Join(parent, "ws")); err == nil {
			t.Fatalf("%d bytes of %d are a whole copy", n, len(whole))
		}
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
	if err := Unpack(bytes.NewReader(whole), filepath.Join(parent, "ws")); err != nil {
		t.Error(err)
	}
}

// A Pack that fails on its way makes no whole archive.
func TestPackFails(t *testing.T) {
	dir := t.TempDir()
	lay(t, dir, "a", "b", "c")
	if err := os.WriteFile(filepath.Join(dir, "b"), make([]byte, 5*together), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var archive bytes.Buffer
	wrote := 0
	_, err := Pack(ctx, writerFunc(func(p []byte) (int, error) {
		if wrote++; wrote == 2 {
			cancel()
		}
		return archive.Write(p)
	}), dir)
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("Pack: %v", err)
	}
	to := filepath.Join(t.TempDir(), "ws")
	if err := Unpack(&archive, to); err == nil {
		t.Error("a part is a whole copy")
	}
	if _, err := Pack(t.Context(), io.Discard, filepath.Join(dir, "a")); err == nil {
		t.Error("a file was packed as a directory")
	}
	if _, err := Pack(t.Context(), io.Discard, filepath.Join(dir, "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing directory: %v", err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// Two at once: one copy, whole, and the other one is told; what exists stays untouched.
func TestTwoAtOnce(t *testing.T) {
	parent := t.TempDir()
	to := filepath.Join(parent, "ws")
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		dir := t.TempDir()
		for n := range 50 {
			lay(t, dir, fmt.Sprintf("of-%d/%d", i, n))
		}
		var archive bytes.Buffer
		if _, err := Pack(t.Context(), &archive, dir); err != nil {
			t.Fatal(err)
		}
		wg.Go(func() { errs[i] = Unpack(&archive, to) })
	}
	wg.Wait()
	done := 0
	for _, err := range errs {
		if err == nil {
			done++
		} else if !errors.Is(err, fs.ErrExist) {
			t.Errorf("the slower one: %v", err)
		}
	}
	names, err := os.ReadDir(to)
	if err != nil || len(names) != 1 || done != 1 {
		t.Fatalf("%d are done, and there are %v, %v", done, names, err)
	}
	if files, err := os.ReadDir(filepath.Join(to, names[0].Name())); err != nil || len(files) != 50 {
		t.Errorf("%d files, %v", len(files), err)
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) != 1 {
		t.Errorf("left are %v, %v", left, err)
	}
}

// An empty directory, a file, and a link that leads nowhere are not written over.
func TestExistingStays(t *testing.T) {
	var archive bytes.Buffer
	if _, err := Pack(t.Context(), &archive, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	parent := t.TempDir()
	lay(t, parent, "dir/", "file", "link -> nowhere")
	before := tell(t, parent)
	for _, name := range []string{"dir", "file", "link"} {
		if err := Unpack(bytes.NewReader(archive.Bytes()), filepath.Join(parent, name)); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if after := tell(t, parent); !slices.Equal(before, after) {
		t.Errorf("before %q, after %q", before, after)
	}
}

// A hostile archive writes nothing outside.
func TestHostileArchive(t *testing.T) {
	for name, entries := range map[string][]string{
		"dots":         {"../evil"},
		"absolute":     {"/tmp/berth-evil"},
		"through link": {"l -> ..", "l/evil"},
		"hard link":    {"h = ../outside"},
		"twice":        {"f", "f"},
	} {
		parent := t.TempDir()
		lay(t, parent, "outside")
		before := tell(t, parent)[1:]
		if err := Unpack(bytes.NewReader(forge(t, entries)), filepath.Join(parent, "ws")); err == nil {
			t.Errorf("%s: accepted", name)
		}
		if after := tell(t, parent)[1:]; !slices.Equal(before, after) {
			t.Errorf("%s: before %q, after %q", name, before, after)
		}
	}
}
