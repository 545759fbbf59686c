package backendtest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/workberth/workberth/sandbox"
)

func treeChecks() []check {
	return []check{
		{name: "kinds", rows: []string{"SBX-09", "Q-09", "Q-10"}, needs: withCleanup, run: treeKinds},
		{name: "hundred", rows: []string{"SBX-09", "Q-10"}, needs: withCleanup, run: treeHundred},
		{name: "run-on", rows: []string{"Q-09"}, needs: withCleanup, run: treeRunOn},
		{name: "bomb", rows: []string{"C083"}, needs: withCleanup, run: treeBomb},
		{name: "two", rows: []string{"SBX-10"}, needs: withCleanup, run: treeTwo},
		{name: "cancel", rows: []string{"C083", "SBX-03"}, run: treeCancel},
		{name: "close", rows: []string{"C083"}, run: treeClose},
		{name: "grace", rows: []string{"Q-10"}, needs: withCleanup, run: treeGrace},
		{name: "regicide", rows: []string{"Q-09"}, needs: withCleanup, run: treeRegicide},
	}
}

func withCleanup(f sandbox.Features) string { return unless(f.ProcessCleanup, "process cleanup") }

// kindsOfNodes are those of the suite's program.
func kindsOfNodes() []string {
	return []string{"plain", "session", "double", "bare", "stubborn", "closed", "frozen", "nested"}
}

// treeKinds ends a tree of each kind of process that tries to get away.
func treeKinds(k *kit) {
	x := k.ensure()
	for _, kind := range kindsOfNodes() {
		s := x.start("tree", x.witness(kind), "5", kind).ready()
		want := 5
		if kind == "nested" {
			want = 10
		}
		if got := k.alive(kind); len(got) != want {
			k.Fatalf("%s: %d processes before, want %d", kind, len(got), want)
		}
		s.terminate(100 * time.Millisecond)
		k.allDead(kind, kind)
		if k.Failed() {
			return
		}
		s.ended()
		s.terminate(0) // again: nothing left is gone
	}
	x.works()
}

// treeHundred ends trees of a hundred processes of all kinds, again and again.
func treeHundred(k *kit) {
	x := k.ensure(unlimited)
	trials := k.knob("BERTH_TERMINATE_TRIALS", k.rounds(10, 2))
	const grace = 300 * time.Millisecond
	var took []time.Duration
	for i := range trials {
		s := x.start("tree", x.witness("n"), "100").ready()
		if got := k.alive("n"); len(got) < 100 {
			k.Fatalf("trial %d: %d processes before, want 100", i, len(got))
		}
		start := time.Now()
		s.terminate(grace)
		took = append(took, time.Since(start))
		k.allDead(fmt.Sprintf("trial %d", i), "n")
		s.ended()
		if k.Failed() {
			return
		}
	}
	slices.Sort(took)
	k.Logf("%d of %d trees gone; grace %s, median %s, longest %s", trials, trials, grace, took[len(took)/2], took[len(took)-1])
}

// unlimited lifts the limit on processes for a crowd.
func unlimited(s *sandbox.Spec) { s.Config.Limits.Pids = 0 }

// treeRunOn catches a process that is always somebody else.
func treeRunOn(k *kit) {
	x := k.ensure()
	for i := range k.rounds(10, 3) {
		s := x.start("run-on", x.witness("r")).ready()
		if len(k.alive("r")) != 1 {
			k.Fatal("it does not run")
		}
		s.terminate(50 * time.Millisecond)
		k.allDead(fmt.Sprintf("round %d", i), "r")
		s.ended()
	}
	x.works()
}

// treeBomb ends a fork bomb and has a working sandbox afterwards.
func treeBomb(k *kit) {
	most := "120"
	x := k.ensure(func(s *sandbox.Spec) {
		if k.features.PidsLimit {
			s.Config.Limits.Pids, most = 200, "400"
		}
	})
	s := x.start("bomb", x.witness("b"), most)
	k.eventually("the bomb goes off", func() bool { return len(k.alive("b")) >= 10 })
	s.terminate(50 * time.Millisecond)
	k.allDead("bomb", "b")
	s.ended()
	x.works()
}

