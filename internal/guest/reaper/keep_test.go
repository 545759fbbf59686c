//go:build linux

package reaper

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/workberth/workberth/internal/guest/proc"
)

// keepScript leaves two processes behind, one of them without its environment, that
// write now and then.
func keepScript(id tracer) string {
	return fmt.Sprintf(`
(while :; do echo alive %[1]s; sleep 0.02; done) &
(env -i setsid /bin/sh -c 'while :; do echo alive %[1]s; /bin/sleep 0.02; done' &)
echo left; exit 3`, id)
}

// mustLive fails unless two processes carry the tracer.
func mustLive(t testing.TB, id tracer) {
	t.Helper()
	eventually(t, "two live processes", func() bool { return len(id.alive()) >= 2 })
}

// Kept descendants go on, writing included, and can be ended later.
func TestKeepDescendants(t *testing.T) {
	r := newRunner(t)
	for _, tty := range []*proc.Size{nil, {Rows: 24, Cols: 80}} {
		t.Run(fmt.Sprintf("tty %t", tty != nil), func(t *testing.T) {
			id := newTracer(t)
			spec := script(keepScript(id))
			spec.KeepDescendants, spec.Marker, spec.TTY = true, newMarker(t), tty
			if tty != nil {
				spec.Argv[2] = "trap '' HUP; " + spec.Argv[2]
			}
			p, stdout, _ := begin(t, r, spec, nil)
			s, err := p.Wait(testContext(t))
			if err != nil || s.Code != 3 || s.Leftover < 2 || !strings.Contains(stdout.String(), "left") {
				t.Fatalf("%+v, %v, %q", s, err, stdout.String())
			}
			time.Sleep(100 * time.Millisecond) //sleep: they must live although nobody reads what they write
			mustLive(t, id)
			result, err := r.Terminate(testContext(t), spec.Marker, time.Millisecond)
			if err != nil || result.Outcome != proc.Gone || result.Killed < 2 {
				t.Errorf("%+v, %v", result, err)
			}
			id.mustBeGone(t)
		})
	}
}

// A tree that was to be kept is over by itself when its last process ends.
func TestKeptTreeEndsByItself(t *testing.T) {
	r := newRunner(t)
	spec := script("(sleep 0.5; echo late) & exit 0")
	spec.KeepDescendants = true
	p, _, _ := begin(t, r, spec, nil)
	if s, err := p.Wait(testContext(t)); err != nil || s.Leftover == 0 {
		t.Errorf("%+v, %v", s, err)
	}
	select {
	case <-p.(*command).over:
	case <-testContext(t).Done():
		t.Error("the tree is not over")
	}
}

