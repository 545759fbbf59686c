package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	idA ID = "fake-aaaaaaaaaaaaaaaa"
	idB ID = "fake-bbbbbbbbbbbbbbbb"
	idC ID = "other-cccccccccccccccc"
)

// childVar makes this test program play another owner; see runRegistryChild.
const childVar = "BERTH_SANDBOX_TEST_CHILD"

// runRegistryChild plays another process: "hold DIR ID" claims, saves, says so and waits
// for ever; "race DIR ID N" tries N times to claim and counts up a file while it holds
// the claim; "write DIR ID" saves without an end.
func runRegistryChild() bool {
	role := strings.Fields(os.Getenv(childVar))
	if len(role) == 0 {
		return false
	}
	r, err := OpenRegistry(role[1], RegistryOptions{})
	if err != nil {
		panic(err)
	}
	id := ID(role[2])
	ctx := context.Background()
	switch role[0] {
	case "hold":
		c, err := r.Claim(ctx, id)
		if err != nil {
			panic(err)
		}
		sleep := exec.Command("sleep", "1000")
		if err := sleep.Start(); err != nil {
			panic(err)
		}
		ref, err := RefOf(sleep.Process.Pid)
		if err != nil {
			panic(err)
		}
		if err := c.Save(Record{Info: Info{State: StateRunning}, Runtimes: []ProcessRef{ref}, InstanceTag: "tag1"}); err != nil {
			panic(err)
		}
		fmt.Println("holding", ref.PID)
		select {}
	case "race":
		counter := filepath.Join(role[1], "counter")
		for done := 0; done < 100; {
			c, err := r.Claim(ctx, id)
			if errors.Is(err, ErrInUse) {
				continue
			}
			if err != nil {
				panic(err)
			}
			data, _ := os.ReadFile(counter)
			var n int
			fmt.Sscan(string(data), &n)
			if err := os.WriteFile(counter, []byte(fmt.Sprint(n+1)), 0o600); err != nil {
				panic(err)
			}
			done++
			switch done % 3 {
			case 0:
				err = c.Delete(ctx)
			case 1:
				err = errors.Join(c.Save(Record{Info: Info{Detail: "x"}}), c.Release())
			default:
				err = c.Release()
			}
			if err != nil {
				panic(err)
			}
		}
	case "write":
		c, err := r.Claim(ctx, id)
		if err != nil {
			panic(err)
		}
		fmt.Println("writing")
		for n := 0; ; n++ {
			if err := c.Save(Record{InstanceTag: fmt.Sprint(n), Info: Info{Detail: strings.Repeat("x", n%50000)}}); err != nil {
				panic(err)
			}
		}
	}
	return true
}

// child starts this program in a role. It is killed at the end of the test.
func child(t *testing.T, role ...string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVar+"="+strings.Join(role, " "))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd, bufio.NewScanner(out)
}

func openTest(t *testing.T) (*Registry, string, *time.Time, *bytes.Buffer) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	now := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	var log bytes.Buffer
	r, err := OpenRegistry(dir, RegistryOptions{Now: func() time.Time { return now }, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return r, dir, &now, &log
}

func claim(t *testing.T, r *Registry, id ID) *Claim {
	t.Helper()
	c, err := r.Claim(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Release() })
	return c
}

