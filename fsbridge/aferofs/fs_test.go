package aferofs_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/spf13/afero"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/aferofs"
)

// newBridge is a bridge over memory with the workspace at /ws.
func newBridge(t testing.TB) *aferofs.Bridge {
	t.Helper()
	mem := afero.NewMemMapFs()
	must(t, mem.Mkdir("/ws", 0o755))
	b, err := aferofs.NewBridge(mem, aferofs.Options{
		Private: true, Mounts: fsbridge.MountTable{{Path: "/ws", Kind: fsbridge.MountWorkspace}},
	})
	must(t, err)
	return b
}

func newFs(t testing.TB) afero.Fs { t.Helper(); return aferofs.NewFs(t.Context(), newBridge(t)) }

func write(t testing.TB, f afero.Fs, name, content string) {
	t.Helper()
	must(t, afero.WriteFile(f, name, []byte(content), 0o666))
}

func wantFile(t testing.TB, f afero.Fs, name, want string) {
	t.Helper()
	got, err := afero.ReadFile(f, name)
	must(t, err)
	if string(got) != want {
		t.Errorf("%s holds %.60q (%d bytes), want %.60q (%d bytes)", name, got, len(got), want, len(want))
	}
}

// TestFstest passes the standard library's own test of file systems.
func TestFstest(t *testing.T) {
	f := newFs(t)
	must(t, f.MkdirAll("a/b/c", 0o777))
	must(t, f.Mkdir("empty", 0o777))
	for name, content := range map[string]string{
		"hello.txt": "hello", "a/one": "1", "a/b/two": strings.Repeat("2", 100_000), "a/b/c/three": "", ".hidden": "h",
	} {
		write(t, f, name, content)
	}
	must(t, fstest.TestFS(afero.NewIOFS(f), "hello.txt", "a/one", "a/b/two", "a/b/c/three", ".hidden", "empty"))
}

// TestFlags opens files with every combination of flags that means something.
func TestFlags(t *testing.T) {
	for _, c := range []struct {
		name   string
		flag   int
		exists bool
		write  string
		want   string
		err    error
	}{
		{"create new", os.O_WRONLY | os.O_CREATE, false, "new", "new", nil},
		{"create over", os.O_WRONLY | os.O_CREATE, true, "new", "newcontent", nil},
		{"create and empty", os.O_WRONLY | os.O_CREATE | os.O_TRUNC, true, "new", "new", nil},
		{"create and empty, nothing written", os.O_WRONLY | os.O_CREATE | os.O_TRUNC, true, "", "", nil},
		{"create new, nothing written", os.O_WRONLY | os.O_CREATE, false, "", "", nil},
		{"exclusive new", os.O_WRONLY | os.O_CREATE | os.O_EXCL, false, "new", "new", nil},
		{"exclusive over", os.O_WRONLY | os.O_CREATE | os.O_EXCL, true, "", "old-content"[:10], fs.ErrExist},
		{"write existing", os.O_WRONLY, true, "new", "newcontent", nil},
		{"write missing", os.O_WRONLY, false, "", "", fs.ErrNotExist},
		{"read and write", os.O_RDWR, true, "new", "newcontent", nil},
		{"truncate", os.O_RDWR | os.O_TRUNC, true, "new", "new", nil},
		{"append", os.O_WRONLY | os.O_APPEND, true, "new", "oldcontentnew", nil},
		{"append, read and write", os.O_RDWR | os.O_APPEND, true, "new", "oldcontentnew", nil},
		{"append to new", os.O_WRONLY | os.O_APPEND | os.O_CREATE, false, "new", "new", nil},
		{"read only", os.O_RDONLY, true, "", "oldcontent", nil},
		{"read missing", os.O_RDONLY, false, "", "", fs.ErrNotExist},
		{"read, create", os.O_RDONLY | os.O_CREATE, false, "", "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFs(t)
			if c.exists {
				write(t, f, "f", "oldcontent")
			}
			file, err := f.OpenFile("f", c.flag, 0o666)
			if c.err != nil {
				if !errors.Is(err, c.err) {
					t.Fatalf("open: %v, want %v", err, c.err)
				}
				if c.exists {
					wantFile(t, f, "f", "oldcontent")
				}
				return
			}
			must(t, err)
			if c.write != "" {
				n, err := file.WriteString(c.write)
				must(t, err)
				if n != len(c.write) {
					t.Errorf("wrote %d bytes", n)
				}
			}
			must(t, file.Close())
			want := c.want
			wantFile(t, f, "f", want)
		})
	}
}

