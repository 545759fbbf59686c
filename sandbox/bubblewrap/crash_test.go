package bubblewrap

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/workberth/workberth/sandbox"
)

// C087: the owner of one sandbox is killed, the next start clears away what it had
// and leaves the other owner's sandbox alone; doing it again finds nothing.
func TestOwnerKilled(t *testing.T) {
	r := newRig(t)
	dead, alive := r.startOwner(t, "dead").ready(t), r.startOwner(t, "alive").ready(t)
	for _, o := range []*owner{dead, alive} {
		o.tell(t, "setsid sleep 779 & env -i sleep 780 & (trap '' TERM; sleep 781) & wait")
		eventually(t, "its processes", func() bool { return len(pidsOf(t, o.tag)) >= 3 })
	}
	dead.kill()
	eventually(t, "the end of the dead owner's processes", func() bool { return len(pidsOf(t, dead.tag)) == 0 })
	if len(pidsOf(t, alive.tag)) < 3 {
		t.Fatal("the other sandbox lost processes")
	}
	for range 2 {
		b := r.open(t)
		spec := r.spec()
		spec.Session = "visitor"
		sb := ensure(t, b, spec)
		if err := sb.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(r.log.String(), "reaped a sandbox whose owner had died"); n != 1 {
		t.Errorf("reaped %d times:\n%s", n, r.log.String())
	}
	if left := groupsOf(t, dead.id); len(left) != 0 {
		t.Errorf("control groups %v are left", left)
	}
	if len(pidsOf(t, alive.tag)) < 3 {
		t.Error("the other sandbox lost processes to the clearing")
	}
	infos, err := r.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range infos {
		want := sandbox.StateStopped
		if i.ID == alive.id {
			want = sandbox.StateRunning
		}
		if i.State != want {
			t.Errorf("%s is %s, want %s", i.Session, i.State, want)
		}
	}
	alive.tell(t, "close")
	eventually(t, "the end of the other one's processes", func() bool { return len(pidsOf(t, alive.tag)) == 0 })
}

// kill -9 at random moments, from the first instruction of the start on: afterwards
// no process and no control group is left, and the sandbox starts again.
func TestKillAtAnyMoment(t *testing.T) {
	rounds := 25
	if testing.Short() {
		rounds = 4
	}
	r := newRig(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for i := range rounds {
		o := r.startOwner(t, "test")
		tagged := make(chan struct{})
		go func() {
			defer close(tagged)
			if o.out.Scan() && strings.HasPrefix(o.out.Text(), "ready") {
				_, _ = o.in.WriteString("while :; do echo x >>/workspace/log; mkdir -p /workspace/d; rmdir /workspace/d; done\n")
				_ = o.in.Flush()
				for o.out.Scan() {
				}
			}
		}()
		moment := time.Duration(random.Int64N(int64(120 * time.Millisecond)))
		ctx, cancel := context.WithTimeout(t.Context(), moment)
		<-ctx.Done()
		cancel()
		o.kill()
		<-tagged
		b := r.open(t)
		sb, err := b.Ensure(t.Context(), r.spec())
		if err != nil {
			t.Fatalf("round %d, killed after %v: %v", i, moment, err)
		}
		out := sh(t, sb, `ls -a | grep -v -x -e . -e .. -e log -e d | tr '\n' ' '; ls /proc | grep -c '^[0-9]'`)
		if lines := strings.SplitN(out, "\n", 2); strings.HasPrefix(lines[0], ".") {
			t.Errorf("round %d: left in the workspace: %s", i, lines[0])
		}
		if err := sb.Close(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the control groups to go", func() bool { return len(groupsOf(t, sb.Info().ID)) == 0 })
	}
	defer func() {
		for _, pid := range pidsOf(t, r.ws) {
			cmdline, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			stack, _ := os.ReadFile(fmt.Sprintf("/proc/%d/wchan", pid))
			t.Logf("process %d is left: %q waiting in %s", pid, cmdline, stack)
		}
	}()
	eventually(t, "the last processes to go", func() bool { return len(pidsOf(t, r.ws)) == 0 })
	if entries, err := os.ReadDir(r.state + "/sandboxes"); err != nil || len(entries) > 2 {
		t.Errorf("records %v, %v", entries, err)
	}
}

// What bwrap leaves when it is killed at the worst moment is found by its tag: in
// the note of a generation that never came to life.
func TestStuckChild(t *testing.T) {
	r := newRig(t)
	res, err := sandbox.Resolve(Name, r.spec(), r.facts, nil)
	if err != nil {
		t.Fatal(err)
	}
	claim, err := r.registry.Claim(t.Context(), res.ID)
	if err != nil {
		t.Fatal(err)
	}
	tag, other := "0123456789abcdef", "fedcba9876543210"
	if err := (note{Tag: tag}).write(claim.Dir()); err != nil {
		t.Fatal(err)
	}
	if err := claim.Release(); err != nil {
		t.Fatal(err)
	}
	stuck := func(arg string) *exec.Cmd {
		cmd := exec.Command("/bin/sh", "-c", "read x", "bwrap", arg)
		if _, err := cmd.StdinPipe(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
		return cmd
	}
	ours, like, foreign := stuck("--tag="+tag), stuck("--tag="+tag+"0"), stuck("--tag="+other)
	// Another sandbox of the same state looks after it.
	spec := r.spec()
	spec.Session = "another"
	if err := ensure(t, r.Backend, spec).Close(); err != nil {
		t.Fatal(err)
	}
	state, err := ours.Process.Wait()
	if err != nil || state.Success() {
		t.Errorf("%v, %v", state, err)
	}
	for _, cmd := range []*exec.Cmd{like, foreign} {
		ref, err := sandbox.RefOf(cmd.Process.Pid)
		if err != nil || !ref.Alive() {
			t.Errorf("%q was ended, too: %v", cmd.Args, err)
		}
	}
	if _, err := os.Stat(filepath.Join(claim.Dir(), noteFile)); err == nil {
		t.Error("the note is left")
	}
}
