package backendtest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/workberth/workberth/sandbox"
)

// recorder wraps a sandbox and writes down, for each launch, the calls that its owner makes and
// how often each token was finalised.
type recorder struct {
	sandbox.Sandbox

	mu       sync.Mutex
	launches []*launch
	prepared map[string]bool // markers
}

// launch is what became of one exec spec.
type launch struct {
	events    []string
	env       sandbox.Env
	finalized int
	outcome   sandbox.Outcome
}

// recordedToken is the token that the owner sees.
type recordedToken struct {
	inner  sandbox.Token
	launch *launch
}

// cleanerRecorder wraps a sandbox that gives custody itself, shellRecorder one with a command
// of its own. A wrapper must have exactly the capabilities of what it wraps.
type (
	cleanerRecorder struct {
		*recorder
		cleaner sandbox.ProcessCleaner
	}
	shellRecorder struct {
		*recorder
		sandbox.ShellCleaner
	}
)

// record wraps sb.
func record(sb sandbox.Sandbox) (sandbox.Sandbox, *recorder) {
	r := &recorder{Sandbox: sb, prepared: map[string]bool{}}
	if c, ok := sb.(sandbox.ProcessCleaner); ok {
		return &cleanerRecorder{r, c}, r
	}
	if c, ok := sb.(sandbox.ShellCleaner); ok {
		return &shellRecorder{r, c}, r
	}
	return r, r
}

var (
	_ sandbox.ProcessCleaner = (*cleanerRecorder)(nil)
	_ sandbox.ShellCleaner   = (*shellRecorder)(nil)
	_ sandbox.Asserter       = (*recorder)(nil)
)

// AssertCurrent forwards to a sandbox that can tell; one that cannot permits.
func (r *recorder) AssertCurrent() error {
	if a, ok := r.Sandbox.(sandbox.Asserter); ok {
		return a.AssertCurrent()
	}
	return nil
}

// PrepareProcessCleanup notes the marker.
func (c *cleanerRecorder) PrepareProcessCleanup(ctx context.Context, env sandbox.Env) (sandbox.Prepared, error) {
	p, err := c.cleaner.PrepareProcessCleanup(ctx, env)
	if err != nil {
		return p, err
	}
	c.mu.Lock()
	c.prepared[p.Marker] = true
	c.mu.Unlock()
	inner := p.Terminate
	marker := p.Marker
	p.Terminate = func(ctx context.Context, grace time.Duration) (sandbox.TerminateResult, error) {
		c.noteMarked(marker, "terminate")
		return inner(ctx, grace)
	}
	return p, nil
}

// BuildExecSpec notes with which environment it was called, and watches what becomes of the spec.
func (r *recorder) BuildExecSpec(ctx context.Context, cmd sandbox.Command, env sandbox.Env) (sandbox.ExecSpec, error) {
	spec, err := r.Sandbox.BuildExecSpec(ctx, cmd, env)
	if err != nil {
		return spec, err
	}
	l := &launch{env: env.Clone()}
	r.mu.Lock()
	r.launches = append(r.launches, l)
	built := "build"
	if r.prepared[env[sandbox.MarkerVar]] {
		built = "build with the prepared environment"
	}
	l.events = append(l.events, built)
	r.mu.Unlock()

	assert, spawn := spec.AssertCurrent, spec.Spawn
	spec.Token = &recordedToken{spec.Token, l}
	spec.AssertCurrent = func() error {
		r.note(l, "assert")
		return assert()
	}
	spec.Spawn = func(ctx context.Context, streams sandbox.IO) (sandbox.Process, error) {
		r.note(l, "spawn")
		return spawn(ctx, streams)
	}
	return spec, nil
}

// FinalizeExec counts.
func (r *recorder) FinalizeExec(ctx context.Context, token sandbox.Token, outcome sandbox.Outcome) error {
	t, ok := token.(*recordedToken)
	if !ok {
		return r.Sandbox.FinalizeExec(ctx, token, outcome)
	}
	r.mu.Lock()
	t.launch.finalized++
	t.launch.outcome = outcome
	t.launch.events = append(t.launch.events, "finalize "+string(outcome))
	r.mu.Unlock()
	return r.Sandbox.FinalizeExec(ctx, t.inner, outcome)
}

func (r *recorder) note(l *launch, event string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l.events = append(l.events, event)
}

func (r *recorder) noteMarked(marker, event string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.launches {
		if l.env[sandbox.MarkerVar] == marker {
			l.events = append(l.events, event)
		}
	}
}

// last is the history of the newest launch.
func (r *recorder) last() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.launches) == 0 {
		return nil
	}
	return slices.Clone(r.launches[len(r.launches)-1].events)
}

// verify demands that every token was finalised exactly once and that the sandbox agrees.
// SBX-05
func (r *recorder) verify(t testing.TB) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, l := range r.launches {
		if l.finalized != 1 {
			t.Errorf("launch %d: its token was finalised %d times; history %s", i+1, l.finalized, fmt.Sprint(l.events))
		}
	}
	if n := r.Sandbox.OpenTokens(); n != 0 {
		t.Errorf("the sandbox holds %d open tokens at the end", n)
	}
}
