package sandbox

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/workberth/workberth/fsbridge"
)

// fakeSandbox is a scripted sandbox that records what is asked of it. It is no
// ProcessCleaner; cleanerFake and shellFake are its variants.
type fakeSandbox struct {
	script func(p *fakeProcess, streams IO) ExitStatus // what every command does

	buildErr, assertErr, spawnErr, finalizeErr error
	spawned                                    chan *fakeProcess // gets every process, when not nil
	beforeSpawn                                func()

	mu      sync.Mutex
	events  []string
	tokens  map[int]bool
	next    int
	revoked error
	procs   map[string]*fakeProcess // by marker
	gone    chan struct{}
}

func newFake(script func(p *fakeProcess, streams IO) ExitStatus) *fakeSandbox {
	return &fakeSandbox{script: script, tokens: map[int]bool{}, procs: map[string]*fakeProcess{}, gone: make(chan struct{})}
}

func (f *fakeSandbox) note(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = append(f.events, fmt.Sprintf(format, args...))
}

func (f *fakeSandbox) history() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.events)
}

func (f *fakeSandbox) Info() Info { return Info{ID: "fake-0123456789abcdef"} }

func (f *fakeSandbox) Bridge(context.Context, fsbridge.AssertFunc) (fsbridge.Bridge, error) {
	return nil, fmt.Errorf("no files here")
}

func (f *fakeSandbox) AssertCurrent() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.revoked
}

func (f *fakeSandbox) BuildExecSpec(_ context.Context, cmd Command, env Env) (ExecSpec, error) {
	f.note("build marked=%t", env[MarkerVar] != "")
	if err := f.AssertCurrent(); err != nil {
		return ExecSpec{}, err
	}
	if f.buildErr != nil {
		return ExecSpec{}, f.buildErr
	}
	f.mu.Lock()
	f.next++
	token := f.next
	f.tokens[token] = true
	f.mu.Unlock()
	return ExecSpec{
		Command: cmd, Env: maps.Clone(env), Token: token,
		AssertCurrent: func() error {
			f.note("assert")
			if f.assertErr != nil {
				return f.assertErr
			}
			return f.AssertCurrent()
		},
		Spawn: func(ctx context.Context, streams IO) (Process, error) {
			f.note("spawn")
			if f.beforeSpawn != nil {
				f.beforeSpawn()
			}
			if f.spawnErr != nil {
				return nil, f.spawnErr
			}
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return f.run(env[MarkerVar], streams), nil
		},
	}, nil
}

func (f *fakeSandbox) run(marker string, streams IO) *fakeProcess {
	p := &fakeProcess{f: f, pid: 100, signals: make(chan int, 16), term: make(chan struct{}), done: make(chan struct{})}
	f.mu.Lock()
	f.procs[marker] = p
	f.mu.Unlock()
	go func() {
		status := f.script(p, streams)
		p.finish(status)
	}()
	if f.spawned != nil {
		f.spawned <- p
	}
	return p
}

func (f *fakeSandbox) FinalizeExec(_ context.Context, token Token, outcome Outcome) error {
	f.note("finalize %s", outcome)
	f.mu.Lock()
	defer f.mu.Unlock()
	if n, ok := token.(int); ok {
		delete(f.tokens, n)
	}
	return f.finalizeErr
}

func (f *fakeSandbox) OpenTokens() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.tokens)
}

func (f *fakeSandbox) Revoke(reason string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.revoked = &RevokedError{Reason: reason}
}

func (f *fakeSandbox) Done() <-chan struct{} { return f.gone }
func (f *fakeSandbox) Err() error            { return ErrGone }
func (f *fakeSandbox) Close() error          { return nil }

// terminate ends the process with the marker, if there is one.
func (f *fakeSandbox) terminate(marker string, grace time.Duration) (TerminateResult, error) {
	f.note("terminate grace=%s", grace)
	f.mu.Lock()
	p := f.procs[marker]
	f.mu.Unlock()
	if p != nil {
		p.end()
		<-p.done
	}
	return TerminateResult{Outcome: TerminationGone}, nil
}

