//go:build linux

package local

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/rooted"
	"golang.org/x/sys/unix"
)

// What a file has besides its content survives being replaced. C033
func TestReplaceKeepsMetadata(t *testing.T) {
	needRoot(t)
	for _, name := range []string{"kernel", "careful", "no-tmpfile"} {
		d := newDirs(t, ways()[name])
		ctx := t.Context()
		for p, mode := range map[string]os.FileMode{"plain": 0o640, "exec": 0o755, "group": 0o664, "setuid": 0o4755 &^ 0o4000} {
			d.put(d.in(p), "old")
			must(t, os.Chown(d.in(p), 1234, 4321))
			must(t, os.Chmod(d.in(p), mode))
		}
		must(t, unix.Chmod(d.in("setuid"), 0o4755))
		xattrs := unix.Setxattr(d.in("plain"), "user.note", []byte("hello"), 0) == nil
		for _, p := range []string{"plain", "exec", "group", "setuid"} {
			must(t, d.b.WriteFile(ctx, p, []byte("new")))
			var st unix.Stat_t
			must(t, unix.Stat(d.in(p), &st))
			want := map[string]uint32{"plain": 0o640, "exec": 0o755, "group": 0o664, "setuid": 0o755}[p]
			if st.Uid != 1234 || st.Gid != 4321 || st.Mode&0o7777 != want {
				t.Errorf("%s: %s: owner %d:%d, mode %o, want %o", name, p, st.Uid, st.Gid, st.Mode&0o7777, want)
			}
		}
		buf := make([]byte, 10)
		if n, err := unix.Getxattr(d.in("plain"), "user.note", buf); xattrs && (err != nil || string(buf[:n]) != "hello") {
			t.Errorf("%s: attribute %q, %v", name, buf[:max(n, 0)], err)
		}
		must(t, unix.Chmod(d.in("setuid"), 0o4755))
		_, err := d.b.WriteStream(ctx, "setuid", strings.NewReader("x"), fsbridge.WriteOptions{AllowSetID: true})
		must(t, err)
		var st unix.Stat_t
		must(t, unix.Stat(d.in("setuid"), &st))
		if st.Mode&0o7777 != 0o4755 {
			t.Errorf("%s: set-id was dropped though it was allowed: %o", name, st.Mode&0o7777)
		}
	}
}

// A directory with a group and the set-group-id bit gives it to what is made in it.
func TestSetGroupIDDirectories(t *testing.T) {
	needRoot(t)
	d := newDirs(t, ways()["kernel"])
	ctx := t.Context()
	must(t, os.Mkdir(d.in("g"), 0o755))
	must(t, os.Chown(d.in("g"), 0, 4321))
	must(t, unix.Chmod(d.in("g"), 0o2775))
	must(t, d.b.WriteFile(ctx, "g/n/f", nil))
	must(t, d.b.Mkdir(ctx, "g/exact", fsbridge.MkdirOptions{Mode: 0o777}))
	must(t, d.b.Chmod(ctx, "g", 0o750))
	for p, want := range map[string]uint32{"g": 0o2750, "g/n": 0o2755, "g/n/f": 0o644, "g/exact": 0o2777} {
		var st unix.Stat_t
		must(t, unix.Stat(d.in(p), &st))
		if st.Gid != 4321 || st.Mode&0o7777 != want {
			t.Errorf("%s: group %d, mode %o, want %o", p, st.Gid, st.Mode&0o7777, want)
		}
	}
}

