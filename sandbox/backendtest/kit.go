package backendtest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/sandbox"
)

// patience bounds every check, against hangs only.
const patience = 3 * time.Minute

// kit is what a check works with: a backend, directories of its own, and helpers that end the
// check when something other than its subject fails.
type kit struct {
	*testing.T
	target  *Target
	prog    string
	name    string
	skipped string

	ctx      context.Context
	backend  sandbox.Backend
	features sandbox.Features
	// dir holds all directories of the check; ws is the workspace, state the state directory.
	dir, ws, state string
	// word is random and in the arguments of every process of the check.
	word string
	log  *logBuffer

	mu    sync.Mutex
	boxes []*box
}

// box is a sandbox of a check.
type box struct {
	sandbox.Sandbox
	k    *kit
	rec  *recorder
	id   sandbox.ID
	spec sandbox.Spec // as asked for, without what the suite adds
	prog string       // path of the program inside
	root string       // path of the workspace inside
}

// skip ends the check with a reason that the report keeps.
func (k *kit) skip(format string, args ...any) {
	k.Helper()
	k.skipped = fmt.Sprintf(format, args...)
	k.Skip(k.skipped)
}

// prepare makes directories and backend.
func (k *kit) prepare() {
	k.Helper()
	ctx, cancel := context.WithTimeout(k.Context(), patience)
	k.Cleanup(cancel)
	k.ctx, k.word, k.log = ctx, "w"+strings.ToLower(rand.Text()), &logBuffer{}
	base, err := filepath.EvalSymlinks(k.TempDir())
	k.must(err)
	open(k, base)
	k.dir, k.state = base, filepath.Join(base, "state")
	k.ws = k.workspace("ws")
	k.Cleanup(k.nothingLeft)
	k.backend = k.another()
	k.features = k.backend.Features()
}

// workspace makes one more directory to work in.
func (k *kit) workspace(name string) string {
	k.Helper()
	ws := filepath.Join(k.dir, name)
	k.must(os.MkdirAll(filepath.Join(ws, witnessDir), 0o755))
	return ws
}

