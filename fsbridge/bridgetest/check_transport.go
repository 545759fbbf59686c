package bridgetest

import (
	"context"
	"errors"
	"time"

	"github.com/workberth/workberth/fsbridge"
)

// transportChecks prove what a cut connection means. FSB-11
func transportChecks() []check {
	return []check{
		{name: "cut-before", rows: []string{"FSB-11"}, run: transportBefore},
		{name: "cut-during-write", rows: []string{"FSB-11"}, needs: caps(fsbridge.CapWriteStream), run: transportDuring},
		{name: "cut-after-content", rows: []string{"FSB-11"}, needs: caps(fsbridge.CapWriteStream), run: transportAfter},
		{name: "cut-during-writes", rows: []string{"FSB-11"}, run: transportMany},
		{name: "cut-during-read", rows: []string{"FSB-11"}, needs: caps(fsbridge.CapOpenReader), run: transportRead},
	}
}

// severed skips where there is no transport.
func (k *kit) severed() {
	k.Helper()
	if k.env.Sever == nil {
		k.Skip("this target has no transport that can be cut")
	}
}

// transportBefore cuts while nothing is under way: nothing was changed, and that is known.
func transportBefore(k *kit) {
	k.severed()
	plantForOps(k)
	k.env.Sever()
	was := k.tree("d")
	k.eachOperation(operations(), func(k *kit, op operation) {
		p := opPath(k, op)
		ctx, cancel := context.WithTimeout(k.ctx, time.Minute)
		defer cancel()
		_, err := op.run(k, ctx, k.b, p)
		if op.mutates {
			k.refused(op.name, err, fsbridge.ErrUnavailable, fsbridge.ErrOutcomeUnknown)
		} else {
			k.refused(op.name, err, fsbridge.ErrUnavailable)
		}
		if errors.Is(err, context.DeadlineExceeded) {
			k.Errorf("%s hangs after the cut", op.name)
		}
	})
	k.wantContent("f", "content")
	k.wantSame("the directory", "d", was)
}

// truth demands that what the error says about a write of fresh over old is so.
func (k *kit) truth(err error, p, old, fresh string) {
	k.Helper()
	got := string(k.content(p))
	switch {
	case err == nil && got != fresh:
		k.Errorf("reported as written, and the file holds %s", brief([]byte(got)))
	case err != nil && errors.Is(err, fsbridge.ErrOutcomeUnknown):
		if got != old && got != fresh {
			k.Errorf("the file is torn: %s", brief([]byte(got)))
		}
	case err != nil:
		k.refused("write", err, fsbridge.ErrUnavailable)
		if got != old {
			k.Errorf("reported as not written (%v), and the file holds %s", err, brief([]byte(got)))
		}
	}
}

// transportDuring cuts while the content is on its way: the file is old or new, and the error
// does not claim to know what it cannot know. FSB-11
func transportDuring(k *kit) {
	k.severed()
	old, fresh := "old", string(pattern(16<<20, 1))
	k.file("f", old)
	src := &callReader{r: stringReader(fresh), each: func(n int64) {
		if n > 8<<20 && n < 12<<20 {
			k.env.Sever()
		}
	}}
	_, err := fsbridge.WriteStream(k.ctx, k.b, "f", src, fsbridge.WriteOptions{})
	if err == nil {
		k.Error("a write succeeded over a cut connection")
	}
	k.truth(err, "f", old, fresh)
}

// transportAfter cuts when the content is complete and the answer is on its way: whether it was
// written is known to nobody, and the error says so, unless it is known after all. FSB-11
func transportAfter(k *kit) {
	k.severed()
	old, fresh := "old", string(pattern(1<<20, 1))
	k.file("f", old)
	src := &callReader{r: stringReader(fresh), each: func(n int64) {
		if n == int64(len(fresh)) {
			k.env.Sever()
		}
	}}
	_, err := fsbridge.WriteStream(k.ctx, k.b, "f", src, fsbridge.WriteOptions{})
	k.truth(err, "f", old, fresh)
}

// transportMany cuts while many writes are under way.
func transportMany(k *kit) {
	k.severed()
	const n = 16
	fresh := string(pattern(100_000, 1))
	for i := range n {
		k.file(numbered("f", i), "old")
	}
	errs := make([]error, n)
	k.together(n+1, func(i int) {
		if i == n {
			k.env.Sever()
			return
		}
		for {
			p := numbered("f", i)
			if errs[i] = k.b.WriteFile(k.ctx, p, []byte(fresh)); errs[i] != nil {
				return
			}
			// Written: put the old content back, so that the next round tells again.
			if errs[i] = k.b.WriteFile(k.ctx, p, []byte("old")); errs[i] != nil {
				return
			}
		}
	})
	for i, err := range errs {
		if !errors.Is(err, fsbridge.ErrOutcomeUnknown) && !errors.Is(err, fsbridge.ErrUnavailable) {
			k.Errorf("write %d: %v", i, err)
		}
		if got := string(k.content(numbered("f", i))); got != "old" && got != fresh {
			k.Errorf("file %d is torn: %s", i, brief([]byte(got)))
		}
	}
}

// transportRead cuts in the middle of a stream: an error, never an early end.
func transportRead(k *kit) {
	k.severed()
	const size = 64 << 20
	k.make("f", Node{Type: fsbridge.TypeRegular, Size: size})
	r, _, err := fsbridge.OpenReader(k.ctx, k.b, "f")
	k.ok("open", err)
	defer func() { _ = r.Close() }()
	var n int64
	buf := make([]byte, 64<<10)
	for {
		m, err := r.Read(buf)
		if n += int64(m); n > 1<<20 {
			k.env.Sever()
		}
		if err != nil {
			if n < size && !errors.Is(err, fsbridge.ErrUnavailable) {
				k.Errorf("after %d of %d bytes: %v, want %v", n, size, err, fsbridge.ErrUnavailable)
			}
			return
		}
	}
}
