package backendtest

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/workberth/workberth/sandbox"
)

func launchChecks() []check {
	return []check{
		{name: "order", rows: []string{"SBX-01", "SBX-02", "SBX-04", "SBX-05"}, run: launchOrder},
		{name: "prepared", rows: []string{"SBX-01", "SBX-02", "SBX-07"}, run: launchPrepared},
		{name: "tokens", rows: []string{"SBX-05"}, run: launchTokens},
		{name: "once", rows: []string{"SBX-04"}, run: launchOnce},
		{name: "finalize", rows: []string{"SBX-05", "Q-11"}, run: launchFinalize},
		{name: "captured", rows: []string{"SBX-02"}, run: launchCaptured},
		{name: "ended-context", rows: []string{"SBX-05"}, run: launchEndedContext},
		{name: "cancel-races", rows: []string{"SBX-05", "C091"}, run: launchCancelRaces},
	}
}

// launchOrder proves the order of the calls on every way out.
func launchOrder(k *kit) {
	x := k.ensure()
	prefix := []string{"build with the prepared environment", "assert", "spawn"}
	if !k.features.ProcessCleanup {
		prefix[0] = "build"
	}
	for name, tc := range map[string]struct {
		cmd  sandbox.Command
		want []string
	}{
		"exit 0":    {x.role("true"), append(slices.Clone(prefix), "finalize exited")},
		"exit 3":    {x.role("exit", "3"), append(slices.Clone(prefix), "finalize exited")},
		"by signal": {x.role("suicide", "9"), append(slices.Clone(prefix), "finalize exited")},
		"missing":   {sandbox.Command{Argv: []string{"/absent/" + k.word}}, append(slices.Clone(prefix), "terminate", "finalize launch-failed")},
	} {
		_, err := sandbox.Run(k.ctx, x.Sandbox, tc.cmd, nil, sandbox.RunOptions{})
		if (err != nil) != (name == "missing") {
			k.Errorf("%s: %v", name, err)
		}
		k.wantHistory(name, x, tc.want)
	}
	s := x.start("wait", x.witness("a")).ready()
	s.cancel()
	s.ended()
	k.wantHistory("cancelled", x, append(slices.Clone(prefix), "terminate", "finalize terminated"))
	k.allDead("cancelled", "a")

	s = x.start("wait", x.witness("b")).ready()
	s.terminate(0)
	s.ended()
	k.wantHistory("terminated", x, append(slices.Clone(prefix), "terminate", "finalize terminated"))
}

func (k *kit) wantHistory(what string, x *box, want []string) {
	k.Helper()
	if !k.features.ProcessCleanup {
		want = slices.DeleteFunc(slices.Clone(want), func(e string) bool { return e == "terminate" })
	}
	if got := x.rec.last(); !slices.Equal(got, want) {
		k.Errorf("%s: history\n got %q\nwant %q", what, got, want)
	}
	if n := x.OpenTokens(); n != 0 {
		k.Errorf("%s: %d open tokens", what, n)
	}
}

// launchPrepared looks at the environment that carries the marker.
func launchPrepared(k *kit) {
	x := k.ensure()
	form := regexp.MustCompile(`^[0-9a-f]{32}$`)
	seen := map[string]bool{}
	env := sandbox.Env{"A": "1"}
	var last sandbox.Prepared
	for range 20 {
		p, err := sandbox.PrepareProcessCleanup(k.ctx, x.Sandbox, env)
		k.must(err)
		if !form.MatchString(p.Marker) || seen[p.Marker] || p.Env[sandbox.MarkerVar] != p.Marker || p.Env["A"] != "1" || len(p.Env) != 2 {
			k.Fatalf("marker %q in %v, after %d others", p.Marker, p.Env, len(seen))
		}
		seen[p.Marker] = true
		last = p
	}
	if len(env) != 1 {
		k.Errorf("the caller's environment became %v", env)
	}
	got := x.output(x.role("env"), last.Env)
	found := strings.Count("\x00"+got, "\x00"+sandbox.MarkerVar+"="+last.Marker+"\x00")
	if found != 1 || strings.Count(got, sandbox.MarkerVar+"=") != 1 {
		k.Errorf("the command's environment holds its marker %d times: %q", found, got)
	}
}

// output builds, spawns and finalises by hand, with exactly this environment.
func (x *box) output(cmd sandbox.Command, env sandbox.Env) string {
	x.k.Helper()
	spec, err := x.BuildExecSpec(x.k.ctx, cmd, env)
	x.k.must(err)
	out, _, err := x.spawn(spec)
	x.k.must(err)
	return out
}

