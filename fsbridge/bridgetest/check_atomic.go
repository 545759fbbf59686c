package bridgetest

import (
	"bytes"
	"sync"
	"sync/atomic"
	"time"

	"github.com/workberth/workberth/fsbridge"
)

// atomicChecks prove that a reader sees old or new bytes and never a mixture.
func atomicChecks() []check {
	return []check{
		{name: "readers-see-whole", run: atomicReaders},
		{name: "writers-last-wins", run: atomicWriters},
		{name: "append", needs: caps(fsbridge.CapAppendFile), run: appendPlain},
		{name: "append-concurrent", needs: caps(fsbridge.CapAppendFile), run: appendConcurrent},
		{name: "mtime-moves", run: atomicModTime},
	}
}

// atomicReaders replaces a file while the oracle and the bridge read it.
func atomicReaders(k *kit) {
	versions := [][]byte{
		bytes.Repeat([]byte("A"), 300_000), bytes.Repeat([]byte("B"), 200_000), bytes.Repeat([]byte("C"), 1), bytes.Repeat([]byte("D"), 100_000),
	}
	whole := func(got []byte) bool {
		for _, v := range versions {
			if bytes.Equal(got, v) {
				return true
			}
		}
		return false
	}
	k.file("f", string(versions[0]))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var reads atomic.Int64
	reader := func(what string, read func() ([]byte, error)) {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				got, err := read()
				if err != nil {
					k.Errorf("%s: %v", what, err)
					return
				}
				if !whole(got) {
					k.Errorf("%s sees a mixture: %s", what, brief(got))
					return
				}
				reads.Add(1)
			}
		})
	}
	reader("bridge", func() ([]byte, error) { return k.b.ReadFile(k.ctx, "f") })
	reader("oracle", func() ([]byte, error) { return readAll(k.env.Oracle, k.abs("f")) })
	for i := range 200 {
		if err := k.b.WriteFile(k.ctx, "f", versions[i%len(versions)]); err != nil {
			k.Errorf("write: %v", err)
			break
		}
	}
	close(stop)
	wg.Wait()
	k.Logf("%d reads", reads.Load())
	k.wantNames(".", "f")
}

// atomicWriters lets writers overwrite each other: the result is one of their contents, whole.
func atomicWriters(k *kit) {
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for range 20 {
				if err := k.b.WriteFile(k.ctx, "f", bytes.Repeat([]byte{byte('a' + w)}, 50_000+w)); err != nil {
					k.Errorf("write: %v", err)
				}
			}
		})
	}
	wg.Wait()
	got := k.content("f")
	if len(got) < 50_000 || len(got) != 50_000+int(got[0]-'a') || bytes.Count(got, got[:1]) != len(got) {
		k.Errorf("the file is a mixture: %s", brief(got))
	}
	k.wantNames(".", "f")
}

func appendPlain(k *kit) {
	k.ok("append", fsbridge.AppendFile(k.ctx, k.b, "a/b/f", []byte("one\n")))
	k.ok("append", fsbridge.AppendFile(k.ctx, k.b, "a/b/f", []byte("two\n")))
	k.ok("append", fsbridge.AppendFile(k.ctx, k.b, "a/b/f", nil))
	k.ok("append", fsbridge.AppendFile(k.ctx, k.b, k.abs("a/b/f"), pattern(200_000, 1)))
	k.wantContent("a/b/f", "one\ntwo\n"+string(pattern(200_000, 1)))
	k.ok("append nothing to nothing", fsbridge.AppendFile(k.ctx, k.b, "empty", nil))
	k.wantContent("empty", "")
	k.dir("d")
	k.refused("append to a directory", fsbridge.AppendFile(k.ctx, k.b, "d", []byte("x")), fsbridge.ErrNotRegular)
	k.make("m", Node{Type: fsbridge.TypeRegular, Mode: 0o750, Data: []byte("x")})
	k.ok("append", fsbridge.AppendFile(k.ctx, k.b, "m", []byte("y")))
	k.wantContent("m", "xy")
	if n := k.look("m"); n.Mode != 0o750 {
		k.Errorf("append changed the mode to %o", n.Mode)
	}
	if n := k.look("a/b/f"); n.Mode != 0o644 {
		k.Errorf("append made a file of mode %o", n.Mode)
	}
}

// appendConcurrent appends from many sides: nothing is lost or overwritten.
func appendConcurrent(k *kit) {
	const writers, each = 8, 50
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			line := append(bytes.Repeat([]byte{byte('a' + w)}, 99), '\n')
			for range each {
				if err := fsbridge.AppendFile(k.ctx, k.b, "log", line); err != nil {
					k.Errorf("append: %v", err)
				}
			}
		})
	}
	wg.Wait()
	got := k.content("log")
	if len(got) != writers*each*100 {
		k.Errorf("%d bytes, want %d", len(got), writers*each*100)
	}
	for w := range writers {
		if n := bytes.Count(got, []byte{byte('a' + w)}); n != 99*each {
			k.Errorf("writer %d: %d bytes, want %d", w, n, 99*each)
		}
	}
}

// atomicModTime: a replaced file does not keep the old time.
func atomicModTime(k *kit) {
	k.make("f", Node{Type: fsbridge.TypeRegular, Data: []byte("x"), ModTime: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)})
	k.ok("write", k.b.WriteFile(k.ctx, "f", []byte("y")))
	if n := k.look("f"); n.ModTime.Year() == 2020 {
		k.Errorf("a write kept the time %v", n.ModTime)
	}
}
