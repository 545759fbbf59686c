package sandbox

import (
	"context"
	"errors"
	"regexp"
	"syscall"
	"testing"
	"time"
)

// SBX-07, answer 9: 128 random bits in hexadecimal, never the same twice.
func TestMarkers(t *testing.T) {
	form := regexp.MustCompile(`^[0-9a-f]{32}$`)
	seen := map[string]bool{}
	for range 1000 {
		m := NewMarker()
		if !form.MatchString(m) || seen[m] {
			t.Fatalf("marker %q", m)
		}
		seen[m] = true
	}
}

// SBX-14 SBX-15: a sandbox without the capability keeps its cleanup by shell command.
func TestCustodyByShellCommand(t *testing.T) {
	sb := &shellFake{newFake(hangs(""))}
	env := Env{"A": "1"}
	p, err := PrepareProcessCleanup(t.Context(), sb, env)
	if err != nil || p.Env["A"] != "1" || p.Env[MarkerVar] != p.Marker || len(p.Marker) != 32 || len(env) != 1 {
		t.Fatalf("Prepare = %+v, %v", p, err)
	}
	if err := p.Interrupt(t.Context()); !errors.Is(err, ErrNotFound) {
		t.Errorf("Interrupt before the launch = %v", err)
	}
	if res, err := p.Terminate(t.Context(), 0); err != nil || res.Outcome != TerminationGone {
		t.Errorf("Terminate before the launch = %+v, %v", res, err)
	}

	sb.spawned = make(chan *fakeProcess, 1)
	r, err := Start(t.Context(), sb, sh, env, IO{}, StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	proc := <-sb.spawned
	if err := r.Interrupt(t.Context()); err != nil || <-proc.signals != int(syscall.SIGINT) {
		t.Errorf("Interrupt = %v", err)
	}
	close(sb.gone) // its session was closed: cleanup stays possible
	if res, err := r.Terminate(t.Context(), 0); err != nil || res.Outcome != TerminationGone {
		t.Errorf("Terminate = %+v, %v", res, err)
	}
	<-r.Done()
	if h := sb.history(); h[len(h)-2] != "terminate grace=2s" || h[len(h)-1] != "finalize terminated" {
		t.Errorf("history %q", h)
	}
	if _, err := PrepareProcessCleanup(t.Context(), sb, env); !errors.Is(err, ErrGone) {
		t.Errorf("Prepare after the end = %v", err)
	}
}

// SBX-08 SBX-13 without the capability.
func TestCustodyByShellCommandRevoked(t *testing.T) {
	sb := &shellFake{newFake(hangs(""))}
	r, err := Start(t.Context(), sb, sh, nil, IO{}, StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	sb.Revoke("enough")
	if _, err := PrepareProcessCleanup(t.Context(), sb, nil); !errors.Is(err, ErrRevoked) {
		t.Errorf("Prepare = %v", err)
	}
	if err := r.Interrupt(t.Context()); !errors.Is(err, ErrRevoked) {
		t.Errorf("Interrupt = %v", err)
	}
	if res, err := r.Terminate(t.Context(), 0); err != nil || res.Outcome != TerminationGone {
		t.Errorf("Terminate = %+v, %v", res, err)
	}
	<-r.Done()
}

// SBX-14: lacking any way to clean up, preparing does not fail; terminating says so.
func TestCustodyOfNothing(t *testing.T) {
	sb := newFake(exits(0, "", ""))
	p, err := PrepareProcessCleanup(t.Context(), sb, nil)
	if err != nil {
		t.Fatal(err)
	}
	if res, err := p.Terminate(t.Context(), time.Second); res.Outcome != TerminationUnknown || !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Terminate = %+v, %v", res, err)
	}
	res, err := Run(t.Context(), sb, sh, nil, RunOptions{})
	if err != nil || res.Status.Code != 0 || res.CleanupErr != nil {
		t.Errorf("Run = %+v, %v", res, err)
	}
}

func TestPrepareWithEndedContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	sb := newCleaner(exits(0, "", ""))
	if _, err := PrepareProcessCleanup(ctx, sb, nil); !errors.Is(err, context.Canceled) || len(sb.history()) > 0 {
		t.Errorf("Prepare = %v, %q", err, sb.history())
	}
}

// What a backend says is never improved on the way.
func TestSettled(t *testing.T) {
	boom := errors.New("boom")
	for _, tc := range []struct {
		in   TerminateResult
		err  error
		want Termination
	}{
		{TerminateResult{}, nil, TerminationUnknown},
		{TerminateResult{Outcome: "fine"}, nil, TerminationUnknown},
		{TerminateResult{Outcome: TerminationGone}, boom, TerminationUnknown},
		{TerminateResult{Outcome: TerminationGone}, nil, TerminationGone},
		{TerminateResult{Outcome: TerminationSurvivors, Pids: []int{4}}, boom, TerminationSurvivors},
	} {
		got, err := settled(tc.in, tc.err)
		if got.Outcome != tc.want || !errors.Is(err, tc.err) || len(got.Pids) != len(tc.in.Pids) {
			t.Errorf("settled(%+v, %v) = %+v, %v", tc.in, tc.err, got, err)
		}
	}
}
