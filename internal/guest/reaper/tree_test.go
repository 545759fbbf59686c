//go:build linux

package reaper

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/workberth/workberth/internal/guest/proc"
)

// shapes are the ways processes try to get away. %s is the tracer.
var shapes = []struct{ name, script string }{ //nolint:gochecknoglobals // a table
	{"child", `sleep %[1]s & wait`},
	{"own session", `setsid sleep %[1]s & wait`},
	{"double fork", `(sleep %[1]s &) ; (setsid sh -c 'sleep %[1]s & sleep %[1]s' &) ; sleep %[1]s`},
	{"without environment", `env -i setsid /bin/sh -c '/bin/sleep %[1]s & /bin/sleep %[1]s' & sleep %[1]s`},
	{"TERM ignored", `trap '' TERM HUP INT; sh -c 'trap "" TERM; sleep %[1]s; sleep %[1]s' & sleep %[1]s; sleep %[1]s`},
	{"TERM answered with a child", `trap 'setsid sleep %[1]s & ' TERM; sleep %[1]s & wait; wait; sleep %[1]s`},
	{"stopped", `sh -c 'kill -STOP $$; sleep %[1]s' & sleep %[1]s`},
	{"stopped child of a stopped one", `sh -c 'sh -c "kill -STOP \$\$; sleep %[1]s" & kill -STOP $$; sleep %[1]s' & sleep %[1]s`},
	{"zombies", `sh -c 'for i in 1 2 3 4 5; do sh -c : & done; exec sleep %[1]s' & sleep %[1]s`},
	{"deep", `sh -c 'sh -c "sh -c \"sh -c \\\"sleep %[1]s & sleep %[1]s\\\" & sleep %[1]s\" & sleep %[1]s" & sleep %[1]s' & sleep %[1]s`},
}

// Every shape of tree is gone when Terminate says so: also with SIGTERM ignored,
// with and without grace.
func TestTerminateShapes(t *testing.T) {
	r := newRunner(t)
	for _, shape := range shapes {
		for _, grace := range []time.Duration{-1, time.Millisecond, 100 * time.Millisecond} {
			t.Run(fmt.Sprintf("%s grace %v", shape.name, grace), func(t *testing.T) {
				id := newTracer(t)
				p, _, _ := begin(t, r, script(fmt.Sprintf(shape.script, id)), nil)
				eventually(t, "a process", func() bool { return len(id.alive()) > 1 })
				result := terminate(t, p, grace)
				id.mustBeGone(t)
				if result.Killed == 0 {
					t.Error("nothing was killed, it says")
				}
				s, err := p.Wait(testContext(t))
				if err != nil || s.Unknown || s.Code == 0 {
					t.Errorf("status %+v, %v", s, err)
				}
				// Again, it is gone at once. Q-10
				if again := terminate(t, p, 0); again.Killed != 0 {
					t.Errorf("the second time: %+v", again)
				}
			})
		}
	}
}

// A tree is found and killed the same way where the kernel keeps no lists of
// children.
func TestTreeByScan(t *testing.T) {
	id := newTracer(t)
	cmd := exec.Command("sh", "-c", fmt.Sprintf("sh -c 'setsid sleep %[1]s & sleep %[1]s & wait' & sleep %[1]s & wait", id)) //nolint:noctx // killed below
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	root := cmd.Process.Pid
	id.awaitCount(t, 5)
	listed, scanned := tree{self: root}, tree{self: root, scan: true}
	a, b := listed.list(), scanned.list()
	slices.Sort(a)
	slices.Sort(b)
	if len(a) != 4 || !slices.Equal(a, b) {
		t.Errorf("lists of children give %v, parents give %v; want the same four", a, b)
	}
	spared := b[0]
	scanned.spared = func(pid int) bool { return pid == spared }
	if slices.Contains(scanned.list(), spared) {
		t.Error("a spared child is in the tree")
	}
	for _, pid := range append(a, root) {
		if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			t.Error(err)
		}
	}
	_ = cmd.Wait()
}

// roleSlay is the role of a process that ends its own tree by scanning.
const roleSlay = "slay"