// A writer that fails does not end what is to be kept.
func TestKeptTreeSurvivesWriter(t *testing.T) {
	r := newRunner(t)
	id := newTracer(t)
	spec := script(keepScript(id) + "; sleep 0.1")
	spec.Argv[2] = strings.Replace(spec.Argv[2], "exit 3", "sleep 0.05; exit 3", 1)
	spec.KeepDescendants = true
	p, err := r.Start(testContext(t), spec, proc.IO{Stdout: &failingWriter{10}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := p.Wait(testContext(t))
	if err == nil || s.Code != 3 {
		t.Errorf("%+v, %v", s, err)
	}
	mustLive(t, id)
	terminate(t, p, -1)
}

// Kept trees outlive the helper, killed or closed, and the next one finds them by
// their marker: also what dropped its environment, because the reaper is still
// there. Q-09
func TestKeptTreeOutlivesHelper(t *testing.T) {
	for _, killed := range []bool{true, false} {
		t.Run(fmt.Sprintf("killed %t", killed), func(t *testing.T) {
			id := newTracer(t)
			spec := script(keepScript(id))
			spec.KeepDescendants, spec.Marker = true, newMarker(t)
			h := startHost(t, hostOrder{Spec: spec})
			h.await("ended")
			if killed {
				h.kill()
			} else {
				_ = h.in.Close()
				h.await("closed")
				if err := h.cmd.Wait(); err != nil {
					t.Error(err)
				}
			}
			time.Sleep(100 * time.Millisecond) //sleep: they must live although the reader of what they write is gone
			mustLive(t, id)

			other := newTracer(t)
			bystander := exec.Command("sleep", string(other)) //nolint:noctx // killed below
			bystander.Env = append(testEnv(), proc.MarkerVar+"="+newMarker(t))
			if err := bystander.Start(); err != nil {
				t.Fatal(err)
			}
			r := newRunner(t)
			result, err := r.Terminate(testContext(t), spec.Marker, 10*time.Millisecond)
			if err != nil || result.Outcome != proc.Gone || result.Killed == 0 {
				t.Errorf("%+v, %v", result, err)
			}
			id.mustBeGone(t)
			other.awaitCount(t, 1) // SBX-10
			_ = bystander.Process.Kill()
			_ = bystander.Wait()
			eventually(t, "the end of its reaper", func() bool { return len(reapersWith(spec.Marker)) == 0 })
		})
	}
}

// reapersWith lists the reapers that have an argument.
func reapersWith(arg string) (list []int) {
	all, err := pids()
	if err != nil {
		panic(err)
	}
	for _, pid := range all {
		if matchesAny(reaperArgs(pid), []string{arg}) {
			list = append(list, pid)
		}
	}
	return list
}

// C087: a sweep ends what dead sessions left, names nothing else, touches no live
// one, and may be repeated.
func TestSweep(t *testing.T) {
	const tag = "session-a"
	dead, live, foreign := newTracer(t), newTracer(t), newTracer(t)
	keep := func(id tracer) proc.Spec {
		spec := script(keepScript(id))
		spec.KeepDescendants, spec.Marker = true, newMarker(t)
		return spec
	}
	h1 := startHost(t, hostOrder{Spec: keep(dead), Tag: tag})
	h2 := startHost(t, hostOrder{Spec: keep(live), Tag: tag})
	h3 := startHost(t, hostOrder{Spec: keep(foreign), Tag: "session-b"})
	for _, h := range []*host{h1, h2, h3} {
		h.await("ended")
	}
	h1.kill()
	h3.kill()

	r := newRunner(t, func(o *Options) { o.Tag = tag })
	own := newTracer(t)
	mine, _, _ := begin(t, r, script("sleep "+string(own)+"; :"), nil)
	own.awaitCount(t, 2)
	n, err := r.Sweep(testContext(t), tag)
	if err != nil || n == 0 {
		t.Errorf("swept %d, %v; want some", n, err)
	}
	dead.mustBeGone(t)
	mustLive(t, live)
	mustLive(t, foreign)
	mustLive(t, own)
	if n, err := r.Sweep(testContext(t), tag); err != nil || n != 0 {
		t.Errorf("the second time swept %d, %v", n, err)
	}
	if _, err := r.Sweep(testContext(t), ""); err == nil {
		t.Error("a sweep without a tag was accepted")
	}
	if n, err := r.Sweep(testContext(t), "session-b"); err != nil || n == 0 {
		t.Errorf("swept %d of the other tag, %v", n, err)
	}
	foreign.mustBeGone(t)
	_ = h2.in.Close()
	h2.await("closed")
	h2.kill()
	if n, err := r.Sweep(testContext(t), tag); err != nil || n == 0 {
		t.Errorf("after its helper ended: swept %d, %v", n, err)
	}
	live.mustBeGone(t)
	terminate(t, mine, -1)
}

// A search never turns against itself: not against this process, its ancestors, or
// reapers, whatever they carry.
func TestSearchSparesItself(t *testing.T) {
	marker := newMarker(t)
	id := newTracer(t)
	inner := script("sleep " + string(id))
	// The host itself, and the shell above it, carry the marker it is asked for.
	h := startHost(t, hostOrder{Spec: inner, Search: marker},
		"env", proc.MarkerVar+"="+marker, "sh", "-c", `"$@"; :`, "sh")
	e := h.await("searched")
	if e.Result.Outcome != proc.Gone || e.Result.Killed != 0 {
		t.Errorf("result %+v, want gone and nothing killed", e.Result)
	}
	if e := h.terminate(-1); e.Result.Outcome != proc.Gone {
		t.Errorf("result %+v", e.Result)
	}
}

// Who only calls itself a reaper is found like everybody else.
func TestSearchFindsFalseReapers(t *testing.T) {
	marker := newMarker(t)
	id := newTracer(t)
	fake := filepath.Join(t.TempDir(), reaperName) // the kernel names a script's process after its file
	writeFile(t, fake, "#!/bin/sh\nsleep "+string(id)+"\n:\n", 0o755)
	cmd := exec.Command(fake, roleReap, marker, string(id)) //nolint:noctx // killed below
	cmd.Env = append(testEnv(), proc.MarkerVar+"="+marker)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	id.awaitCount(t, 2)
	if st, err := readStat(cmd.Process.Pid); err != nil || st.name != reaperName {
		t.Fatalf("the process is %+v, %v", st, err)
	}
	result, err := newRunner(t).Terminate(testContext(t), marker, -1)
	if err != nil || result.Outcome != proc.Gone || result.Killed != 2 {
		t.Errorf("%+v, %v; want two killed", result, err)
	}
	_ = cmd.Wait()
}

// A search's context ends it.
func TestSearchCancelled(t *testing.T) {
	marker := newMarker(t)
	id := newTracer(t)
	cmd := exec.Command("sh", "-c", "trap '' TERM; sleep "+string(id)) //nolint:noctx // killed below
	cmd.Env = append(testEnv(), proc.MarkerVar+"="+marker)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	id.awaitCount(t, 2)
	r := newRunner(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	result, err := r.Terminate(ctx, marker, time.Hour)
	if err == nil || result.Outcome != proc.Unknown {
		t.Errorf("%+v, %v; want unknown and an error", result, err)
	}
	result, err = r.Terminate(testContext(t), marker, -1)
	if err != nil || result.Outcome != proc.Gone {
		t.Errorf("%+v, %v", result, err)
	}
	_ = cmd.Wait()
}
