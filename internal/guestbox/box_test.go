package guestbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/guest/proc"
	"github.com/workberth/workberth/sandbox"
)

// A command runs with the layers of its environment in order, the limits and the
// marker. SBX-02
func TestSpawn(t *testing.T) {
	r := newRig(t)
	h := r.handle(t)
	prepared, spec, p := launch(t, h, "exit", "3")
	status, err := p.Wait(t.Context())
	if err != nil || status.Code != 3 || status.Unknown {
		t.Errorf("status %+v, %v", status, err)
	}
	got := r.runner.specs()[0]
	for name, want := range map[string]string{
		"PATH": "/bin", "BASE": "base", "BOTH": "config", "SECRET": "s3cret", "CMD": "command",
		sandbox.MarkerVar: prepared.Marker,
	} {
		if v := envOf(got.Env, name); v != want {
			t.Errorf("%s is %q, want %q", name, v, want)
		}
	}
	if got.Marker != prepared.Marker || got.Dir != r.dir || got.Limits.OpenFiles != 99 || got.Grace != sandbox.DefaultGrace {
		t.Errorf("spec %+v", got)
	}
	if h.OpenTokens() != 1 {
		t.Errorf("%d tokens before finalising", h.OpenTokens())
	}
	for range 2 {
		if err := h.FinalizeExec(t.Context(), spec.Token, sandbox.OutcomeExited); err != nil {
			t.Error(err)
		}
	}
	if h.OpenTokens() != 0 {
		t.Errorf("%d tokens after finalising", h.OpenTokens())
	}
}