// slayMain starts the script in its argument, waits for its input to end, and kills
// what it started until there is nothing left.
func slayMain() int {
	if err := Harden("slay"); err != nil {
		return 1
	}
	_, err := syscall.ForkExec("/bin/sh", []string{"sh", "-c", os.Args[2]}, &syscall.ProcAttr{Env: testEnv(), Files: []uintptr{2, 2, 2}})
	if err != nil {
		return 1
	}
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return 1
	}
	s := slayer{tree: newTree(0, nil)}
	s.tree.scan = true
	s.pass()
	for {
		pid, err := unix.Wait4(-1, nil, unix.WALL, nil)
		switch {
		case err == unix.EINTR:
		case err == unix.ECHILD:
			return 0
		case err != nil:
			return 1
		case s.reaped(pid):
			s.pass()
		}
	}
}

// Every shape of tree is killed by scanning, too.
func TestSlayByScan(t *testing.T) {
	for _, shape := range shapes {
		t.Run(shape.name, func(t *testing.T) {
			id := newTracer(t)
			cmd := exec.Command(os.Args[0], roleSlay, fmt.Sprintf(shape.script, id)) //nolint:noctx // ends with its input
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "processes", func() bool { return len(id.alive()) > 2 })
			_ = in.Close()
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
			id.mustBeGone(t)
		})
	}
}

// A process that took over a number is not touched: it is not a member.
func TestSignalChecksMembership(t *testing.T) {
	id := newTracer(t)
	cmd := exec.Command("sleep", string(id)) //nolint:noctx // killed below
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	defer func() { _ = cmd.Process.Kill() }()
	stranger := tree{self: 1 << 30}
	if err := stranger.signal(cmd.Process.Pid, unix.SIGKILL, nil); err != unix.ESRCH {
		t.Errorf("signal = %v, want ESRCH", err)
	}
	if len(id.alive()) != 1 {
		t.Error("a process outside the tree was killed")
	}
	if err := stranger.signal(1<<22+1, unix.SIGKILL, nil); err == nil {
		t.Error("a process that does not exist took a signal")
	}
}

// hundred is a tree of at least 100 processes, of all kinds.
func hundred(id tracer) string {
	return fmt.Sprintf(`
i=0
while [ $i -lt 20 ]; do
	sleep %[1]s &
	setsid sleep %[1]s &
	(setsid sleep %[1]s &)
	env -i /bin/sh -c '(/bin/sleep %[1]s &)' &
	sh -c 'trap "" TERM; sleep %[1]s; :' &
	i=$((i+1))
done
echo grown
trap '' TERM
wait
sleep %[1]s`, id)
}

// A tree of a hundred processes is gone within the grace and half a second, every
// time.
func TestTerminateHundred(t *testing.T) {
	r := newRunner(t)
	const grace = 50 * time.Millisecond
	var worst, total time.Duration
	n := repeats(100)
	for i := range n {
		id := newTracer(t)
		p, stdout, _ := begin(t, r, script(hundred(id)), nil)
		stdout.awaitText(t, "grown")
		eventually(t, "a hundred processes", func() bool { return len(id.alive()) > 100 })
		begin := time.Now()
		terminate(t, p, grace)
		took := time.Since(begin) - grace
		id.mustBeGone(t)
		worst, total = max(worst, took), total+took
		if _, err := p.Wait(testContext(t)); err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
	}
	t.Logf("after the grace: mean %v, worst %v of %d", total/time.Duration(n), worst, n)
}

// A chain of processes each of which starts the next one in a new session and ends
// does not get away.
func TestTerminateChain(t *testing.T) {
	r := newRunner(t)
	for i := range repeats(20) {
		id := newTracer(t)
		dir := t.TempDir()
		stop := filepath.Join(dir, "stop")
		t.Cleanup(func() { writeFile(t, stop, "", 0o600) }) // should it get away
		link := filepath.Join(dir, "link")
		writeFile(t, link, fmt.Sprintf("#!/bin/sh\n[ -e %s ] && exit\nsetsid %s %s &\n", stop, link, id), 0o755)
		p, _, _ := begin(t, r, script(link+" "+string(id)+"; echo started; sleep "+string(id)), nil)
		eventually(t, "the chain", func() bool { return len(id.alive()) > 1 })
		terminate(t, p, -1)
		id.mustBeGone(t)
		if s, err := p.Wait(testContext(t)); err != nil || s.Signal != 9 {
			t.Fatalf("round %d: %+v, %v", i, s, err)
		}
	}
}