func TestRegistryRecord(t *testing.T) {
	r, dir, now, _ := openTest(t)
	c := claim(t, r, idA)
	if _, known := c.Record(); known {
		t.Error("a new sandbox has a record")
	}
	if recs, corrupt, err := r.List(""); err != nil || len(recs)+len(corrupt) > 0 {
		t.Errorf("List = %v, %v, %v", recs, corrupt, err)
	}
	rec := Record{
		Info:    Info{Backend: "fake", State: StateRunning, Workspace: "/w\xff", Config: Config{Env: map[string]string{"TOKEN": "hunter2"}}},
		Scratch: "/s", InstanceTag: "t1", PendingSweep: []string{"t0"},
	}
	if err := c.Save(rec); err != nil {
		t.Fatal(err)
	}
	*now = now.Add(time.Hour)
	if err := c.Update(func(rec *Record) { rec.SetupDone = true }); err != nil {
		t.Fatal(err)
	}
	got, err := r.Get(idA)
	self, _ := SelfRef()
	if err != nil || got.Info.ID != idA || got.Info.Owner != self || !got.SetupDone || got.InstanceTag != "t1" || got.PendingSweep[0] != "t0" || got.Version != 1 {
		t.Errorf("Get = %+v, %v", got, err)
	}
	if got.Info.LastUsed.Sub(got.Info.Created) != time.Hour {
		t.Errorf("created %s, used %s", got.Info.Created, got.Info.LastUsed)
	}
	data, _ := os.ReadFile(filepath.Join(dir, "sandboxes", string(idA), "record.json"))
	if bytes.Contains(data, []byte("hunter2")) || !bytes.Contains(data, []byte("TOKEN")) {
		t.Errorf("record on disk: %s", data)
	}
	if got.Describe().State != StateRunning {
		t.Errorf("described as %+v", got.Describe())
	}
	got.Info.Owner.StartTime++
	if d := got.Describe(); d.State != StateDead || d.Detail == "" {
		t.Errorf("described as %+v with a dead owner", d)
	}
	if _, err := r.Get(idB); !errors.Is(err, ErrNotFound) {
		t.Errorf("Get unknown = %v", err)
	}
	if _, err := r.Get("../x"); !errors.Is(err, ErrNotFound) {
		t.Errorf("Get odd = %v", err)
	}
	if _, err := r.Claim(t.Context(), "../x"); !errors.Is(err, ErrRefused) {
		t.Errorf("Claim odd = %v", err)
	}
}

func TestRegistryModes(t *testing.T) {
	r, dir, _, _ := openTest(t)
	c := claim(t, r, idA)
	if err := c.Save(Record{}); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %o", path, info.Mode().Perm())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestClaimInUse(t *testing.T) {
	r, dir, _, _ := openTest(t)
	c := claim(t, r, idA)
	other, err := OpenRegistry(dir, RegistryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var inUse *InUseError
	self, _ := SelfRef()
	if _, err := other.Claim(t.Context(), idA); !errors.As(err, &inUse) || !errors.Is(err, ErrInUse) || inUse.Owner != self || inUse.ID != idA {
		t.Errorf("Claim = %v", err)
	}
	claim(t, other, idB) // another one is free
	if err := c.Save(Record{Info: Info{State: StateStopped}}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := c.Release(); err != nil {
			t.Error(err)
		}
	}
	if err := c.Save(Record{}); !errors.Is(err, ErrGone) {
		t.Errorf("Save after Release = %v", err)
	}
	if rec, err := other.Get(idA); err != nil || !rec.Info.Owner.IsZero() || rec.Info.State != StateStopped {
		t.Errorf("released record %+v, %v", rec, err)
	}
	again := claim(t, other, idA)
	if rec, known := again.Record(); !known || rec.Info.State != StateStopped {
		t.Errorf("taken over %+v, %v", rec, known)
	}
	if err := again.Delete(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(again.Dir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("deleted entry: %v", err)
	}
	if err := again.Delete(t.Context()); err != nil {
		t.Errorf("Delete again = %v", err)
	}
}

// A live owner is believed even when somebody removed the lock file.
func TestClaimWithoutLockFile(t *testing.T) {
	r, dir, _, _ := openTest(t)
	cmd, lines := child(t, "hold", dir, string(idA))
	if !lines.Scan() {
		t.Fatal("the other process does not hold it")
	}
	if err := os.Remove(filepath.Join(dir, "sandboxes", string(idA), "lock")); err != nil {
		t.Fatal(err)
	}
	var inUse *InUseError
	if _, err := r.Claim(t.Context(), idA); !errors.As(err, &inUse) || inUse.Owner.PID != cmd.Process.Pid {
		t.Errorf("Claim = %v, the owner is %d", err, cmd.Process.Pid)
	}
	killRuntime(t, lines.Text())
}

// killRuntime ends the process that a "hold" child told of.
func killRuntime(t *testing.T, line string) {
	t.Helper()
	var pid int
	fmt.Sscanf(line, "holding %d", &pid)
	if ref, err := RefOf(pid); err == nil {
		if err := ref.Kill(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// Several processes race for one claim: never two at a time, deletions included.
func TestClaimRace(t *testing.T) {
	_, dir, _, _ := openTest(t)
	var cmds []*exec.Cmd
	for range 4 {
		cmd, _ := child(t, "race", dir, string(idA))
		cmds = append(cmds, cmd)
	}
	for _, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Errorf("a racer failed: %v", err)
		}
	}
	data, err := os.ReadFile(filepath.Join(dir, "counter"))
	if err != nil || string(data) != "400" {
		t.Errorf("counted %q, want 400: two held it at the same time (%v)", data, err)
	}
}

func TestClaimRaceInOneProcess(t *testing.T) {
	r, _, _, _ := openTest(t)
	holders := 0
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for done := 0; done < 25; {
				c, err := r.Claim(t.Context(), idA)
				if errors.Is(err, ErrInUse) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if holders++; holders > 1 {
					t.Error("two hold one sandbox")
				}
				mu.Unlock()
				runtime.Gosched()
				mu.Lock()
				holders--
				mu.Unlock()
				if done%2 == 0 {
					err = c.Delete(t.Context())
				} else {
					err = c.Release()
				}
				if err != nil {
					t.Error(err)
				}
				done++
			}
		})
	}
	wg.Wait()
}

