package backendtest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/local"
	"github.com/workberth/workberth/internal/guest/proc"
	"github.com/workberth/workberth/internal/guest/reaper"
	"github.com/workberth/workberth/sandbox"
)

// reference is the smallest backend that passes the suite: commands run with the user's own
// rights below reapers of this process, files are served by a local bridge. It shows what
// the suite demands and serves as the healthy patient for the mutants.
type reference struct {
	registry *sandbox.Registry
	host     sandbox.HostFacts
	log      *slog.Logger
	faults   faults

	mu    sync.Mutex
	lives map[sandbox.ID]*life
}

func newReference(stateDir string, log *slog.Logger, f faults) (*reference, error) {
	r, err := sandbox.OpenRegistry(stateDir, sandbox.RegistryOptions{Log: log})
	if err != nil {
		return nil, err
	}
	return &reference{
		registry: r, host: sandbox.SystemFacts(os.Getenv, stateDir), log: log, faults: f, lives: map[sandbox.ID]*life{},
	}, nil
}

func (*reference) Name() string { return "reference" }

func (*reference) Features() sandbox.Features {
	return sandbox.Features{Access: []sandbox.Access{sandbox.AccessReadWrite}, TTY: true, ProcessCleanup: true}
}

func (*reference) Check(context.Context) sandbox.Diagnosis {
	return sandbox.Diagnosis{Backend: "reference", Usable: true, Checks: []sandbox.Check{{Name: "kernel", Result: sandbox.CheckOK}}}
}

// life is one generation.
type life struct {
	b      *reference
	claim  *sandbox.Claim
	info   sandbox.Info
	runner *reaper.Runner
	bridge *local.Bridge
	done   chan struct{}

	mu      sync.Mutex
	handles int
	ended   bool
	running map[string]*process
}

func (b *reference) Ensure(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r, err := sandbox.Resolve(b.Name(), spec, b.host, b.log)
	if err != nil && !b.faults.noValidation {
		return nil, err
	}
	if b.faults.oneForAll {
		r.ID = "reference-0000000000000000"
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if l := b.lives[r.ID]; l != nil {
		return l.handle(), nil
	}
	l, err := b.begin(ctx, r)
	if err != nil {
		return nil, err
	}
	b.lives[r.ID] = l
	return l.handle(), nil
}

// begin makes a new generation of a new or a stopped sandbox.
func (b *reference) begin(ctx context.Context, r sandbox.Resolved) (_ *life, err error) {
	claim, err := b.registry.Claim(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = claim.Release()
		}
	}()
	if reaped, ok := claim.Reap(ctx, nil); ok && reaped.Err != nil {
		return nil, reaped.Err
	}
	rec, known := claim.Record()
	mounts := fsbridge.MountTable{{Path: r.Spec.Workspace, Kind: fsbridge.MountWorkspace, HostPath: r.Spec.Workspace}}
	bridge, err := local.New(local.Options{Mounts: mounts})
	if err != nil {
		return nil, err
	}
	l := &life{
		b: b, claim: claim, bridge: bridge, done: make(chan struct{}), running: map[string]*process{},
		runner: reaper.New(reaper.Options{Tag: bridge.TempTag(), ResolveDir: resolver(r.Spec.Workspace)}),
	}
	workdir := r.Spec.Config.Workdir
	if !path.IsAbs(workdir) {
		workdir = path.Join(r.Spec.Workspace, workdir)
	}
	l.info = sandbox.Info{
		ID: r.ID, Backend: b.Name(), State: sandbox.StateRunning, Scope: r.Spec.Scope, Session: r.Spec.Session, Agent: r.Spec.Agent,
		Workspace: r.Spec.Workspace, Workdir: workdir, Mounts: mounts, Config: r.Spec.Config, ConfigHash: r.ConfigHash,
		Created: rec.Info.Created, Runtime: map[string]string{"place": "this machine"},
	}
	if !b.faults.noSweep {
		for _, tag := range rec.PendingSweep {
			if _, err = l.runner.Sweep(ctx, tag); err == nil {
				_, err = bridge.Sweep(ctx, tag)
			}
			if err != nil {
				l.discard()
				return nil, err
			}
		}
	}
	rec = sandbox.Record{Info: l.info, InstanceTag: bridge.TempTag(), SetupDone: rec.SetupDone && !b.faults.setupAgain}
	if err = claim.Save(rec); err != nil {
		l.discard()
		return nil, err
	}
	if saved, _ := claim.Record(); true {
		l.info = saved.Info
		l.info.Config = r.Spec.Config
	}
	if cmd := r.Spec.Config.SetupCommand; cmd != "" && !rec.SetupDone {
		if err = l.setup(ctx, cmd); err != nil {
			l.discard()
			if !known {
				err = errors.Join(err, claim.Delete(ctx))
			}
			return nil, err
		}
		err = claim.Update(func(r *sandbox.Record) { r.SetupDone = true })
	}
	return l, err
}

