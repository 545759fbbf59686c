package aferofs_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/spf13/afero"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/aferofs"
)

// block is a mebibyte that does not repeat.
func block() []byte {
	b := make([]byte, 1<<20)
	x := uint32(1)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}

// recorder counts what reaches the bridge.
type recorder struct {
	*aferofs.Bridge
	streams, whole, appends int
}

func (r *recorder) WriteStream(ctx context.Context, p string, src io.Reader, o fsbridge.WriteOptions) (fsbridge.WriteResult, error) {
	r.streams++
	return r.Bridge.WriteStream(ctx, p, src, o)
}

func (r *recorder) AppendFile(ctx context.Context, p string, data []byte) error {
	r.appends++
	return r.Bridge.AppendFile(ctx, p, data)
}

func (r *recorder) ReadFile(ctx context.Context, p string) ([]byte, error) {
	r.whole++
	return r.Bridge.ReadFile(ctx, p)
}

// TestLargeWrite writes more than is kept, from start to end: it becomes one streamed write.
func TestLargeWrite(t *testing.T) {
	rec := &recorder{Bridge: newBridge(t)}
	f := aferofs.NewFs(t.Context(), rec)
	w, err := f.Create("big")
	must(t, err)
	rec.streams = 0
	b := block()
	for range 20 {
		_, err := w.Write(b)
		must(t, err)
	}
	if i, err := w.Stat(); err != nil || i.Size() != 20<<20 {
		t.Errorf("stat while writing: %v, %v", i.Size(), err)
	}
	// Other orders are refused and do no harm.
	if _, err := w.WriteAt([]byte("x"), 0); !errors.Is(err, fsbridge.ErrTooLarge) {
		t.Errorf("write at the start: %v", err)
	}
	if _, err := w.ReadAt(make([]byte, 1), 0); !errors.Is(err, fsbridge.ErrTooLarge) {
		t.Errorf("read at the start: %v", err)
	}
	if err := w.Truncate(1); !errors.Is(err, fsbridge.ErrTooLarge) {
		t.Errorf("truncate: %v", err)
	}
	if i, err := f.Stat("big"); err != nil || i.Size() != 0 {
		t.Errorf("seen before the end: %d bytes, %v", i.Size(), err)
	}
	must(t, w.Sync())
	_, err = w.Write([]byte("tail"))
	must(t, err)
	must(t, w.Close())
	if rec.streams != 1 || rec.appends != 1 {
		t.Errorf("%d streamed writes and %d appends, want one of each", rec.streams, rec.appends)
	}
	r, err := f.Open("big")
	must(t, err)
	defer r.Close()
	buf := make([]byte, 1<<20)
	for i := range 20 {
		if _, err := io.ReadFull(r, buf); err != nil || !bytes.Equal(buf, b) {
			t.Fatalf("block %d: %v", i, err)
		}
	}
	tail, err := io.ReadAll(r)
	if err != nil || string(tail) != "tail" {
		t.Errorf("tail %q, %v", tail, err)
	}
	if rec.whole != 0 {
		t.Errorf("the file was read whole %d times", rec.whole)
	}
}

// TestLargeReads reads at odd places: neither the whole file nor a stream is needed.
func TestLargeReads(t *testing.T) {
	rec := &recorder{Bridge: newBridge(t)}
	f := aferofs.NewFs(t.Context(), rec)
	data := bytes.Repeat(block(), 3)
	must(t, rec.WriteFile(t.Context(), "f", data))
	for name, f := range map[string]afero.Fs{
		"ranges":  f,
		"streams": aferofs.NewFs(t.Context(), only(rec, fsbridge.CapOpenReader)),
		"whole":   aferofs.NewFs(t.Context(), only(rec)),
	} {
		t.Run(name, func(t *testing.T) {
			r, err := f.Open("f")
			must(t, err)
			defer r.Close()
			for _, off := range []int64{2 << 20, 5, 1<<20 - 3, 0, 3<<20 - 1} {
				at, err := r.Seek(off, io.SeekStart)
				must(t, err)
				want := data[off:min(off+10, int64(len(data)))]
				got := make([]byte, len(want))
				if _, err := io.ReadFull(r, got); err != nil || at != off || !bytes.Equal(got, want) {
					t.Errorf("at %d: %v, %v", off, got, err)
				}
			}
			if n, err := r.ReadAt(make([]byte, 10), int64(len(data))-4); n != 4 || err != io.EOF {
				t.Errorf("read at the end: %d, %v", n, err)
			}
			if n, err := r.ReadAt(make([]byte, 10), 4<<20); n != 0 || err != io.EOF {
				t.Errorf("read after the end: %d, %v", n, err)
			}
			if at, err := r.Seek(-2, io.SeekEnd); at != int64(len(data))-2 || err != nil {
				t.Errorf("seek from the end: %d, %v", at, err)
			}
			rest, err := io.ReadAll(r)
			if err != nil || !bytes.Equal(rest, data[len(data)-2:]) {
				t.Errorf("the end: %v, %v", rest, err)
			}
			if n, err := r.Read(nil); n != 0 || err != nil {
				t.Errorf("empty read at the end: %d, %v", n, err)
			}
		})
	}
}