// A writer that is killed at any moment leaves a whole record, and what it left beside it
// is cleared away.
func TestKilledWriter(t *testing.T) {
	r, dir, _, _ := openTest(t)
	rounds := 25
	if testing.Short() {
		rounds = 5
	}
	for i := range rounds {
		cmd, lines := child(t, "write", dir, string(idA))
		if !lines.Scan() {
			t.Fatal("no writer")
		}
		path := filepath.Join(dir, "sandboxes", string(idA), "record.json")
		first, _ := os.Stat(path)
		for { // until it has written at least once, then kill it wherever it is
			if info, err := os.Stat(path); err == nil && (first == nil || !os.SameFile(first, info)) {
				break
			}
		}
		cmd.Process.Kill()
		cmd.Wait()
		if _, err := r.Get(idA); err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
	}
	c := claim(t, r, idA)
	names, err := os.ReadDir(c.Dir())
	if err != nil || len(names) != 2 {
		t.Errorf("left over: %v, %v", names, err)
	}
}

// C087: what a dead owner left is ended, what a live one has is not touched, and a second
// look finds nothing.
func TestReconcile(t *testing.T) {
	r, dir, _, log := openTest(t)
	dead, lines := child(t, "hold", dir, string(idA))
	if !lines.Scan() {
		t.Fatal("no owner A")
	}
	lineA := lines.Text()
	_, lines = child(t, "hold", dir, string(idB))
	if !lines.Scan() {
		t.Fatal("no owner B")
	}
	lineB := lines.Text()
	recA, err := r.Get(idA)
	if err != nil {
		t.Fatal(err)
	}
	recB, err := r.Get(idB)
	if err != nil {
		t.Fatal(err)
	}
	if reaped, err := r.Reconcile(t.Context(), "", nil); err != nil || len(reaped) != 0 {
		t.Errorf("Reconcile with live owners = %+v, %v", reaped, err)
	}
	dead.Process.Kill()
	dead.Wait()
	if !recA.Runtimes[0].Alive() {
		t.Fatal("the runtime of A died with its owner; the test proves nothing")
	}
	if reaped, err := r.Reconcile(t.Context(), "other", nil); err != nil || len(reaped) != 0 {
		t.Errorf("Reconcile of another backend = %+v, %v", reaped, err)
	}
	reaped, err := r.Reconcile(t.Context(), "fake", nil)
	if err != nil || len(reaped) != 1 || reaped[0].ID != idA || reaped[0].Owner != recA.Info.Owner || !slices.Equal(reaped[0].Killed, recA.Runtimes) || reaped[0].Tag != "tag1" || reaped[0].Err != nil {
		t.Errorf("Reconcile = %+v, %v", reaped, err)
	}
	if recA.Runtimes[0].Alive() {
		t.Error("the runtime of A is alive")
	}
	if !recB.Runtimes[0].Alive() {
		t.Error("the runtime of B was killed")
	}
	rec, err := r.Get(idA)
	if err != nil || rec.Info.State != StateStopped || !rec.Info.Owner.IsZero() || len(rec.Runtimes) != 0 || rec.InstanceTag != "" || !slices.Equal(rec.PendingSweep, []string{"tag1"}) {
		t.Errorf("record after: %+v, %v", rec, err)
	}
	if !rec.Info.LastUsed.Equal(recA.Info.LastUsed) {
		t.Error("reconciling counted as use")
	}
	if rec, err := r.Get(idB); err != nil || rec.Info.State != StateRunning || len(rec.Runtimes) != 1 {
		t.Errorf("record of B: %+v, %v", rec, err)
	}
	if text := log.String(); !strings.Contains(text, "owner had died") || !strings.Contains(text, string(idA)) || strings.Contains(text, string(idB)) {
		t.Errorf("log %q", text)
	}
	if reaped, err := r.Reconcile(t.Context(), "", nil); err != nil || len(reaped) != 0 {
		t.Errorf("Reconcile again = %+v, %v", reaped, err)
	}
	killRuntime(t, lineA)
	killRuntime(t, lineB)
}

