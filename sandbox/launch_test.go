package sandbox

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if runRegistryChild() {
		return
	}
	goleak.VerifyTestMain(m)
}

var sh = Command{Argv: []string{"sh"}}

// SBX-01 SBX-02 SBX-04 SBX-05: every way out, in order, with no token left.
func TestLaunchOrder(t *testing.T) {
	boom := errors.New("boom")
	for name, tc := range map[string]struct {
		set  func(*cleanerFake)
		want []string
		err  error
	}{
		"exits": {func(*cleanerFake) {}, []string{"prepare", "build marked=true", "assert", "spawn", "finalize exited"}, nil},
		"fails": {
			func(c *cleanerFake) { c.script = exits(3, "", "") },
			[]string{"prepare", "build marked=true", "assert", "spawn", "finalize exited"}, nil,
		},
		"prepare fails":  {func(c *cleanerFake) { c.prepareErr = boom }, []string{"prepare"}, boom},
		"build fails":    {func(c *cleanerFake) { c.buildErr = boom }, []string{"prepare", "build marked=true"}, boom},
		"not current":    {func(c *cleanerFake) { c.assertErr = boom }, []string{"prepare", "build marked=true", "assert", "finalize launch-failed"}, boom},
		"spawn fails":    {func(c *cleanerFake) { c.spawnErr = boom }, []string{"prepare", "build marked=true", "assert", "spawn", "terminate grace=0s", "finalize launch-failed"}, boom},
		"revoked before": {func(c *cleanerFake) { c.Revoke("gone") }, []string{"prepare"}, ErrRevoked},
		"revoked between build and launch": {
			func(c *cleanerFake) { c.assertErr = &RevokedError{Reason: "now"} },
			[]string{"prepare", "build marked=true", "assert", "finalize launch-failed"}, ErrRevoked,
		},
		"lost": {
			func(c *cleanerFake) {
				c.script = func(*fakeProcess, IO) ExitStatus { return ExitStatus{Unknown: true, Reason: "lost"} }
			},
			[]string{"prepare", "build marked=true", "assert", "spawn", "terminate grace=0s", "finalize lost"}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCleaner(exits(0, "", ""))
			tc.set(c)
			r, err := Start(t.Context(), c, sh, Env{"A": "1"}, IO{}, StartOptions{})
			if !errors.Is(err, tc.err) || (err == nil) != (tc.err == nil) {
				t.Fatalf("Start = %v, want %v", err, tc.err)
			}
			if (r == nil) != (err != nil) {
				t.Fatalf("Start = %v with error %v", r, err)
			}
			if r != nil {
				<-r.Done()
			}
			if got := c.history(); !slices.Equal(got, tc.want) {
				t.Errorf("order:\n got %q\nwant %q", got, tc.want)
			}
			if n := c.OpenTokens(); n != 0 {
				t.Errorf("%d open tokens", n)
			}
		})
	}
}

// SBX-02: the caller's environment is neither used nor changed.
func TestLaunchDoesNotChangeEnv(t *testing.T) {
	env := Env{"A": "1"}
	r, err := Start(t.Context(), newCleaner(exits(0, "", "")), sh, env, IO{}, StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	<-r.Done()
	if len(env) != 1 {
		t.Errorf("the caller's environment became %v", env)
	}
	if len(r.Marker()) != 32 || r.spec.Env[MarkerVar] != r.Marker() || r.spec.Env["A"] != "1" {
		t.Errorf("marker %q, environment %v", r.Marker(), r.spec.Env)
	}
}

// SBX-05, answer 11: after the end of the context the tree is terminated first and the
// token finalised afterwards.
func TestCancelTerminatesThenFinalizes(t *testing.T) {
	c := newCleaner(hangs("partial"))
	var out bytes.Buffer
	ctx, cancel := context.WithCancelCause(t.Context())
	wrote := make(chan struct{})
	cmd := sh
	cmd.Grace = 7 * time.Second
	r, err := Start(ctx, c, cmd, nil, IO{Stdout: writerFunc(func(p []byte) (int, error) { defer close(wrote); return out.Write(p) })}, StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	<-wrote
	cancel(errors.New("my reason"))
	status, err := r.Wait(t.Context())
	if err != nil || status.Signal != 9 {
		t.Errorf("Wait = %+v, %v", status, err)
	}
	h := c.history()
	if got := h[len(h)-2:]; !slices.Equal(got, []string{"terminate grace=7s", "finalize terminated"}) {
		t.Errorf("at the end %q", got)
	}
	if r.Cause() == nil || r.Cause().Error() != "my reason" {
		t.Errorf("cause %v", r.Cause())
	}
	if out.String() != "partial" || c.OpenTokens() != 0 {
		t.Errorf("output %q, %d tokens", out.String(), c.OpenTokens())
	}
}

// A context that ends while the launch is under way.
func TestCancelDuringSpawn(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := newCleaner(hangs(""))
	c.beforeSpawn = func() {
		cancel()
		// The launch sees the end of the context only if it reaches it.
		for range 1000 {
			if ctx.Err() != nil {
				break
			}
		}
	}
	r, err := Start(ctx, c, sh, nil, IO{}, StartOptions{})
	if err == nil {
		<-r.Done()
	} else if !errors.Is(err, context.Canceled) {
		t.Errorf("Start = %v", err)
	}
	h := c.history()
	if n := len(h); !strings.HasPrefix(h[n-2], "terminate") || !strings.HasPrefix(h[n-1], "finalize") || c.OpenTokens() != 0 {
		t.Errorf("history %q, %d tokens", h, c.OpenTokens())
	}
}

// The end of the context does not reach the launch's own context once it runs: a
// backend that would kill its client by it must not leave the tree alone.
func TestSpawnContextOutlivesCancel(t *testing.T) {
	c := newCleaner(nil)
	var spawnCtx context.Context
	alive := make(chan error, 1)
	c.script = func(p *fakeProcess, _ IO) ExitStatus {
		<-p.term
		alive <- spawnCtx.Err()
		return killed()
	}
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), ctxKey{}, "v"))
	sb := &spawnSpy{cleanerFake: c, spawn: func(ctx context.Context) { spawnCtx = ctx }}
	r, err := Start(ctx, sb, sh, nil, IO{}, StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if spawnCtx.Value(ctxKey{}) != "v" {
		t.Error("values of the context are lost")
	}
	cancel()
	if err := <-alive; err != nil {
		t.Errorf("the launch's context ended before the tree was terminated: %v", err)
	}
	<-r.Done()
}

