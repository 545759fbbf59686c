package sshhost

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/workberth/workberth/internal/tail"
)

// Shutdown: idle connections end at once, a running session may finish, nothing new begins,
// and the sandboxes are closed.
func TestDrain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	idle := r.dial(t)
	busy := r.dial(t)
	s, err := busy.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	out := &tail.Buffer{}
	s.Stdout = out
	in, err := s.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start("echo ready; read line; echo got $line"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the command", func() bool { return strings.Contains(out.String(), "ready") })
	done := make(chan error, 1)
	go func() { done <- r.Shutdown(context.Background()) }()
	_ = idle.Wait() // it ends
	if _, err := busy.NewSession(); err == nil {
		t.Error("a session was opened while draining")
	}
	if c, err := r.try("one", r.key); err == nil {
		c.Close()
		t.Error("a connection was accepted while draining")
	}
	if _, err := io.WriteString(in, "it\n"); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(); err != nil || !strings.Contains(out.String(), "got it") {
		t.Errorf("%v %q", err, out.String())
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	select {
	case <-r.opener.last.Done():
	default:
		t.Error("the sandbox is still there")
	}
	if !strings.Contains(r.audit.String(), `"outcome":"drained"`) {
		t.Error(r.audit.String())
	}
}

// A session that does not finish in time is ended as if its client had left.
func TestDrainTimeout(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s, err := r.dial(t).NewSession()
	if err != nil {
		t.Fatal(err)
	}
	out := &tail.Buffer{}
	s.Stdout = out
	if err := s.Start("echo ready; sleep 1000"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the command", func() bool { return strings.Contains(out.String(), "ready") })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := r.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	if s.Wait() == nil {
		t.Error("the session ended well")
	}
	if !strings.Contains(r.audit.String(), `"outcome":"ended"`) {
		t.Error(r.audit.String())
	}
}

// A reload ends what is not permitted any more, and leaves the rest alone.
func TestReload(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	one := r.dial(t)
	two, err := r.try("two", r.other)
	if err != nil {
		t.Fatal(err)
	}
	defer two.Close()
	s, err := one.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start("sleep 1000"); err != nil {
		t.Fatal(err)
	}
	if _, _, exit := run(t, two, "true", nil); exit != "0" {
		t.Fatal(exit)
	}
	fresh := newKey(t)
	p := *r.policy.Load()
	r.Reload(Policy{Workspaces: map[string]Workspace{
		"one": {Keys: []AuthorizedKey{{Key: fresh.PublicKey()}}}, "two": p.Workspaces["two"],
	}})
	_ = one.Wait() // it ends
	if _, _, exit := run(t, two, "true", nil); exit != "0" {
		t.Errorf("another workspace: %s", exit)
	}
	if c, err := r.try("one", r.key); err == nil {
		c.Close()
		t.Error("a withdrawn key was let in")
	}
	c, err := r.try("one", fresh)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, _, exit := run(t, c, "true", nil); exit != "0" {
		t.Error(exit)
	}
	// Other settings: the sandbox is made anew.
	before := r.opener.opened()
	r.Reload(Policy{Workspaces: map[string]Workspace{"one": {Keys: []AuthorizedKey{{Key: fresh.PublicKey()}}, Revision: "2"}}})
	_ = c.Wait()
	_ = two.Wait()
	c, err = r.try("one", fresh)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, _, exit := run(t, c, "true", nil); exit != "0" || r.opener.opened() != before+1 {
		t.Errorf("exit %s, %d sandboxes opened, before %d", exit, r.opener.opened(), before)
	}
}

// A sandbox starts with the first session, serves all, is kept warm, and ends.
func TestWarmSandbox(t *testing.T) {
	t.Parallel()
	clock := newFakeClock()
	r := newRig(t, func(o *Options) { o.Clock = clock; o.Limits.Warm = time.Hour; o.Limits.Idle = 100 * time.Hour })
	c := r.dial(t)
	if n := r.opener.opened(); n != 0 {
		t.Errorf("%d sandboxes before the first session", n)
	}
	for range 3 {
		run(t, c, "true", nil)
	}
	if n := r.opener.opened(); n != 1 {
		t.Errorf("%d sandboxes for three sessions", n)
	}
	first := r.opener.last
	c.Close()
	eventually(t, "the wait for the end of the warm time", func() bool { return clock.asked(time.Hour) >= 3 })
	clock.advance(time.Hour)
	<-first.Done()
	c = r.dial(t)
	if out, _, _ := run(t, c, "echo again", nil); out != "again\n" || r.opener.opened() != 2 {
		t.Errorf("%q, %d", out, r.opener.opened())
	}
	// One that ends by itself is replaced at the next session, on the same connection.
	if err := r.opener.last.Close(); err != nil {
		t.Fatal(err)
	}
	if out, _, _ := run(t, c, "echo third", nil); out != "third\n" || r.opener.opened() != 3 {
		t.Errorf("%q, %d", out, r.opener.opened())
	}
}

// A connection on which nothing moves ends; keepalives do not count.
func TestIdle(t *testing.T) {
	t.Parallel()
	clock := newFakeClock()
	r := newRig(t, func(o *Options) { o.Clock = clock; o.Limits.Idle = time.Hour; o.Limits.Keepalive = 1000 * time.Hour })
	c := r.dial(t)
	eventually(t, "the watch", func() bool { return clock.asked(time.Hour) == 1 })
	clock.advance(40 * time.Minute)
	run(t, c, "true; echo x", nil) // something moves
	clock.advance(40 * time.Minute)
	eventually(t, "the watch to go on", func() bool { return clock.asked(20*time.Minute) == 1 })
	if _, _, exit := run(t, c, "true", nil); exit != "0" {
		t.Error(exit)
	}
	clock.advance(time.Hour)
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	eventually(t, "the end", func() bool {
		clock.advance(time.Hour)
		return len(r.connections()) == 0
	})
	<-ended
	if !strings.Contains(r.audit.String(), errIdle.Error()) {
		t.Error(r.audit.String())
	}
}

// Limits that limit nothing are refused.
func TestLimits(t *testing.T) {
	t.Parallel()
	if _, err := New(Options{HostKeys: []ssh.Signer{newKey(t)}, Opener: &bwrapOpener{}, Limits: Limits{Sessions: -1, Idle: -1}}); err == nil ||
		!strings.Contains(err.Error(), "sessions") || !strings.Contains(err.Error(), "idle") {
		t.Errorf("%v", err)
	}
	if l, err := (Limits{}).complete(); err != nil || l != DefaultLimits() {
		t.Errorf("%+v %v", l, err)
	}
}