func (l *life) setup(ctx context.Context, command string) error {
	h := l.handle()
	res, err := sandbox.Run(ctx, h, sandbox.Command{Argv: []string{"/bin/sh", "-c", command}}, nil, sandbox.RunOptions{})
	l.mu.Lock()
	l.handles--
	l.mu.Unlock()
	if err == nil && res.Status.Code == 0 {
		return nil
	}
	return &sandbox.Problem{
		Field: "setupCommand", What: "the setup command failed", Rule: fmt.Sprintf("exit code %d: %s", res.Status.Code, res.Stderr.Bytes()),
		Remedy: "mend the command", Err: errors.Join(errors.New("setup failed"), err),
	}
}

// discard ends what a generation has made.
func (l *life) discard() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	_ = l.runner.Close(ctx)
	_, _ = l.runner.Sweep(ctx, l.bridge.TempTag())
	_ = l.bridge.Close()
}

func (l *life) handle() *handle {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.handles++
	return &handle{life: l, tokens: map[*int]bool{}}
}

// end ends the generation, once.
func (l *life) end() {
	l.mu.Lock()
	if l.ended {
		l.mu.Unlock()
		<-l.done
		return
	}
	l.ended = true
	running := slices.Collect(maps.Values(l.running))
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	for _, p := range running { // and what was kept of those that have ended
		if !l.b.faults.closeKeeps {
			wg.Go(func() { _, _ = l.runner.Terminate(ctx, p.marker, 100*time.Millisecond) })
		}
	}
	wg.Wait()
	_ = l.runner.Close(ctx)
	_ = l.bridge.Close()
	_ = l.claim.Update(func(r *sandbox.Record) { r.Info.State, r.InstanceTag = sandbox.StateStopped, "" })
	_ = l.claim.Release()
	close(l.done)
}

func (b *reference) List(context.Context) ([]sandbox.Info, error) {
	records, _, err := b.registry.List(b.Name())
	infos := []sandbox.Info{}
	for _, r := range records {
		infos = append(infos, r.Describe())
	}
	return infos, err
}

func (b *reference) Stop(ctx context.Context, id sandbox.ID) error {
	b.mu.Lock()
	l := b.lives[id]
	delete(b.lives, id)
	b.mu.Unlock()
	if l != nil {
		l.end()
		return nil
	}
	rec, err := b.registry.Get(id)
	if err != nil {
		return nil // unknown
	}
	if rec.Info.Owner.Alive() {
		return &sandbox.InUseError{ID: id, Owner: rec.Info.Owner}
	}
	return nil
}

func (b *reference) Remove(ctx context.Context, id sandbox.ID) error {
	if err := b.Stop(ctx, id); err != nil || !id.Valid() {
		return err
	}
	if _, err := b.registry.Get(id); err != nil {
		return nil
	}
	claim, err := b.registry.Claim(ctx, id)
	if err != nil {
		return err
	}
	if b.faults.removeTakesWorkspace {
		rec, _ := claim.Record()
		_ = os.Remove(path.Join(rec.Info.Workspace, "f"))
	}
	return claim.Delete(ctx)
}

// handle is a caller's view of a life.
type handle struct {
	life *life

	mu      sync.Mutex
	closed  bool
	revoked error
	tokens  map[*int]bool
}

var (
	_ sandbox.Backend        = (*reference)(nil)
	_ sandbox.ProcessCleaner = (*handle)(nil)
)