// spawn launches a spec, waits and finalises.
func (x *box) spawn(spec sandbox.ExecSpec) (string, sandbox.ExitStatus, error) {
	x.k.Helper()
	buf := sandbox.NewOutputBuffer(4 << 20)
	p, err := spec.Spawn(x.k.ctx, sandbox.IO{Stdout: buf})
	outcome := sandbox.OutcomeLaunchFailed
	var status sandbox.ExitStatus
	if err == nil {
		outcome = sandbox.OutcomeExited
		status, err = p.Wait(x.k.ctx)
	}
	x.k.must(x.FinalizeExec(x.k.ctx, spec.Token, outcome))
	return string(buf.Output().Bytes()), status, err
}

// launchTokens counts open tokens.
func launchTokens(k *kit) {
	x := k.ensure()
	if n := x.OpenTokens(); n != 0 {
		k.Fatalf("%d open tokens in a new sandbox", n)
	}
	var specs []sandbox.ExecSpec
	for i := range 5 {
		spec, err := x.BuildExecSpec(k.ctx, x.role("true"), nil)
		k.must(err)
		specs = append(specs, spec)
		if n := x.OpenTokens(); spec.Token.(*recordedToken).inner != nil && n != i+1 {
			k.Errorf("%d open tokens after %d specs", n, i+1)
		}
	}
	for _, spec := range specs {
		k.must(x.FinalizeExec(k.ctx, spec.Token, sandbox.OutcomeLaunchFailed))
	}
	if n := x.OpenTokens(); n != 0 {
		k.Errorf("%d open tokens after all were finalised", n)
	}
	// A spec that was given up is launched no more.
	if _, err := specs[0].Spawn(k.ctx, sandbox.IO{}); err == nil {
		k.Error("a finalised spec was launched")
	}
	// What is refused leaves no token.
	for name, cmd := range map[string]sandbox.Command{
		"no program": {}, "NUL": {Argv: []string{"a\x00b"}}, "NUL in directory": {Argv: []string{"a"}, Dir: "a\x00"},
	} {
		spec, err := x.BuildExecSpec(k.ctx, cmd, nil)
		if err == nil {
			// Refusing at the launch is as good.
			_, _, err = x.spawn(spec)
		}
		var se *sandbox.StartError
		if !errors.As(err, &se) && !errors.Is(err, sandbox.ErrRefused) {
			k.Errorf("%s: %v", name, err)
		}
		if n := x.OpenTokens(); n != 0 {
			k.Errorf("%s: %d open tokens", name, n)
		}
	}
}

// launchOnce launches a spec twice, also at the same time.
func launchOnce(k *kit) {
	x := k.ensure()
	spec, err := x.BuildExecSpec(k.ctx, x.role("print", `"once"`), nil)
	k.must(err)
	k.must(spec.AssertCurrent())
	buf := sandbox.NewOutputBuffer(1 << 10)
	var wg sync.WaitGroup
	procs := make([]sandbox.Process, 8)
	for i := range procs {
		wg.Go(func() { procs[i], _ = spec.Spawn(k.ctx, sandbox.IO{Stdout: buf}) })
	}
	wg.Wait()
	launched := 0
	for _, p := range procs {
		if p != nil {
			launched++
			_, err := p.Wait(k.ctx)
			k.must(err)
		}
	}
	k.must(x.FinalizeExec(k.ctx, spec.Token, sandbox.OutcomeExited))
	if got := string(buf.Output().Bytes()); launched != 1 || got != "once" {
		k.Errorf("launched %d times, wrote %q", launched, got)
	}
}

// launchFinalize: finalising kills nothing, disarms nothing, and may be repeated.
func launchFinalize(k *kit) {
	x := k.ensure()
	_, spec, proc := x.spawnMarked("on-signal", "10", x.inside("came"), x.witness("a"))
	k.eventually("the command runs", func() bool { return len(k.alive("a")) == 1 })
	inner := spec.Token.(*recordedToken)
	k.must(x.FinalizeExec(k.ctx, spec.Token, sandbox.OutcomeExited))
	for _, again := range []sandbox.Token{inner.inner, nil} {
		if err := x.rec.Sandbox.FinalizeExec(k.ctx, again, sandbox.OutcomeExited); err != nil {
			k.Errorf("finalising %T again: %v", again, err)
		}
	}
	if n := x.OpenTokens(); n != 0 {
		k.Errorf("%d open tokens", n)
	}
	x.works()
	// It lives: it answers.
	if err := proc.Signal(k.ctx, 10); err != nil {
		k.Errorf("Signal after finalising: %v", err)
	}
	if status, err := proc.Wait(k.ctx); err != nil || status.Code != 7 {
		k.Errorf("finalising ended the command: %+v, %v", status, err)
	}
	if !k.features.ProcessCleanup {
		return
	}
	p, spec2, proc2 := x.spawnMarked("wait", x.witness("b"))
	k.eventually("the command runs", func() bool { return len(k.alive("b")) == 1 })
	k.must(x.FinalizeExec(k.ctx, spec2.Token, sandbox.OutcomeExited))
	if res, err := p.Terminate(k.ctx, 0); err != nil || res.Outcome != sandbox.TerminationGone {
		k.Errorf("Terminate after finalising = %+v, %v", res, err)
	}
	k.allDead("terminated after finalising", "b")
	_, err := proc2.Wait(k.ctx)
	k.must(err)
}

