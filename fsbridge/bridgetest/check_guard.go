package bridgetest

import (
	"context"
	"errors"
	"io"
	"sync/atomic"

	"github.com/workberth/workberth/fsbridge"
)

// guard is an assertion that counts and can be made to fail.
type guard struct {
	calls atomic.Int64
	gone  atomic.Bool
}

var errRevoked = errors.New("the turn is over")

func (g *guard) check() error {
	g.calls.Add(1)
	if g.gone.Load() {
		return errRevoked
	}
	return nil
}

// guardChecks prove that authority is looked at before each command. FSB-10 FSB-12
func guardChecks() []check {
	return []check{
		guarded("asked-every-time", guardAsked),
		guarded("refused-when-gone", guardGone, "FSB-12"),
		guarded("comes-back", guardBack),
		guarded("cancelled-too", guardCancelled),
		guarded("during-write", guardDuringWrite, "FSB-12"),
		guarded("concurrent", guardConcurrent),
		{name: "revoked", rows: []string{"FSB-12"}, run: guardRevoked},
	}
}

// guarded is a check whose bridge has a guard of its own.
func guarded(name string, run func(k *kit, g *guard), rows ...string) check {
	g := &guard{}
	return check{
		name: name, rows: append([]string{"FSB-10"}, rows...), opts: Options{Guard: g.check},
		run: func(k *kit) { run(k, g) },
	}
}

// plantForOps makes what every operation needs to succeed at least once.
func plantForOps(k *kit) {
	k.file("f", "content")
	k.file("d/inner", "content")
}

// opPath is a path on which the operation has something to do.
func opPath(k *kit, op operation) string {
	switch op.name {
	case "list", "list-stream", "walk", "watch", "glob-below":
		return "d"
	case "create-exclusive", "mkdir", "mkdir-parents", "rename-to", "copy-to", "symlink", "symlink-replace":
		return k.fresh("new")
	case "remove", "remove-recursive", "rename-from":
		return k.freshFile("old")
	case "readlink":
		p := k.fresh("link")
		if !k.try(p, Node{Type: fsbridge.TypeSymlink, Target: "f"}) {
			return ""
		}
		return p
	}
	return "f"
}

// guardAsked counts: every operation asks at least once, before it is sent.
func guardAsked(k *kit, g *guard) {
	plantForOps(k)
	k.eachOperation(operations(), func(k *kit, op operation) {
		p := opPath(k, op)
		if p == "" {
			return
		}
		before := g.calls.Load()
		_, err := k.do(op, p)
		k.ok(op.name, err)
		if g.calls.Load() == before {
			k.Errorf("%s did not ask the guard", op.name)
		}
	})
}

// guardGone lets the guard fail: nothing is sent, nothing changes, and both errors are told.
func guardGone(k *kit, g *guard) {
	plantForOps(k)
	k.eachOperation(operations(), func(k *kit, op operation) {
		g.gone.Store(false)
		p := opPath(k, op)
		if p == "" {
			return
		}
		// Operations on two paths prepare a file of their own: give them one that counts.
		g.gone.Store(true)
		was := k.names(".")
		got, err := k.do(op, p)
		k.refused(op.name, err, fsbridge.ErrNotCurrent)
		k.refused(op.name, err, errRevoked)
		if len(got) > 0 {
			k.Errorf("%s: refused, and yet there is a result %s", op.name, brief(got))
		}
		is := k.names(".")
		for n := range was {
			if !is[n] {
				k.Errorf("%s: refused, and yet %q is gone", op.name, n)
			}
		}
		if is[p] != was[p] {
			k.Errorf("%s: refused, and yet %q appeared", op.name, p)
		}
	})
	k.wantContent("f", "content")
	k.wantContent("d/inner", "content")
	k.wantNames("d", "inner")
}

// guardBack: a guard that holds again is believed; the bridge keeps no verdict.
func guardBack(k *kit, g *guard) {
	k.ok("write", k.b.WriteFile(k.ctx, "f", []byte("1")))
	g.gone.Store(true)
	k.refused("write", k.b.WriteFile(k.ctx, "f", []byte("2")), fsbridge.ErrNotCurrent)
	k.wantContent("f", "1")
	g.gone.Store(false)
	k.ok("write", k.b.WriteFile(k.ctx, "f", []byte("3")))
	k.wantContent("f", "3")
}

// guardCancelled: a cancelled context and a failed guard both stop the command.
func guardCancelled(k *kit, g *guard) {
	k.file("f", "kept")
	ctx, cancel := context.WithCancel(k.ctx)
	cancel()
	k.refused("cancelled", k.b.WriteFile(ctx, "f", []byte("x")), context.Canceled)
	g.gone.Store(true)
	err := k.b.WriteFile(ctx, "f", []byte("x"))
	k.refused("cancelled and revoked", err, context.Canceled, fsbridge.ErrNotCurrent)
	k.wantContent("f", "kept")
}

// guardDuringWrite revokes while the content is still on its way: the write must not take effect,
// or, where it is one command that was sent already, must be whole.
func guardDuringWrite(k *kit, g *guard) {
	k.need(fsbridge.CapWriteStream)
	k.file("f", "old")
	data := string(pattern(8<<20, 1))
	src := &callReader{r: stringReader(data), each: func(n int64) {
		if n > 4<<20 {
			g.gone.Store(true)
		}
	}}
	_, err := fsbridge.WriteStream(k.ctx, k.b, "f", src, fsbridge.WriteOptions{})
	if err == nil {
		k.wantContent("f", data)
	} else {
		k.refused("write", err, fsbridge.ErrNotCurrent)
		k.wantContent("f", "old")
	}
	g.gone.Store(false)
	_, err = k.b.Stat(k.ctx, "f")
	k.ok("stat", err)
	k.wantNamesSoon(".", "f")
}

// guardConcurrent flips the guard while many work; every refusal is the guard's.
func guardConcurrent(k *kit, g *guard) {
	k.file("f", "content")
	stop := make(chan struct{})
	flipped := make(chan struct{})
	go func() {
		defer close(flipped)
		for i := 0; ; i++ {
			g.gone.Store(i%2 == 0)
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	k.together(8, func(int) {
		for range 100 {
			data, err := k.b.ReadFile(k.ctx, "f")
			if err != nil {
				k.refused("read", err, fsbridge.ErrNotCurrent)
			} else if string(data) != "content" {
				k.Errorf("read %q", data)
			}
		}
	})
	close(stop)
	<-flipped
}

// guardRevoked revokes as the environment's owner does. FSB-12
func guardRevoked(k *kit) {
	if k.env.Revoke == nil {
		k.Skip("this target has no notion of revoking an environment")
	}
	k.ok("write", k.b.WriteFile(k.ctx, "f", []byte("old")))
	var r io.ReadCloser
	if k.has(fsbridge.CapOpenReader) {
		var err error
		r, _, err = fsbridge.OpenReader(k.ctx, k.b, "f")
		k.ok("open", err)
	}
	k.env.Revoke()
	k.eachOperation(writeOperations(), func(k *kit, op operation) {
		p := opPath(k, op)
		_, err := k.do(op, p)
		k.refused(op.name, err, fsbridge.ErrNotCurrent)
	})
	k.wantContent("f", "old")
	if r != nil {
		_ = r.Close()
	}
}