// TestAbandoned gives up a large write by the context; the file is whole and nothing is left, not
// even a goroutine.
func TestAbandoned(t *testing.T) {
	inner := newBridge(t)
	ctx, cancel := context.WithCancel(context.Background())
	f := aferofs.NewFs(ctx, inner)
	write(t, f, "f", "old")
	w, err := f.Create("f")
	must(t, err)
	b := block()
	for range 10 {
		_, err := w.Write(b)
		must(t, err)
	}
	cancel()
	for err == nil { // until the write that is under way has noticed
		_, err = w.Write(b)
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("write: %v", err)
	}
	if err := w.Close(); !errors.Is(err, context.Canceled) {
		t.Errorf("close: %v", err)
	}
	got, err := inner.ReadFile(context.Background(), "f")
	if err != nil || string(got) != "old" {
		t.Errorf("the file holds %.20q, %v", got, err)
	}
	l, err := inner.ReadDirectory(context.Background(), ".")
	if err != nil || len(l) != 1 {
		t.Errorf("left: %v, %v", l, err)
	}
}

// TestFailedSyncIsRemembered: what could not be written is not forgotten at Close.
func TestFailedSyncIsRemembered(t *testing.T) {
	var gone atomic.Bool
	mem := afero.NewMemMapFs()
	b, err := aferofs.NewBridge(mem, aferofs.Options{Private: true, Assert: func() error {
		if gone.Load() {
			return errors.New("the turn is over")
		}
		return nil
	}})
	must(t, err)
	f := aferofs.NewFs(t.Context(), b)
	w, err := f.Create("f")
	must(t, err)
	for range 9 {
		_, err := w.Write(block())
		must(t, err)
	}
	gone.Store(true)
	for _, op := range []func() error{w.Sync, w.Sync, w.Close} {
		if err := op(); !errors.Is(err, fsbridge.ErrNotCurrent) {
			t.Errorf("error %v, want %v", err, fsbridge.ErrNotCurrent)
		}
	}
}

// restricted is a bridge with some capabilities hidden.
type restricted struct {
	*recorder
	keep []fsbridge.Capability
}

func (r restricted) Declares(c fsbridge.Capability) bool {
	if slices.Contains(r.keep, c) {
		return r.recorder.Declares(c)
	}
	return false
}

func only(r *recorder, keep ...fsbridge.Capability) fsbridge.Bridge { return restricted{r, keep} }

// TestCoreOnly uses a bridge with three methods: files can be read and written whole, everything
// else is refused by name. FSB-09
func TestCoreOnly(t *testing.T) {
	rec := &recorder{Bridge: newBridge(t)}
	f := aferofs.NewFs(t.Context(), only(rec))
	write(t, f, "f", "content")
	wantFile(t, f, "f", "content")
	w, err := f.OpenFile("f", os.O_RDWR|os.O_APPEND, 0)
	must(t, err)
	_, err = w.WriteString("+more")
	must(t, err)
	must(t, w.Close())
	wantFile(t, f, "f", "content+more")
	a, err := f.OpenFile("f", os.O_WRONLY|os.O_APPEND, 0)
	must(t, err)
	_, err = a.WriteString("+again")
	must(t, err)
	must(t, a.Close())
	wantFile(t, f, "f", "content+more+again")
	d, err := f.Open(".")
	must(t, err)
	_, err = d.Readdir(-1)
	for name, err := range map[string]error{
		"list": err, "mkdir": f.Mkdir("d", 0o777), "remove": f.Remove("f"), "remove all": f.RemoveAll("f"),
		"rename": f.Rename("f", "g"), "chmod": f.Chmod("f", 0o600),
	} {
		if !errors.Is(err, fsbridge.ErrUnsupported) {
			t.Errorf("%s: %v, want %v", name, err, fsbridge.ErrUnsupported)
		}
	}
	if _, err := f.OpenFile("x", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); !errors.Is(err, fsbridge.ErrUnsupported) {
		t.Errorf("exclusive: %v", err)
	}
	if _, err := f.(afero.LinkReader).ReadlinkIfPossible("f"); !errors.Is(err, afero.ErrNoReadlink) {
		t.Errorf("readlink: %v", err)
	}
	if err := f.(afero.Linker).SymlinkIfPossible("f", "l"); !errors.Is(err, afero.ErrNoSymlink) {
		t.Errorf("symlink: %v", err)
	}
	if _, possible, err := f.(afero.Lstater).LstatIfPossible("f"); possible || err != nil {
		t.Errorf("lstat: %t, %v", possible, err)
	}
	must(t, d.Close())
	big, err := f.Create("big")
	must(t, err)
	_, err = big.Write(make([]byte, 9<<20)) // no streams: kept
	must(t, err)
	if _, err := big.WriteAt([]byte("x"), fsbridge.DefaultReadLimit); !errors.Is(err, fsbridge.ErrTooLarge) {
		t.Errorf("write at the limit: %v", err)
	}
	must(t, big.Close())
	if i, err := f.Stat("big"); err != nil || i.Size() != 9<<20 {
		t.Errorf("big: %v, %v", i.Size(), err)
	}
}