// SBX-05: every way out leaves no token; foreign and nil tokens.
func TestTokens(t *testing.T) {
	r := newRig(t)
	h := r.handle(t)
	build := func() sandbox.ExecSpec {
		spec, err := h.BuildExecSpec(t.Context(), sandbox.Command{Argv: []string{"exit", "0"}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return spec
	}
	spec := build()
	if _, err := spec.Spawn(t.Context(), sandbox.IO{}); err != nil {
		t.Fatal(err)
	}
	if _, err := spec.Spawn(t.Context(), sandbox.IO{}); !errors.Is(err, errLaunched) {
		t.Errorf("second launch: %v", err)
	}
	unused := build()
	if err := h.FinalizeExec(t.Context(), unused.Token, sandbox.OutcomeLaunchFailed); err != nil {
		t.Error(err)
	}
	if err := unused.AssertCurrent(); !errors.Is(err, sandbox.ErrRefused) {
		t.Errorf("a finalised spec is current: %v", err)
	}
	if _, err := unused.Spawn(t.Context(), sandbox.IO{}); err == nil {
		t.Error("a finalised spec was launched")
	}
	if err := h.FinalizeExec(t.Context(), nil, sandbox.OutcomeExited); err != nil {
		t.Error(err)
	}
	if err := h.FinalizeExec(t.Context(), "other", sandbox.OutcomeExited); !errors.Is(err, sandbox.ErrRefused) {
		t.Errorf("foreign token: %v", err)
	}
	if n := h.OpenTokens(); n != 1 {
		t.Errorf("%d tokens, want 1", n)
	}
	if err := h.FinalizeExec(t.Context(), spec.Token, sandbox.OutcomeExited); err != nil || h.OpenTokens() != 0 {
		t.Errorf("%d tokens, %v", h.OpenTokens(), err)
	}
}

// Malformed commands and environments are refused before anything is sent. C081
func TestPolicy(t *testing.T) {
	r := newRig(t)
	h := r.handle(t)
	for name, c := range map[string]struct {
		cmd  sandbox.Command
		env  sandbox.Env
		want error // nil: a StartError for a bad spec
	}{
		"no argv":           {},
		"empty program":     {cmd: sandbox.Command{Argv: []string{""}}},
		"NUL in argument":   {cmd: sandbox.Command{Argv: []string{"a", "b\x00c"}}},
		"home directory":    {cmd: sandbox.Command{Argv: []string{"a"}, Dir: "~/x"}},
		"NUL in directory":  {cmd: sandbox.Command{Argv: []string{"a"}, Dir: "x\x00"}},
		"long directory":    {cmd: sandbox.Command{Argv: []string{"a"}, Dir: strings.Repeat("x", 5000)}},
		"empty name":        {cmd: sandbox.Command{Argv: []string{"a"}}, env: sandbox.Env{"": "x"}, want: sandbox.ErrRefused},
		"name with equals":  {cmd: sandbox.Command{Argv: []string{"a"}}, env: sandbox.Env{"A=B": "x"}, want: sandbox.ErrRefused},
		"NUL in value":      {cmd: sandbox.Command{Argv: []string{"a"}}, env: sandbox.Env{"A": "x\x00"}, want: sandbox.ErrRefused},
		"a marker of yours": {cmd: sandbox.Command{Argv: []string{"a"}}, env: sandbox.Env{sandbox.MarkerVar: "mine"}, want: sandbox.ErrRefused},
	} {
		_, err := h.BuildExecSpec(t.Context(), c.cmd, c.env)
		var start *sandbox.StartError
		switch {
		case c.want != nil && !errors.Is(err, c.want),
			c.want == nil && (!errors.As(err, &start) || start.Reason != proc.BadSpec):
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := h.OpenTokens(); n != 0 || len(r.runner.specs()) != 0 {
		t.Errorf("%d tokens, %d launches", n, len(r.runner.specs()))
	}
}

// A terminal gets a size and a TERM.
func TestTerminalDefaults(t *testing.T) {
	r := newRig(t)
	h := r.handle(t)
	spec, err := h.BuildExecSpec(t.Context(), sandbox.Command{Argv: []string{"exit", "0"}, TTY: &sandbox.TTYSize{}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if *spec.Command.TTY != (sandbox.TTYSize{Rows: 24, Cols: 80}) || spec.Env["TERM"] == "" {
		t.Errorf("terminal %+v, TERM %q", spec.Command.TTY, spec.Env["TERM"])
	}
	if _, err := spec.Spawn(t.Context(), sandbox.IO{}); err != nil {
		t.Fatal(err)
	}
	if got := r.runner.specs()[0].TTY; got == nil || *got != (proc.Size{Rows: 24, Cols: 80}) {
		t.Errorf("sent %+v", got)
	}
}

// SBX-07 SBX-10: every preparation has its own marker; the caller's map is left
// alone; one tree is ended and no other.
func TestCustody(t *testing.T) {
	r := newRig(t)
	h := r.handle(t)
	env := sandbox.Env{"A": "b"}
	one, err := h.PrepareProcessCleanup(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	two, err := h.PrepareProcessCleanup(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	if one.Marker == two.Marker || len(env) != 1 || one.Env[sandbox.MarkerVar] != one.Marker || one.Env["A"] != "b" {
		t.Errorf("markers %q and %q, env %v", one.Marker, two.Marker, env)
	}
	first, _, p1 := launch(t, h, "wait")
	_, _, p2 := launch(t, h, "wait")
	for range 2 {
		if res, err := first.Terminate(t.Context(), time.Second); err != nil || res.Outcome != sandbox.TerminationGone {
			t.Errorf("%+v, %v", res, err)
		}
	}
	if status, err := p1.Wait(t.Context()); err != nil || status.Signal != 9 {
		t.Errorf("%+v, %v", status, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p2.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("the other command has ended: %v", err)
	}
}

// SBX-08 SBX-09 SBX-13 FSB-12: after revocation nothing starts and nothing is
// written; reading and terminating stay possible.
func TestRevoke(t *testing.T) {
	r := newRig(t)
	h, other := r.handle(t), r.handle(t)
	bridge, err := h.Bridge(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.write(t, bridge, "before"); err != nil {
		t.Fatal(err)
	}
	prepared, _, p := launch(t, h, "wait")
	early, err := h.BuildExecSpec(t.Context(), sandbox.Command{Argv: []string{"exit", "0"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	h.Revoke("the session ended")
	h.Revoke("another reason")

	_, prepareErr := h.PrepareProcessCleanup(t.Context(), nil)
	_, buildErr := h.BuildExecSpec(t.Context(), sandbox.Command{Argv: []string{"exit", "0"}}, nil)
	_, spawnErr := early.Spawn(t.Context(), sandbox.IO{})
	for what, err := range map[string]error{
		"prepare": prepareErr, "build": buildErr, "assert": early.AssertCurrent(), "spawn": spawnErr,
		"interrupt": prepared.Interrupt(t.Context()), "signal": p.Signal(t.Context(), 2),
		"resize": p.Resize(t.Context(), sandbox.TTYSize{Rows: 1, Cols: 1}), "write": r.write(t, bridge, "after"),
	} {
		var reason *sandbox.RevokedError
		if !errors.Is(err, sandbox.ErrRevoked) || !errors.As(err, &reason) || reason.Reason != "the session ended" {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := r.write(t, bridge, "after"); !errors.Is(err, fsbridge.ErrNotCurrent) {
		t.Errorf("write: %v", err)
	}
	if _, err := os.Stat(r.dir + "/after"); err == nil {
		t.Error("the file was written")
	}
	if data, err := bridge.ReadFile(t.Context(), r.dir+"/before"); err != nil || string(data) != "x" {
		t.Errorf("read %q, %v", data, err)
	}
	if res, err := prepared.Terminate(t.Context(), time.Second); err != nil || res.Outcome != sandbox.TerminationGone {
		t.Errorf("terminate: %+v, %v", res, err)
	}
	if status, err := p.Wait(t.Context()); err != nil || status.Signal != 9 {
		t.Errorf("%+v, %v", status, err)
	}
	// The other handle's authority is its own.
	launch(t, other, "exit", "0")
}

// FSB-10: a guarded bridge asks its guard, and a closed handle's bridge is over.
func TestBridgeGuards(t *testing.T) {
	r := newRig(t)
	h, keep := r.handle(t), r.handle(t)
	errGuard := errors.New("no longer mine")
	allowed := true
	b, err := h.Bridge(t.Context(), func() error {
		if allowed {
			return nil
		}
		return errGuard
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.write(t, b, "f"); err != nil {
		t.Error(err)
	}
	allowed = false
	if _, err := b.Stat(t.Context(), r.dir+"/f"); !errors.Is(err, errGuard) || !errors.Is(err, fsbridge.ErrNotCurrent) {
		t.Errorf("guard refused: %v", err)
	}
	allowed = true
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if _, err := b.Stat(t.Context(), r.dir+"/f"); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("handle closed: %v", err)
	}
	if _, err := h.Bridge(t.Context(), nil); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("new bridge of a closed handle: %v", err)
	}
	again, err := keep.Bridge(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := again.Stat(t.Context(), r.dir+"/f"); err != nil {
		t.Errorf("the other handle: %v", err)
	}
	if got := fsbridge.Mounts(again); len(got) != 1 || got[0].Path != r.dir {
		t.Errorf("mounts %v", got)
	}
}

// SBX-13: interrupt goes to the command's group, while there is one.
func TestInterrupt(t *testing.T) {
	r := newRig(t)
	h := r.handle(t)
	idle, err := h.PrepareProcessCleanup(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := idle.Interrupt(t.Context()); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("nothing launched: %v", err)
	}
	prepared, _, p := launch(t, h, "wait")
	if err := prepared.Interrupt(t.Context()); err != nil {
		t.Fatal(err)
	}
	if status, err := p.Wait(t.Context()); err != nil || status.Signal != 2 {
		t.Errorf("%+v, %v", status, err)
	}
}

// The generation ends with its last handle and not before; what the backend holds
// is released first.
func TestLastHandle(t *testing.T) {
	r := newRig(t)
	a, b := r.handle(t), r.handle(t)
	prepared, _, p := launch(t, a, "wait")
	if err := errors.Join(a.Close(), a.Close()); err != nil {
		t.Error(err)
	}
	select {
	case <-b.Done():
		t.Fatal("ended with the first handle")
	default:
	}
	if _, err := a.BuildExecSpec(t.Context(), sandbox.Command{Argv: []string{"exit", "0"}}, nil); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("closed handle: %v", err)
	}
	launch(t, b, "exit", "0")
	if b.Info().State != sandbox.StateRunning || b.Err() != nil {
		t.Errorf("state %s, %v", b.Info().State, b.Err())
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	within(t, "the end", b.Done())
	if !errors.Is(b.Err(), sandbox.ErrGone) || b.Info().State != sandbox.StateStopped {
		t.Errorf("%v, state %s", b.Err(), b.Info().State)
	}
	select {
	case err := <-r.ended:
		if !errors.Is(err, sandbox.ErrGone) {
			t.Errorf("OnEnd got %v", err)
		}
	default:
		t.Error("OnEnd was not called before Done was closed")
	}
	if status, err := p.Wait(t.Context()); err != nil || !(status.Unknown || status.Signal == 9) {
		t.Errorf("running command: %+v, %v", status, err)
	}
	// Custody outlives the generation, through its runtime. SBX-12
	if res, err := prepared.Terminate(t.Context(), 0); err != nil || res.Outcome != sandbox.TerminationGone {
		t.Errorf("%+v, %v", res, err)
	}
	if !slices.Equal(r.place.after, []string{prepared.Marker}) {
		t.Errorf("the runtime was asked for %v", r.place.after)
	}
	if _, err := r.Handle(); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("a handle of an ended box: %v", err)
	}
}

// C063: the place ends under a command: its status says so and why.
func TestPlaceEnds(t *testing.T) {
	r := newRig(t)
	h := r.handle(t)
	prepared, _, p := launch(t, h, "wait")
	_ = r.place.far.Close()
	within(t, "the end", h.Done())
	status, err := p.Wait(t.Context())
	if err != nil || !status.Unknown || !strings.Contains(status.Reason, "the fake ended") {
		t.Errorf("status %+v, %v", status, err)
	}
	if !errors.Is(h.Err(), sandbox.ErrGone) || h.Info().State != sandbox.StateDead || !strings.Contains(h.Info().Detail, "the fake ended") {
		t.Errorf("%v, %+v", h.Err(), h.Info())
	}
	_, prepareErr := h.PrepareProcessCleanup(t.Context(), nil)
	_, buildErr := h.BuildExecSpec(t.Context(), sandbox.Command{Argv: []string{"a"}}, nil)
	_, bridgeErr := h.Bridge(t.Context(), nil)
	for what, err := range map[string]error{"prepare": prepareErr, "build": buildErr, "bridge": bridgeErr} {
		if !errors.Is(err, sandbox.ErrGone) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if res, err := prepared.Terminate(t.Context(), 0); err != nil || res.Outcome != sandbox.TerminationGone {
		t.Errorf("%+v, %v", res, err)
	}
}

// A place that outlives its connection is ended.
func TestConnectionLost(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Runtime.(*fakePlace).stays = true })
	h := r.handle(t)
	_ = r.place.far.Close()
	within(t, "the end", h.Done())
	r.place.mu.Lock()
	defer r.place.mu.Unlock()
	if !r.place.killed {
		t.Error("it was not killed")
	}
}

// A command that got at its reaper, and processes that do not end, are reported;
// then the sandbox is recycled.
func TestRecycle(t *testing.T) {
	t.Run("reaper lost", func(t *testing.T) {
		r := newRig(t)
		h := r.handle(t)
		_, _, p := launch(t, h, "lost")
		if err := p.Signal(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		status, err := p.Wait(t.Context())
		if err != nil || !status.Unknown || !strings.Contains(status.Reason, "reaper was killed") {
			t.Errorf("status %+v, %v", status, err)
		}
		within(t, "the end", h.Done())
		if !strings.Contains(h.Err().Error(), "reaper was killed") {
			t.Errorf("reason %v", h.Err())
		}
	})
	t.Run("survivors", func(t *testing.T) {
		r := newRig(t)
		h := r.handle(t)
		prepared, _, _ := launch(t, h, "stubborn")
		res, err := prepared.Terminate(t.Context(), time.Second)
		if err != nil || res.Outcome != sandbox.TerminationSurvivors || !slices.Equal(res.Pids, []int{7}) {
			t.Errorf("%+v, %v", res, err)
		}
		within(t, "the end", h.Done())
		if !strings.Contains(h.Err().Error(), "do not end") {
			t.Errorf("reason %v", h.Err())
		}
		if res, err := prepared.Terminate(t.Context(), 0); err != nil || res.Outcome != sandbox.TerminationGone {
			t.Errorf("after the end: %+v, %v", res, err)
		}
	})
}

// Values of environment variables are not in what is told about the sandbox.
func TestInfo(t *testing.T) {
	h := newRig(t).handle(t)
	info := h.Info()
	if text := fmt.Sprintf("%+v %#v", info, info); strings.Contains(text, "s3cret") {
		t.Errorf("the secret is in %s", text)
	}
	if _, ok := info.Config.Env["SECRET"]; !ok {
		t.Error("the name is gone, too")
	}
	info.Mounts[0].Path = "/changed"
	if h.Info().Mounts[0].Path == "/changed" {
		t.Error("a caller can change the mount table")
	}
}

func TestSweep(t *testing.T) {
	r := newRig(t)
	left, err := r.Sweep(t.Context(), []string{"one", "bad", "two"})
	if err == nil || !slices.Equal(left, []string{"bad"}) || !slices.Equal(r.runner.swept, []string{"one", "bad", "two"}) {
		t.Errorf("left %v, %v; swept %v", left, err, r.runner.swept)
	}
}

// The owner's launch works on a handle, many at a time.
func TestManyAtOnce(t *testing.T) {
	r := newRig(t)
	h := r.handle(t)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			var out bytes.Buffer
			text := strings.Repeat(fmt.Sprintf("text %d\n", i), 1000)
			run, err := sandbox.Start(t.Context(), h, sandbox.Command{Argv: []string{"echo"}}, nil,
				sandbox.IO{Stdin: strings.NewReader(text), Stdout: &out}, sandbox.StartOptions{})
			if err != nil {
				t.Error(err)
				return
			}
			status, err := run.Wait(t.Context())
			if err != nil || status.Code != 0 || out.String() != text {
				t.Errorf("status %+v, %v, %d bytes of %d", status, err, out.Len(), len(text))
			}
		})
	}
	wg.Wait()
	if h.OpenTokens() != 0 {
		t.Errorf("%d tokens are left", h.OpenTokens())
	}
}

// A setup command that fails quotes what it said.
func TestSetup(t *testing.T) {
	r := newRig(t)
	h := r.handle(t)
	// The fake runs no shell: the program is unknown to it and never ends.
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for len(r.runner.specs()) == 0 {
			time.Sleep(time.Millisecond) //sleep: polls the fake, which gives no event
		}
		cancel()
	}()
	err := Setup(ctx, h, "make things", nil)
	var problem *sandbox.Problem
	if !errors.As(err, &problem) || problem.Field != "setupCommand" || !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	got := r.runner.specs()[0].Argv
	if !slices.Equal(got, []string{"/bin/sh", "-c", "make things"}) {
		t.Errorf("ran %q", got)
	}
	if h.OpenTokens() != 0 {
		t.Errorf("%d tokens are left", h.OpenTokens())
	}
}
