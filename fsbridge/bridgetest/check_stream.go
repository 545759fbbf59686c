package bridgetest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"

	"github.com/workberth/workberth/fsbridge"
)

// streamChecks prove reading and writing through streams.
func streamChecks() []check {
	in, out := caps(fsbridge.CapOpenReader), caps(fsbridge.CapWriteStream)
	return []check{
		{name: "read", needs: in, run: streamRead},
		{name: "read-small-steps", needs: in, run: streamSmallSteps},
		{name: "read-close-early", needs: in, run: streamCloseEarly},
		{name: "read-many-open", needs: in, run: streamManyOpen},
		{name: "read-errors", needs: in, run: streamReadErrors},
		{name: "read-while-replaced", needs: in, run: streamReplaced},
		{name: "read-cancelled", needs: in, run: streamReadCancelled},
		{name: "write", needs: out, run: streamWrite},
		{name: "write-odd-readers", needs: out, run: streamOddReaders},
		{name: "write-reader-fails", needs: out, run: streamReaderFails},
		{name: "write-size", needs: out, run: streamSize},
		{name: "write-no-parents", needs: out, run: streamNoParents},
		{name: "write-cancelled", needs: out, run: streamWriteCancelled},
		{name: "write-hidden-until-whole", needs: out, run: streamHidden},
	}
}

func streamRead(k *kit) {
	for _, n := range []int{0, 1, 4096, 65536, 65537, 1<<20 + 7} {
		data := pattern(n, byte(n))
		k.file("f", string(data))
		r, i, err := fsbridge.OpenReader(k.ctx, k.b, "f")
		k.ok("open", err)
		got, err := io.ReadAll(r)
		k.ok("read", err)
		if m, err := r.Read(make([]byte, 1)); m != 0 || err != io.EOF {
			k.Errorf("read after the end: %d, %v", m, err)
		}
		k.ok("close", r.Close())
		if !bytes.Equal(got, data) {
			k.Errorf("%d bytes were streamed as %d", n, len(got))
		}
		if i.Size != int64(n) || !i.IsRegular() || i.Name != "f" {
			k.Errorf("info: %+v", i)
		}
	}
}

// streamSmallSteps reads byte by byte and with empty buffers in between.
func streamSmallSteps(k *kit) {
	data := pattern(3000, 2)
	k.file("f", string(data))
	r, _, err := fsbridge.OpenReader(k.ctx, k.b, "f")
	k.ok("open", err)
	var got []byte
	for step := 0; ; step++ {
		n, err := r.Read(nil)
		if n != 0 || err != nil && err != io.EOF {
			k.Fatalf("empty read: %d, %v", n, err)
		}
		buf := make([]byte, 1+step%7)
		n, err = r.Read(buf)
		got = append(got, buf[:n]...)
		if err == io.EOF {
			break
		}
		k.ok("read", err)
	}
	k.ok("close", r.Close())
	if !bytes.Equal(got, data) {
		k.Errorf("%d bytes were streamed as %d", len(data), len(got))
	}
}

// streamCloseEarly closes without reading to the end, again and again; the bridge stays usable.
func streamCloseEarly(k *kit) {
	data := pattern(2<<20, 3)
	k.file("f", string(data))
	for i := range 50 {
		r, _, err := fsbridge.OpenReader(k.ctx, k.b, "f")
		k.ok("open", err)
		buf := make([]byte, i*100)
		_, err = io.ReadFull(r, buf)
		k.ok("read", err)
		if !bytes.Equal(buf, data[:len(buf)]) {
			k.Fatal("the beginning was read wrongly")
		}
		k.ok("close", r.Close())
		if n, err := r.Read(make([]byte, 10)); err == nil || n > 0 {
			k.Fatalf("read after close: %d, %v", n, err)
		}
	}
	i, err := k.b.Stat(k.ctx, "f")
	k.ok("stat", err)
	if i.Size != int64(len(data)) {
		k.Errorf("stat: %+v", i)
	}
}

// streamManyOpen keeps many streams open and half read while others work.
func streamManyOpen(k *kit) {
	const n = 40
	var open []io.ReadCloser
	for i := range n {
		p := numbered("f", i)
		k.file(p, string(pattern(300_000, byte(i))))
		r, _, err := fsbridge.OpenReader(k.ctx, k.b, p)
		k.ok("open", err)
		open = append(open, r)
		_, err = io.ReadFull(r, make([]byte, 1000))
		k.ok("read", err)
	}
	k.ok("write while streams are open", k.b.WriteFile(k.ctx, "other", pattern(500_000, 99)))
	for i, r := range open {
		got, err := io.ReadAll(r)
		k.ok("read", err)
		if !bytes.Equal(got, pattern(300_000, byte(i))[1000:]) {
			k.Errorf("stream %d was read wrongly", i)
		}
		k.ok("close", r.Close())
	}
}

