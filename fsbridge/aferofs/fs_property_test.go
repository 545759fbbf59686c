package aferofs_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/afero"
	"pgregory.net/rapid"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/aferofs"
)

// TestLikeOS uses handles of a bridge's file system and of the operating system's in the same way:
// results, offsets and the content in the end are the same.
func TestLikeOS(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		name := filepath.Join(dir, "f")
		mem := afero.NewMemMapFs()
		b, err := aferofs.NewBridge(mem, aferofs.Options{Private: true, Mounts: fsbridge.MountTable{{Path: "/", Kind: fsbridge.MountWorkspace}}})
		if err != nil {
			t.Fatal(err)
		}
		ours, theirs := aferofs.NewFs(t.Context(), b), afero.NewOsFs()
		initial := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "initial")
		exists := rapid.Bool().Draw(t, "exists")
		_ = os.Remove(name)
		if exists {
			if err := os.WriteFile(name, initial, 0o644); err != nil {
				t.Fatal(err)
			}
			if err := b.WriteFile(t.Context(), "f", initial); err != nil {
				t.Fatal(err)
			}
		}
		flag := rapid.SampledFrom([]int{os.O_RDONLY, os.O_WRONLY, os.O_RDWR}).Draw(t, "access")
		if flag != os.O_RDONLY {
			for _, extra := range []int{os.O_CREATE, os.O_TRUNC, os.O_APPEND, os.O_EXCL | os.O_CREATE} {
				if rapid.Bool().Draw(t, "flag") {
					flag |= extra
				}
			}
		}
		x, errX := ours.OpenFile("f", flag, 0o644)
		y, errY := theirs.OpenFile(name, flag, 0o644)
		if (errX == nil) != (errY == nil) || os.IsNotExist(errX) != os.IsNotExist(errY) || os.IsExist(errX) != os.IsExist(errY) {
			t.Fatalf("open %#x: %v, the system says %v", flag, errX, errY)
		}
		if errX != nil {
			return
		}
		for range rapid.IntRange(0, 20).Draw(t, "steps") {
			step(t, x, y, flag)
		}
		if errX, errY := x.Close(), y.Close(); errX != nil || errY != nil {
			t.Fatalf("close: %v, the system says %v", errX, errY)
		}
		got, errX := afero.ReadFile(ours, "f")
		want, errY := os.ReadFile(name)
		if errX != nil || errY != nil || !bytes.Equal(got, want) {
			t.Fatalf("the file holds %q (%v), the system's %q (%v)", got, errX, want, errY)
		}
	})
}

// step does one thing with both handles. What depends on content that an append-only handle does
// not have is left out.
func step(t *rapid.T, x, y afero.File, flag int) {
	appendOnly := flag&os.O_APPEND != 0 && flag&os.O_RDWR == 0
	var nX, nY int64
	var errX, errY error
	kind := rapid.SampledFrom([]string{"read", "readat", "write", "writeat", "seek", "truncate", "sync", "stat"}).Draw(t, "kind")
	buf := rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "data")
	off := rapid.Int64Range(-3, 60).Draw(t, "offset")
	if len(buf) == 0 && kind == "writeat" {
		return // package os does not even look whether the file may be written
	}
	bx, by := make([]byte, len(buf)), make([]byte, len(buf))
	switch kind {
	case "read":
		nX, errX = full(x, bx)
		nY, errY = full(y, by)
	case "readat":
		nX, errX = wide(x.ReadAt(bx, off))
		nY, errY = wide(y.ReadAt(by, off))
	case "write":
		nX, errX = wide(x.Write(buf))
		nY, errY = wide(y.Write(buf))
	case "writeat":
		nX, errX = wide(x.WriteAt(buf, off))
		nY, errY = wide(y.WriteAt(buf, off))
	case "seek":
		whence := rapid.IntRange(0, 2).Draw(t, "whence")
		nX, errX = x.Seek(off, whence)
		nY, errY = y.Seek(off, whence)
	case "truncate":
		if appendOnly && off > 0 {
			return
		}
		errX, errY = x.Truncate(off), y.Truncate(off)
	case "sync":
		errX, errY = x.Sync(), y.Sync()
	case "stat":
		var iX, iY os.FileInfo
		iX, errX = x.Stat()
		iY, errY = y.Stat()
		if errX == nil && errY == nil {
			nX, nY = iX.Size(), iY.Size()
		}
	}
	if (errX == nil) != (errY == nil) || (errX == io.EOF) != (errY == io.EOF) {
		t.Fatalf("%s: %v, the system says %v", kind, errX, errY)
	}
	if errX == nil && nX != nY || !bytes.Equal(bx, by) {
		t.Fatalf("%s: %d %q, the system says %d %q", kind, nX, bx, nY, by)
	}
}

func wide(n int, err error) (int64, error) { return int64(n), err }

// full reads until p is full or the file ends: how much one Read gives is left to the file.
func full(r io.Reader, p []byte) (int64, error) {
	n, err := io.ReadFull(r, p)
	if err == io.ErrUnexpectedEOF {
		err = nil
	}
	return int64(n), err
}
