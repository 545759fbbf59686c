package bridgetest

import (
	"bytes"
	"errors"
	"io"

	"github.com/workberth/workberth/fsbridge"
)

const readLimit = 1000

// limitChecks prove that a limit is an error and never a cut result.
func limitChecks() []check {
	o := Options{ReadLimit: readLimit}
	return []check{
		{name: "read", opts: o, run: limitsRead},
		{name: "sparse", run: limitsSparse},
		{name: "range", opts: o, needs: caps(fsbridge.CapReadRange), run: limitsRange},
		{name: "not-for-streams", opts: o, needs: caps(fsbridge.CapOpenReader), run: limitsStream},
		{name: "not-for-writes", opts: o, run: limitsWrite},
		{name: "walk", needs: caps(fsbridge.CapWalk), run: limitsWalk},
		{name: "glob", needs: caps(fsbridge.CapGlob), run: limitsGlob},
	}
}

// tooLarge demands ErrTooLarge, with the limit and nothing else in the result.
func (k *kit) tooLarge(what string, got []byte, err error, limit int64) {
	k.Helper()
	k.refused(what, err, fsbridge.ErrTooLarge)
	var le *fsbridge.LimitError
	if !errors.As(err, &le) {
		k.Errorf("%s: error %v is no *fsbridge.LimitError", what, err)
	} else if le.Limit != limit {
		k.Errorf("%s: the error tells a limit of %d, want %d", what, le.Limit, limit)
	}
	if len(got) > 0 {
		k.Errorf("%s: %d bytes came with the error", what, len(got))
	}
}

// limitsRead reads files around the limit.
func limitsRead(k *kit) {
	for _, n := range []int{0, 1, readLimit - 1, readLimit} {
		data := pattern(n, 3)
		k.file("f", string(data))
		got, err := k.b.ReadFile(k.ctx, "f")
		k.ok("read", err)
		if !bytes.Equal(got, data) {
			k.Errorf("%d bytes were read as %d", n, len(got))
		}
	}
	k.link("l", "f")
	for _, n := range []int{readLimit + 1, 2 * readLimit, 100 * readLimit} {
		k.file("f", string(pattern(n, 3)))
		for _, p := range []string{"f", "l"} {
			got, err := k.b.ReadFile(k.ctx, p)
			k.tooLarge("read", got, err, readLimit)
			if k.has(fsbridge.CapReadFileWithSource) {
				f, err := fsbridge.ReadFileWithSource(k.ctx, k.b, p)
				k.tooLarge("read-with-source", f.Data, err, readLimit)
			}
		}
	}
}

// limitsSparse reads a file of a tebibyte under the default limit.
func limitsSparse(k *kit) {
	k.make("huge", Node{Type: fsbridge.TypeRegular, Size: 1 << 40})
	got, err := k.b.ReadFile(k.ctx, "huge")
	k.refused("read", err, fsbridge.ErrTooLarge)
	if len(got) > 0 {
		k.Errorf("%d bytes came with the error", len(got))
	}
	i, err := k.b.Stat(k.ctx, "huge")
	k.ok("stat", err)
	if i.Size != 1<<40 {
		k.Errorf("size %d", i.Size)
	}
	if k.has(fsbridge.CapReadRange) {
		got, err := fsbridge.ReadRange(k.ctx, k.b, "huge", 1<<40-5, 10)
		k.ok("range", err)
		if !bytes.Equal(got, make([]byte, 5)) {
			k.Errorf("range: %q", got)
		}
	}
}

// limitsRange asks for more than the limit: all of it or an error.
func limitsRange(k *kit) {
	data := pattern(5*readLimit, 4)
	k.file("f", string(data))
	got, err := fsbridge.ReadRange(k.ctx, k.b, "f", 100, readLimit)
	k.ok("range of the limit", err)
	if !bytes.Equal(got, data[100:100+readLimit]) {
		k.Errorf("range of the limit: %d bytes", len(got))
	}
	for _, n := range []int64{readLimit + 1, 1 << 40, 1<<63 - 1} {
		got, err = fsbridge.ReadRange(k.ctx, k.b, "f", 100, n)
		k.tooLarge("range above the limit", got, err, readLimit)
	}
}

// limitsStream streams a file above the limit.
func limitsStream(k *kit) {
	data := pattern(50*readLimit, 5)
	k.file("f", string(data))
	r, i, err := fsbridge.OpenReader(k.ctx, k.b, "f")
	k.ok("open", err)
	got, err := io.ReadAll(r)
	k.ok("read", err)
	k.ok("close", r.Close())
	if !bytes.Equal(got, data) || i.Size != int64(len(data)) {
		k.Errorf("%d bytes, info %+v", len(got), i)
	}
	if k.has(fsbridge.CapHashFile) {
		h, err := fsbridge.HashFile(k.ctx, k.b, "f")
		k.ok("hash", err)
		if h.Digest != digest(data) || h.Size != int64(len(data)) {
			k.Errorf("hash: %+v", h)
		}
	}
}

// limitsWrite writes more than may be read at once.
func limitsWrite(k *kit) {
	data := pattern(50*readLimit, 6)
	k.ok("write", k.b.WriteFile(k.ctx, "f", data))
	k.wantContent("f", string(data))
}

// limitsWalk ends a walk at its bound.
func limitsWalk(k *kit) {
	for i := range 10 {
		k.file(numbered("d/f", i), "x")
	}
	count := func(maximum int) (int, error) {
		n := 0
		err := fsbridge.Walk(k.ctx, k.b, "d", fsbridge.WalkOptions{MaxEntries: maximum}, func(fsbridge.WalkEntry) error {
			n++
			return nil
		})
		return n, err
	}
	n, err := count(10)
	k.ok("walk of exactly the bound", err)
	if n != 10 {
		k.Errorf("%d entries, want 10", n)
	}
	n, err = count(9)
	k.tooLarge("walk", nil, err, 9)
	if n > 9 {
		k.Errorf("%d entries were given, the bound is 9", n)
	}
}

// limitsGlob ends a search at its bound.
func limitsGlob(k *kit) {
	for i := range 10 {
		k.file(numbered("d/f", i), "x")
	}
	got, err := fsbridge.Glob(k.ctx, k.b, "d/*", fsbridge.GlobOptions{MaxMatches: 10})
	k.ok("glob of exactly the bound", err)
	if len(got) != 10 {
		k.Errorf("%d matches, want 10", len(got))
	}
	got, err = fsbridge.Glob(k.ctx, k.b, "d/*", fsbridge.GlobOptions{MaxMatches: 9})
	k.tooLarge("glob", nil, err, 9)
	if len(got) > 0 {
		k.Errorf("%d matches came with the error", len(got))
	}
}