// C083: what is cancelled does nothing later.
func TestNothingHappensLater(t *testing.T) {
	r := newRunner(t)
	dir := t.TempDir()
	for i := range repeats(30) {
		late := filepath.Join(dir, fmt.Sprint("LATE", i))
		p, stdout, _ := begin(t, r, script("echo go; (sleep 0.2; touch "+late+"1) & setsid sh -c 'sleep 0.2; touch "+late+"2' & sleep 0.2; touch "+late), nil)
		stdout.awaitText(t, "go")
		terminate(t, p, -1)
	}
	time.Sleep(400 * time.Millisecond) //sleep: the time the commands would have needed
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("later there are %v, %v", left, err)
	}
}

// C089: commands that leave processes behind leave no zombies.
func TestNoZombies(t *testing.T) {
	r := newRunner(t, func(o *Options) { o.Tag = "" })
	var kept []proc.Process
	for i := range 200 {
		spec := script("(sleep 0.2 &) ; exit 0")
		spec.KeepDescendants = i%2 == 0
		p, _, _ := begin(t, r, spec, nil)
		if s, err := p.Wait(testContext(t)); err != nil || s.Code != 0 {
			t.Fatalf("%+v, %v", s, err)
		}
		kept = append(kept, p)
	}
	for _, p := range kept {
		c := p.(*command)
		select {
		case <-c.over:
		case <-testContext(t).Done():
			t.Fatal("a tree is not over")
		}
	}
	self := os.Getpid()
	eventually(t, "no zombie", func() bool {
		for _, pid := range allChildren(self) {
			if s, err := readStat(pid); err == nil && s.dead() {
				return false
			}
		}
		return true
	})
}

// C091: after a cancelled command the next one works, and nothing accumulates.
func TestCancelAndGoOn(t *testing.T) {
	r := newRunner(t)
	run(t, r, script("exit 0"), nil)
	before := runtime.NumGoroutine()
	for range repeats(30) {
		id := newTracer(t)
		p, _, _ := begin(t, r, script("sleep "+string(id)), nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(20))*time.Millisecond)
		_, _ = p.Wait(ctx)
		cancel()
		terminate(t, p, 20*time.Millisecond)
		if got := run(t, r, proc.Spec{Argv: []string{"true"}}, nil); got.status != (proc.Status{}) {
			t.Fatalf("true: %+v", got)
		}
	}
	eventually(t, "goroutines as before", func() bool { return runtime.NumGoroutine() <= before })
}

// SBX-10: two trees, one is ended, the other one goes on.
func TestTerminateLeavesOthers(t *testing.T) {
	r := newRunner(t)
	ids := []tracer{newTracer(t), newTracer(t)}
	markers := []string{newMarker(t), newMarker(t)}
	var ps []proc.Process
	for i, id := range ids {
		spec := script(fmt.Sprintf("setsid sleep %[1]s & sleep %[1]s & env -i /bin/sleep %[1]s; sleep %[1]s", id))
		spec.Marker = markers[i]
		p, _, _ := begin(t, r, spec, nil)
		ps = append(ps, p)
		id.awaitCount(t, 4)
	}
	result, err := r.Terminate(testContext(t), markers[0], time.Millisecond)
	if err != nil || result.Outcome != proc.Gone {
		t.Fatalf("%+v, %v", result, err)
	}
	ids[0].mustBeGone(t)
	ids[1].awaitCount(t, 4)
	terminate(t, ps[1], -1)
	ids[1].mustBeGone(t)
}

// terminating is safe for concurrent use, and everybody gets the answer.
func TestTerminateConcurrently(t *testing.T) {
	r := newRunner(t)
	id := newTracer(t)
	marker := newMarker(t)
	spec := script(fmt.Sprintf("trap '' TERM; sleep %[1]s & setsid sleep %[1]s; sleep %[1]s", id))
	spec.Marker = marker
	p, _, _ := begin(t, r, spec, nil)
	id.awaitCount(t, 3)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			var result proc.TerminateResult
			var err error
			if i%2 == 0 {
				result, err = p.Terminate(testContext(t), time.Duration(i)*5*time.Millisecond+1)
			} else {
				result, err = r.Terminate(testContext(t), marker, 10*time.Millisecond)
			}
			if err != nil || result.Outcome != proc.Gone {
				t.Errorf("caller %d: %+v, %v", i, result, err)
			}
		})
	}
	wg.Wait()
	id.mustBeGone(t)
}

