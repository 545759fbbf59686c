package enginetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/workberth/workberth/internal/container"
)

// forever is a script that runs until it is killed.
const forever = "echo up; exec sleep 100000"

func life(k *kit) {
	before := time.Now().Add(-time.Minute) // the engine may have another clock
	s := k.spec("echo run; exit 7")
	id := k.create(s)
	c := k.inspect(id)
	if c.ID != id || c.Name != s.Name || c.Status != container.StatusCreated || c.PID != 0 || c.Created.Before(before) || c.Exit != (container.Exit{}) {
		k.Errorf("created: %+v", c)
	}
	if image, err := k.engine.Image(k.ctx, k.plain); err != nil || c.ImageID != image.ID {
		k.Errorf("ImageID = %q, image %+v, %v", c.ImageID, image, err)
	}
	if got := c.Labels[label]; got != k.word {
		k.Errorf("label = %q", got)
	}
	for round := 1; round <= 2; round++ {
		if err := k.engine.Start(k.ctx, id); err != nil {
			k.Fatalf("Start: %v", err)
		}
		if code := k.wait(id); code != 7 {
			k.Errorf("round %d: exit code %d, want 7", round, code)
		}
		c := k.inspect(s.Name) // by name
		if c.ID != id || c.Status != container.StatusExited || c.Exit.Code != 7 || c.Exit.OOM || c.Exit.Time.Before(before) || c.Started.Before(before) || c.PID != 0 {
			k.Errorf("round %d: %+v", round, c)
		}
		if got := strings.Count(k.output(id), "run\n"); got != round {
			k.Errorf("the logs have %d runs of %d", got, round)
		}
	}
	if err := k.engine.Remove(k.ctx, id); err != nil {
		k.Errorf("Remove: %v", err)
	}
	_, err := k.engine.Inspect(k.ctx, id)
	k.wantErr("Inspect of a removed one", err, container.ErrNotFound)
	if err := k.engine.Remove(k.ctx, id); err != nil {
		k.Errorf("Remove again: %v", err)
	}
}

func waits(k *kit) {
	id := k.create(k.spec(forever))
	if code := k.wait(id); code != 0 {
		k.Errorf("one that never ran: exit code %d", code)
	}
	if err := k.engine.Start(k.ctx, id); err != nil {
		k.Fatal(err)
	}
	if err := k.engine.Start(k.ctx, id); err != nil {
		k.Errorf("Start of one that runs: %v", err)
	}
	if c := k.inspect(id); c.Status != container.StatusRunning || c.PID == 0 || c.Exit != (container.Exit{}) {
		k.Errorf("running: %+v", c)
	}
	done := make(chan int, 1)
	go func() {
		code, err := k.engine.Wait(k.ctx, id)
		if err != nil {
			code = -1
		}
		done <- code
	}()
	if err := k.engine.Kill(k.ctx, id); err != nil {
		k.Fatal(err)
	}
	if code := <-done; code != 137 {
		k.Errorf("killed while waited for: exit code %d, want 137", code)
	}
	if code := k.wait(id); code != 137 {
		k.Errorf("waited for afterwards: exit code %d, want 137", code)
	}
}