func streamReadErrors(k *kit) {
	k.dir("d")
	for p, want := range map[string]error{"absent": fs.ErrNotExist, "d": fsbridge.ErrNotRegular, "../x": fsbridge.ErrOutsideRoot} {
		r, i, err := fsbridge.OpenReader(k.ctx, k.b, p)
		k.refused("open "+p, err, want)
		if r != nil {
			k.Errorf("open %q: a reader and an error", p)
		}
		if i != (fsbridge.FileInfo{}) {
			k.Errorf("open %q: an error and %+v", p, i)
		}
	}
}

// streamReplaced replaces the file while it is streamed: the stream stays on the file it opened.
func streamReplaced(k *kit) {
	old := pattern(8<<20, 4)
	k.file("f", string(old))
	r, _, err := fsbridge.OpenReader(k.ctx, k.b, "f")
	k.ok("open", err)
	head := make([]byte, 1000)
	_, err = io.ReadFull(r, head)
	k.ok("read", err)
	k.ok("write", k.b.WriteFile(k.ctx, "f", pattern(8<<20, 5)))
	rest, err := io.ReadAll(r)
	k.ok("read", err)
	k.ok("close", r.Close())
	if !bytes.Equal(slices.Concat(head, rest), old) {
		k.Error("the stream is a mixture of two files")
	}
}

// streamReadCancelled cancels in the middle: the stream ends with the context's error.
func streamReadCancelled(k *kit) {
	k.file("f", string(pattern(32<<20, 6)))
	ctx, cancel := context.WithCancel(k.ctx)
	defer cancel()
	r, _, err := fsbridge.OpenReader(ctx, k.b, "f")
	k.ok("open", err)
	_, err = io.ReadFull(r, make([]byte, 1000))
	k.ok("read", err)
	cancel()
	_, err = io.Copy(io.Discard, r)
	if !errors.Is(err, context.Canceled) {
		k.Errorf("read after cancel: %v, want %v", err, context.Canceled)
	}
	_ = r.Close()
	_, err = k.b.Stat(k.ctx, "f")
	k.ok("stat after a cancelled stream", err)
}

func streamWrite(k *kit) {
	for _, n := range []int{0, 1, 4096, 65536, 65537, 1<<20 + 7} {
		data := pattern(n, byte(n+1))
		p := numbered("d/f", n)
		for _, created := range []bool{true, false} {
			res, err := fsbridge.WriteStream(k.ctx, k.b, p, stringReader(string(data)), fsbridge.WriteOptions{Sync: !created})
			k.ok("write", err)
			if res.Created != created || res.Size != int64(n) || res.Digest != digest(data) {
				k.Errorf("write of %d bytes: %+v, want created %t and digest %s", n, res, created, digest(data))
			}
			k.wantContent(p, string(data))
		}
	}
}

// errBroken is what failing readers of this suite fail with.
var errBroken = errors.New("the source is broken")

// oddReader yields data in odd steps, with empty reads in between, and its last bytes together
// with its error.
type oddReader struct {
	data []byte
	err  error
	n    int
}

func (r *oddReader) Read(p []byte) (int, error) {
	r.n++
	if r.n%3 == 0 {
		return 0, nil
	}
	n := copy(p[:min(len(p), 1+r.n%1000)], r.data)
	r.data = r.data[n:]
	if len(r.data) == 0 {
		return n, r.err
	}
	return n, nil
}

func streamOddReaders(k *kit) {
	data := pattern(300_000, 7)
	res, err := fsbridge.WriteStream(k.ctx, k.b, "f", &oddReader{data: data, err: io.EOF}, fsbridge.WriteOptions{})
	k.ok("write", err)
	if res.Size != int64(len(data)) || res.Digest != digest(data) {
		k.Errorf("write: %+v", res)
	}
	k.wantContent("f", string(data))
}

