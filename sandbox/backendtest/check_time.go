package backendtest

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/workberth/workberth/sandbox"
)

func timeChecks() []check {
	return []check{
		{name: "timeout", rows: []string{"C075", "C085"}, run: timeTimeout},
		{name: "endless", rows: []string{"C077"}, run: timeEndless},
		{name: "late", rows: []string{"C083"}, run: timeLate},
		{name: "full-house", rows: []string{"C083"}, needs: withPidsLimit, run: timeFullHouse},
		{name: "after-cancel", rows: []string{"C091"}, run: timeAfterCancel},
	}
}

func withPidsLimit(f sandbox.Features) string { return unless(f.PidsLimit, "a limit on processes") }

// timeTimeout: output so far is kept, nothing is left running.
func timeTimeout(k *kit) {
	x := k.ensure()
	limit := 700 * time.Millisecond
	res, err := sandbox.Run(k.ctx, x.Sandbox, x.role("linger", x.witness("a"), "stay"), nil, sandbox.RunOptions{Timeout: limit})
	if err != nil || !res.TimedOut || res.Cancelled || string(res.Stdout.Bytes()) != "out1\n" {
		k.Errorf("result %+v, %q, %v", res.Status, res.Stdout.Bytes(), err)
	}
	if res.Elapsed < limit || res.Elapsed > 30*time.Second {
		k.Errorf("elapsed %s, limit %s", res.Elapsed, limit)
	}
	if res.Status.Code == 0 {
		k.Errorf("status %+v", res.Status)
	}
	if k.features.ProcessCleanup && (res.Terminated == nil || res.Terminated.Outcome != sandbox.TerminationGone) {
		k.Errorf("terminated %+v", res.Terminated)
	}
	k.allDead("timed out", "a")
	x.works()
}

// timeEndless: an endless output is cut, in bounded memory.
func timeEndless(k *kit) {
	x := k.ensure()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	res, err := sandbox.Run(k.ctx, x.Sandbox, x.role("endless"), nil, sandbox.RunOptions{Timeout: time.Second, OutputLimit: 1 << 20})
	runtime.ReadMemStats(&after)
	if err != nil || !res.TimedOut {
		k.Fatalf("result %+v, %v", res.Status, err)
	}
	o := res.Stdout
	if len(o.Head)+len(o.Tail) > 1<<20 || o.Total < 2<<20 || o.Dropped != o.Total-int64(len(o.Head)+len(o.Tail)) {
		k.Errorf("kept %d and %d of %d, dropped %d", len(o.Head), len(o.Tail), o.Total, o.Dropped)
	}
	if strings.Trim(string(o.Head), "y\n") != "" || strings.Trim(string(o.Tail), "y\n") != "" {
		k.Error("the output holds something else")
	}
	if grown := int64(after.Sys) - int64(before.Sys); grown > 200<<20 {
		k.Errorf("memory of this process grew by %d MiB", grown>>20)
	}
	x.works()
}

// timeLate: a cancelled command changes nothing any more.
func timeLate(k *kit) {
	x := k.ensure()
	s := x.start("late", x.inside("LATE"), "500", x.witness("a")).ready()
	s.cancel()
	s.ended()
	k.allDead("cancelled", "a")
	time.Sleep(700 * time.Millisecond) //sleep: a write that must not come has no event
	if _, err := os.Stat(filepath.Join(k.ws, "LATE")); err == nil {
		k.Error("a cancelled command has written")
	}
}

// timeFullHouse: cancelled commands leave nothing behind that fills the place up.
func timeFullHouse(k *kit) {
	x := k.ensure(func(s *sandbox.Spec) { s.Config.Limits.Pids = 96 })
	for range k.rounds(50, 10) {
		s := x.start("tree", x.witness("t"), "2").ready()
		s.cancel()
		s.ended()
		k.allDead("cancelled", "t")
	}
	x.works()
}

// timeAfterCancel: a cancelled command does not spoil the next one.
func timeAfterCancel(k *kit) {
	seed := rand.Uint64()
	k.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	x := k.ensure()
	for i := range k.rounds(30, 8) {
		ctx, cancel := context.WithCancel(k.ctx)
		stop := k.after(r.IntN(100), cancel)
		_, _ = sandbox.Run(ctx, x.Sandbox, x.role("wait", x.witness("a")), nil, sandbox.RunOptions{})
		stop()
		cancel()
		res, err := sandbox.Run(k.ctx, x.Sandbox, x.role("true"), nil, sandbox.RunOptions{Timeout: 30 * time.Second})
		if err != nil || res.Status != (sandbox.ExitStatus{}) {
			k.Fatalf("round %d: the next command: %+v, %v", i, res.Status, err)
		}
	}
	k.allDead("cancelled", "a")
}