// cleanerFake is a fake that is a ProcessCleaner.
type cleanerFake struct {
	*fakeSandbox
	prepareErr   error
	terminateErr error
}

func newCleaner(script func(p *fakeProcess, streams IO) ExitStatus) *cleanerFake {
	return &cleanerFake{fakeSandbox: newFake(script)}
}

func (c *cleanerFake) PrepareProcessCleanup(_ context.Context, env Env) (Prepared, error) {
	c.note("prepare")
	if err := c.AssertCurrent(); err != nil {
		return Prepared{}, err
	}
	if c.prepareErr != nil {
		return Prepared{}, c.prepareErr
	}
	marker := NewMarker()
	return Prepared{
		Env: WithMarker(env, marker), Marker: marker,
		Terminate: func(_ context.Context, grace time.Duration) (TerminateResult, error) {
			if c.terminateErr != nil {
				c.note("terminate fails")
				return TerminateResult{}, c.terminateErr
			}
			return c.terminate(marker, grace)
		},
		Interrupt: func(context.Context) error { c.note("interrupt"); return c.AssertCurrent() },
	}, nil
}

// shellFake is a fake that is a ShellCleaner.
type shellFake struct{ *fakeSandbox }

func (s *shellFake) CleanupMarked(_ context.Context, marker string, grace time.Duration) (TerminateResult, error) {
	return s.terminate(marker, grace)
}

var (
	_ Sandbox        = (*fakeSandbox)(nil)
	_ Asserter       = (*fakeSandbox)(nil)
	_ ProcessCleaner = (*cleanerFake)(nil)
	_ ShellCleaner   = (*shellFake)(nil)
)

// fakeProcess is a command that a script plays.
type fakeProcess struct {
	f       *fakeSandbox
	pid     int
	signals chan int
	once    sync.Once
	term    chan struct{} // closed when the tree is terminated
	done    chan struct{}
	status  ExitStatus
	noReply bool // Wait never returns by itself
}

// end tells the script to end.
func (p *fakeProcess) end() { p.once.Do(func() { close(p.term) }) }

func (p *fakeProcess) finish(s ExitStatus) {
	p.status = s
	close(p.done)
}

func (p *fakeProcess) Pid() int { return p.pid }

func (p *fakeProcess) Wait(ctx context.Context) (ExitStatus, error) {
	done := p.done
	if p.noReply {
		done = nil
	}
	select {
	case <-done:
		return p.status, nil
	case <-ctx.Done():
		return ExitStatus{}, ctx.Err()
	}
}

func (p *fakeProcess) Resize(context.Context, TTYSize) error { p.f.note("resize"); return nil }

func (p *fakeProcess) Signal(_ context.Context, signal int) error {
	if err := p.f.AssertCurrent(); err != nil {
		return err
	}
	p.signals <- signal
	return nil
}

// Scripts.

// exits writes text and exits with a code.
func exits(code int, stdout, stderr string) func(*fakeProcess, IO) ExitStatus {
	return func(_ *fakeProcess, streams IO) ExitStatus {
		io.WriteString(streams.Stdout, stdout)
		io.WriteString(streams.Stderr, stderr)
		return ExitStatus{Code: code}
	}
}

// hangs writes text and ends when it is terminated.
func hangs(stdout string) func(*fakeProcess, IO) ExitStatus {
	return func(p *fakeProcess, streams IO) ExitStatus {
		io.WriteString(streams.Stdout, stdout)
		<-p.term
		return killed()
	}
}

// copies gives its standard input back.
func copies(p *fakeProcess, streams IO) ExitStatus {
	done := make(chan error, 1)
	go func() { _, err := io.Copy(streams.Stdout, streams.Stdin); done <- err }()
	select {
	case err := <-done:
		if err != nil {
			<-p.term
			return killed()
		}
		return ExitStatus{}
	case <-p.term:
		return killed()
	}
}

func killed() ExitStatus { return ExitStatus{Code: 128 + 9, Signal: int(syscall.SIGKILL)} }