// TestErrors demands what os.IsNotExist and its kin look for, and what errors.Is does.
func TestErrors(t *testing.T) {
	f := newFs(t)
	write(t, f, "f", "x")
	must(t, f.Mkdir("d", 0o777))
	write(t, f, "d/x", "x")
	_, err := f.Stat("absent")
	if !os.IsNotExist(err) {
		t.Errorf("stat: %v", err)
	}
	var pe *os.PathError
	if !errors.As(err, &pe) || pe.Path != "absent" || pe.Op != "stat" {
		t.Errorf("stat: %#v", err)
	}
	_, err = f.Open("absent")
	if !os.IsNotExist(err) {
		t.Errorf("open: %v", err)
	}
	if _, err = f.Create("absent/f"); !os.IsNotExist(err) {
		t.Errorf("create without directory: %v", err)
	}
	if _, err = f.Stat("absent"); !os.IsNotExist(err) {
		t.Error("create has made the directory")
	}
	if err = f.Mkdir("d", 0o777); !os.IsExist(err) {
		t.Errorf("mkdir: %v", err)
	}
	must(t, f.MkdirAll("d", 0o777))
	if err = f.Remove("absent"); !os.IsNotExist(err) {
		t.Errorf("remove: %v", err)
	}
	must(t, f.RemoveAll("absent"))
	if err = f.Remove("d"); !errors.Is(err, syscall.ENOTEMPTY) {
		t.Errorf("remove a full directory: %v", err)
	}
	if err = f.Rename("absent", "b"); !os.IsNotExist(err) {
		t.Errorf("rename: %v", err)
	}
	if _, err = f.Stat("../x"); !errors.Is(err, fsbridge.ErrOutsideRoot) || os.IsNotExist(err) {
		t.Errorf("outside: %v", err)
	}
	if _, err = f.OpenFile("d", os.O_RDWR, 0); !errors.Is(err, syscall.EISDIR) {
		t.Errorf("write a directory: %v", err)
	}
	for _, err := range []error{f.Chown("f", 1, 1), f.Chtimes("f", time.Now(), time.Now())} {
		if !errors.Is(err, errors.ErrUnsupported) || !errors.As(err, &pe) {
			t.Errorf("chown or chtimes: %v", err)
		}
	}
	must(t, f.Chmod("f", 0o600))
	if i, err := f.Stat("f"); err != nil || i.Mode() != 0o600 {
		t.Errorf("chmod: %v, %v", i.Mode(), err)
	}
	if f.Name() == "" {
		t.Error("no name")
	}
}

// TestHandles uses handles as they must not be used.
func TestHandles(t *testing.T) {
	f := newFs(t)
	write(t, f, "f", "content")
	must(t, f.Mkdir("d", 0o777))
	r, err := f.Open("f")
	must(t, err)
	for _, err := range []error{
		second(r.Write([]byte("x"))), second(r.WriteAt([]byte("x"), 0)), second(r.WriteString("x")), r.Truncate(0),
	} {
		if !errors.Is(err, syscall.EBADF) {
			t.Errorf("write to a file open for reading: %v", err)
		}
	}
	if _, err := r.Readdir(0); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("list a file: %v", err)
	}
	if _, err := r.Seek(-1, io.SeekStart); err == nil {
		t.Error("seek before the start")
	}
	if _, err := r.Seek(0, 9); err == nil {
		t.Error("seek from nowhere")
	}
	if _, err := r.ReadAt(make([]byte, 1), -1); err == nil {
		t.Error("read before the start")
	}
	must(t, r.Sync())
	must(t, r.Close())
	w, err := f.OpenFile("f", os.O_WRONLY, 0)
	must(t, err)
	if _, err := w.Read(make([]byte, 1)); !errors.Is(err, syscall.EBADF) {
		t.Errorf("read from a file open for writing: %v", err)
	}
	if _, err := w.Readdirnames(0); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("list a file: %v", err)
	}
	must(t, w.Close())
	d, err := f.Open("d")
	must(t, err)
	if _, err := d.Read(make([]byte, 1)); !errors.Is(err, syscall.EISDIR) {
		t.Errorf("read a directory: %v", err)
	}
	if _, err := d.WriteString("x"); !errors.Is(err, syscall.EISDIR) {
		t.Errorf("write a directory: %v", err)
	}
	must(t, d.Sync())
	must(t, d.Close())
	for name, h := range map[string]afero.File{"reader": r, "writer": w, "directory": d} {
		if err := h.Close(); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("%s: closed twice: %v", name, err)
		}
		if _, err := h.Seek(0, io.SeekStart); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("%s: seek after close: %v", name, err)
		}
	}
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("read after close: %v", err)
	}
	if _, err := w.Write([]byte("x")); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("write after close: %v", err)
	}
	if err := w.Truncate(0); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("truncate after close: %v", err)
	}
	if err := w.Sync(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("sync after close: %v", err)
	}
	if _, err := d.Readdir(0); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("list after close: %v", err)
	}
	wantFile(t, f, "f", "content")
}

