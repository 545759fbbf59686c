//go:build linux

package sftpfs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pkg/sftp"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/sftpfs"
	"github.com/workberth/workberth/internal/sshtest"
)

// put makes a file.
func put(t testing.TB, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// holds demands a file's content.
func holds(t testing.TB, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s holds %.40q, %v; want %.40q", path, got, err, want)
	}
}

// tidy demands that no temporary file is in the directory.
func tidy(t testing.TB, dir string) {
	t.Helper()
	if left, _ := filepath.Glob(dir + "/.berth-*"); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// TestOverwrite writes one file over and over while it is read. C113
func TestOverwrite(t *testing.T) {
	t.Parallel()
	for name, client := range map[string]*sftp.Client{"openssh": without(t), "pkg/sftp": goServer(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			b := bridge(t, client, dir)
			versions := []string{strings.Repeat("a", 70_000), strings.Repeat("b", 100)}
			put(t, dir+"/f", versions[0])
			stop, done := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(done)
				for {
					got, err := os.ReadFile(dir + "/f")
					if err != nil || string(got) != versions[0] && string(got) != versions[1] {
						t.Errorf("a reader sees %d bytes, %v", len(got), err)
						return
					}
					select {
					case <-stop:
						return
					default:
					}
				}
			}()
			rounds := 500
			if testing.Short() || name != "openssh" {
				rounds = 50
			}
			for i := range rounds {
				if err := b.WriteFile(t.Context(), "f", []byte(versions[i%2])); err != nil {
					t.Fatal(err)
				}
			}
			close(stop)
			<-done
			put(t, dir+"/g", "other")
			if err := b.Rename(t.Context(), "g", "f", fsbridge.RenameOptions{}); err != nil {
				t.Error(err)
			}
			holds(t, dir+"/f", "other")
			tidy(t, dir)
		})
	}
}

// TestWithoutPosixRename: what would need it is refused at once, and nothing is removed for it. C113
func TestWithoutPosixRename(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := bridge(t, without(t, "posix-rename@openssh.com"), dir)
	ctx := t.Context()
	if err := b.WriteFile(ctx, "d/f", []byte("first")); err != nil {
		t.Fatal(err)
	}
	put(t, dir+"/g", "g")
	src := &counter{r: strings.NewReader("second")}
	_, err := b.WriteStream(ctx, "d/f", src, fsbridge.WriteOptions{})
	var pe *fsbridge.PathError
	if !errors.Is(err, fsbridge.ErrUnsupported) || !errors.As(err, &pe) || !strings.Contains(err.Error(), "posix-rename@openssh.com") {
		t.Errorf("overwrite: %v", err)
	}
	if src.n > 0 {
		t.Errorf("%d bytes were read for a write that cannot happen", src.n)
	}
	if err := b.Rename(ctx, "g", "d/f", fsbridge.RenameOptions{}); !errors.Is(err, fsbridge.ErrUnsupported) {
		t.Errorf("rename over: %v", err)
	}
	if err := b.Rename(ctx, "g", "d/f", fsbridge.RenameOptions{NoReplace: true}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("rename without replacing: %v", err)
	}
	holds(t, dir+"/d/f", "first")
	holds(t, dir+"/g", "g")
	if err := b.Rename(ctx, "g", "d/h", fsbridge.RenameOptions{}); err != nil {
		t.Errorf("rename to a free name: %v", err)
	}
	if err := b.Symlink(ctx, "h", "d/f", fsbridge.SymlinkOptions{Replace: true}); !errors.Is(err, fsbridge.ErrUnsupported) {
		t.Errorf("link over: %v", err)
	}
	tidy(t, dir+"/d")
}

// counter counts what is read through it.
type counter struct {
	r io.Reader
	n int
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += n
	return n, err
}

// TestPlainServer: a server without any extension declares less and says what it cannot do. FSB-09
func TestPlainServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := bridge(t, without(t, "posix-rename@openssh.com", "hardlink@openssh.com", "fsync@openssh.com", "statvfs@openssh.com"), dir)
	ctx := t.Context()
	if fsbridge.Has(b, fsbridge.CapCreateFileExclusive) {
		t.Error("create-exclusive is declared without hard links")
	}
	if err := fsbridge.CreateFileExclusive(ctx, b, "f", nil); !errors.Is(err, fsbridge.ErrUnsupported) {
		t.Errorf("create: %v", err)
	}
	if err := b.CreateFileExclusive(ctx, "f", nil); !errors.Is(err, fsbridge.ErrUnsupported) {
		t.Errorf("create: %v", err)
	}
	_, err := b.WriteStream(ctx, "f", strings.NewReader("x"), fsbridge.WriteOptions{Sync: true})
	if !errors.Is(err, fsbridge.ErrUnsupported) || !strings.Contains(err.Error(), "fsync@openssh.com") {
		t.Errorf("sync: %v", err)
	}
	if _, err := b.WriteStream(ctx, "f", strings.NewReader("x"), fsbridge.WriteOptions{If: fsbridge.Precondition{Absent: true}}); err != nil {
		t.Errorf("write of a new file: %v", err)
	}
	var conflict *fsbridge.ConflictError
	_, err = b.WriteStream(ctx, "f", strings.NewReader("y"), fsbridge.WriteOptions{If: fsbridge.Precondition{Absent: true}})
	if !errors.As(err, &conflict) || conflict.Current == "" {
		t.Errorf("write of a file that exists: %v", err)
	}
	holds(t, dir+"/f", "x")
	if err := os.MkdirAll(dir+"/t/u/v", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := b.Remove(ctx, "t", fsbridge.RemoveOptions{}); !errors.Is(err, syscall.ENOTEMPTY) {
		t.Errorf("remove of a full directory: %v", err)
	}
	if err := b.Remove(ctx, "t", fsbridge.RemoveOptions{Recursive: true}); err != nil {
		t.Errorf("remove: %v", err)
	}
	tidy(t, dir)
}

