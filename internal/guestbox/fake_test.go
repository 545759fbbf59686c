package guestbox

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/local"
	"github.com/workberth/workberth/internal/guest/client"
	"github.com/workberth/workberth/internal/guest/proc"
	"github.com/workberth/workberth/internal/guest/server"
	"github.com/workberth/workberth/sandbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeRunner runs nothing. Programs: "exit CODE" ends at once; "wait" until it is
// signalled or terminated; "stubborn" survives termination; "echo" copies its
// input; "lost" ends in an unknown way when signalled.
type fakeRunner struct {
	mu      sync.Mutex
	started []proc.Spec
	live    map[string]*fakeProcess
	swept   []string
}

func (r *fakeRunner) Start(_ context.Context, spec proc.Spec, streams proc.IO) (proc.Process, error) {
	if spec.Argv[0] == "missing" {
		return nil, &proc.StartError{Reason: proc.NoCommand, What: spec.Argv[0], Err: os.ErrNotExist}
	}
	p := &fakeProcess{spec: spec, over: make(chan struct{})}
	r.mu.Lock()
	r.started = append(r.started, spec)
	r.live[spec.Marker] = p
	r.mu.Unlock()
	switch spec.Argv[0] {
	case "exit":
		code, _ := strconv.Atoi(spec.Argv[1])
		p.finish(proc.Status{Code: code})
	case "echo":
		go func() {
			_, _ = io.Copy(streams.Stdout, streams.Stdin)
			p.finish(proc.Status{})
		}()
	}
	return p, nil
}

func (r *fakeRunner) Terminate(_ context.Context, marker string, _ time.Duration) (proc.TerminateResult, error) {
	r.mu.Lock()
	p := r.live[marker]
	r.mu.Unlock()
	if p == nil {
		return proc.TerminateResult{Outcome: proc.Gone}, nil
	}
	return p.Terminate(context.Background(), 0)
}

func (r *fakeRunner) specs() []proc.Spec {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]proc.Spec(nil), r.started...)
}

func (r *fakeRunner) sweep(_ context.Context, tag string) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.swept = append(r.swept, tag)
	if tag == "bad" {
		return 0, errors.New("cannot be swept")
	}
	return 1, nil
}

type fakeProcess struct {
	spec proc.Spec
	once sync.Once
	over chan struct{}

	mu      sync.Mutex
	status  proc.Status
	signals []int
}

func (p *fakeProcess) finish(s proc.Status) {
	p.once.Do(func() {
		p.mu.Lock()
		p.status = s
		p.mu.Unlock()
		close(p.over)
	})
}

func (p *fakeProcess) Pid() int { return 42 }

func (p *fakeProcess) Wait(ctx context.Context) (proc.Status, error) {
	select {
	case <-p.over:
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.status, nil
	case <-ctx.Done():
		return proc.Status{}, ctx.Err()
	}
}

func (p *fakeProcess) Signal(_ context.Context, sig int) error {
	p.mu.Lock()
	p.signals = append(p.signals, sig)
	p.mu.Unlock()
	if p.spec.Argv[0] == "lost" {
		p.finish(proc.Status{Unknown: true, Reason: "its reaper was killed"})
		return nil
	}
	p.finish(proc.Status{Code: 128 + sig, Signal: sig})
	return nil
}

func (p *fakeProcess) Resize(context.Context, proc.Size) error { return nil }

func (p *fakeProcess) Terminate(context.Context, time.Duration) (proc.TerminateResult, error) {
	if p.spec.Argv[0] == "stubborn" {
		return proc.TerminateResult{Outcome: proc.Survivors, Pids: []int{7}}, nil
	}
	p.finish(proc.Status{Code: 137, Signal: 9})
	return proc.TerminateResult{Outcome: proc.Gone, Killed: 1}, nil
}

// fakePlace is a runtime: the goroutine that serves, on the other end of a pipe.
type fakePlace struct {
	far  net.Conn
	done chan struct{}
	// stays makes the place outlive its connection, until it is killed.
	stays  bool
	served chan struct{}

	mu     sync.Mutex
	killed bool
	after  []string
}

func (p *fakePlace) Done() <-chan struct{} { return p.done }