// A later call with less grace makes the end come sooner.
func TestTerminateSooner(t *testing.T) {
	r := newRunner(t)
	id := newTracer(t)
	p, stdout, _ := begin(t, r, script("trap 'echo asked' TERM; echo ready; while :; do sleep 0.01; done; : "+string(id)), nil)
	stdout.awaitText(t, "ready")
	patient := make(chan proc.TerminateResult, 1)
	go func() {
		result, _ := p.Terminate(context.Background(), time.Hour)
		patient <- result
	}()
	stdout.awaitText(t, "asked")
	terminate(t, p, -1)
	if result := <-patient; result.Outcome != proc.Gone {
		t.Errorf("the patient caller: %+v", result)
	}
	if n := strings.Count(stdout.String(), "asked"); n != 1 {
		t.Errorf("SIGTERM came %d times", n)
	}
}

// The grace is given: who ends by itself within it is not killed.
func TestGraceIsGiven(t *testing.T) {
	r := newRunner(t)
	p, stdout, _ := begin(t, r, script("trap 'sleep 0.1; echo cleaned up; exit 6' TERM; echo ready; while :; do sleep 0.01; done"), nil)
	stdout.awaitText(t, "ready")
	terminate(t, p, deadline)
	s, err := p.Wait(testContext(t))
	if err != nil || s.Code != 6 || !strings.Contains(stdout.String(), "cleaned up") {
		t.Errorf("%+v, %v, %q", s, err, stdout.String())
	}
}

// A caller whose context ends is told that it does not know; the tree ends all the
// same.
func TestTerminateCancelled(t *testing.T) {
	r := newRunner(t)
	id := newTracer(t)
	p, _, _ := begin(t, r, script(fmt.Sprintf("trap '' TERM; sleep %[1]s; sleep %[1]s", id)), nil)
	id.awaitCount(t, 2)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	result, err := p.Terminate(ctx, 100*time.Millisecond)
	if err == nil || result.Outcome != proc.Unknown {
		t.Errorf("%+v, %v; want unknown and an error", result, err)
	}
	id.awaitCount(t, 0)
}

// SBX-11: a marker is 32 hexadecimal digits and nothing else; nothing else is
// looked for.
func TestTerminateMarkers(t *testing.T) {
	r := newRunner(t)
	for _, bad := range []string{"", "x", strings.Repeat("g", 32), strings.Repeat("a", 31), strings.Repeat("a", 33), "$(touch /tmp/x)                 ", strings.Repeat("a", 31) + "\x00"} {
		if result, err := r.Terminate(testContext(t), bad, 0); err == nil || result.Outcome != proc.Unknown {
			t.Errorf("marker %q: %+v, %v; want an error", bad, result, err)
		}
	}
	result, err := r.Terminate(testContext(t), newMarker(t), 0)
	if err != nil || result.Outcome != proc.Gone || result.Killed != 0 {
		t.Errorf("unknown marker: %+v, %v; want gone", result, err)
	}
}

// The leftovers of a command are counted, and ended without being asked.
func TestLeftovers(t *testing.T) {
	r := newRunner(t)
	id := newTracer(t)
	spec := script(fmt.Sprintf("sleep %[1]s & setsid sleep %[1]s & (sleep %[1]s &); (env -i /bin/sleep %[1]s &); sh -c : & exit 5", id))
	spec.Grace = time.Millisecond
	got := run(t, r, spec, nil)
	if got.status.Code != 5 || got.status.Leftover < 4 {
		t.Errorf("status %+v, want code 5 and 4 left", got.status)
	}
	id.awaitCount(t, 0)
}

// Close ends what runs.
func TestClose(t *testing.T) {
	r := newRunner(t)
	id := newTracer(t)
	var ps []proc.Process
	for range 5 {
		spec := script(fmt.Sprintf("trap '' TERM; setsid sleep %[1]s & sleep %[1]s; sleep %[1]s", id))
		spec.Grace = 10 * time.Millisecond
		p, _, _ := begin(t, r, spec, nil)
		ps = append(ps, p)
	}
	id.awaitCount(t, 15)
	if err := r.Close(testContext(t)); err != nil {
		t.Fatal(err)
	}
	id.mustBeGone(t)
	for _, p := range ps {
		if s, err := p.Wait(testContext(t)); err != nil || s.Signal != int(unix.SIGKILL) {
			t.Errorf("%+v, %v", s, err)
		}
		terminate(t, p, 0)
	}
}