func second(_ int, err error) error { return err }

// TestReaddir pages through a directory.
func TestReaddir(t *testing.T) {
	f := newFs(t)
	names := []string{"a", "b", "c", "d", "e"}
	must(t, f.Mkdir("dir", 0o777))
	for _, n := range names {
		write(t, f, "dir/"+n, n)
	}
	d, err := f.Open("dir")
	must(t, err)
	var got []string
	for {
		page, err := d.Readdirnames(2)
		got = append(got, page...)
		if err == io.EOF {
			break
		}
		must(t, err)
		if len(page) == 0 || len(page) > 2 {
			t.Fatalf("page %q", page)
		}
	}
	if strings.Join(got, "") != "abcde" {
		t.Errorf("pages give %q", got)
	}
	if rest, err := d.Readdir(-1); err != nil || len(rest) != 0 {
		t.Errorf("after the end: %v, %v", rest, err)
	}
	if _, err := d.Seek(0, io.SeekStart); err != nil {
		t.Error(err)
	}
	all, err := d.Readdir(0)
	must(t, err)
	if len(all) != 5 || all[0].Name() != "a" || all[0].Size() != 1 || all[0].Mode() != 0o644 {
		t.Errorf("all: %v", all)
	}
	must(t, d.Close())
	if exists, err := afero.DirExists(f, "dir"); err != nil || !exists {
		t.Errorf("DirExists: %t, %v", exists, err)
	}
	var walked []string
	must(t, afero.Walk(f, ".", func(p string, _ os.FileInfo, err error) error {
		walked = append(walked, p)
		return err
	}))
	if want := ". dir dir/a dir/b dir/c dir/d dir/e"; strings.Join(walked, " ") != want {
		t.Errorf("walked %q, want %q", walked, want)
	}
	if m, err := afero.Glob(f, "dir/[ab]"); err != nil || len(m) != 2 {
		t.Errorf("glob: %q, %v", m, err)
	}
}

// TestAtomic: until Close the old content is what others see.
func TestAtomic(t *testing.T) {
	f := newFs(t)
	write(t, f, "f", "old")
	w, err := f.Create("f")
	must(t, err)
	_, err = w.WriteString("new")
	must(t, err)
	wantFile(t, f, "f", "old")
	must(t, w.Sync())
	wantFile(t, f, "f", "new")
	_, err = w.WriteString("er")
	must(t, err)
	wantFile(t, f, "f", "new")
	must(t, w.Close())
	wantFile(t, f, "f", "newer")
}

// TestModes: the default is the environment's, another is exact.
func TestModes(t *testing.T) {
	f := newFs(t)
	for perm, want := range map[os.FileMode]os.FileMode{0o666: 0o644, 0o600: 0o600, 0o755: 0o755, 0o777: 0o777} {
		must(t, f.RemoveAll("f"))
		must(t, afero.WriteFile(f, "f", []byte("x"), perm))
		if i, err := f.Stat("f"); err != nil || i.Mode() != want {
			t.Errorf("file of %o: %v, %v", perm, i.Mode(), err)
		}
	}
	must(t, f.Mkdir("d", 0o777))
	must(t, f.MkdirAll("e/f", 0o700))
	for name, want := range map[string]os.FileMode{"d": 0o755, "e": 0o700, "e/f": 0o700} {
		if i, err := f.Stat(name); err != nil || i.Mode() != fs.ModeDir|want {
			t.Errorf("%s: %v, %v", name, i.Mode(), err)
		}
	}
	x, err := f.OpenFile("x", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	must(t, err)
	must(t, x.Close())
	if i, err := f.Stat("x"); err != nil || i.Mode() != 0o600 {
		t.Errorf("exclusive file: %v, %v", i.Mode(), err)
	}
}

// TestCancelled: the context given to NewFs governs everything.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	f := aferofs.NewFs(ctx, newBridge(t))
	write(t, f, "f", "old")
	w, err := f.Create("f")
	must(t, err)
	_, err = w.WriteString("new")
	must(t, err)
	cancel()
	if err := w.Close(); !errors.Is(err, context.Canceled) {
		t.Errorf("close: %v", err)
	}
	if _, err := f.Stat("f"); !errors.Is(err, context.Canceled) {
		t.Errorf("stat: %v", err)
	}
}
