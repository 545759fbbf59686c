package backendtest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/workberth/workberth/sandbox"
)

func custodyChecks() []check {
	return []check{
		{name: "before-launch", rows: []string{"SBX-07", "Q-10"}, needs: withCleanup, run: custodyBeforeLaunch},
		{name: "no-command", rows: []string{"SBX-11", "SBX-07"}, needs: withCleanup, run: custodyNoCommand},
		{name: "concurrent", rows: []string{"Q-10"}, needs: withCleanup, run: custodyConcurrent},
		{name: "after-end", rows: []string{"SBX-09", "Q-11"}, needs: withCleanup, run: custodyAfterEnd},
		{name: "pinned", rows: []string{"SBX-12", "Q-10"}, needs: withCleanup, run: custodyPinned},
		{name: "foreign", rows: []string{"SBX-10", "SBX-12"}, needs: withCleanup, run: custodyForeign},
		{name: "interrupt", rows: []string{"SBX-13"}, needs: withCleanup, run: custodyInterrupt},
		{name: "signal", rows: []string{"SBX-13"}, run: custodySignal},
		{name: "ended-context", rows: []string{"Q-12"}, needs: withCleanup, run: custodyEndedContext},
	}
}

// custodyBeforeLaunch: nothing is left of what never was.
func custodyBeforeLaunch(k *kit) {
	x := k.ensure()
	p, err := sandbox.PrepareProcessCleanup(k.ctx, x.Sandbox, nil)
	k.must(err)
	for range 2 {
		if res, err := p.Terminate(k.ctx, 0); err != nil || res.Outcome != sandbox.TerminationGone {
			k.Errorf("Terminate = %+v, %v", res, err)
		}
	}
	if err := p.Interrupt(k.ctx); err == nil {
		k.Error("interrupted a command that was not launched")
	}
	// The custody is good all the same.
	spec, err := x.BuildExecSpec(k.ctx, x.role("wait", x.witness("a")), p.Env)
	k.must(err)
	proc, err := spec.Spawn(k.ctx, sandbox.IO{})
	k.must(err)
	k.eventually("the command runs", func() bool { return len(k.alive("a")) == 1 })
	if res, err := p.Terminate(k.ctx, 0); err != nil || res.Outcome != sandbox.TerminationGone {
		k.Errorf("Terminate = %+v, %v", res, err)
	}
	k.allDead("terminated", "a")
	_, err = proc.Wait(k.ctx)
	k.must(err)
	k.must(x.FinalizeExec(k.ctx, spec.Token, sandbox.OutcomeTerminated))
}

// custodyNoCommand: what a caller hands over is never run: custody takes no command, and a marker
// of the caller's own is replaced.
func custodyNoCommand(k *kit) {
	x := k.ensure()
	hostile := "$(touch ran.here);touch ran.here;`touch ran.here`"
	env := sandbox.Env{sandbox.MarkerVar: hostile, "IFS": hostile, "PATH": hostile, "ENV": hostile, "BASH_ENV": hostile}
	p, err := sandbox.PrepareProcessCleanup(k.ctx, x.Sandbox, env)
	k.must(err)
	if len(p.Marker) != 32 || strings.Trim(p.Marker, "0123456789abcdef") != "" || p.Env[sandbox.MarkerVar] != p.Marker {
		k.Errorf("marker %q", p.Marker)
	}
	if env[sandbox.MarkerVar] != hostile {
		k.Error("the caller's environment was changed")
	}
	spec, err := x.BuildExecSpec(k.ctx, x.role("wait", x.witness("w")), p.Env)
	k.must(err)
	proc, err := spec.Spawn(k.ctx, sandbox.IO{})
	k.must(err)
	k.eventually("the command runs", func() bool { return len(k.alive("w")) == 1 })
	if res, err := p.Terminate(k.ctx, 0); err != nil || res.Outcome != sandbox.TerminationGone {
		k.Errorf("Terminate = %+v, %v", res, err)
	}
	_, err = proc.Wait(k.ctx)
	k.must(err)
	k.must(x.FinalizeExec(k.ctx, spec.Token, sandbox.OutcomeTerminated))
	k.allDead("terminated", "w")
	k.nothingRan()
}

// custodyConcurrent terminates from many sides.
func custodyConcurrent(k *kit) {
	x := k.ensure()
	s := x.start("tree", x.witness("t"), "16").ready()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			res, err := s.Terminate(k.ctx, 100*time.Millisecond)
			if err != nil || res.Outcome != sandbox.TerminationGone {
				k.Errorf("Terminate = %+v, %v", res, err)
			}
			if held := k.alive("t"); len(held) > 0 {
				k.Errorf("gone, and %q are alive", held)
			}
		})
	}
	wg.Wait()
	s.ended()
}

// custodyAfterEnd: descendants outlive the command, custody does too.
func custodyAfterEnd(k *kit) {
	x := k.ensure()
	cmd := x.role("daemon", x.witness("d"))
	cmd.KeepDescendants = true
	s := x.startCommand(cmd, nil)
	s.ended()
	if n := x.OpenTokens(); n != 0 {
		k.Errorf("%d open tokens", n)
	}
	if len(k.alive("d")) != 1 {
		k.Fatal("the descendant is gone")
	}
	s.terminate(0)
	k.allDead("terminated", "d")
	s.terminate(0)
}