func waitGivenUp(k *kit) {
	id := k.start(k.spec(forever))
	ctx, cancel := context.WithCancel(k.ctx)
	done := make(chan error, 1)
	go func() {
		_, err := k.engine.Wait(ctx, id)
		done <- err
	}()
	select {
	case err := <-done:
		k.Errorf("Wait of a running one = %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	cancel()
	k.wantErr("Wait given up", <-done, context.Canceled)
	if c := k.inspect(id); c.Status != container.StatusRunning {
		k.Errorf("afterwards: %+v", c)
	}
}

func waitRemoved(k *kit) {
	id := k.start(k.spec(forever))
	done := make(chan error, 1)
	go func() {
		_, err := k.engine.Wait(k.ctx, id)
		done <- err
	}()
	select {
	case err := <-done:
		k.Fatalf("Wait of a running one = %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	k.remove(id)
	// Who sees the end before the removal may tell the exit code.
	if err := <-done; err != nil {
		k.wantErr("Wait", err, container.ErrNotFound)
	}
	_, err := k.engine.Wait(k.ctx, id)
	k.wantErr("Wait afterwards", err, container.ErrNotFound)
}

func logs(k *kit) {
	id := k.start(k.spec("for i in 1 2 3 4; do echo line $i; done; printf 'a\\001b\\n'; printf end"))
	k.wait(id)
	all := "line 1\nline 2\nline 3\nline 4\na\x01b\nend"
	for lines, want := range map[int]string{0: "", 1: "end", 2: "a\x01b\nend", 3: "line 4\na\x01b\nend", 6: all, 1000: all} {
		got, err := k.engine.Logs(k.ctx, id, lines, time.Time{})
		if text := strings.TrimSuffix(string(got), "\n"); err != nil || text != want {
			k.Errorf("Logs(%d) = %q, %v; want %q", lines, text, err, want)
		}
	}
	// A long line may count as several, but it is one.
	long := strings.Repeat("x", 40_000)
	id = k.start(k.spec("echo " + long + "; printf ' end'"))
	k.wait(id)
	if got := strings.TrimSuffix(k.output(id), "\n"); got != long+"\n end" {
		k.Errorf("a long line: %.80q (%d bytes)", got, len(got))
	}
	id = k.start(k.spec("echo out; echo err >&2"))
	k.wait(id)
	got := strings.Fields(k.output(id))
	slices.Sort(got)
	if !slices.Equal(got, []string{"err", "out"}) {
		k.Errorf("both streams: %q", got)
	}
	// What an earlier run has written can be left out.
	time.Sleep(1100 * time.Millisecond) //sleep: a moment is told to the second by some engines
	again := time.Now()
	if err := k.engine.Start(k.ctx, id); err != nil {
		k.Fatal(err)
	}
	k.wait(id)
	for since, want := range map[time.Time]int{{}: 4, again.Add(-time.Second): 2, again.Add(time.Minute): 0} {
		got, err := k.engine.Logs(k.ctx, id, 10, since)
		if n := bytes.Count(got, []byte("\n")); err != nil || n != want {
			k.Errorf("logs since %s: %q, %v; want %d lines", since, got, err, want)
		}
	}
	id = k.create(k.spec("true"))
	if got, err := k.engine.Logs(k.ctx, id, 10, time.Time{}); err != nil || len(bytes.TrimSpace(got)) > 0 {
		k.Errorf("logs of one that never ran: %q, %v", got, err)
	}
}

// noisy covers output without end: the engine may keep only the last of it, and a reader gets that.
func noisy(k *kit) {
	s := k.spec(`awk 'BEGIN { for (i = 0; i < 200000; i++) print "a line of output that is forty bytes long", i; print "last" }'`)
	id := k.start(s)
	k.wait(id)
	for _, lines := range []int{1, 100, 1_000_000} {
		got, err := k.engine.Logs(k.ctx, id, lines, time.Time{})
		if err != nil || !bytes.HasSuffix(got, []byte("last\n")) || bytes.Count(got, []byte("\n")) > lines {
			k.Errorf("Logs(%d) = %d bytes, %v", lines, len(got), err)
		}
	}
}

func kill(k *kit) {
	id := k.create(k.spec("trap '' TERM INT HUP; sleep 100000 & echo up; wait; sleep 100000"))
	if err := k.engine.Kill(k.ctx, id); err != nil {
		k.Errorf("Kill of one that never ran: %v", err)
	}
	if err := k.engine.Start(k.ctx, id); err != nil {
		k.Fatal(err)
	}
	k.awaitOutput(id, "up")
	if err := k.engine.Kill(k.ctx, id); err != nil {
		k.Fatal(err)
	}
	if code := k.wait(id); code != 137 {
		k.Errorf("exit code %d, want 137", code)
	}
	if err := k.engine.Kill(k.ctx, id); err != nil {
		k.Errorf("Kill of one that has ended: %v", err)
	}
}

func killPaused(k *kit) {
	if k.suite.pause == nil {
		missing(k, "no way to pause a container was given")
	}
	for _, end := range []struct {
		name string
		do   func(ctx context.Context, id string) error
	}{{"Kill", k.engine.Kill}, {"Remove", k.engine.Remove}} {
		id := k.start(k.spec(forever))
		k.awaitOutput(id, "up")
		if err := k.pause(k.ctx, id); err != nil {
			k.Skipf("this engine cannot pause: %v", err)
		}
		if c := k.inspect(id); c.Status != container.StatusPaused {
			k.Errorf("paused: %+v", c)
		}
		if err := end.do(k.ctx, id); err != nil {
			k.Fatalf("%s: %v", end.name, err)
		}
		if end.name == "Remove" {
			_, err := k.engine.Inspect(k.ctx, id)
			k.wantErr("Inspect", err, container.ErrNotFound)
		} else if code := k.wait(id); code != 137 {
			k.Errorf("exit code %d, want 137", code)
		}
	}
}

// killAmongOthers covers containers that share the machine's processes: those of their own do not
// end by themselves when the first one does.
func killAmongOthers(k *kit) {
	if k.about.Rootless {
		k.Skip("the engine of an ordinary user cannot show the machine's processes")
	}
	mark := fmt.Sprint(100_000_000 + time.Now().UnixNano()%1_000_000)
	s := k.spec("sleep " + mark + " & echo up; exec sleep " + mark)
	s.PidMode = "host"
	id := k.start(s)
	k.awaitOutput(id, "up")
	look := func() string {
		s := k.spec("cat /proc/[0-9]*/cmdline 2>/dev/null | grep -c -a 'sleep[^.]" + mark + "'; true")
		s.PidMode = "host"
		return k.mustRun(s)
	}
	if got := look(); got == "0" {
		k.Fatal("the processes are not seen")
	}
	if err := k.engine.Kill(k.ctx, id); err != nil {
		k.Fatal(err)
	}
	k.wait(id)
	if got := look(); got != "0" {
		k.Errorf("processes of a killed container are left")
	}
}

func remove(k *kit) {
	id := k.start(k.spec(forever))
	k.awaitOutput(id, "up")
	begun := time.Now()
	if err := k.engine.Remove(k.ctx, id); err != nil {
		k.Fatal(err)
	}
	if took := time.Since(begun); took > 8*time.Second {
		k.Errorf("it took %v: the container was asked before it was killed", took)
	}
	_, err := k.engine.Inspect(k.ctx, id)
	k.wantErr("Inspect", err, container.ErrNotFound)
}

// removeTogether covers several who remove one container: it is gone for all of them.
func removeTogether(k *kit) {
	id := k.start(k.spec(forever))
	k.awaitOutput(id, "up")
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if err := k.engine.Remove(k.ctx, id); err != nil {
				k.Errorf("Remove: %v", err)
			}
			_, err := k.engine.Inspect(k.ctx, id)
			k.wantErr("Inspect", err, container.ErrNotFound)
		})
	}
	group.Wait()
}

// failedStart covers a container that cannot be started, and later can.
func failedStart(k *kit) {
	source := filepath.Join(k.shared, "later")
	if err := os.Mkdir(source, 0o755); err != nil {
		k.Fatal(err)
	}
	s := k.spec("exit 3")
	s.Mounts = append(s.Mounts, container.Mount{Target: "/bound", Source: source})
	id := k.create(s)
	if err := os.Remove(source); err != nil {
		k.Fatal(err)
	}
	err := k.engine.Start(k.ctx, id)
	if err == nil || !strings.Contains(err.Error(), source) {
		k.Errorf("Start = %v, want an error that names %s", err, source)
	}
	for _, kind := range []error{container.ErrNotFound, container.ErrConflict, container.ErrUnreachable} {
		if errors.Is(err, kind) {
			k.Errorf("Start = %v, which is no %q", err, kind)
		}
	}
	if c := k.inspect(id); c.Status != container.StatusCreated && c.Status != container.StatusExited || c.PID != 0 {
		k.Errorf("after a failed start: %+v", c)
	}
	k.wait(id)
	if err := os.Mkdir(source, 0o755); err != nil {
		k.Fatal(err)
	}
	if err := k.engine.Start(k.ctx, id); err != nil {
		k.Fatalf("Start: %v", err)
	}
	if code := k.wait(id); code != 3 {
		k.Errorf("exit code %d, want 3", code)
	}
	if c := k.inspect(id); c.Exit.Code != 3 || c.Exit.Error != "" {
		k.Errorf("after a start that went well: %+v", c)
	}
}