type ctxKey struct{}

type spawnSpy struct {
	*cleanerFake
	spawn func(context.Context)
}

func (s *spawnSpy) BuildExecSpec(ctx context.Context, cmd Command, env Env) (ExecSpec, error) {
	spec, err := s.cleanerFake.BuildExecSpec(ctx, cmd, env)
	inner := spec.Spawn
	spec.Spawn = func(ctx context.Context, streams IO) (Process, error) { s.spawn(ctx); return inner(ctx, streams) }
	return spec, err
}

// SBX-03 SBX-09: custody works while it runs, after revocation, after the end.
func TestTerminateAnyTime(t *testing.T) {
	c := newCleaner(hangs(""))
	r, err := Start(t.Context(), c, sh, nil, IO{}, StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.Revoke("enough")
	if err := r.Interrupt(t.Context()); !errors.Is(err, ErrRevoked) { // SBX-13
		t.Errorf("Interrupt after revocation = %v", err)
	}
	if err := r.Signal(t.Context(), 2); !errors.Is(err, ErrRevoked) {
		t.Errorf("Signal after revocation = %v", err)
	}
	for range 2 {
		if res, err := r.Terminate(t.Context(), 0); err != nil || res.Outcome != TerminationGone {
			t.Errorf("Terminate = %+v, %v", res, err)
		}
	}
	<-r.Done()
	if res, err := r.Terminate(t.Context(), 0); err != nil || res.Outcome != TerminationGone {
		t.Errorf("Terminate after the end = %+v, %v", res, err)
	}
	if got := c.history(); !slices.Contains(got, "finalize terminated") || c.OpenTokens() != 0 {
		t.Errorf("history %q", got)
	}
}

// Finalising waits for a termination that is under way.
func TestFinalizeAfterTerminationUnderWay(t *testing.T) {
	c := newCleaner(hangs(""))
	ended := make(chan struct{})
	release := make(chan struct{})
	sb := &slowTerminate{c, ended, release}
	r, err := Start(t.Context(), sb, sh, nil, IO{}, StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	finished := make(chan TerminateResult, 1)
	go func() { res, _ := r.Terminate(t.Context(), 0); finished <- res }()
	<-ended // the process is over, Terminate is not
	select {
	case <-r.Done():
		t.Error("settled while a termination was under way")
	default:
	}
	if h := c.history(); slices.ContainsFunc(h, func(e string) bool { return strings.HasPrefix(e, "finalize") }) {
		t.Errorf("finalised while a termination was under way: %q", h)
	}
	close(release)
	<-finished
	<-r.Done()
	if c.OpenTokens() != 0 {
		t.Error("a token is left")
	}
}

type slowTerminate struct {
	*cleanerFake
	ended, release chan struct{}
}

func (s *slowTerminate) PrepareProcessCleanup(ctx context.Context, env Env) (Prepared, error) {
	p, err := s.cleanerFake.PrepareProcessCleanup(ctx, env)
	inner := p.Terminate
	p.Terminate = func(ctx context.Context, grace time.Duration) (TerminateResult, error) {
		res, err := inner(ctx, grace)
		close(s.ended)
		<-s.release
		return res, err
	}
	return p, err
}

// C187, answer 12: a failure of cleaning up changes neither status nor order.
func TestCleanupFailureKeepsStatus(t *testing.T) {
	c := newCleaner(exits(0, "ok", ""))
	c.finalizeErr = errors.New("socket gone")
	var log bytes.Buffer
	res, err := Run(t.Context(), c, sh, Env{"S": "hunter2"}, RunOptions{Start: StartOptions{Log: slog.New(slog.NewTextHandler(&log, nil))}})
	if err != nil || res.Status != (ExitStatus{}) || string(res.Stdout.Bytes()) != "ok" {
		t.Errorf("Run = %+v, %v", res, err)
	}
	if res.CleanupErr == nil || !errors.Is(res.CleanupErr, c.finalizeErr) || !strings.Contains(log.String(), "socket gone") {
		t.Errorf("clean-up failure %v, log %q", res.CleanupErr, log.String())
	}
	if strings.Contains(log.String(), "hunter2") {
		t.Error("the value of a variable was logged")
	}
	if c.OpenTokens() != 0 {
		t.Error("a token is left")
	}
}

// A termination that fails is unknown, never gone, and the command is given up after a
// bounded time.
func TestTerminateFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCleaner(hangs(""))
		c.terminateErr = errors.New("engine is gone")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		r, err := Start(ctx, c, sh, nil, IO{}, StartOptions{DrainTimeout: 3 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		status, _ := r.Wait(t.Context())
		if !status.Unknown || status.Reason == "" {
			t.Errorf("status %+v", status)
		}
		if took := time.Since(start); took != time.Minute+3*time.Second {
			t.Errorf("gave up after %s", took)
		}
		if res := r.Terminated(); res == nil || res.Outcome != TerminationUnknown {
			t.Errorf("terminated %+v", res)
		}
		if !errors.Is(r.CleanupErr(), c.terminateErr) {
			t.Errorf("clean-up error %v", r.CleanupErr())
		}
		if c.OpenTokens() != 0 {
			t.Error("a token is left")
		}
		c.terminateErr = nil
		if res, err := r.Terminate(t.Context(), 0); err != nil || res.Outcome != TerminationGone || r.CleanupErr() != nil {
			t.Errorf("custody is lost after a failure: %+v, %v, %v", res, err, r.CleanupErr())
		}
	})
}

// A cleanup custody that could not keep its promise is refused.
func TestPreparedIsChecked(t *testing.T) {
	for name, spoil := range map[string]func(*Prepared){
		"no terminate": func(p *Prepared) { p.Terminate = nil },
		"no interrupt": func(p *Prepared) { p.Interrupt = nil },
		"no marker":    func(p *Prepared) { p.Marker = "" },
		"env unmarked": func(p *Prepared) { p.Env = Env{} },
		"other marker": func(p *Prepared) { p.Marker = NewMarker() },
	} {
		sb := &spoiledCleaner{newCleaner(exits(0, "", "")), spoil}
		if _, err := Start(t.Context(), sb, sh, nil, IO{}, StartOptions{}); err == nil {
			t.Errorf("%s: accepted", name)
		}
		if slices.Contains(sb.history(), "spawn") {
			t.Errorf("%s: launched", name)
		}
	}
}

type spoiledCleaner struct {
	*cleanerFake
	spoil func(*Prepared)
}

func (s *spoiledCleaner) PrepareProcessCleanup(ctx context.Context, env Env) (Prepared, error) {
	p, err := s.cleanerFake.PrepareProcessCleanup(ctx, env)
	s.spoil(&p)
	return p, err
}

// C065: a reader that fails half-way ends the command, which never takes the failure for
// the end of its input.
func TestFailingStdinEndsCommand(t *testing.T) {
	boom := errors.New("disk on fire")
	res, err := Run(t.Context(), newCleaner(copies), sh, nil, RunOptions{Stdin: io.MultiReader(strings.NewReader("half"), iotest.ErrReader(boom))})
	if err != nil {
		t.Fatal(err)
	}
	var se *StreamError
	if !errors.As(res.StreamErr, &se) || se.Stream != "stdin" || !errors.Is(se, boom) || res.Status.Code == 0 {
		t.Errorf("result %+v", res)
	}
	if string(res.Stdout.Bytes()) != "half" || res.Cancelled || res.TimedOut {
		t.Errorf("result %+v", res)
	}
}

// A writer that fails ends the command: nobody reads what an endless one says.
func TestFailingWriterEndsCommand(t *testing.T) {
	boom := errors.New("closed pipe")
	yes := func(p *fakeProcess, streams IO) ExitStatus {
		for {
			select {
			case <-p.term:
				return killed()
			default:
				if n, err := streams.Stdout.Write([]byte("y\n")); n != 2 || err != nil {
					return ExitStatus{Unknown: true, Reason: "a backend must not be held up"}
				}
			}
		}
	}
	res, err := Run(t.Context(), newCleaner(yes), sh, nil, RunOptions{Stdout: &failAfter{n: 3, err: boom}})
	if err != nil {
		t.Fatal(err)
	}
	var se *StreamError
	if !errors.As(res.StreamErr, &se) || se.Stream != "stdout" || !errors.Is(se, boom) || res.Status.Signal != 9 {
		t.Errorf("result %+v", res)
	}
}

type failAfter struct {
	n   int
	err error
}

func (f *failAfter) Write(p []byte) (int, error) {
	if f.n--; f.n < 0 {
		return 0, f.err
	}
	return len(p), nil
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