// custodyPinned: custody for one life of a sandbox never reaches into the next one, not even
// to a process that carries the very same marker.
func custodyPinned(k *kit) {
	x := k.ensure()
	s := x.start("wait", x.witness("old")).ready()
	k.must(k.backend.Stop(k.ctx, x.id))
	s.ended()
	k.allDead("stopped", "old")

	y := k.ensure()
	if y.id != x.id {
		k.Fatalf("the sandbox is now %s, was %s", y.id, x.id)
	}
	spec, err := y.BuildExecSpec(k.ctx, y.role("wait", y.witness("new")), sandbox.Env{sandbox.MarkerVar: s.Marker()})
	k.must(err)
	p, err := spec.Spawn(k.ctx, sandbox.IO{})
	k.must(err)
	k.eventually("the new command runs", func() bool { return len(k.alive("new")) == 1 })
	if res, err := s.Terminate(k.ctx, 0); err != nil || res.Outcome != sandbox.TerminationGone {
		k.Errorf("Terminate of a life that is over = %+v, %v; want gone", res, err)
	}
	if len(k.alive("new")) != 1 {
		k.Error("custody of an earlier life hit the next one")
	}
	k.must(p.Signal(k.ctx, 9))
	_, err = p.Wait(k.ctx)
	k.must(err)
	k.must(y.FinalizeExec(k.ctx, spec.Token, sandbox.OutcomeExited))
}

// custodyForeign: a process of this machine that carries the marker, and that no sandbox
// started, is nobody's to end where the sandbox is a place of its own.
func custodyForeign(k *kit) {
	if !k.features.Confined {
		k.skip("where commands are not confined, whoever carries the marker belongs to the tree")
	}
	x := k.ensure()
	s := x.start("wait", x.witness("inside")).ready()
	foreign := exec.Command(k.prog, "wait", filepath.Join(k.ws, witnessDir, k.word+"-foreign"))
	foreign.Env = []string{sandbox.MarkerVar + "=" + s.Marker()}
	k.must(foreign.Start())
	defer func() {
		_ = foreign.Process.Kill()
		_ = foreign.Wait()
	}()
	k.eventually("the foreign process runs", func() bool { return len(k.alive("foreign")) == 1 })
	s.terminate(0)
	k.allDead("terminated", "inside")
	if len(k.alive("foreign")) != 1 {
		k.Error("a process that is not the sandbox's was ended")
	}
}

// custodyInterrupt: SIGINT reaches the command, and checks its permission every time.
func custodyInterrupt(k *kit) {
	x := k.ensure()
	s := x.start("on-signal", "2", x.inside("first")).ready()
	if err := s.Interrupt(k.ctx); err != nil {
		k.Errorf("Interrupt: %v", err)
	}
	if status := s.ended(); status.Code != 7 {
		k.Errorf("status %+v", status)
	}
	s = x.start("on-signal", "2", x.inside("second"), x.witness("second")).ready()
	x.Revoke("interrupt check")
	if err := s.Interrupt(k.ctx); !errors.Is(err, sandbox.ErrRevoked) {
		k.Errorf("Interrupt after revocation: %v", err)
	}
	s.terminate(0)
	s.ended()
	k.allDead("terminated", "second")
	if _, err := os.Stat(filepath.Join(k.ws, "second")); err == nil {
		k.Error("a refused interrupt ran a signal handler")
	}
}

// custodySignal: a signal reaches the command's process group.
func custodySignal(k *kit) {
	x := k.ensure()
	s := x.start("on-signal", "10", x.inside("usr1")).ready()
	if err := s.Signal(k.ctx, 10); err != nil {
		k.Errorf("Signal: %v", err)
	}
	if status := s.ended(); status.Code != 7 {
		k.Errorf("status %+v", status)
	}
	s = x.start("wait", x.witness("w")).ready()
	if err := s.Signal(k.ctx, 9); err != nil {
		k.Errorf("Signal: %v", err)
	}
	if status := s.ended(); status.Signal != 9 || status.Code != 137 {
		k.Errorf("status %+v", status)
	}
}

// custodyEndedContext: a termination that could not be carried out is never called one that
// was, and can be tried again.
func custodyEndedContext(k *kit) {
	x := k.ensure()
	s := x.start("tree", x.witness("t"), "4", "stubborn").ready()
	ctx, cancel := context.WithTimeout(k.ctx, 50*time.Millisecond)
	defer cancel()
	res, err := s.Terminate(ctx, time.Minute)
	if held := k.alive("t"); res.Outcome == sandbox.TerminationGone && len(held) > 0 {
		k.Errorf("gone, and %q are alive", held)
	}
	if err == nil && res.Outcome == sandbox.TerminationUnknown {
		k.Error("unknown without an error")
	}
	s.terminate(50 * time.Millisecond)
	k.allDead("terminated", "t")
	s.ended()
}