// A pid that now belongs to another process is not ours to kill.
func TestReconcileSparesReusedPid(t *testing.T) {
	r, _, _, _ := openTest(t)
	innocent := exec.Command("sleep", "1000")
	if err := innocent.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { innocent.Process.Kill(); innocent.Wait() }()
	ref, err := RefOf(innocent.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*ProcessRef){
		"start time": func(p *ProcessRef) { p.StartTime-- },
		"boot":       func(p *ProcessRef) { p.BootID = "another boot" },
	} {
		c := claim(t, r, idA)
		old := ref
		change(&old)
		if err := c.Save(Record{Info: Info{State: StateRunning}, Runtimes: []ProcessRef{old}}); err != nil {
			t.Fatal(err)
		}
		c.orphan(t)
		kill := func(context.Context, Record, ProcessRef) error { t.Errorf("%s: asked to kill it", name); return nil }
		if reaped, err := r.Reconcile(t.Context(), "", kill); err != nil || len(reaped) != 1 || len(reaped[0].Killed) != 0 {
			t.Errorf("%s: Reconcile = %+v, %v", name, reaped, err)
		}
		if err := old.Kill(t.Context()); err != nil || !ref.Alive() {
			t.Errorf("%s: Kill hit another process (%v)", name, err)
		}
	}
}

// orphan makes the record look as if its owner had died.
func (c *Claim) orphan(t *testing.T) {
	t.Helper()
	rec, _ := c.Record()
	dead := c.self
	dead.StartTime++
	c.mu.Lock()
	err := c.save(rec, dead, c.registry.now())
	c.mu.Unlock()
	if err := errors.Join(err, c.giveBack()); err != nil {
		t.Fatal(err)
	}
}