// another makes one more backend over the same state.
func (k *kit) another() sandbox.Backend {
	k.Helper()
	return k.target.New(k.T, Options{StateDir: k.state, Logger: slog.New(slog.NewTextHandler(k.log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
}

// must ends the check when something fails that it is not about.
func (k *kit) must(err error) {
	k.Helper()
	if err != nil {
		k.Fatalf("unexpected: %v", err)
	}
}

// plainSpec is the spec that most checks use: a session in the workspace, defaults for everything.
func plainSpec(ws string) sandbox.Spec {
	return sandbox.Spec{Scope: sandbox.ScopeSession, Session: "suite", Workspace: ws, Config: sandbox.DefaultConfig()}
}

// spec is plainSpec for the workspace of the check.
func (k *kit) spec(change ...func(*sandbox.Spec)) sandbox.Spec {
	s := plainSpec(k.ws)
	for _, c := range change {
		c(&s)
	}
	return s
}

// complete adds the program to a spec, and what the target wants.
func (target *Target) complete(t testing.TB, prog string, f sandbox.Features, spec *sandbox.Spec) (inside string) {
	t.Helper()
	inside = target.program(t, prog, f, spec)
	if target.Adapt != nil {
		target.Adapt(t, spec)
	}
	return inside
}

// tryEnsure asks for a sandbox. It is closed and removed at the end of the check.
func (k *kit) tryEnsure(b sandbox.Backend, spec sandbox.Spec) (*box, error) {
	k.Helper()
	asked := spec
	asked.Config.Binds = slices.Clone(spec.Config.Binds)
	prog := k.target.complete(k.T, k.prog, k.features, &spec)
	sb, err := b.Ensure(k.ctx, spec)
	if err != nil {
		return nil, err
	}
	if sb == nil {
		k.Fatal("Ensure gives neither a sandbox nor an error")
	}
	info := sb.Info()
	wrapped, rec := record(sb)
	x := &box{Sandbox: wrapped, k: k, rec: rec, id: info.ID, spec: asked, prog: prog}
	m, ok := info.Mounts.Workspace()
	if !ok {
		k.Fatalf("sandbox %s has no workspace mount: %+v", info.ID, info.Mounts)
	}
	x.root = m.Path
	k.mu.Lock()
	k.boxes = append(k.boxes, x)
	k.mu.Unlock()
	k.Cleanup(func() { x.end(b) })
	return x, nil
}

// ensure is tryEnsure for a spec that must work.
func (k *kit) ensure(change ...func(*sandbox.Spec)) *box {
	k.Helper()
	x, err := k.tryEnsure(k.backend, k.spec(change...))
	if err != nil {
		k.Fatalf("Ensure: %v", explain(err))
	}
	return x
}

// explain adds the remedy that an error for people carries.
func explain(err error) error {
	var p *sandbox.Problem
	if errors.As(err, &p) && p.Remedy != "" {
		return fmt.Errorf("%w (%s)", err, p.Remedy)
	}
	return err
}

// end closes and removes a sandbox and looks at its tokens.
func (x *box) end(b sandbox.Backend) {
	x.k.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	x.rec.verify(x.k)
	if err := x.Close(); err != nil {
		x.k.Errorf("Close: %v", err)
	}
	if err := b.Remove(ctx, x.id); err != nil && !errors.Is(err, sandbox.ErrInUse) {
		x.k.Errorf("Remove: %v", err)
	}
}

// nothingLeft runs after all sandboxes of the check are gone: no process of it may be left on this
// machine, no temporary file in a workspace, no secret in the log.
func (k *kit) nothingLeft() {
	k.Helper()
	var left []string
	for deadline := time.Now().Add(10 * time.Second); ; {
		if left = processesWith(k.word); len(left) == 0 || time.Now().After(deadline) {
			break
		}
		time.Sleep(10 * time.Millisecond) //sleep: polls the process table, which gives no event
	}
	if len(left) > 0 {
		k.Errorf("%d processes of this check are left: %q", len(left), left)
	}
	_ = filepath.WalkDir(k.dir, func(p string, e os.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(e.Name(), ".berth-") {
			k.Errorf("a temporary file is left: %s", p)
		}
		return nil
	})
	if k.log.contains(secretValue) {
		k.Error("the value of an environment variable was logged")
	}
	if k.Failed() {
		k.Logf("log of the backend:\n%s", k.log)
	}
}

// secretValue is the value of a variable in many commands of the suite; no log may hold it.
const secretValue = "hunter2-do-not-log"

// inside is the path inside of a path below the workspace.
func (x *box) inside(rel string) string { return path.Join(x.root, rel) }

// role is a command that plays a role of the suite's program.
func (x *box) role(args ...string) sandbox.Command {
	return sandbox.Command{Argv: append([]string{x.prog}, args...)}
}

// run plays a role to its end, which must be exit code 0.
func (x *box) run(args ...string) string {
	x.k.Helper()
	res, err := sandbox.Run(x.k.ctx, x.Sandbox, x.role(args...), nil, sandbox.RunOptions{})
	if err != nil {
		x.k.Fatalf("%q: %v", args, err)
	}
	if res.Status != (sandbox.ExitStatus{Leftover: res.Status.Leftover}) {
		x.k.Fatalf("%q: %+v\nstandard error: %s", args, res.Status, res.Stderr.Bytes())
	}
	if res.CleanupErr != nil {
		x.k.Errorf("%q: cleaning up: %v", args, res.CleanupErr)
	}
	return string(res.Stdout.Bytes())
}

// works demands that the sandbox is of use.
func (x *box) works() {
	x.k.Helper()
	if got := x.run("print", `"works"`); got != "works" {
		x.k.Errorf("a plain command wrote %q", got)
	}
}

// bridge makes a bridge without a guard.
func (x *box) bridge() fsbridge.Bridge {
	x.k.Helper()
	b, err := x.Bridge(x.k.ctx, nil)
	x.k.must(err)
	return b
}

// logBuffer collects the backend's log.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *logBuffer) contains(s string) bool { return strings.Contains(l.String(), s) }