// spawnMarked launches a role by hand, with custody.
func (x *box) spawnMarked(args ...string) (sandbox.Prepared, sandbox.ExecSpec, sandbox.Process) {
	x.k.Helper()
	p, err := sandbox.PrepareProcessCleanup(x.k.ctx, x.Sandbox, nil)
	x.k.must(err)
	spec, err := x.BuildExecSpec(x.k.ctx, x.role(args...), p.Env)
	x.k.must(err)
	proc, err := spec.Spawn(x.k.ctx, sandbox.IO{})
	x.k.must(err)
	return p, spec, proc
}

// launchCaptured changes what was handed over, after it was.
func launchCaptured(k *kit) {
	x := k.ensure()
	env := sandbox.Env{"A": "before"}
	argv := []string{x.prog, "args", "before"}
	spec, err := x.BuildExecSpec(k.ctx, sandbox.Command{Argv: argv}, env)
	k.must(err)
	argv[2], env["A"] = "after", "after"
	out, _, err := x.spawn(spec)
	k.must(err)
	if got := decodeArgs(k, out); !slices.Equal(got, []string{"before"}) {
		k.Errorf("arguments %q", got)
	}
	env = sandbox.Env{"A": "before"}
	spec, err = x.BuildExecSpec(k.ctx, x.role("env"), env)
	k.must(err)
	env["A"], env["B"] = "after", "after"
	out, _, err = x.spawn(spec)
	k.must(err)
	if !strings.Contains(out, "A=before\x00") || strings.Contains(out, "after") {
		k.Errorf("environment %q", out)
	}
}

// launchEndedContext: nothing starts for a caller that has gone.
func launchEndedContext(k *kit) {
	x := k.ensure()
	ctx, cancel := context.WithCancel(k.ctx)
	cancel()
	if _, err := sandbox.PrepareProcessCleanup(ctx, x.Sandbox, nil); !errors.Is(err, context.Canceled) {
		k.Errorf("prepare: %v", err)
	}
	if _, err := sandbox.Start(ctx, x.Sandbox, x.role("true"), nil, sandbox.IO{}, sandbox.StartOptions{}); !errors.Is(err, context.Canceled) {
		k.Errorf("start: %v", err)
	}
	spec, err := x.BuildExecSpec(k.ctx, x.role("wait", x.witness("a")), nil)
	k.must(err)
	if p, err := spec.Spawn(ctx, sandbox.IO{}); err == nil {
		k.Errorf("launched process %d with an ended context", p.Pid())
	}
	k.must(x.FinalizeExec(k.ctx, spec.Token, sandbox.OutcomeLaunchFailed))
	k.allDead("an ended context", "a")
	other := k.spec(func(s *sandbox.Spec) { s.Session = "other" })
	k.target.complete(k.T, k.prog, k.features, &other)
	if _, err := k.backend.Ensure(ctx, other); !errors.Is(err, context.Canceled) {
		k.Errorf("Ensure: %v", err)
	}
}

// launchCancelRaces ends the context at every moment of a launch.
func launchCancelRaces(k *kit) {
	x := k.ensure()
	for i := range k.rounds(40, 10) {
		ctx, cancel := context.WithCancel(k.ctx)
		stop := k.after(i, cancel)
		res, err := sandbox.Run(ctx, x.Sandbox, x.role("tree", x.witness("r"), "2"), nil, sandbox.RunOptions{})
		stop()
		cancel()
		if err == nil && !res.Cancelled {
			k.Errorf("round %d: a command without an end ended: %+v", i, res)
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			k.Errorf("round %d: %v", i, err)
		}
		k.allDead("cancelled", "r")
		if n := x.OpenTokens(); n != 0 {
			k.Errorf("round %d: %d open tokens", i, n)
		}
	}
	x.works()
}
