package containertest

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/workberth/workberth/internal/container"
	"github.com/workberth/workberth/sandbox"
)

// kit is what a test of Life has.
type kit struct {
	*testing.T
	s       Subject
	ctx     context.Context //nolint:containedctx // that of the test
	address string
	engine  container.Engine
	dir     string
	ws      string
	b       Backend
}

func (k *kit) must(err error) {
	k.Helper()
	if err != nil {
		k.Fatal(explain(err))
	}
}

// explain shows an error with what it says for people.
func explain(err error) string {
	var p *sandbox.Problem
	if errors.As(err, &p) {
		return err.Error() + " [" + p.Remedy + "]"
	}
	return err.Error()
}

func (k *kit) workspace(name string) string {
	k.Helper()
	dir := filepath.Join(k.dir, name)
	k.must(os.Mkdir(dir, 0o755))
	return dir
}

// open opens the backend on a state directory of the test.
func (k *kit) open(state string) Backend { return k.openAt(state, k.address) }

func (k *kit) openAt(state, address string) Backend {
	k.Helper()
	b, err := k.s.Open(address, Options{StateDir: filepath.Join(k.dir, state), Logger: k.logger()})
	k.must(err)
	k.Cleanup(func() { _ = b.Close() })
	return b
}

func (k *kit) logger() *slog.Logger { return slog.New(slog.NewTextHandler(testWriter{k.T}, nil)) }

// testWriter writes to a test's log.
type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	if w.t.Context().Err() == nil {
		w.t.Log(strings.TrimSpace(string(p)))
	}
	return len(p), nil
}

// tidy removes every container that shows a workspace of this test.
func (k *kit) tidy() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	all, err := k.engine.List(ctx, nil)
	if err != nil {
		k.Error(err)
	}
	for _, c := range all {
		if strings.HasPrefix(c.Labels["io.workberth.workspace"], k.dir) || strings.HasPrefix(c.Labels["test"], k.dir) {
			if err := k.engine.Remove(ctx, c.ID); err != nil {
				k.Error(err)
			}
		}
	}
	volumes, err := k.engine.Volumes(ctx, nil)
	if err != nil {
		k.Error(err)
	}
	for _, v := range volumes {
		if strings.HasPrefix(v.Labels["io.workberth.workspace"], k.dir) {
			if err := k.engine.RemoveVolume(ctx, v.Name); err != nil {
				k.Error(err)
			}
		}
	}
}

func (k *kit) spec(change ...func(*sandbox.Config)) sandbox.Spec {
	c := sandbox.DefaultConfig()
	c.Image = Image
	for _, f := range change {
		f(&c)
	}
	return sandbox.Spec{Scope: sandbox.ScopeSession, Session: "s", Workspace: k.ws, Config: c}
}

// ensure makes a sandbox that is closed with the test.
func (k *kit) ensure(b Backend, change ...func(*sandbox.Config)) sandbox.Sandbox {
	k.Helper()
	sb, err := b.Ensure(k.ctx, k.spec(change...))
	k.must(err)
	k.Cleanup(func() { _ = sb.Close() })
	return sb
}

// sh runs a script and gives its output.
func (k *kit) sh(sb sandbox.Sandbox, script string) (string, sandbox.ExitStatus) {
	k.Helper()
	res, err := sandbox.Run(k.ctx, sb, sandbox.Command{Argv: []string{"/bin/sh", "-c", script}}, nil, sandbox.RunOptions{})
	k.must(err)
	return strings.TrimSpace(string(res.Stdout.Bytes()) + string(res.Stderr.Bytes())), res.Status
}

func (k *kit) wantOutput(sb sandbox.Sandbox, script, want string) {
	k.Helper()
	if got, status := k.sh(sb, script); got != want {
		k.Errorf("%s: %q, want %q (%+v)", script, got, want, status)
	}
}

// containerOf is the sandbox's container.
func (k *kit) containerOf(sb sandbox.Sandbox) container.Container {
	k.Helper()
	c, err := k.engine.Inspect(k.ctx, sb.Info().Runtime["container"])
	k.must(err)
	return c
}

// info is what List tells of the only sandbox.
func (k *kit) info(b Backend) sandbox.Info {
	k.Helper()
	infos, err := b.List(k.ctx)
	k.must(err)
	if len(infos) != 1 {
		k.Fatalf("%d sandboxes are listed, want 1: %+v", len(infos), infos)
	}
	return infos[0]
}

// ended waits for the end of a sandbox and gives the reason.
func (k *kit) ended(sb sandbox.Sandbox) string {
	k.Helper()
	select {
	case <-sb.Done():
	case <-k.ctx.Done():
		k.Fatal("the sandbox does not end")
	}
	if !errors.Is(sb.Err(), sandbox.ErrGone) {
		k.Errorf("reason %v does not match ErrGone", sb.Err())
	}
	return sb.Err().Error()
}

// refused demands a problem that matches a sentinel and names what is to be done.
func (k *kit) refused(err, sentinel error, words ...string) {
	k.Helper()
	var p *sandbox.Problem
	if !errors.As(err, &p) || !errors.Is(err, sentinel) || p.Remedy == "" {
		k.Fatalf("error %v, want a problem that matches %v", err, sentinel)
	}
	for _, w := range words {
		if !strings.Contains(explain(err), w) {
			k.Errorf("%s: no %q in it", explain(err), w)
		}
	}
}