// TestSymlinkOrder makes links on both kinds of server and looks at the disk. C115
func TestSymlinkOrder(t *testing.T) {
	t.Parallel()
	for name, client := range map[string]*sftp.Client{"openssh": without(t), "pkg/sftp": goServer(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			b := bridge(t, client, dir)
			put(t, dir+"/file", "content")
			if err := os.Mkdir(dir+"/d", 0o755); err != nil {
				t.Fatal(err)
			}
			for at, target := range map[string]string{"l": "file", "dangling": "absent/file", "d/up": "../file", "abs": dir + "/file"} {
				for _, opts := range []fsbridge.SymlinkOptions{{}, {Replace: true}} {
					if err := b.Symlink(t.Context(), target, at, opts); err != nil {
						t.Fatalf("%s -> %s: %v", at, target, err)
					}
				}
				if got, err := os.Readlink(dir + "/" + at); err != nil || got != target {
					t.Errorf("%s -> %s on the disk, %v; want %s", at, got, err, target)
				}
				if got, err := b.ReadLink(t.Context(), at); err != nil || got != target {
					t.Errorf("%s -> %s, %v; want %s", at, got, err, target)
				}
			}
			for _, p := range []string{"l", "d/up", "abs"} {
				if got, err := b.ReadFile(t.Context(), p); err != nil || string(got) != "content" {
					t.Errorf("read %s: %q, %v", p, got, err)
				}
			}
			tidy(t, dir)
		})
	}
}

// TestNoSubsystem: a server without SFTP is told from one that does not answer. C117
func TestNoSubsystem(t *testing.T) {
	sshtest.Available(t)
	for name, opts := range map[string]sshtest.Options{
		"none":   {NoSFTP: true},
		"broken": {NoSFTP: true, ExtraConfig: []string{"Subsystem sftp /absent/sftp-server"}},
		"hangs":  {NoSFTP: true, ExtraConfig: []string{"Subsystem sftp /bin/sleep 1000"}},
		"only":   {SFTPOnly: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := sshtest.Start(t, opts).Dial(t)
			patience := soon
			if name == "hangs" {
				patience = time.Second
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			client, err := sftpfs.Connect(ctx, conn)
			switch name {
			case "only":
				if err != nil {
					t.Fatal(err)
				}
				dir := t.TempDir()
				if err := bridge(t, client, dir).WriteFile(t.Context(), "f", []byte("x")); err != nil {
					t.Error(err)
				}
				holds(t, dir+"/f", "x")
				_ = client.Close()
			case "hangs":
				if !errors.Is(err, fsbridge.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v", err)
				}
			default:
				if !errors.Is(err, fsbridge.ErrUnsupported) {
					t.Errorf("%v", err)
				}
			}
		})
	}
}

// TestCutConnection cuts a real connection in the middle of a write: what the file holds is old or new, and
// the error says that this is not known. Later calls fail at once. FSB-11
func TestCutConnection(t *testing.T) {
	sshtest.Available(t)
	for _, when := range []string{"killed", "paused"} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			server := sshtest.Start(t, sshtest.Options{SFTPOnly: true})
			client, err := sftpfs.Connect(t.Context(), server.Dial(t))
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			b := bridge(t, client, dir, func(o *sftpfs.Options) { o.RequestTimeout = 2 * time.Second })
			old := strings.Repeat("o", 1000)
			put(t, dir+"/f", old)
			src := &tripwire{left: 64 << 20, at: 60 << 20, trip: server.CutConnections}
			if when == "paused" {
				src.trip = server.Pause
			}
			err = within(t, func() error {
				_, err := b.WriteStream(t.Context(), "f", src, fsbridge.WriteOptions{})
				return err
			})
			if !errors.Is(err, fsbridge.ErrOutcomeUnknown) {
				t.Errorf("write: %v", err)
			}
			holds(t, dir+"/f", old)
			err = within(t, func() error { _, err := b.Stat(t.Context(), "f"); return err })
			if !errors.Is(err, fsbridge.ErrUnavailable) {
				t.Errorf("stat: %v", err)
			}
			server.Resume()
		})
	}
}