// What cannot be killed is told and tried again.
func TestReconcileFailure(t *testing.T) {
	r, _, _, _ := openTest(t)
	proc := exec.Command("sleep", "1000")
	if err := proc.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { proc.Process.Kill(); proc.Wait() }()
	ref, err := RefOf(proc.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	c := claim(t, r, idA)
	if err := c.Save(Record{Info: Info{State: StateRunning}, Runtimes: []ProcessRef{ref}, InstanceTag: "t"}); err != nil {
		t.Fatal(err)
	}
	c.orphan(t)
	boom := errors.New("boom")
	for name, kill := range map[string]KillFunc{
		"an error": func(context.Context, Record, ProcessRef) error { return boom },
		"a lie":    func(context.Context, Record, ProcessRef) error { return nil },
	} {
		reaped, err := r.Reconcile(t.Context(), "", kill)
		if err != nil || len(reaped) != 1 || reaped[0].Err == nil || !slices.Equal(reaped[0].Left, []ProcessRef{ref}) || reaped[0].Tag != "" {
			t.Errorf("%s: Reconcile = %+v, %v", name, reaped, err)
		}
		if rec, _ := r.Get(idA); rec.Info.State != StateDead || len(rec.Runtimes) != 1 || rec.InstanceTag != "t" {
			t.Errorf("%s: record %+v", name, rec)
		}
	}
	if reaped, err := r.Reconcile(t.Context(), "", nil); err != nil || len(reaped) != 1 || len(reaped[0].Killed) != 1 || reaped[0].Tag != "t" {
		t.Errorf("Reconcile = %+v, %v", reaped, err)
	}
}

// Reap does for one claim what Reconcile does for all.
func TestReap(t *testing.T) {
	r, _, _, _ := openTest(t)
	c := claim(t, r, idA)
	if _, ok := c.Reap(t.Context(), nil); ok {
		t.Error("reaped a new sandbox")
	}
	if err := c.Save(Record{Info: Info{State: StateRunning}, InstanceTag: "t"}); err != nil {
		t.Fatal(err)
	}
	c.orphan(t)
	c = claim(t, r, idA)
	reaped, ok := c.Reap(t.Context(), nil)
	if !ok || reaped.Tag != "t" || reaped.Err != nil {
		t.Errorf("Reap = %+v, %v", reaped, ok)
	}
	if rec, _ := c.Record(); rec.Info.State != StateStopped || !slices.Equal(rec.PendingSweep, []string{"t"}) {
		t.Errorf("record %+v", rec)
	}
	if _, ok := c.Reap(t.Context(), nil); ok {
		t.Error("reaped twice")
	}
	if err := c.Save(Record{Info: Info{State: StateStopped}}); err != nil {
		t.Fatal(err)
	}
	c.Release()
	if _, ok := claim(t, r, idA).Reap(t.Context(), nil); ok {
		t.Error("reaped a sandbox that was stopped properly")
	}
}

// A broken record is told, set aside and not fatal.
func TestCorruptRecord(t *testing.T) {
	for name, content := range map[string]string{
		"empty": "", "cut": `{"version":1,"info":{"id":"fake-aaaa`, "garbage": "\x00\x01", "another": `{"version":1,"info":{"id":"fake-bbbbbbbbbbbbbbbb"}}`,
		"list": "[]", "no version": `{"info":{"id":"fake-aaaaaaaaaaaaaaaa"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			r, dir, _, log := openTest(t)
			good := claim(t, r, idB)
			if err := good.Save(Record{}); err != nil {
				t.Fatal(err)
			}
			entry := filepath.Join(dir, "sandboxes", string(idA))
			if err := os.Mkdir(entry, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(entry, "record.json"), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			recs, corrupt, err := r.List("")
			if err != nil || len(recs) != 1 || len(corrupt) != 1 || corrupt[0].ID != idA || corrupt[0].Err == nil {
				t.Errorf("List = %v, %v, %v", recs, corrupt, err)
			}
			if _, err := r.Reconcile(t.Context(), "", nil); err != nil {
				t.Errorf("Reconcile = %v", err)
			}
			if _, corrupt, _ := r.List(""); len(corrupt) != 0 {
				t.Errorf("still there: %v", corrupt)
			}
			aside, _ := filepath.Glob(filepath.Join(entry, "record.json.corrupt-*"))
			if len(aside) != 1 {
				t.Errorf("set aside: %v", aside)
			} else if data, _ := os.ReadFile(aside[0]); string(data) != content {
				t.Errorf("set aside with content %q", data)
			}
			if !strings.Contains(log.String(), "level=ERROR") {
				t.Errorf("log %q", log.String())
			}
			if c := claim(t, r, idA); c.Save(Record{}) != nil {
				t.Error("cannot be used again")
			}
		})
	}
}

// A record of a newer version is left alone.
func TestNewerRecord(t *testing.T) {
	r, dir, _, _ := openTest(t)
	entry := filepath.Join(dir, "sandboxes", string(idA))
	data, _ := json.Marshal(map[string]any{"version": 99, "info": map[string]any{"id": idA}})
	if err := errors.Join(os.Mkdir(entry, 0o700), os.WriteFile(filepath.Join(entry, "record.json"), data, 0o600)); err != nil {
		t.Fatal(err)
	}
	var p *Problem
	if _, err := r.Claim(t.Context(), idA); !errors.As(err, &p) || p.Remedy == "" {
		t.Errorf("Claim = %v", err)
	}
	if _, err := r.Reconcile(t.Context(), "", nil); err == nil {
		t.Error("Reconcile says nothing")
	}
	if got, _ := os.ReadFile(filepath.Join(entry, "record.json")); !bytes.Equal(got, data) {
		t.Error("it was changed")
	}
}

// An entry whose maker died before there was a record goes; other people's files stay.
func TestReconcileClearsEmptyEntries(t *testing.T) {
	r, dir, _, _ := openTest(t)
	c := claim(t, r, idA)
	c.giveBack()
	foreign := filepath.Join(dir, "sandboxes", "notes.txt")
	if err := os.WriteFile(foreign, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Reconcile(t.Context(), "", nil); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(c.Dir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the empty entry is left: %v", err)
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Error("a foreign file was removed")
	}
}

func TestOpenRegistryRefuses(t *testing.T) {
	writable := filepath.Join(t.TempDir(), "w")
	file := filepath.Join(t.TempDir(), "f")
	if err := errors.Join(os.Mkdir(writable, 0o700), os.Chmod(writable, 0o777), os.WriteFile(file, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	dirs := map[string]string{"writable by others": writable, "a file": file, "relative": "state"}
	if os.Geteuid() == 0 {
		other := filepath.Join(t.TempDir(), "o")
		if err := errors.Join(os.Mkdir(other, 0o700), os.Chown(other, 4242, 4242)); err != nil {
			t.Fatal(err)
		}
		dirs["of another user"] = other
	}
	for name, dir := range dirs {
		var p *Problem
		if _, err := OpenRegistry(dir, RegistryOptions{}); !errors.As(err, &p) || !errors.Is(err, ErrRefused) || p.Remedy == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Deleting removes links and not what they point to, and directories without
// permissions.
func TestDeleteTree(t *testing.T) {
	r, _, _, _ := openTest(t)
	outside := t.TempDir()
	keep := filepath.Join(outside, "keep")
	if err := os.WriteFile(keep, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := claim(t, r, idA)
	deep := filepath.Join(c.Dir(), "scratch", "a", "b")
	if err := errors.Join(os.MkdirAll(deep, 0o700), os.Symlink(outside, filepath.Join(deep, "link")), os.WriteFile(filepath.Join(deep, "f"), nil, 0o600),
		os.Chmod(deep, 0), os.Chmod(filepath.Dir(deep), 0o500), c.Save(Record{})); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(c.Dir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("left over: %v", err)
	}
	if _, err := os.Stat(keep); err != nil {
		t.Error("a link was followed")
	}
}

func TestOpenUp(t *testing.T) {
	top := t.TempDir()
	deep := filepath.Join(top, "a", "b", "c")
	if err := errors.Join(os.MkdirAll(deep, 0o700), os.Chmod(deep, 0), os.Chmod(filepath.Dir(deep), 0)); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(top)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	openUp(root, "a")
	if info, err := os.Stat(deep); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestPrune(t *testing.T) {
	r, _, now, _ := openTest(t)
	save := func(id ID, state State, p Prune) {
		t.Helper()
		c := claim(t, r, id)
		if err := errors.Join(c.Save(Record{Info: Info{State: state, Config: Config{Prune: p}}}), c.Release()); err != nil {
			t.Fatal(err)
		}
	}
	idD, idE := ID("fake-dddddddddddddddd"), ID("fake-eeeeeeeeeeeeeeee")
	save(idA, StateStopped, Prune{IdleHours: 2})
	save(idB, StateStopped, Prune{})
	save(idC, StateStopped, Prune{MaxAgeDays: 1})
	save(idD, StateStopped, Prune{IdleHours: 1e300})
	c := claim(t, r, idE)
	if err := c.Save(Record{Info: Info{State: StateRunning, Config: Config{Prune: Prune{IdleHours: 0.001}}}}); err != nil {
		t.Fatal(err)
	}
	pruned := func(opts PruneOptions) (ids []ID) {
		t.Helper()
		p, err := r.Prune(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range p {
			if one.Err != nil || one.Reason == "" {
				t.Errorf("pruned %+v", one)
			}
			ids = append(ids, one.Info.ID)
		}
		return ids
	}
	if got := pruned(PruneOptions{}); got != nil {
		t.Errorf("at once: %v", got)
	}
	*now = now.Add(2*time.Hour + time.Second)
	if got := pruned(PruneOptions{DryRun: true}); !slices.Equal(got, []ID{idA}) {
		t.Errorf("dry run after two hours: %v", got)
	}
	if _, err := r.Get(idA); err != nil {
		t.Errorf("a dry run removed it: %v", err)
	}
	boom := errors.New("boom")
	if p, err := r.Prune(t.Context(), PruneOptions{Remove: func(context.Context, *Claim) error { return boom }}); err != nil || len(p) != 1 || !errors.Is(p[0].Err, boom) {
		t.Errorf("a failing removal: %+v, %v", p, err)
	}
	var removed []ID
	if got := pruned(PruneOptions{Remove: func(_ context.Context, c *Claim) error { removed = append(removed, c.ID()); return nil }}); !slices.Equal(got, []ID{idA}) || !slices.Equal(removed, got) {
		t.Errorf("after two hours: %v, %v", got, removed)
	}
	if _, err := r.Get(idA); !errors.Is(err, ErrNotFound) {
		t.Errorf("still there: %v", err)
	}
	*now = now.Add(24 * time.Hour)
	if got := pruned(PruneOptions{Backend: "fake"}); got != nil {
		t.Errorf("another backend's was removed: %v", got)
	}
	if got := pruned(PruneOptions{Default: Prune{IdleHours: 1}}); !slices.Equal(got, []ID{idB, idC}) {
		t.Errorf("after a day: %v", got)
	}
	if _, err := r.Get(idE); err != nil {
		t.Errorf("one with a live owner was removed: %v", err)
	}
	*now = now.Add(-1000 * time.Hour)
	if got := pruned(PruneOptions{}); got != nil {
		t.Errorf("with a clock that went back: %v", got)
	}
}

func TestWaitLockGivesUp(t *testing.T) {
	r, dir, _, _ := openTest(t)
	f, err := tryLock(filepath.Join(dir, "sandboxes", "lock"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := r.Claim(ctx, idA); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Claim = %v", err)
	}
	f.Close()
	claim(t, r, idA)
}

func TestProcessRef(t *testing.T) {
	self, err := SelfRef()
	if err != nil || self.PID != os.Getpid() || self.BootID == "" || self.StartTime == 0 || !self.Alive() {
		t.Fatalf("SelfRef = %+v, %v", self, err)
	}
	if again, _ := SelfRef(); again != self {
		t.Errorf("SelfRef again = %+v", again)
	}
	if (ProcessRef{}).Alive() || !(ProcessRef{}).IsZero() || self.IsZero() {
		t.Error("the zero reference is a process")
	}
	cmd := exec.Command("cat")
	stdin, _ := cmd.StdinPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ref, err := RefOf(cmd.Process.Pid)
	if err != nil || !ref.Alive() {
		t.Fatalf("RefOf = %+v, %v", ref, err)
	}
	stdin.Close()
	waitFor(t, func() bool { return !ref.Alive() }) // a zombie now: nobody has waited
	if err := ref.Kill(t.Context()); err != nil {
		t.Errorf("Kill of a zombie = %v", err)
	}
	cmd.Wait()
	if ref.Alive() {
		t.Error("alive after its end")
	}
	if _, err := RefOf(cmd.Process.Pid); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("RefOf a dead process = %v", err)
	}
}

// waitFor polls a fact of the operating system that gives no event.
func waitFor(t *testing.T, fact func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !fact(); {
		if time.Now().After(deadline) {
			t.Fatal("waited in vain")
		}
		time.Sleep(time.Millisecond) //sleep: polls a fact that has no event
	}
}