func (h *handle) Info() sandbox.Info {
	info := h.life.info
	info.Config = info.Config.Redacted()
	info.Mounts = slices.Clone(info.Mounts)
	if h.over() {
		info.State = sandbox.StateStopped
	}
	return info
}

func (h *handle) over() bool {
	h.life.mu.Lock()
	defer h.life.mu.Unlock()
	return h.life.ended
}

// permission is the live check.
func (h *handle) permission() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.revoked != nil:
		return h.revoked
	case h.closed || h.over():
		return sandbox.ErrGone
	}
	return nil
}

func (h *handle) Bridge(_ context.Context, assert fsbridge.AssertFunc) (fsbridge.Bridge, error) {
	if h.over() || h.closed {
		return nil, sandbox.ErrGone
	}
	return &guarded{h: h, inner: h.life.bridge, assert: assert}, nil
}

func (h *handle) PrepareProcessCleanup(_ context.Context, env sandbox.Env) (sandbox.Prepared, error) {
	if err := h.permission(); err != nil && !h.life.b.faults.prepareAfterRevoke {
		return sandbox.Prepared{}, err
	}
	marker := sandbox.NewMarker()
	l := h.life
	return sandbox.Prepared{
		Marker: marker, Env: sandbox.WithMarker(env, marker),
		Terminate: func(ctx context.Context, grace time.Duration) (sandbox.TerminateResult, error) {
			return l.terminate(ctx, marker, grace)
		},
		Interrupt: func(ctx context.Context) error {
			if err := h.permission(); err != nil && !l.b.faults.interruptAfterRevoke {
				return err
			}
			l.mu.Lock()
			p := l.running[marker]
			l.mu.Unlock()
			if p == nil {
				return sandbox.ErrNotFound
			}
			return p.inner.Signal(ctx, int(syscall.SIGINT))
		},
	}, nil
}

func (l *life) terminate(ctx context.Context, marker string, grace time.Duration) (sandbox.TerminateResult, error) {
	f := l.b.faults
	select {
	case <-l.done:
		if f.custodyNotPinned {
			l.b.mu.Lock()
			next := l.b.lives[l.info.ID]
			l.b.mu.Unlock()
			if next != nil {
				return next.terminate(ctx, marker, grace)
			}
		}
		return sandbox.TerminateResult{Outcome: sandbox.TerminationGone}, nil
	default:
	}
	l.mu.Lock()
	p := l.running[marker]
	all := slices.Collect(maps.Values(l.running))
	l.mu.Unlock()
	switch {
	case f.terminateNothing:
		return sandbox.TerminateResult{Outcome: sandbox.TerminationGone}, nil
	case f.terminateDirectOnly && p != nil:
		_ = syscall.Kill(p.inner.Pid(), syscall.SIGKILL)
		return sandbox.TerminateResult{Outcome: sandbox.TerminationGone}, nil
	case f.terminateAll:
		for _, p := range all {
			_, _ = l.runner.Terminate(ctx, p.marker, grace)
		}
	case f.noGrace:
		grace = -1
	}
	r, err := l.runner.Terminate(ctx, marker, grace)
	return sandbox.TerminateResult{Outcome: sandbox.Termination(r.Outcome), Pids: r.Pids}, err
}