func (p *fakePlace) Kill(context.Context) error {
	p.mu.Lock()
	first := !p.killed
	p.killed = true
	p.mu.Unlock()
	_ = p.far.Close()
	<-p.served
	if first && p.stays {
		close(p.done)
	}
	<-p.done
	return nil
}

func (p *fakePlace) Diagnose() string { return "the fake ended" }

func (p *fakePlace) TerminateAfter(_ context.Context, marker string, _ time.Duration) (sandbox.TerminateResult, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.after = append(p.after, marker)
	return sandbox.TerminateResult{Outcome: sandbox.TerminationGone}, nil
}

// rig is a box over a fake place.
type rig struct {
	*Box
	dir    string
	runner *fakeRunner
	place  *fakePlace
	ended  chan error // gets what OnEnd got
}

func newRig(t *testing.T, change ...func(*Options)) *rig {
	t.Helper()
	r := &rig{dir: t.TempDir(), runner: &fakeRunner{live: map[string]*fakeProcess{}}, ended: make(chan error, 1)}
	near, far := net.Pipe()
	r.place = &fakePlace{far: far, done: make(chan struct{}), served: make(chan struct{})}
	files, err := local.New(local.Options{Mounts: fsbridge.MountTable{{Path: r.dir, Kind: fsbridge.MountWorkspace}}})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = server.Serve(context.Background(), far, server.Config{
			Files: files, Runner: r.runner, Sweep: r.runner.sweep, Limits: server.Limits{Drain: time.Second},
		})
		close(r.place.served)
		if !r.place.stays {
			close(r.place.done)
		}
	}()
	conn, err := client.New(t.Context(), near, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	opts := Options{
		Conn: conn, Runtime: r.place,
		Info: sandbox.Info{
			ID: "fake-0123456789abcdef", Workdir: r.dir,
			Mounts: fsbridge.MountTable{{Path: r.dir, Kind: fsbridge.MountWorkspace}},
			Config: sandbox.Config{Env: map[string]string{"SECRET": "s3cret"}},
		},
		Env:       sandbox.Env{"PATH": "/bin", "BASE": "base", "BOTH": "base"},
		ConfigEnv: sandbox.Env{"SECRET": "s3cret", "BOTH": "config", "CMD": "config"},
		Limits:    proc.Limits{OpenFiles: 99},
		OnEnd:     func(err error) { r.ended <- err },
	}
	for _, c := range change {
		c(&opts)
	}
	r.Box = New(opts)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := r.Stop(ctx, errClosed); err != nil {
			t.Error(err)
		}
		_ = files.Close()
	})
	return r
}

// handle makes a handle, or ends the test.
func (r *rig) handle(t *testing.T) *Handle {
	t.Helper()
	h, err := r.Handle()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// launch prepares, builds and spawns.
func launch(t *testing.T, h *Handle, argv ...string) (sandbox.Prepared, sandbox.ExecSpec, sandbox.Process) {
	t.Helper()
	prepared, err := h.PrepareProcessCleanup(t.Context(), sandbox.Env{"CMD": "command"})
	if err != nil {
		t.Fatal(err)
	}
	spec, err := h.BuildExecSpec(t.Context(), sandbox.Command{Argv: argv}, prepared.Env)
	if err != nil {
		t.Fatal(err)
	}
	p, err := spec.Spawn(t.Context(), sandbox.IO{})
	if err != nil {
		t.Fatal(err)
	}
	return prepared, spec, p
}

// write writes a file below the workspace through a bridge.
func (r *rig) write(t *testing.T, b fsbridge.Bridge, name string) error {
	t.Helper()
	return b.WriteFile(t.Context(), filepath.Join(r.dir, name), []byte("x"))
}

// within fails the test when ch is not closed in good time.
func within(t *testing.T, what string, ch <-chan struct{}) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(30 * time.Second):
		t.Fatalf("waited in vain for %s", what)
	}
}

// envOf finds a variable in a list of words.
func envOf(words []string, name string) string {
	for _, w := range words {
		if v, ok := strings.CutPrefix(w, name+"="); ok {
			return v
		}
	}
	return "(unset)"
}
