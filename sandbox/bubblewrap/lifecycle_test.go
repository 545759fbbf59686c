package bubblewrap

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/workberth/workberth/internal/tail"
	"github.com/workberth/workberth/sandbox"
)

// One sandbox for one spec: the live one again, then a new life of the same. C053
func TestReuse(t *testing.T) {
	r := newRig(t)
	a := ensure(t, r.Backend, r.spec())
	b := ensure(t, r.Backend, r.spec())
	if a.Info().ID != b.Info().ID || a.Info().Runtime["pid"] != b.Info().Runtime["pid"] {
		t.Errorf("two sandboxes for one spec: %v and %v", a.Info().Runtime, b.Info().Runtime)
	}
	sh(t, a, "echo kept >/workspace/f; echo gone >/tmp/f")
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	sh(t, b, "cat /tmp/f")
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	rec, err := r.registry.Get(a.Info().ID)
	if err != nil || rec.Info.State != sandbox.StateStopped || len(rec.Runtimes) != 0 || len(rec.PendingSweep) != 0 || !rec.Info.Owner.IsZero() {
		t.Errorf("record after the end: %+v, %v", rec, err)
	}
	if _, err := r.Ensure(t.Context(), sandbox.Spec{Scope: sandbox.ScopeSession, Session: "test", Workspace: r.ws + "/missing", Config: sandbox.DefaultConfig()}); !errors.Is(err, sandbox.ErrRefused) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("workspace that does not exist: %v", err)
	}
	c := ensure(t, r.Backend, r.spec())
	if c.Info().ID != a.Info().ID || c.Info().Created != a.Info().Created {
		t.Errorf("another sandbox: %+v", c.Info())
	}
	if out := sh(t, c, "cat /workspace/f; cat /tmp/f 2>/dev/null || echo fresh"); out != "kept\nfresh\n" {
		t.Errorf("second life: %q", out)
	}
	other := ensure(t, r.Backend, r.spec(func(c *sandbox.Config) { c.Env = map[string]string{"A": "b"} }))
	if other.Info().ID == c.Info().ID {
		t.Error("another configuration is the same sandbox")
	}
	infos, err := r.List(t.Context())
	if err != nil || len(infos) != 2 || infos[0].State != sandbox.StateRunning || infos[1].State != sandbox.StateRunning {
		t.Errorf("listed %+v, %v", infos, err)
	}
}