func (h *handle) BuildExecSpec(ctx context.Context, cmd sandbox.Command, env sandbox.Env) (sandbox.ExecSpec, error) {
	f := h.life.b.faults
	if err := ctx.Err(); err != nil {
		return sandbox.ExecSpec{}, err
	}
	if err := h.permission(); err != nil && !f.buildAfterRevoke {
		return sandbox.ExecSpec{}, err
	}
	all := sandbox.Env{"PATH": "/usr/local/bin:/usr/bin:/bin", "TERM": "xterm"}
	maps.Copy(all, h.life.info.Config.Env)
	for name, value := range env {
		if err := sandbox.ValidEnv(name, value); err != nil && name != sandbox.MarkerVar {
			return sandbox.ExecSpec{}, err
		}
		if f.envLineBased {
			value, _, _ = strings.Cut(value, "\n")
		}
		all[name] = value
	}
	if all[sandbox.MarkerVar] == "" {
		all[sandbox.MarkerVar] = sandbox.NewMarker()
	}
	cmd.Argv = slices.Clone(cmd.Argv)
	if cmd.Dir == "" {
		cmd.Dir = h.life.info.Workdir
	}
	if f.directoryFallsBack {
		p := cmd.Dir
		if !path.IsAbs(p) {
			p = path.Join(h.life.info.Workspace, p)
		}
		if _, err := os.Stat(p); err != nil {
			cmd.Dir = h.life.info.Workspace
		}
	}
	token := new(int)
	h.mu.Lock()
	h.tokens[token] = true
	h.mu.Unlock()
	var spawned atomic.Bool
	return sandbox.ExecSpec{
		Command: cmd, Env: all, Token: token,
		AssertCurrent: func() error {
			if f.assertAlways {
				return nil
			}
			return h.permission()
		},
		Spawn: func(ctx context.Context, streams sandbox.IO) (sandbox.Process, error) {
			h.mu.Lock()
			open := h.tokens[token]
			h.mu.Unlock()
			if err := h.permission(); err != nil && !f.spawnAfterRevoke {
				return nil, err
			}
			if !f.spawnAgain && (!open || !spawned.CompareAndSwap(false, true)) {
				return nil, errors.New("launched before, or finalised")
			}
			return h.spawn(ctx, cmd, all, streams)
		},
	}, nil
}

func (h *handle) spawn(ctx context.Context, cmd sandbox.Command, env sandbox.Env, streams sandbox.IO) (sandbox.Process, error) {
	l, f := h.life, h.life.b.faults
	marker := env[sandbox.MarkerVar]
	spec := proc.Spec{Argv: cmd.Argv, Dir: cmd.Dir, Stdin: cmd.Stdin, Marker: marker, KeepDescendants: cmd.KeepDescendants || f.leavesLeftovers, Grace: cmd.Grace}
	for name, value := range env {
		spec.Env = append(spec.Env, name+"="+value)
	}
	if cmd.TTY != nil && !f.ttyDefaultSize {
		spec.TTY = &proc.Size{Rows: cmd.TTY.Rows, Cols: cmd.TTY.Cols}
	} else if cmd.TTY != nil {
		spec.TTY = &proc.Size{Rows: 24, Cols: 80}
	}
	out := proc.IO{Stdin: f.spoilStdin(streams.Stdin), Stdout: f.spoilOutput(orDiscard(streams.Stdout)), Stderr: orDiscard(streams.Stderr)}
	inner, err := l.runner.Start(ctx, spec, out)
	if err != nil {
		if f.untypedStartErrors {
			err = errors.New("cannot start")
		}
		return nil, err
	}
	p := &process{h: h, inner: inner, marker: marker}
	l.mu.Lock()
	ended := l.ended
	l.running[marker] = p
	l.mu.Unlock()
	if ended {
		_, _ = l.runner.Terminate(context.Background(), marker, -1)
	}
	return p, nil
}

func orDiscard(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return w
}

func (h *handle) FinalizeExec(ctx context.Context, token sandbox.Token, _ sandbox.Outcome) error {
	t, _ := token.(*int)
	f := h.life.b.faults
	h.mu.Lock()
	defer h.mu.Unlock()
	if !f.tokenLeak {
		delete(h.tokens, t)
	}
	if f.finalizeKills {
		h.life.mu.Lock()
		for _, p := range h.life.running {
			_ = syscall.Kill(p.inner.Pid(), syscall.SIGKILL)
		}
		h.life.mu.Unlock()
	}
	return nil
}

func (h *handle) OpenTokens() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.tokens)
}

func (h *handle) Revoke(reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.revoked == nil {
		h.revoked = &sandbox.RevokedError{Reason: reason}
	}
}

func (h *handle) Done() <-chan struct{} { return h.life.done }

func (h *handle) Err() error {
	select {
	case <-h.life.done:
		return sandbox.ErrGone
	default:
		return nil
	}
}

