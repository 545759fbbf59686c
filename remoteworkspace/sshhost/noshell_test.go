package sshhost

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/workberth/workberth/sandbox"
)

// without is a sandbox in which some programs do not exist.
type without struct {
	sandbox.Sandbox
	sandbox.ProcessCleaner
	names []string
}

func (w without) BuildExecSpec(ctx context.Context, cmd sandbox.Command, env sandbox.Env) (sandbox.ExecSpec, error) {
	if slices.Contains(w.names, filepath.Base(cmd.Argv[0])) {
		cmd.Argv = append([]string{"/nonexistent/" + cmd.Argv[0]}, cmd.Argv[1:]...)
	}
	return w.Sandbox.BuildExecSpec(ctx, cmd, env)
}

// withoutOpener hides programs of what another opener opens.
type withoutOpener struct {
	Opener
	names []string
}

func (o withoutOpener) Open(ctx context.Context, workspace string) (sandbox.Sandbox, error) {
	sb, err := o.Opener.Open(ctx, workspace)
	if err != nil {
		return nil, err
	}
	cleaner, _ := sb.(sandbox.ProcessCleaner)
	return without{Sandbox: sb, ProcessCleaner: cleaner, names: o.names}, nil
}

// An image without a shell: a clear message and 127, but plain words run.
func TestNoShell(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.Opener = withoutOpener{o.Opener, []string{"sh", "bash"}} })
	c := r.dial(t)
	if out, stderr, exit := run(t, c, "echo two  words", nil); out != "two words\n" || exit != "0" {
		t.Errorf("plain words: %q %q %s", out, stderr, exit)
	}
	for _, command := range []string{"echo a; echo b", "echo $HOME", "X=1 env"} {
		if out, stderr, exit := run(t, c, command, nil); out != "" || exit != "127" || !strings.Contains(stderr, "has no shell") {
			t.Errorf("%q: %q %q %s", command, out, stderr, exit)
		}
	}
	if _, stderr, exit := run(t, c, "nonexistent-program", nil); exit != "127" || !strings.Contains(stderr, "nonexistent-program") {
		t.Errorf("a missing program: %q %s", stderr, exit)
	}
	s, _, out := terminal(t, c, "")
	if err := s.Wait(); err == nil || !strings.Contains(out.String(), "has no shell") {
		t.Errorf("a shell: %v %q", err, out.String())
	}
}

// An image with bash alone.
func TestBashOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.Opener = withoutOpener{o.Opener, []string{"sh"}} })
	if out, stderr, exit := run(t, r.dial(t), "echo $((1+2))", nil); out != "3\n" || exit != "0" {
		t.Errorf("%q %q %s", out, stderr, exit)
	}
}

// An image without touch keeps no times, and says so.
func TestNoTouch(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.Opener = withoutOpener{o.Opener, []string{"touch", "stat"}} })
	c := r.client(t)
	f, err := c.Create("f")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.Chtimes("f", r.clock.Now(), r.clock.Now()); err == nil || !strings.Contains(err.Error(), "touch") {
		t.Errorf("times: %v", err)
	}
	if _, err := c.StatVFS("/workspace"); err == nil {
		t.Error("the space was told without stat")
	}
}