// streamReaderFails aborts at various places: the old file is whole, the directory as it was.
func streamReaderFails(k *kit) {
	k.file("d/f", "the old content")
	for _, n := range []int{0, 1, 4095, 100_000, 3 << 20} {
		for _, p := range []string{"d/f", "d/new"} {
			_, err := fsbridge.WriteStream(k.ctx, k.b, p, &oddReader{data: pattern(n, 1), err: errBroken}, fsbridge.WriteOptions{})
			k.refused("write", err, errBroken)
			_, err = fsbridge.WriteStream(k.ctx, k.b, p, &oddReader{data: pattern(n, 1), err: io.ErrUnexpectedEOF}, fsbridge.WriteOptions{})
			k.refused("write", err, io.ErrUnexpectedEOF)
			k.wantContent("d/f", "the old content")
			k.wantNames("d", "f")
		}
	}
}

// streamSize announces a size: exactly so many bytes, or nothing changes.
func streamSize(k *kit) {
	k.file("f", "old")
	write := func(p string, n int, size int64) error {
		_, err := fsbridge.WriteStream(k.ctx, k.b, p, stringReader(string(pattern(n, 1))), fsbridge.WriteOptions{Size: size})
		return err
	}
	for _, n := range []int{1, 1000, 200_000} {
		for _, size := range []int{n - 1, n + 1, 2*n + 1, 1 << 20} {
			if size <= 0 {
				continue
			}
			k.refused("write of another size", write("f", n, int64(size)))
			k.refused("write of another size", write("new", n, int64(size)))
			k.wantContent("f", "old")
			k.wantNames(".", "f")
		}
	}
	k.refused("nothing, announced as 5 bytes", write("f", 0, 5))
	k.refused("negative size", write("f", 5, -1), fsbridge.ErrInvalid)
	k.wantContent("f", "old")
	k.ok("write of the exact size", write("f", 200_000, 200_000))
	k.wantContent("f", string(pattern(200_000, 1)))
}

func streamNoParents(k *kit) {
	_, err := fsbridge.WriteStream(k.ctx, k.b, "a/b/f", stringReader("x"), fsbridge.WriteOptions{NoParents: true})
	k.refused("write", err, fs.ErrNotExist)
	k.wantNames(".")
	k.dir("d")
	_, err = fsbridge.WriteStream(k.ctx, k.b, "d/f", stringReader("x"), fsbridge.WriteOptions{NoParents: true})
	k.ok("write", err)
	k.wantContent("d/f", "x")
}

// callReader calls each on every read, with the number of bytes yielded so far.
type callReader struct {
	r    io.Reader
	n    int64
	each func(n int64)
}

func (r *callReader) Read(p []byte) (int, error) {
	r.each(r.n)
	n, err := r.r.Read(p)
	r.n += int64(n)
	return n, err
}

// streamWriteCancelled cancels half-way.
func streamWriteCancelled(k *kit) {
	k.file("d/f", "the old content")
	for _, p := range []string{"d/f", "d/new"} {
		ctx, cancel := context.WithCancel(k.ctx)
		src := &callReader{r: &repeatReader{block: pattern(1<<16, 1), left: 16 << 20}, each: func(n int64) {
			if n > 4<<20 {
				cancel()
			}
		}}
		_, err := fsbridge.WriteStream(ctx, k.b, p, src, fsbridge.WriteOptions{})
		cancel()
		k.refused("write", err, context.Canceled)
		if errors.Is(err, fsbridge.ErrOutcomeUnknown) {
			k.Logf("write: %v", err)
		}
		k.wantContent("d/f", "the old content")
	}
	// A cancelled command may still be tidying up in the environment; a further command on
	// the same directory is answered after it.
	_, err := k.b.Stat(k.ctx, "d/f")
	k.ok("stat", err)
	k.wantNamesSoon("d", "f")
}

// streamHidden looks at the directory while a write is under way: the target is old, and after it
// the target is new.
func streamHidden(k *kit) {
	k.file("d/f", "the old content")
	data := pattern(4<<20, 8)
	looked := false
	src := &callReader{r: stringReader(string(data)), each: func(n int64) {
		if n > 2<<20 && !looked {
			looked = true
			k.wantContent("d/f", "the old content")
			got, err := k.b.ReadFile(k.ctx, "d/f")
			if err != nil || string(got) != "the old content" {
				k.Errorf("read during the write: %s, %v", brief(got), err)
			}
		}
	}}
	_, err := fsbridge.WriteStream(k.ctx, k.b, "d/f", src, fsbridge.WriteOptions{})
	k.ok("write", err)
	if !looked {
		k.Error("the source was read in one piece")
	}
	k.wantContent("d/f", string(data))
	k.wantNames("d", "f")
}