func (h *handle) Close() error {
	h.mu.Lock()
	closed := h.closed
	h.closed = true
	h.mu.Unlock()
	l := h.life
	l.mu.Lock()
	if !closed {
		l.handles--
	}
	last := l.handles == 0
	l.mu.Unlock()
	if last && !closed {
		l.b.mu.Lock()
		if l.b.lives[l.info.ID] == l {
			delete(l.b.lives, l.info.ID)
		}
		l.b.mu.Unlock()
		l.end()
	}
	return nil
}

// process is a launched command.
type process struct {
	h      *handle
	inner  proc.Process
	marker string
}

func (p *process) Pid() int { return p.inner.Pid() }

func (p *process) Wait(ctx context.Context) (sandbox.ExitStatus, error) {
	s, err := p.inner.Wait(ctx)
	if err != nil {
		return sandbox.ExitStatus{}, err
	}
	l := p.h.life
	l.mu.Lock()
	if l.running[p.marker] == p && s.Leftover == 0 {
		delete(l.running, p.marker)
	}
	l.mu.Unlock()
	return l.b.faults.spoilStatus(sandbox.ExitStatus{Code: s.Code, Signal: s.Signal, Unknown: s.Unknown, Reason: s.Reason, Leftover: s.Leftover}), nil
}

func (p *process) Resize(ctx context.Context, size sandbox.TTYSize) error {
	return p.inner.Resize(ctx, proc.Size{Rows: size.Rows, Cols: size.Cols})
}

func (p *process) Signal(ctx context.Context, signal int) error {
	if err := p.h.permission(); err != nil && !p.h.life.b.faults.interruptAfterRevoke {
		return err
	}
	return p.inner.Signal(ctx, signal)
}

// resolver opens working directories below the workspace.
func resolver(workspace string) func(context.Context, string) (*os.File, error) {
	return func(_ context.Context, dir string) (*os.File, error) {
		if !path.IsAbs(dir) {
			dir = workspace + "/" + dir
		}
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			return nil, err
		}
		if real != workspace && !strings.HasPrefix(real, workspace+"/") {
			return nil, fsbridge.ErrOutsideRoot
		}
		return os.OpenFile(real, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	}
}

// guarded is a bridge of the core operations with revocation.
type guarded struct {
	h      *handle
	inner  *local.Bridge
	assert fsbridge.AssertFunc
}

var (
	_ fsbridge.Bridge       = (*guarded)(nil)
	_ fsbridge.StreamWriter = (*guarded)(nil)
	_ fsbridge.Mounter      = (*guarded)(nil)
)

func (g *guarded) check(op, p string, changes bool) error {
	var err error
	if changes && !g.h.life.b.faults.writeAfterRevoke {
		err = g.h.permission()
	}
	if err == nil && g.assert != nil && !g.h.life.b.faults.guardIgnored {
		err = g.assert()
	}
	if err != nil {
		return &fsbridge.PathError{Op: op, Path: p, Err: fmt.Errorf("%w: %w", fsbridge.ErrNotCurrent, err)}
	}
	return nil
}

func (g *guarded) Mounts() fsbridge.MountTable { return g.inner.Mounts() }

func (g *guarded) Stat(ctx context.Context, p string) (fsbridge.FileInfo, error) {
	if err := g.check("stat", p, false); err != nil {
		return fsbridge.FileInfo{}, err
	}
	return g.inner.Stat(ctx, p)
}

func (g *guarded) ReadFile(ctx context.Context, p string) ([]byte, error) {
	if err := g.check("read", p, false); err != nil {
		return nil, err
	}
	return g.inner.ReadFile(ctx, p)
}

func (g *guarded) WriteFile(ctx context.Context, p string, data []byte) error {
	if err := g.check("write", p, true); err != nil {
		return err
	}
	if g.h.life.b.faults.tornWrites {
		return os.WriteFile(path.Join(g.h.life.info.Workspace, p), data, 0o644)
	}
	return g.inner.WriteFile(ctx, p, data)
}

func (g *guarded) WriteStream(ctx context.Context, p string, r io.Reader, opts fsbridge.WriteOptions) (fsbridge.WriteResult, error) {
	if err := g.check("write", p, true); err != nil {
		return fsbridge.WriteResult{}, err
	}
	return g.inner.WriteStream(ctx, p, r, opts)
}