// Two bridges, as in two processes, increment a counter under preconditions: no update is lost. C039
func TestCounterAcrossBridges(t *testing.T) {
	d := newDirs(t, ways()["kernel"])
	ctx := t.Context()
	d.put(d.in("n"), "0")
	const writers, rounds = 4, 100
	var wg sync.WaitGroup
	var mu sync.Mutex
	successes := 0
	for range writers {
		b := d.bridge(Options{Mounts: d.b.Mounts()})
		wg.Go(func() {
			for range rounds {
				data, err := b.ReadFile(ctx, "n")
				if err != nil {
					t.Error(err)
					return
				}
				n, _ := strconv.Atoi(string(data))
				_, err = b.WriteStream(ctx, "n", strings.NewReader(strconv.Itoa(n+1)),
					fsbridge.WriteOptions{If: fsbridge.Precondition{Hash: hashOf(string(data))}})
				var conflict *fsbridge.ConflictError
				switch {
				case err == nil:
					mu.Lock()
					successes++
					mu.Unlock()
				case !errors.As(err, &conflict) || conflict.Current == "":
					t.Errorf("conflict without the present hash: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if got := d.get(d.in("n")); got != strconv.Itoa(successes) {
		t.Errorf("the counter is %s after %d successes", got, successes)
	}
	if successes < rounds {
		t.Errorf("%d successes only", successes)
	}
}

// Appends of two bridges do not overwrite each other, nor get lost when the file is replaced.
func TestAppendAcrossBridges(t *testing.T) {
	d := newDirs(t, ways()["kernel"])
	ctx := t.Context()
	var wg sync.WaitGroup
	const writers, rounds = 4, 100
	for w := range writers {
		b := d.bridge(Options{Mounts: d.b.Mounts()})
		wg.Go(func() {
			for i := range rounds {
				if err := b.AppendFile(ctx, "log", fmt.Appendf(nil, "%d-%d\n", w, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	lines := map[string]bool{}
	for line := range strings.Lines(d.get(d.in("log"))) {
		lines[line] = true
	}
	if len(lines) != writers*rounds {
		t.Errorf("%d lines of %d", len(lines), writers*rounds)
	}
}

// A big file moves in constant memory. C027
func TestBigStreams(t *testing.T) {
	if testing.Short() {
		t.Skip("long: left out under -short")
	}
	d := newDirs(t, ways()["kernel"])
	ctx := t.Context()
	const size = 200 << 20
	block := make([]byte, 1<<20)
	_, _ = rand.Read(block)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	res, err := d.b.WriteStream(ctx, "big", io.LimitReader(&repeat{block: block}, size), fsbridge.WriteOptions{Size: size})
	must(t, err)
	must(t, d.b.Copy(ctx, "big", "copy", fsbridge.CopyOptions{}))
	h, err := d.b.HashFile(ctx, "copy")
	must(t, err)
	r, _, err := d.b.OpenReader(ctx, "copy")
	must(t, err)
	n, err := io.Copy(io.Discard, r)
	must(t, err)
	must(t, r.Close())
	runtime.ReadMemStats(&after)
	if h != res.FileHash || n != size {
		t.Errorf("wrote %+v, the copy has %+v, %d bytes were read", res, h, n)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 8<<20 {
		t.Errorf("%d bytes were allocated on the way", grown)
	}
	if _, err := d.b.ReadFile(ctx, "big"); !errors.Is(err, fsbridge.ErrTooLarge) {
		t.Errorf("read whole: %v", err)
	}
}

// repeat yields a block for ever.
type repeat struct {
	block []byte
	off   int
}

func (r *repeat) Read(p []byte) (int, error) {
	n := copy(p, r.block[r.off:])
	r.off = (r.off + n) % len(r.block)
	return n, nil
}

// Directories deeper than any path can say are walked, copied and removed by handles.
func TestDeepTrees(t *testing.T) {
	for _, name := range []string{"kernel", "careful"} {
		d := newDirs(t, ways()[name])
		ctx := t.Context()
		const depth = 1000
		must(t, os.Mkdir(d.in("top"), 0o755))
		fd, err := unix.Open(d.in("top"), unix.O_PATH|unix.O_CLOEXEC, 0)
		must(t, err)
		for range depth {
			must(t, unix.Mkdirat(fd, "directory", 0o755))
			next, err := unix.Openat(fd, "directory", unix.O_PATH|unix.O_CLOEXEC, 0)
			must(t, err)
			rooted.Close(fd)
			fd = next
		}
		file, err := unix.Openat(fd, "bottom", unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
		must(t, err)
		_, err = unix.Write(file, []byte("deep"))
		must(t, err)
		rooted.Close(file)
		must(t, unix.Symlinkat("../directory", fd, "link"))
		rooted.Close(fd)
		fds := openFDs(t)
		must(t, d.b.Copy(ctx, "top", "copy", fsbridge.CopyOptions{Recursive: true}))
		for _, p := range []string{"top", "copy"} {
			var last fsbridge.WalkEntry
			n := 0
			must(t, d.b.Walk(ctx, p, fsbridge.WalkOptions{Hash: true}, func(e fsbridge.WalkEntry) error {
				n++
				if e.Info.IsRegular() {
					last = e
				}
				return e.Err
			}))
			if n != depth+2 || last.Digest != hashOf("deep") || !strings.HasSuffix(last.Path, "directory/bottom") {
				t.Errorf("%s: %s: %d entries, the file is %q", name, p, n, last.Digest)
			}
			list, err := d.b.Glob(ctx, p+"/**/bottom", fsbridge.GlobOptions{})
			if err != nil || len(list) != 1 {
				t.Errorf("%s: glob: %d, %v", name, len(list), err)
			}
			must(t, d.b.Remove(ctx, p, fsbridge.RemoveOptions{Recursive: true}))
			if _, err := os.Lstat(d.in(p)); err == nil {
				t.Errorf("%s: %s is still there", name, p)
			}
		}
		if n := openFDs(t); n != fds {
			t.Errorf("%s: %d descriptors lost", name, n-fds)
		}
	}
}

// Content is bytes: what a write stores, a read gives back. C029 C035
func TestBytes(t *testing.T) {
	d := newDirs(t, ways()["kernel"])
	ctx := t.Context()
	for _, content := range []string{"", "x", "hello", "#!/bin/sh\nexit 1\nEOF\n", "\xef\xbb\xbfa\r\nb\r\n", "\xe9", strings.Repeat("x", chunk), strings.Repeat("x", chunk+1)} {
		res, err := d.b.WriteStream(ctx, "f", strings.NewReader(content), fsbridge.WriteOptions{})
		must(t, err)
		data, err := d.b.ReadFile(ctx, "f")
		must(t, err)
		if string(data) != content || res.Size != int64(len(content)) || res.Digest != hashOf(content) {
			t.Errorf("%d bytes: wrote %+v, read %d", len(content), res, len(data))
		}
		if !bytes.Equal(data, []byte(d.get(d.in("f")))) {
			t.Error("the file holds something else")
		}
	}
}
