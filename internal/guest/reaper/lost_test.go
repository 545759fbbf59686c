//go:build linux

package reaper

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/workberth/workberth/internal/guest/proc"
)

// A command that kills its reaper gains nothing: its whole tree is killed, with
// proof, and its status is unknown.
func TestReaperKilledByCommand(t *testing.T) {
	r := newRunner(t)
	for i := range repeats(20) {
		id := newTracer(t)
		script1 := fmt.Sprintf(`env -i setsid /bin/sh -c '/bin/sleep %[1]s & /bin/sleep %[1]s' &
trap '' TERM
(sleep %[1]s &)
echo before
kill -9 $PPID
echo after
sleep %[1]s`, id)
		p, stdout, _ := begin(t, r, script(script1), nil)
		s, err := p.Wait(testContext(t))
		if err != nil || !s.Unknown || s.Code == 0 || !strings.Contains(s.Reason, "killed (signal 9)") {
			t.Fatalf("round %d: %+v, %v; want unknown, killed by signal 9", i, s, err)
		}
		if !strings.Contains(s.Reason, "its processes were ended") {
			t.Errorf("reason %q", s.Reason)
		}
		terminate(t, p, 0)
		id.mustBeGone(t)
		if !strings.HasPrefix(stdout.String(), "before\n") {
			t.Errorf("output %q", stdout.String())
		}
	}
	if got := run(t, r, script("echo fine"), nil); got.stdout != "fine\n" {
		t.Errorf("afterwards: %+v", got)
	}
}

// Only the trees without a reaper are killed, not the others.
func TestReaperKilledLeavesOthers(t *testing.T) {
	r := newRunner(t)
	other, id := newTracer(t), newTracer(t)
	bystander := exec.Command("sleep", string(other)) //nolint:noctx // killed below
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	good, _, _ := begin(t, r, script(fmt.Sprintf("setsid sleep %[1]s & sleep %[1]s", other)), nil)
	other.awaitCount(t, 4)
	bad, _, _ := begin(t, r, script(fmt.Sprintf("setsid sleep %[1]s & kill -9 $PPID; sleep %[1]s", id)), nil)
	if s, err := bad.Wait(testContext(t)); err != nil || !s.Unknown {
		t.Errorf("%+v, %v", s, err)
	}
	id.mustBeGone(t)
	other.awaitCount(t, 4)
	terminate(t, good, -1)
	if err := bystander.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = bystander.Wait()
}

// Without anybody who adopts orphans, what carries the marker is found.
func TestReaperKilledWithoutOrphans(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := newRunner(t, func(o *Options) { o.Orphans, o.Self = nil, exe })
	id := newTracer(t)
	spec := script(fmt.Sprintf("setsid sleep %[1]s & kill -9 $PPID; sleep %[1]s", id))
	spec.Marker = newMarker(t)
	p, _, _ := begin(t, r, spec, nil)
	s, err := p.Wait(testContext(t))
	if err != nil || !s.Unknown || !strings.Contains(s.Reason, "its processes were ended") {
		t.Errorf("%+v, %v", s, err)
	}
	id.mustBeGone(t)
	terminate(t, p, 0)

	// And without a marker nobody knows.
	id = newTracer(t)
	p, _, _ = begin(t, r, script("kill -9 $PPID; exec sleep "+string(id)), nil)
	s, err = p.Wait(testContext(t))
	if err != nil || !s.Unknown || !strings.Contains(s.Reason, "not known") {
		t.Errorf("%+v, %v", s, err)
	}
	if result, _ := p.Terminate(testContext(t), 0); result.Outcome != proc.Unknown {
		t.Errorf("%+v, want unknown", result)
	}
	if result := testOrphans.clear(); result.Outcome != proc.Gone {
		t.Errorf("cleaning up: %+v", result)
	}
}

// A command that stops its reaper does not keep its tree from being ended.
func TestReaperStoppedByCommand(t *testing.T) {
	r := newRunner(t)
	id := newTracer(t)
	p, stdout, _ := begin(t, r, script(fmt.Sprintf("kill -STOP $PPID; echo stopped; sleep %[1]s; sleep %[1]s", id)), nil)
	stdout.awaitText(t, "stopped")
	terminate(t, p, -1)
	id.mustBeGone(t)
}