// Many at the same time ask for the same sandbox, and for different ones.
func TestConcurrentEnsure(t *testing.T) {
	r := newRig(t)
	const n = 16
	var (
		wg  sync.WaitGroup
		mu  sync.Mutex
		ids = map[sandbox.ID]int{}
	)
	for i := range n {
		for _, session := range []string{"shared", fmt.Sprint("own", i)} {
			wg.Go(func() {
				spec := r.spec()
				spec.Session = session
				sb, err := r.Ensure(t.Context(), spec)
				if err != nil {
					t.Error(err)
					return
				}
				if out := sh(t, sb, "echo "+session); out != session+"\n" {
					t.Errorf("%s said %q", session, out)
				}
				mu.Lock()
				ids[sb.Info().ID]++
				mu.Unlock()
				if err := sb.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	if len(ids) != n+1 {
		t.Errorf("%d sandboxes, want %d", len(ids), n+1)
	}
}

// C057 C189: two workspaces never share a sandbox, two sandboxes may share a
// workspace, and the end of one is not felt by the other.
func TestApart(t *testing.T) {
	r := newRig(t)
	second := filepath.Join(r.dir, "second")
	if err := os.Mkdir(second, 0o755); err != nil {
		t.Fatal(err)
	}
	agent := func(ws string) sandbox.Spec {
		s := r.spec()
		s.Scope, s.Session, s.Agent, s.Workspace = sandbox.ScopeAgent, "", "main", ws
		return s
	}
	a, b := ensure(t, r.Backend, agent(r.ws)), ensure(t, r.Backend, agent(second))
	if a.Info().ID == b.Info().ID {
		t.Fatal("one sandbox for two workspaces")
	}
	sh(t, a, "echo a >f")
	if out := sh(t, b, "cat f 2>/dev/null || echo nothing"); out != "nothing\n" {
		t.Errorf("the other workspace holds %q", out)
	}
	if err := r.Remove(t.Context(), b.Info().ID); err != nil {
		t.Fatal(err)
	}
	within(t, "the end of the removed one", b.Done())
	sh(t, a, "cat f")

	rounds := 20
	if testing.Short() {
		rounds = 3
	}
	for i := range rounds {
		spec := r.spec()
		spec.Session = "visitor" + strconv.Itoa(i)
		visitor, err := r.Ensure(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		sh(t, visitor, "cat f")
		if err := visitor.Close(); err != nil {
			t.Fatal(err)
		}
		sh(t, a, "cat f && test -w /workspace")
	}
}

// The setup command runs once per sandbox; one that fails leaves no sandbox. C055
func TestSetupCommand(t *testing.T) {
	r := newRig(t)
	spec := r.spec(func(c *sandbox.Config) { c.SetupCommand = "echo run >>setup.log; id -u >>setup.log" })
	for range 2 {
		sb := ensure(t, r.Backend, spec)
		if out := sh(t, sb, "grep -c run setup.log"); out != "1\n" {
			t.Errorf("the setup command ran %s times", out)
		}
		if err := sb.Close(); err != nil {
			t.Fatal(err)
		}
	}
	begin := time.Now()
	_, err := r.Ensure(t.Context(), r.spec(func(c *sandbox.Config) { c.SetupCommand = "echo it is broken >&2; exit 7" }))
	p := problem(t, err, "setupCommand", err)
	if !strings.Contains(p.Rule, "exit status 7") || !strings.Contains(p.Rule, "it is broken") {
		t.Errorf("problem: %s", p.Rule)
	}
	if infos, err := r.List(t.Context()); err != nil || len(infos) != 1 {
		t.Errorf("listed %v, %v", infos, err)
	}
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("took %v", took)
	}
}

// C063: the sandbox ends under a command, which keeps its output and says why.
func TestKilledUnderACommand(t *testing.T) {
	r := newRig(t)
	for name, kill := range map[string]func(t *testing.T, sb sandbox.Sandbox){
		"bwrap killed": func(t *testing.T, sb sandbox.Sandbox) {
			pid, err := strconv.Atoi(sb.Info().Runtime["pid"])
			if err != nil {
				t.Fatal(err)
			}
			if err := unix.Kill(pid, unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
		},
		"helper killed": func(t *testing.T, sb sandbox.Sandbox) {
			for _, pid := range pidsOf(t, sb.Info().Runtime["tag"]) {
				cmdline, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
				if strings.HasPrefix(string(cmdline), helperFile) {
					if err := unix.Kill(pid, unix.SIGKILL); err != nil {
						t.Fatal(err)
					}
					return
				}
			}
			t.Fatal("no helper found")
		},
		"stopped": func(t *testing.T, sb sandbox.Sandbox) {
			if err := r.Stop(t.Context(), sb.Info().ID); err != nil {
				t.Error(err)
			}
		},
		"stopped from elsewhere": func(t *testing.T, sb sandbox.Sandbox) {
			if err := r.open(t).Stop(t.Context(), sb.Info().ID); err != nil {
				t.Error(err)
			}
		},
		"removed from elsewhere": func(t *testing.T, sb sandbox.Sandbox) {
			if err := r.open(t).Remove(t.Context(), sb.Info().ID); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			sb := ensure(t, r.Backend, r.spec())
			tag := sb.Info().Runtime["tag"]
			started := make(chan struct{})
			out := &signalBuffer{begun: started}
			run, err := sandbox.Start(t.Context(), sb, sandbox.Command{Argv: []string{"/bin/sh", "-c", "echo start; (setsid sleep 600 &); sleep 600; echo end"}}, nil,
				sandbox.IO{Stdout: out}, sandbox.StartOptions{})
			if err != nil {
				t.Fatal(err)
			}
			within(t, "the first output", started)
			kill(t, sb)
			status, err := run.Wait(t.Context())
			if err != nil || !(status.Unknown || status.Signal != 0) || status.Unknown && !strings.Contains(status.Reason, "the sandbox has ended") {
				t.Errorf("status %+v, %v", status, err)
			}
			if out.String() != "start\n" {
				t.Errorf("output %q", out.String())
			}
			within(t, "the end", sb.Done())
			if !errors.Is(sb.Err(), sandbox.ErrGone) {
				t.Errorf("reason %v", sb.Err())
			}
			if res, err := run.Terminate(t.Context(), 0); err != nil || res.Outcome != sandbox.TerminationGone {
				t.Errorf("terminate: %+v, %v", res, err)
			}
			if left := pidsOf(t, tag); len(left) != 0 {
				t.Errorf("processes %v are left", left)
			}
			if left := groupsOf(t, sb.Info().ID); len(left) != 0 {
				t.Errorf("control groups %v are left", left)
			}
			// A new life of the same sandbox. C053
			again := ensure(t, r.Backend, r.spec())
			sh(t, again, "true")
			if err := again.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// signalBuffer tells when something was written.
type signalBuffer struct {
	tail.Buffer
	once  sync.Once
	begun chan struct{}
}

func (s *signalBuffer) Write(p []byte) (int, error) {
	n, err := s.Buffer.Write(p)
	s.once.Do(func() { close(s.begun) })
	return n, err
}

// A sandbox that another process holds is named with its owner, and can be stopped.
func TestHeldElsewhere(t *testing.T) {
	r := newRig(t)
	o := r.startOwner(t, "test").ready(t)
	_, err := r.Ensure(t.Context(), r.spec())
	var inUse *sandbox.InUseError
	if !errors.As(err, &inUse) || inUse.Owner.PID != o.cmd.Process.Pid || inUse.ID != o.id {
		t.Fatalf("got %v, want one in use by %d", err, o.cmd.Process.Pid)
	}
	infos, err := r.List(t.Context())
	if err != nil || len(infos) != 1 || infos[0].State != sandbox.StateRunning || infos[0].Owner.PID != o.cmd.Process.Pid {
		t.Errorf("listed %+v, %v", infos, err)
	}
	if err := r.Stop(t.Context(), o.id); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the owner to give it up", func() bool {
		sb, err := r.Ensure(t.Context(), r.spec())
		if err != nil {
			return false
		}
		return sb.Close() == nil
	})
	if err := r.Remove(t.Context(), o.id); err != nil {
		t.Error(err)
	}
	if infos, err := r.List(t.Context()); err != nil || len(infos) != 0 {
		t.Errorf("listed %+v, %v", infos, err)
	}
	for _, id := range []sandbox.ID{o.id, "bubblewrap-ffffffffffffffff", "docker-ffffffffffffffff", "nonsense"} {
		if err := errors.Join(r.Stop(t.Context(), id), r.Remove(t.Context(), id)); err != nil {
			t.Errorf("stopping and removing the unknown %q: %v", id, err)
		}
	}
}
