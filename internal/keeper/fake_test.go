package keeper

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/guest/client"
	"github.com/workberth/workberth/internal/guest/guesttest"
	"github.com/workberth/workberth/internal/guest/proc"
	"github.com/workberth/workberth/internal/guest/server"
	"github.com/workberth/workberth/sandbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const backend = "fake"

// place is a runtime that is a goroutine.
type place struct {
	far   net.Conn
	done  chan struct{}
	dirty bool
}

func (p *place) Done() <-chan struct{} { return p.done }

func (p *place) Kill(context.Context) error {
	_ = p.far.Close()
	<-p.done
	return nil
}

func (p *place) Diagnose() string { return "the fake ended" }
func (p *place) Clean() bool      { return !p.dirty }

func (p *place) TerminateAfter(context.Context, string, time.Duration) (sandbox.TerminateResult, error) {
	return sandbox.TerminateResult{Outcome: sandbox.TerminationGone}, nil
}

// rig is a keeper of fakes.
type rig struct {
	*Keeper
	t        *testing.T
	state    string
	ws       string
	registry *sandbox.Registry

	mu       sync.Mutex
	births   []Birth
	places   []*place
	released int
	cleared  []sandbox.ID
	quelled  []string
	swept    []string
	setups   int
	// fail, clearErr and dirty direct the fakes.
	fail, clearErr error
	dirty          bool
}

func newRig(t *testing.T) *rig {
	dir := t.TempDir()
	r := &rig{t: t, state: filepath.Join(dir, "state"), ws: filepath.Join(dir, "ws")}
	if err := os.Mkdir(r.ws, 0o755); err != nil {
		t.Fatal(err)
	}
	r.Keeper = r.open()
	return r
}

// open opens the rig's state again, as another process would.
func (r *rig) open() *Keeper {
	r.t.Helper()
	registry, err := sandbox.OpenRegistry(r.state, sandbox.RegistryOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	if r.registry == nil {
		r.registry = registry
	}
	return New(Options{
		Backend: backend, Registry: registry, Start: r.start, Clear: r.clear,
		ClearAll: func(context.Context) error { return nil }, Logger: slog.New(slog.DiscardHandler),
		Quell: func(_ context.Context, rec sandbox.Record) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.quelled = append(r.quelled, rec.InstanceTag)
			return nil
		},
	})
}

func (r *rig) clear(_ context.Context, c *sandbox.Claim) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleared = append(r.cleared, c.ID())
	return r.clearErr
}

func (r *rig) start(ctx context.Context, b Birth) (*Life, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.births = append(r.births, b)
	if r.fail != nil {
		return nil, r.fail
	}
	near, far := net.Pipe()
	p := &place{far: far, done: make(chan struct{}), dirty: r.dirty}
	commands := guesttest.Commands()
	commands["/bin/sh"] = func(_ context.Context, p *guesttest.Process) proc.Status {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.setups++
		if p.Spec.Argv[2] == "fail" {
			_, _ = p.Stderr.Write([]byte("it is broken\n"))
			return proc.Status{Code: 9}
		}
		return proc.Status{}
	}
	go func() {
		defer close(p.done)
		_ = server.Serve(context.Background(), far, server.Config{
			Runner: &guesttest.Runner{Commands: commands}, Tag: b.Tag, Limits: server.Limits{Drain: time.Second},
			Sweep: func(_ context.Context, tag string) (int, error) {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.swept = append(r.swept, tag)
				return 1, nil
			},
		})
	}()
	conn, err := client.New(ctx, near, client.Options{})
	if err != nil {
		return nil, err
	}
	r.places = append(r.places, p)
	self, err := sandbox.SelfRef()
	if err != nil {
		return nil, err
	}
	self.StartTime++ // a process that does not live
	return &Life{
		Conn: conn, Runtime: p, Workdir: r.ws, Refs: []sandbox.ProcessRef{self}, Facts: map[string]string{"tag": b.Tag},
		Mounts: fsbridge.MountTable{{Path: r.ws, Kind: fsbridge.MountWorkspace}},
		Env:    sandbox.Env{"PATH": "/bin"},
		Release: func(context.Context) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.released++
			return nil
		},
	}, nil
}

// resolved is a spec that may be made.
func (r *rig) resolved(session, setup string) sandbox.Resolved {
	r.t.Helper()
	spec := sandbox.Spec{Scope: sandbox.ScopeSession, Session: session, Workspace: r.ws, Config: sandbox.DefaultConfig()}
	spec.Config.SetupCommand = setup
	res, err := sandbox.Resolve(backend, spec, sandbox.SystemFacts(func(string) string { return "/nonexistent" }), nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return res
}

// ensure makes a sandbox that is closed with the test.
func (r *rig) ensure(k *Keeper, res sandbox.Resolved) sandbox.Sandbox {
	r.t.Helper()
	sb, err := k.Ensure(r.t.Context(), res)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		if err := sb.Close(); err != nil {
			r.t.Error(err)
		}
	})
	return sb
}

var errStart = errors.New("it cannot be started")