// treeTwo ends one tree and nothing else.
func treeTwo(k *kit) {
	x := k.ensure()
	one := x.start("tree", x.witness("one"), "8").ready()
	two := x.start("tree", x.witness("two"), "8").ready()
	cmd := x.role("daemon", x.witness("kept"))
	cmd.KeepDescendants = true
	x.startCommand(cmd, nil).ended()
	if one.Marker() == two.Marker() {
		k.Fatal("two commands with one marker")
	}
	before := append(k.alive("two"), k.alive("kept")...)
	one.terminate(100 * time.Millisecond)
	k.allDead("terminated", "one")
	if after := append(k.alive("two"), k.alive("kept")...); !slices.Equal(after, before) {
		k.Errorf("others were hit: %q were alive, %q are", before, after)
	}
	select {
	case <-two.Done():
		k.Error("the other command ended")
	default:
	}
	two.terminate(100 * time.Millisecond)
	k.allDead("terminated", "two")
	if len(k.alive("kept")) != 1 {
		k.Error("what was kept of a third command was hit")
	}
}

// treeCancel ends trees by the end of the caller's context, several at a time.
func treeCancel(k *kit) {
	x := k.ensure(unlimited)
	var wg sync.WaitGroup
	for i := range 6 {
		s := x.start("tree", x.witness("t"+strconv.Itoa(i)), "8").ready()
		wg.Go(func() {
			s.cancel()
			<-s.Done()
		})
	}
	wg.Wait()
	k.allDead("cancelled", "t")
	if n := x.OpenTokens(); n != 0 {
		k.Errorf("%d open tokens", n)
	}
}

// treeClose ends everything with the last handle.
func treeClose(k *kit) {
	x := k.ensure()
	s := x.start("tree", x.witness("t"), "16").ready()
	cmd := x.role("daemon", x.witness("kept"))
	cmd.KeepDescendants = true
	x.startCommand(cmd, nil).ended()
	if err := x.Close(); err != nil {
		k.Errorf("Close: %v", err)
	}
	k.allDead("closed", "")
	s.ended()
	select {
	case <-x.Done():
	case <-k.ctx.Done():
		k.Error("closed and not done")
	}
}

// treeGrace: SIGTERM first, SIGKILL only after the grace.
func treeGrace(k *kit) {
	x := k.ensure()
	s := x.start("on-signal", "15", x.inside("came"), x.witness("polite")).ready()
	s.terminate(time.Minute)
	if status := s.ended(); status.Code != 7 {
		k.Errorf("a command that ends by itself at SIGTERM: %+v", status)
	}
	if _, err := os.Stat(filepath.Join(k.ws, "came")); err != nil {
		k.Errorf("it got no SIGTERM: %v", err)
	}
	s = x.start("tree", x.witness("stubborn"), "1", "stubborn").ready()
	start := time.Now()
	s.terminate(600 * time.Millisecond)
	if took := time.Since(start); took < 600*time.Millisecond {
		k.Errorf("SIGKILL after %s, the grace was 600 ms", took)
	}
	k.allDead("after the grace", "stubborn")
	s.ended()
}

// treeRegicide: a command that kills its own parent, which may be what watches over it, wins
// nothing: "gone" is never said of a process that lives, and in the end none does.
func treeRegicide(k *kit) {
	x := k.ensure()
	s := x.start("regicide", x.witness("r")).ready()
	said := strings.Fields(s.waitFor("\n"))
	if len(said) != 3 {
		k.Fatalf("it said %q", said)
	}
	k.Logf("parent %s, killed: %s", said[1], said[2])
	res, err := s.Terminate(k.ctx, 100*time.Millisecond)
	if held := k.alive("r"); res.Outcome == sandbox.TerminationGone && len(held) > 0 {
		k.Errorf("gone, and %q are alive", held)
	}
	k.Logf("Terminate = %+v, %v", res, err)
	status := s.ended()
	if said[2] == "true" && !status.Unknown && status.Signal == 0 {
		k.Errorf("status %+v of a command whose watcher was killed", status)
	}
	k.eventually("nothing of it is left", func() bool { return len(k.alive("r")) == 0 })
	// The sandbox is of use again, at the latest when it is asked for anew.
	select {
	case <-x.Done():
	default:
		if _, err := sandbox.Run(k.ctx, x.Sandbox, x.role("true"), nil, sandbox.RunOptions{}); err == nil {
			return
		}
	}
	<-x.Done()
	k.ensure().works()
}