// Nor does one that cannot be resumed: then the reaper is killed, and the tree
// with it.
func TestReaperStoppedForGood(t *testing.T) {
	r := newRunner(t)
	r.answerBound = 100 * time.Millisecond
	id := newTracer(t)
	p, stdout, _ := begin(t, r, script(fmt.Sprintf("echo $PPID; setsid sleep %[1]s & sleep %[1]s", id)), nil)
	reaper, err := strconv.Atoi(strings.TrimSpace(stdout.awaitText(t, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	id.awaitCount(t, 3)

	// A debugger can hold a process so that SIGCONT does nothing.
	held := make(chan error)
	go func() {
		runtime.LockOSThread() // and stays locked: the thread is the debugger
		tids, err := threads(reaper)
		for _, tid := range tids {
			err = errors.Join(err, unix.PtraceSeize(tid), unix.PtraceInterrupt(tid))
		}
		held <- err
		for _, tid := range tids {
			for tid != reaper { // the leader is for the Runner to wait for
				var status unix.WaitStatus
				if _, err := unix.Wait4(tid, &status, unix.WALL, nil); err != nil || status.Signaled() {
					break
				}
			}
		}
	}()
	if err := <-held; err != nil {
		if os.Getuid() == 0 || !errors.Is(err, unix.EPERM) {
			t.Errorf("debugging a reaper: %v", err)
		}
		terminate(t, p, -1) // a user without rights cannot do it, as it should be
		return
	}
	result, err := p.Terminate(testContext(t), -1)
	if err != nil || result.Outcome != proc.Gone {
		t.Fatalf("%+v, %v", result, err)
	}
	id.mustBeGone(t)
	if s, err := p.Wait(testContext(t)); err != nil || !s.Unknown {
		t.Errorf("%+v, %v", s, err)
	}
}

// An idle reaper that was killed is replaced.
func TestSpareKilled(t *testing.T) {
	r := newRunner(t)
	for range 5 {
		eventually(t, "an idle reaper", func() bool { return r.stock.ready() > 0 })
		r.stock.mu.Lock()
		pid := r.stock.idle[len(r.stock.idle)-1].pid
		r.stock.mu.Unlock()
		if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		eventually(t, "its end", func() bool { s, err := readStat(pid); return err == nil && s.dead() })
		if got := run(t, r, script("echo fine"), nil); got.stdout != "fine\n" {
			t.Errorf("got %+v", got)
		}
	}
}

// When the helper is killed every tree ends: TERM, grace, KILL.
func TestHelperKilled(t *testing.T) {
	for _, shape := range shapes {
		t.Run(shape.name, func(t *testing.T) {
			id := newTracer(t)
			spec := script(fmt.Sprintf(shape.script, id))
			spec.Grace = 20 * time.Millisecond
			h := startHost(t, hostOrder{Spec: spec})
			h.await("started")
			eventually(t, "processes", func() bool { return len(id.alive()) > 1 })
			h.kill()
			id.awaitCount(t, 0)
		})
	}
}

// Also when a command has stopped its reaper.
func TestHelperKilledWhileReaperIsStopped(t *testing.T) {
	id := newTracer(t)
	spec := script(fmt.Sprintf("sleep 0.3; kill -STOP $PPID; echo stopped; sleep %[1]s & sleep %[1]s", id)) // not before it is told to go on
	spec.Grace = 20 * time.Millisecond
	h := startHost(t, hostOrder{Spec: spec})
	h.awaitText("stopped")
	h.kill()
	id.awaitCount(t, 0)
}

// Until the reapers of a killed helper have ended their trees, within the grace, a
// later helper finds what they hold, also what dropped its environment.
func TestHelperKilledAndSearched(t *testing.T) {
	for name, search := range map[string]func(r *Runner, marker, tag string) error{
		"by marker": func(r *Runner, marker, _ string) error {
			result, err := r.Terminate(testContext(t), marker, -1)
			if err == nil && result.Outcome != proc.Gone {
				err = fmt.Errorf("%+v", result)
			}
			return err
		},
		"by tag": func(r *Runner, _, tag string) error {
			_, err := r.Sweep(testContext(t), tag)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			id := newTracer(t)
			tag := "tag-" + newMarker(t) // which its reaper shows
			spec := script(fmt.Sprintf(`trap '' TERM; env -i setsid /bin/sh -c 'trap "" TERM; /bin/sleep %[1]s & /bin/sleep %[1]s' & sleep %[1]s; sleep %[1]s`, id))
			spec.Marker, spec.Grace = newMarker(t), time.Hour
			h := startHost(t, hostOrder{Spec: spec, Tag: tag})
			h.await("started")
			id.awaitCount(t, 5) // two shells, three sleeps
			r := newRunner(t)
			h.kill()
			if err := search(r, spec.Marker, tag); err != nil {
				t.Error(err)
			}
			id.mustBeGone(t)
		})
	}
}

// When the helper's input ends, it ends what it runs, and then itself.
func TestHelperEnds(t *testing.T) {
	id := newTracer(t)
	spec := script(fmt.Sprintf(shapes[4].script, id))
	spec.Grace = 20 * time.Millisecond
	h := startHost(t, hostOrder{Spec: spec})
	h.await("started")
	_ = h.in.Close()
	h.await("closed")
	id.mustBeGone(t)
	if err := h.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// A command can kill everything its user owns, helper and reapers included; inside
// a process namespace that ends with the helper, and nothing of it is left.
func TestCommandKillsEverything(t *testing.T) {
	prefix := namespace(t)
	id := newTracer(t)
	h := startHost(t, hostOrder{Spec: script("setsid sleep " + string(id) + " & echo now; kill -9 -1; sleep " + string(id))}, prefix...)
	h.awaitText("now")
	h.kill()
	id.awaitCount(t, 0)
}

// namespace returns the words that run a program as process 1 of a process
// namespace of its own, as a user without any rights where possible.
func namespace(t testing.TB) []string {
	t.Helper()
	words := []string{"unshare", "--pid", "--fork", "--kill-child", "--mount-proc"}
	if os.Getuid() == 0 {
		// One that nobody else has: a limit on processes counts all of a user's.
		user := strconv.Itoa(100_000 + rand.IntN(1<<30))
		words = append(words, "setpriv", "--reuid="+user, "--regid="+user, "--clear-groups", "--")
	} else {
		words = append(words, "--user", "--")
	}
	out, err := exec.Command(words[0], append(words[1:], "true")...).CombinedOutput() //nolint:noctx // at once
	if err != nil {
		missing(t, fmt.Sprintf("no process namespaces here: %v: %s", err, out))
	}
	return words
}

// missing skips a test for want of something, or fails it where everything has to
// be there.
func missing(t testing.TB, reason string) {
	t.Helper()
	if os.Getenv("BERTH_REQUIRE_ENGINES") == "1" {
		t.Fatal(reason)
	}
	t.Skip(reason)
}

// As process 1 the helper reaps whatever loses its parent in its namespace, though
// it has nothing to do with any command.
func TestAsProcessOne(t *testing.T) {
	prefix := namespace(t)
	id := newTracer(t)
	h := startHost(t, hostOrder{Spec: script("cat /proc/1/comm; sleep " + string(id))}, prefix...)
	if got := h.awaitText("\n"); got != HelperName+"\n" {
		t.Errorf("process 1 is %q", got)
	}
	first := allChildren(h.cmd.Process.Pid) // of unshare
	if len(first) != 1 {
		t.Fatalf("children of unshare: %v", first)
	}
	visit := exec.Command("nsenter", "--target", strconv.Itoa(first[0]), "--pid", "--", "sh", "-c", "(sleep 0.05; exit 3) & (sleep 0.02 &); exit 0") //nolint:noctx // ends by itself
	if out, err := visit.CombinedOutput(); err != nil {
		if os.Getuid() != 0 {
			t.Skip("only root can send somebody into the namespace")
		}
		missing(t, fmt.Sprintf("nobody may enter a namespace here: %v: %s", err, out))
	}
	// The visitors' children are process 1's now, first alive, then dead, then reaped:
	// what is left are reapers.
	eventually(t, "only reapers", func() bool {
		for _, pid := range allChildren(first[0]) {
			if reaperArgs(pid) == nil {
				return false
			}
		}
		return true
	})
	_ = h.in.Close()
	h.await("closed")
}

// A user without rights cannot look into a reaper or debug it.
func TestAsAnotherUser(t *testing.T) {
	prefix := namespace(t)
	h := startHost(t, hostOrder{Spec: script(`
for what in environ mem fd/3 exe; do
	if cat /proc/$PPID/$what > /dev/null 2>&1; then echo "open: $what"; fi
	if cat /proc/1/$what > /dev/null 2>&1; then echo "open: 1 $what"; fi
done
echo done`)}, prefix...)
	if got := h.awaitText("done"); got != "done\n" {
		t.Errorf("output %q", got)
	}
	if e := h.terminate(0); e.Result.Outcome != proc.Gone {
		t.Errorf("result %+v", e.Result)
	}
}

// Where there is no room for a command its start is refused as such; the helper
// survives, and goes on when there is room again.
func TestNoRoom(t *testing.T) {
	for name, prefix := range map[string][]string{
		"processes":   append([]string{"prlimit", "--nproc=100:100", "--"}, namespace(t)...),
		"descriptors": {"prlimit", "--nofile=60:60", "--"},
	} {
		t.Run(name, func(t *testing.T) {
			if raceEnabled && name == "processes" {
				t.Skip("a program under the race detector ends when it cannot have another thread")
			}
			h := startHost(t, hostOrder{Spec: script("echo room; exec sleep 3600"), Fill: true}, prefix...)
			e := h.await("refused")
			if e.Text != string(proc.LimitReached) || e.Pid < 3 {
				t.Errorf("refused with reason %q after %d commands, want %q", e.Text, e.Pid, proc.LimitReached)
			}
			h.awaitText("room")
			if e := h.terminate(-1); e.Result.Outcome != proc.Gone {
				t.Errorf("result %+v", e.Result)
			}
			_ = h.in.Close()
			h.await("closed")
		})
	}
}

// A fork bomb, with a limit around it so that the machine is safe, is ended: with
// proof, and the helper and its other commands survive it.
func TestForkBomb(t *testing.T) {
	prefix := namespace(t)
	if _, err := exec.LookPath("perl"); err != nil {
		t.Skip("no perl: a shell gives up when it cannot fork")
	}
	for name, bomb := range map[string]string{
		"bomb":          `while (1) { fork }`,
		"bomb setsid":   `use POSIX; while (1) { fork; POSIX::setsid() }`,
		"fork and end":  `for (1..20) { last unless fork } while (1) { my $p = fork; exit if $p }`,
		"fork and exec": `for (1..10) { last unless fork } while (1) { my $p = fork; exec "perl", "-e", "\$SIG{TERM} = q(IGNORE); sleep 1 while 1" if defined $p && !$p }`,
	} {
		t.Run(name, func(t *testing.T) {
			spec := proc.Spec{
				Argv: []string{"perl", "-e", `$SIG{TERM} = "IGNORE"; $| = 1; print "lit"; ` + bomb}, Env: testEnv(),
				Limits: proc.Limits{Processes: 100},
			}
			h := startHost(t, hostOrder{Spec: spec}, prefix...)
			h.awaitText("lit")
			time.Sleep(300 * time.Millisecond) //sleep: the bomb's time to grow up to its limit
			e := h.terminate(50 * time.Millisecond)
			if e.Result.Outcome != proc.Gone {
				t.Errorf("result %+v", e.Result)
			}
			t.Logf("gone %v after the grace, %d killed", e.Took-50*time.Millisecond, e.Result.Killed)
			if s := h.await("ended").Status; s.Unknown {
				t.Errorf("the reaper did not survive: %+v", s)
			}
		})
	}
}
