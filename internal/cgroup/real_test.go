package cgroup

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/workberth/workberth/internal/osthread"
)

// group makes a real group, or skips.
func group(t *testing.T, l Limits) *Group {
	t.Helper()
	h, err := Find()
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("workberth-test-%d-%s", os.Getpid(), strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-")))
	var announced []string
	g, missing, err := h.Create(name, l, func(dirs []string) error {
		announced = dirs
		for _, dir := range dirs {
			if _, err := os.Stat(dir); err == nil {
				t.Errorf("%s was made before it was announced", dir)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(missing) > 0 {
		t.Skipf("groups with these limits cannot be made here: %v", missing)
	}
	if !slices.Equal(announced, g.Dirs()) {
		t.Errorf("announced %v, made %v", announced, g.Dirs())
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := g.Kill(ctx); err != nil {
			t.Error(err)
		}
		if err := g.Remove(ctx); err != nil {
			t.Error(err)
		}
		for _, dir := range g.Dirs() {
			if _, err := os.Stat(dir); err == nil {
				t.Errorf("%s is left", dir)
			}
		}
	})
	return g
}

// start runs a script in the group.
func start(t *testing.T, g *Group, script string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	started := make(chan error, 1)
	osthread.Go(func() {
		release, err := g.Enter(cmd.SysProcAttr)
		if err == nil {
			err = cmd.Start()
			release()
		}
		started <- err
	})
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	return cmd, &out
}

// A process is in the group from its first instruction on.
func TestEnter(t *testing.T) {
	g := group(t, Limits{Pids: 20, MemoryBytes: 256 << 20, CPUs: 1.5})
	for range 20 {
		cmd, out := start(t, g, "cat /proc/self/cgroup")
		if err := cmd.Wait(); err != nil {
			t.Fatal(err, out)
		}
		if n := strings.Count(out.String(), filepath.Base(g.Dirs()[0])+"\n"); n < len(g.Dirs()) {
			t.Fatalf("membership %s, want %d groups of %v", out, len(g.Dirs()), g.Dirs())
		}
	}
	self, err := os.ReadFile("/proc/self/cgroup")
	if err != nil || strings.Contains(string(self), "workberth-test") {
		t.Errorf("this process itself is in %s (%v)", self, err)
	}
}

func TestPidsLimit(t *testing.T) {
	g := group(t, Limits{Pids: 10})
	cmd, out := start(t, g, `i=0; while [ $i -lt 30 ]; do sleep 60 >/dev/null 2>&1 & i=$((i+1)); done; echo not reached`)
	_ = cmd.Wait()
	if !strings.Contains(strings.ToLower(out.String()), "fork") || strings.Contains(out.String(), "not reached") {
		t.Errorf("30 processes were started in a group of 10: %s", out)
	}
	pids, err := g.Pids()
	if err != nil || len(pids) == 0 || len(pids) > 10 {
		t.Errorf("processes %v, %v", pids, err)
	}
}

func TestMemoryLimit(t *testing.T) {
	g := group(t, Limits{MemoryBytes: 32 << 20})
	cmd, out := start(t, g, `head -c 200000000 /dev/zero | tail -c 190000000 >/dev/null; echo "status $?"`)
	_ = cmd.Wait()
	if g.OOMKills() == 0 {
		t.Errorf("nothing was killed: %s", out)
	}
}

// A tree that forks as fast as it can is ended.
func TestKill(t *testing.T) {
	g := group(t, Limits{Pids: 60})
	cmd, _ := start(t, g, `f() { f | f & f; }; trap "" TERM; f 2>/dev/null`)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := g.Kill(ctx); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	pids, err := g.Pids()
	for _, p := range pids {
		if p != os.Getpid() {
			t.Errorf("process %d is left", p)
		}
	}
	if err != nil {
		t.Error(err)
	}
}

// Who comes after a crash finds the group again by its record.
func TestLeftover(t *testing.T) {
	g := group(t, Limits{Pids: 20})
	cmd, _ := start(t, g, "sleep 600")
	again, err := Leftover(filepath.Base(g.Dirs()[0]), g.Dirs())
	if err != nil {
		t.Fatal(err)
	}
	if len(again.Dirs()) != len(g.Dirs()) {
		t.Fatalf("found %v, want %v", again.Dirs(), g.Dirs())
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := again.Kill(ctx); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the process ended by itself")
	}
	if err := again.Remove(ctx); err != nil {
		t.Error(err)
	}
}