// tripwire yields zeros and calls trip when so many bytes are left.
type tripwire struct {
	left, at int
	trip     func()
}

func (w *tripwire) Read(p []byte) (int, error) {
	if w.left == 0 {
		return 0, io.EOF
	}
	n := min(len(p), w.left)
	clear(p[:n])
	if w.left > w.at && w.left-n <= w.at {
		w.trip()
	}
	w.left -= n
	return n, nil
}

// TestListing compares a listing with the disk, to the second.
func TestListing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := bridge(t, without(t), dir)
	put(t, dir+"/b", "12345")
	put(t, dir+"/.berth-sftp-LEFT", "of another time")
	when := time.Unix(1_700_000_000, 0)
	if err := errors.Join(os.Chtimes(dir+"/b", when, when), os.Chmod(dir+"/b", 0o640), os.Mkdir(dir+"/a", 0o750), os.Symlink("b", dir+"/c")); err != nil {
		t.Fatal(err)
	}
	list, err := b.ReadDirectory(t.Context(), ".")
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, e := range list {
		got += fmt.Sprintf("%s %s %s %o; ", e.Name, e.Info.Type, e.LinkTarget, e.Info.Mode)
	}
	if want := "a dir  750; b file  640; c symlink b 777; "; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if i := list[1].Info; i.Size != 5 || !i.ModTime.Equal(when) || i.Name != "b" {
		t.Errorf("%+v", i)
	}
}

// TestLargeFile moves a file that is larger than every window, both ways, and in parts.
func TestLargeFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := bridge(t, without(t), dir)
	data := make([]byte, 9<<20+12345)
	for i := range data {
		data[i] = byte(i * 7 >> 9)
	}
	res, err := b.WriteStream(t.Context(), "f", bytes.NewReader(data), fsbridge.WriteOptions{Sync: true, Size: int64(len(data))})
	if err != nil || res.Size != int64(len(data)) || !res.Created {
		t.Fatalf("%+v, %v", res, err)
	}
	holds(t, dir+"/f", string(data))
	got, err := b.ReadFile(t.Context(), "f")
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
	for _, off := range []int64{0, 1, 32 << 10, 5<<20 + 3, int64(len(data)) - 10, int64(len(data)), int64(len(data)) + 5} {
		got, err := b.ReadRange(t.Context(), "f", off, 100_000)
		end := min(off+100_000, int64(len(data)))
		if err != nil || !bytes.Equal(got, data[min(off, end):end]) {
			t.Errorf("range at %d: %d bytes, %v", off, len(got), err)
		}
	}
	if h, err := b.HashFile(t.Context(), "f"); err != nil || h != res.FileHash {
		t.Errorf("hash: %+v, %v; want %+v", h, err, res.FileHash)
	}
	r, _, err := b.OpenReader(t.Context(), "f")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(r, make([]byte, 1000)); err != nil {
		t.Error(err)
	}
	if err := errors.Join(r.Close(), r.Close()); err != nil {
		t.Error(err)
	}
	if _, err := r.Read(make([]byte, 1)); err == nil {
		t.Error("a closed stream can be read")
	}
	tidy(t, dir)
}

// TestFailingSource: a reader that fails, whatever with, changes nothing.
func TestFailingSource(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := bridge(t, without(t), dir)
	put(t, dir+"/f", "old")
	for _, fault := range []error{io.ErrUnexpectedEOF, errors.New("broken"), fmt.Errorf("wrapped: %w", io.EOF), &fs.PathError{Op: "read", Path: "x", Err: fs.ErrClosed}} {
		src := io.MultiReader(strings.NewReader(strings.Repeat("n", 100_000)), &failing{fault})
		_, err := b.WriteStream(t.Context(), "f", src, fsbridge.WriteOptions{})
		if !errors.Is(err, fault) || errors.Is(err, fsbridge.ErrOutcomeUnknown) {
			t.Errorf("%v: %v", fault, err)
		}
		holds(t, dir+"/f", "old")
		tidy(t, dir)
	}
}

type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) { return 0, f.err }

func TestOptions(t *testing.T) {
	t.Parallel()
	client := goServer(t)
	ws := fsbridge.Mount{Path: "/ws", Kind: fsbridge.MountWorkspace}
	for name, opts := range map[string]sftpfs.Options{
		"no mounts":     {},
		"relative":      {Mounts: fsbridge.MountTable{{Path: "ws"}}},
		"unclean":       {Mounts: fsbridge.MountTable{{Path: "/ws/"}}},
		"twice":         {Mounts: fsbridge.MountTable{ws, ws}},
		"negative":      {Mounts: fsbridge.MountTable{ws}, ReadLimit: -1},
		"negative time": {Mounts: fsbridge.MountTable{ws}, RequestTimeout: -1},
	} {
		if _, err := sftpfs.New(client, opts); !errors.Is(err, fsbridge.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := sftpfs.New(nil, sftpfs.Options{Mounts: fsbridge.MountTable{ws}}); err == nil {
		t.Error("a bridge without a client")
	}
}
