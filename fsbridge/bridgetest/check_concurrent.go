package bridgetest

import (
	"bytes"
	"io"

	"github.com/workberth/workberth/fsbridge"
)

// concurrentChecks prove that one bridge serves many at once.
func concurrentChecks() []check {
	return []check{
		{name: "own-files", run: concurrentOwn},
		{name: "mixed", run: concurrentMixed},
		{name: "same-parents", run: concurrentParents},
	}
}

// concurrentOwn lets many work on files of their own.
func concurrentOwn(k *kit) {
	k.together(32, func(w int) {
		p := numbered("d/w", w)
		for i := range 20 {
			data := pattern(1+(w*7919+i*104729)%70_000, byte(w+i))
			if err := k.b.WriteFile(k.ctx, p, data); err != nil {
				k.Errorf("write: %v", err)
				return
			}
			got, err := k.b.ReadFile(k.ctx, p)
			if err != nil || !bytes.Equal(got, data) {
				k.Errorf("read: %d bytes, %v, want %d", len(got), err, len(data))
				return
			}
			info, err := k.b.Stat(k.ctx, p)
			if err != nil || info.Size != int64(len(data)) {
				k.Errorf("stat: %+v, %v", info, err)
				return
			}
		}
	})
	if n := len(k.names("d")); n != 32 {
		k.Errorf("%d files, want 32", n)
	}
}

// concurrentMixed runs everything the bridge can do at once.
func concurrentMixed(k *kit) {
	k.file("shared", string(pattern(100_000, 1)))
	for i := range 50 {
		k.file(numbered("list/f", i), "x")
	}
	k.together(24, func(w int) {
		p := numbered("own/w", w)
		for i := range 10 {
			var err error
			switch (w + i) % 8 {
			case 0, 1:
				err = k.b.WriteFile(k.ctx, p, pattern(10_000, byte(i)))
			case 2:
				var got []byte
				if got, err = k.b.ReadFile(k.ctx, "shared"); err == nil && !bytes.Equal(got, pattern(100_000, 1)) {
					k.Errorf("read %d bytes wrongly", len(got))
				}
			case 3:
				if k.has(fsbridge.CapReadDirectory) {
					var l []fsbridge.DirEntry
					if l, err = fsbridge.ReadDirectory(k.ctx, k.b, "list"); err == nil && len(l) != 50 {
						k.Errorf("listed %d entries", len(l))
					}
				}
			case 4:
				if k.has(fsbridge.CapOpenReader) {
					var r io.ReadCloser
					if r, _, err = fsbridge.OpenReader(k.ctx, k.b, "shared"); err == nil {
						var got []byte
						if got, err = io.ReadAll(r); !bytes.Equal(got, pattern(100_000, 1)) {
							k.Errorf("streamed %d bytes wrongly", len(got))
						}
						_ = r.Close()
					}
				}
			case 5:
				if k.has(fsbridge.CapHashFile) {
					var h fsbridge.FileHash
					if h, err = fsbridge.HashFile(k.ctx, k.b, "shared"); err == nil && h.Digest != digest(pattern(100_000, 1)) {
						k.Errorf("hash %+v", h)
					}
				}
			case 6:
				if k.has(fsbridge.CapMkdir) && k.has(fsbridge.CapRemove) {
					d := numbered(numbered("own/dir", w)+"-", i)
					if err = fsbridge.Mkdir(k.ctx, k.b, d, fsbridge.MkdirOptions{Parents: true}); err == nil {
						err = fsbridge.Remove(k.ctx, k.b, d, fsbridge.RemoveOptions{})
					}
				}
			case 7:
				if k.has(fsbridge.CapWalk) {
					n := 0
					err = fsbridge.Walk(k.ctx, k.b, "list", fsbridge.WalkOptions{}, func(fsbridge.WalkEntry) error {
						n++
						return nil
					})
					if n != 50 {
						k.Errorf("walked %d entries", n)
					}
				}
			}
			if err != nil {
				k.Errorf("step %d of %d: %v", i, w, err)
			}
		}
	})
}

// concurrentParents lets many create the same missing parents.
func concurrentParents(k *kit) {
	for round := range 10 {
		dir := numbered("r", round) + "/a/b/c"
		k.together(16, func(w int) {
			if err := k.b.WriteFile(k.ctx, numbered(dir+"/f", w), []byte("x")); err != nil {
				k.Errorf("write: %v", err)
			}
		})
		if n := len(k.names(dir)); n != 16 {
			k.Errorf("%d files, want 16", n)
		}
	}
}
