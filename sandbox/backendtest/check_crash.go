package backendtest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/workberth/workberth/sandbox"
)

func crashChecks() []check {
	return []check{
		{name: "owner", rows: []string{"C087"}, run: crashOwner},
		{name: "any-moment", rows: []string{"C087"}, run: crashAnyMoment},
		{name: "runtime", rows: []string{"C063"}, run: crashRuntime},
	}
}

// crashOwner kills one of two owners: what it left is ended at the next start, and nothing else
// is.
func crashOwner(k *kit) {
	wsA, wsB := k.workspace("a"), k.workspace("b")
	a, b := k.startChild("hold", wsA), k.startChild("hold", wsB)
	idA, idB := k.says(a, "ready"), k.says(b, "ready")
	foreign := exec.Command(k.prog, "wait", filepath.Join(k.ws, witnessDir, k.word+"-foreign"))
	k.must(foreign.Start())
	defer func() {
		_ = foreign.Process.Kill()
		_ = foreign.Wait()
	}()
	k.eventually("the foreign process runs", func() bool { return len(k.alive("foreign")) == 1 })
	ofB := k.aliveIn(wsB, "b")
	if len(ofB) < 9 || len(k.aliveIn(wsA, "a")) < 9 {
		k.Fatalf("alive: %q and %q", k.aliveIn(wsA, "a"), ofB)
	}

	// While both live, both are in use.
	var inUse *sandbox.InUseError
	if _, err := k.tryEnsure(k.backend, plainSpec(wsB)); !errors.Is(err, sandbox.ErrInUse) {
		k.Errorf("a sandbox of another process: %v", err)
	} else if errors.As(err, &inUse) && inUse.Owner.PID != b.cmd.Process.Pid {
		k.Errorf("%v, the owner is process %d", err, b.cmd.Process.Pid)
	}

	a.kill()
	for round := range 2 {
		x, err := k.tryEnsure(k.backend, plainSpec(wsA))
		if err != nil {
			k.Fatalf("round %d: Ensure after the owner was killed: %v", round, explain(err))
		}
		if string(x.id) != idA {
			k.Errorf("round %d: %s, was %s", round, x.id, idA)
		}
		if held := k.aliveIn(wsA, "a"); len(held) > 0 {
			k.Errorf("round %d: of the killed owner %q are alive", round, held)
		}
		x.works()
		k.must(x.Close())
	}
	if held := k.aliveIn(wsB, "b"); !slices.Equal(held, ofB) {
		k.Errorf("of the other owner %q were alive, %q are", ofB, held)
	}
	fmt.Fprintln(b.stdin, "ping")
	if got := k.says(b, "pong"); got != "0 <nil>" {
		k.Errorf("the other owner's command: %s", got)
	}
	if len(k.alive("foreign")) != 1 {
		k.Error("a foreign process was ended")
	}
	infos, err := k.backend.List(k.ctx)
	if err != nil || len(infos) != 2 {
		k.Errorf("listed: %+v, %v", infos, err)
	}
	for _, info := range infos {
		if string(info.ID) == idB && info.State != sandbox.StateRunning {
			k.Errorf("the other owner's sandbox is %q", info.State)
		}
	}
	k.noTemporaries(wsA)
	b.kill()
	y, err := k.tryEnsure(k.backend, plainSpec(wsB))
	if err != nil {
		k.Fatalf("Ensure after the second owner was killed: %v", explain(err))
	}
	if held := k.aliveIn(wsB, "b"); len(held) > 0 {
		k.Errorf("of the second killed owner %q are alive", held)
	}
	y.works()
}

// noTemporaries demands that no half-written file is left.
func (k *kit) noTemporaries(dir string) {
	k.Helper()
	k.must(filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(e.Name(), ".berth-") {
			k.Errorf("a temporary file is left: %s", p)
		}
		return err
	}))
}

// crashAnyMoment kills an owner at any moment, again and again: files are whole, nothing is left
// running, the next start works.
func crashAnyMoment(k *kit) {
	seed := rand.Uint64()
	k.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for round := range k.rounds(6, 2) {
		c := k.startChild("churn", k.ws)
		k.says(c, "churning")
		time.Sleep(time.Duration(r.IntN(300)) * time.Millisecond) //sleep: any moment is what is tested
		c.kill()
		x, err := k.tryEnsure(k.backend, k.spec())
		if err != nil {
			k.Fatalf("round %d: %v; log of the other owner:\n%s", round, explain(err), c.log)
		}
		k.allDead(fmt.Sprintf("round %d", round), "churn")
		k.noTemporaries(k.ws)
		names, err := filepath.Glob(filepath.Join(k.ws, "new-*"))
		k.must(err)
		for _, name := range append(names, filepath.Join(k.ws, "torn")) {
			data, err := os.ReadFile(name)
			k.must(err)
			if len(data) != tornSize || bytes.Count(data, data[:1]) != tornSize {
				k.Errorf("round %d: %s is torn: %d bytes", round, name, len(data))
			}
		}
		x.works()
		if infos, err := k.backend.List(k.ctx); err != nil || len(infos) != 1 {
			k.Errorf("round %d: listed %+v, %v", round, infos, err)
		}
		k.must(x.Close())
	}
}

// crashRuntime kills, from outside, the process that everything inside descends from: the
// commands' end is told truthfully, nothing is left, and asking again gives a sandbox that works.
func crashRuntime(k *kit) {
	x := k.ensure()
	s := x.start("tree", x.witness("t"), "8").ready()
	top := k.topProcess()
	if top == 0 {
		s.cancel()
		s.ended()
		k.skip("what runs inside does not descend from this process")
	}
	proc, err := os.FindProcess(top)
	k.must(err)
	k.must(proc.Kill())
	status := s.ended()
	if status.Code == 0 && !status.Unknown {
		k.Errorf("status %+v", status)
	}
	res, err := s.Terminate(k.ctx, 0)
	if held := k.alive("t"); res.Outcome == sandbox.TerminationGone && len(held) > 0 {
		k.Errorf("gone, and %q are alive", held)
	}
	k.Logf("Terminate = %+v, %v", res, err)
	k.eventually("nothing is left", func() bool { return len(k.alive("t")) == 0 })
	select {
	case <-x.Done():
		k.unusable(x)
	default:
	}
	if err := x.Close(); err != nil {
		k.Errorf("Close: %v", err)
	}
	y, err := k.tryEnsure(k.backend, k.spec())
	if err != nil {
		k.Fatalf("Ensure after the runtime was killed: %v", explain(err))
	}
	y.works()
}

// topProcess is the child of this process from which the check's processes descend; 0 when there
// is none.
func (k *kit) topProcess() int {
	k.Helper()
	if k.target.Remote {
		return 0
	}
	for _, line := range processesWith(k.word) {
		pid, _ := strconv.Atoi(strings.Fields(line)[0])
		for pid > 1 {
			parent := parentOf(pid)
			if parent == os.Getpid() {
				return pid
			}
			pid = parent
		}
	}
	return 0
}

// parentOf is the parent of a process, 0 when it cannot be told.
func parentOf(pid int) int {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(fields[1])
	return parent
}
