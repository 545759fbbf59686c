package bridgetest

import (
	"context"
	"errors"
	"time"
)

// ctxChecks prove that contexts are obeyed. FSB-10
func ctxChecks() []check {
	return []check{
		{name: "cancelled", rows: []string{"FSB-10"}, run: func(k *kit) {
			ctx, cancel := context.WithCancel(k.ctx)
			cancel()
			ctxDone(k, ctx, context.Canceled)
		}},
		{name: "deadline", rows: []string{"FSB-10"}, run: func(k *kit) {
			ctx, cancel := context.WithDeadline(k.ctx, time.Now().Add(-time.Second))
			defer cancel()
			ctxDone(k, ctx, context.DeadlineExceeded)
		}},
		{name: "cancel-storm", run: ctxStorm},
	}
}

// ctxDone asks for everything under a context that is done: nothing is sent, nothing changes.
func ctxDone(k *kit, ctx context.Context, want error) {
	plantForOps(k)
	was := k.tree("d")
	k.eachOperation(operations(), func(k *kit, op operation) {
		p := opPath(k, op)
		if p == "" {
			return
		}
		got, err := op.run(k, ctx, k.b, p)
		k.refused(op.name, err, want)
		if len(got) > 0 {
			k.Errorf("%s: refused, and yet there is a result %s", op.name, brief(got))
		}
	})
	k.wantSame("the directory", "d", was)
	k.wantContent("f", "content")
}

// ctxStorm cancels at random moments; every write is whole or has not happened, and the bridge
// stays usable.
func ctxStorm(k *kit) {
	old, fresh := string(pattern(200_000, 1)), string(pattern(300_000, 2))
	k.file("f", old)
	for i := range 150 {
		ctx, cancel := context.WithCancel(k.ctx)
		done := make(chan error, 1)
		go func() { done <- k.b.WriteFile(ctx, "f", []byte(fresh)) }()
		for range i * 20 { // a little later every time
			_ = ctx.Err()
		}
		cancel()
		err := <-done
		if err != nil && !errors.Is(err, context.Canceled) {
			k.Errorf("write: %v", err)
		}
		switch got := string(k.content("f")); {
		case err == nil && got != fresh:
			k.Errorf("a write succeeded and the file holds %s", brief([]byte(got)))
		case got != old && got != fresh:
			k.Errorf("the file is a mixture: %s", brief([]byte(got)))
		}
		if k.Failed() {
			return
		}
	}
	k.ok("write", k.b.WriteFile(k.ctx, "f", []byte("last")))
	k.wantContent("f", "last")
	k.wantNamesSoon(".", "f")
}
