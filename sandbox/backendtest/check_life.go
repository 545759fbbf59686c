package backendtest

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/workberth/workberth/sandbox"
)

func lifeChecks() []check {
	return []check{
		{name: "reuse", run: lifeReuse},
		{name: "changed", run: lifeChanged},
		{name: "stop-start", rows: []string{"C053"}, run: lifeStopStart},
		{name: "remove", run: lifeRemove},
		{name: "unknown", run: lifeUnknown},
		{name: "list", rows: []string{"C057"}, run: lifeList},
		{name: "closed-handle", run: lifeClosedHandle},
		{name: "ended-handle", rows: []string{"C063"}, run: lifeEndedHandle},
		{name: "ensure-at-once", run: lifeEnsureAtOnce},
		{name: "two-sessions", rows: []string{"C189"}, run: lifeTwoSessions},
		{name: "shared", rows: []string{"C057"}, run: lifeShared},
		{name: "second-backend", rows: []string{"C057"}, run: lifeSecondBackend},
	}
}

// lifeReuse: the same spec is the same sandbox.
func lifeReuse(k *kit) {
	x := k.ensure()
	s := x.start("wait", x.witness("w")).ready()
	y := k.ensure()
	if x.id != y.id {
		k.Fatalf("%s and %s for one spec", x.id, y.id)
	}
	y.works()
	if len(k.alive("w")) != 1 {
		k.Error("asking again ended what runs")
	}
	select {
	case <-s.Done():
		k.Error("asking again ended a command")
	default:
	}
	// By another spelling, too.
	link := k.ws
	if !k.target.Remote {
		link = filepath.Join(k.dir, "link")
		k.must(os.Symlink(k.ws, link))
	}
	z, err := k.tryEnsure(k.backend, k.spec(func(s *sandbox.Spec) { s.Workspace = link + "/." }))
	k.must(err)
	if z.id != x.id {
		k.Errorf("%s for another spelling, was %s", z.id, x.id)
	}
	if ws := z.Info().Workspace; ws != k.ws {
		k.Errorf("workspace %q", ws)
	}
}

// lifeChanged: a changed configuration is another sandbox; the first one stays.
func lifeChanged(k *kit) {
	x := k.ensure()
	y := k.ensure(func(s *sandbox.Spec) { s.Config.Env = map[string]string{"NEW": "1"} })
	z := k.ensure(func(s *sandbox.Spec) { s.Session = "another" })
	if x.id == y.id || x.id == z.id || y.id == z.id {
		k.Errorf("%s, %s, %s", x.id, y.id, z.id)
	}
	x.works()
	y.works()
	z.works()
}

// lifeStopStart: a stopped sandbox starts again, with its files.
func lifeStopStart(k *kit) {
	x := k.ensure()
	x.run("write", x.inside("f"), "kept")
	s := x.start("wait", x.witness("w")).ready()
	for range 2 {
		if err := k.backend.Stop(k.ctx, x.id); err != nil {
			k.Errorf("Stop: %v", err)
		}
	}
	k.allDead("stopped", "")
	s.ended()
	k.wantState(x.id, sandbox.StateStopped)
	y := k.ensure()
	if y.id != x.id {
		k.Errorf("%s, was %s", y.id, x.id)
	}
	if got := y.run("read", y.inside("f")); got != "kept" {
		k.Errorf("read %q", got)
	}
	k.wantState(x.id, sandbox.StateRunning)
	if created := y.Info().Created; !created.Equal(x.Info().Created) && !x.Info().Created.IsZero() {
		k.Errorf("created %s, was %s", created, x.Info().Created)
	}
	k.must(y.Close())
	k.wantState(x.id, sandbox.StateStopped)
	k.ensure().works()
}

// wantState demands one entry with the state.
func (k *kit) wantState(id sandbox.ID, want sandbox.State) {
	k.Helper()
	infos, err := k.backend.List(k.ctx)
	i := slices.IndexFunc(infos, func(i sandbox.Info) bool { return i.ID == id })
	switch {
	case err != nil:
		k.Errorf("List: %v", err)
	case i < 0:
		k.Errorf("%s is not listed: %+v", id, infos)
	case infos[i].State != want:
		k.Errorf("%s is %q (%s), want %q", id, infos[i].State, infos[i].Detail, want)
	}
}

// lifeRemove: what belongs to a sandbox goes, and nothing else.
func lifeRemove(k *kit) {
	k.must(os.WriteFile(filepath.Join(k.ws, "f"), []byte("of the user"), 0o640))
	x := k.ensure()
	y := k.ensure(func(s *sandbox.Spec) { s.Session = "other" })
	s := x.start("wait", x.witness("x")).ready()
	y.start("wait", y.witness("y")).ready()
	before := k.snapshot(k.ws)
	for range 2 {
		if err := k.backend.Remove(k.ctx, x.id); err != nil {
			k.Errorf("Remove: %v", err)
		}
	}
	k.allDead("removed", "x")
	s.ended()
	k.wantSnapshot("removed", k.ws, before)
	if len(k.alive("y")) != 1 {
		k.Error("another sandbox was hit")
	}
	y.works()
	infos, err := k.backend.List(k.ctx)
	if err != nil || len(infos) != 1 || infos[0].ID != y.id {
		k.Errorf("listed: %+v, %v", infos, err)
	}
	if names := decode[[]string](k, y.run("list", y.root)); !slices.Contains(names, "f") {
		k.Errorf("workspace %q", names)
	}
}

// lifeUnknown: stopping and removing what is not there is no error, and no path.
func lifeUnknown(k *kit) {
	name := k.backend.Name()
	for _, id := range []sandbox.ID{sandbox.ID(name + "-0123456789abcdef"), "", "../../etc", sandbox.ID(name), sandbox.ID(name + "-../../../ws")} {
		if err := k.backend.Stop(k.ctx, id); err != nil && id.Valid() {
			k.Errorf("Stop of an unknown sandbox: %v", err)
		}
		if err := k.backend.Remove(k.ctx, id); err != nil && id.Valid() {
			k.Errorf("Remove of an unknown sandbox: %v", err)
		}
	}
	if _, err := os.Stat(filepath.Join(k.ws, witnessDir)); err != nil {
		k.Errorf("something else was removed: %v", err)
	}
}

// lifeList tells of every sandbox, once.
func lifeList(k *kit) {
	want := map[sandbox.ID]string{}
	for _, session := range []string{"a", "b", "c"} {
		x := k.ensure(func(s *sandbox.Spec) { s.Session = session })
		want[x.id] = session
	}
	infos, err := k.backend.List(k.ctx)
	k.must(err)
	if len(infos) != len(want) {
		k.Errorf("%d listed, %d are there", len(infos), len(want))
	}
	for _, info := range infos {
		if want[info.ID] != info.Session || info.Workspace != k.ws || info.State != sandbox.StateRunning || info.Backend != k.backend.Name() {
			k.Errorf("listed %+v", info)
		}
	}
}

// lifeClosedHandle: a handle that was given back is of no use.
func lifeClosedHandle(k *kit) {
	x := k.ensure()
	b := x.bridge()
	for range 2 {
		if err := x.Close(); err != nil {
			k.Errorf("Close: %v", err)
		}
	}
	k.unusable(x)
	if err := b.WriteFile(k.ctx, "f", []byte("x")); err == nil {
		k.Error("wrote through a bridge of a closed handle")
	}
	if n := x.OpenTokens(); n != 0 {
		k.Errorf("%d open tokens", n)
	}
	k.ensure().works()
}

// unusable demands that nothing can be started and that the reason is told.
func (k *kit) unusable(x *box) {
	k.Helper()
	if _, err := sandbox.PrepareProcessCleanup(k.ctx, x.Sandbox, nil); !errors.Is(err, sandbox.ErrGone) {
		k.Errorf("prepare: %v", err)
	}
	if _, err := x.BuildExecSpec(k.ctx, x.role("true"), nil); !errors.Is(err, sandbox.ErrGone) {
		k.Errorf("build: %v", err)
	}
	if _, err := x.Bridge(k.ctx, nil); !errors.Is(err, sandbox.ErrGone) {
		k.Errorf("bridge: %v", err)
	}
	if _, err := sandbox.Run(k.ctx, x.Sandbox, x.role("true"), nil, sandbox.RunOptions{}); !errors.Is(err, sandbox.ErrGone) {
		k.Errorf("run: %v", err)
	}
}

// lifeEndedHandle: a handle of a life that is over says so, and is never taken for one of
// the next.
func lifeEndedHandle(k *kit) {
	x := k.ensure()
	spec, err := x.BuildExecSpec(k.ctx, x.role("write", "ran.here", "x"), nil)
	k.must(err)
	b := x.bridge()
	k.must(k.backend.Stop(k.ctx, x.id))
	select {
	case <-x.Done():
	case <-k.ctx.Done():
		k.Fatal("stopped and not done")
	}
	if err := x.Err(); !errors.Is(err, sandbox.ErrGone) {
		k.Errorf("Err = %v", err)
	}
	y := k.ensure()
	k.unusable(x)
	if err := spec.AssertCurrent(); !errors.Is(err, sandbox.ErrGone) {
		k.Errorf("the last check of an old spec: %v", err)
	}
	if _, err := spec.Spawn(k.ctx, sandbox.IO{}); err == nil {
		k.Error("an old spec was launched")
	}
	k.must(x.FinalizeExec(k.ctx, spec.Token, sandbox.OutcomeLaunchFailed))
	if err := b.WriteFile(k.ctx, "old", []byte("x")); err == nil {
		k.Error("wrote through an old bridge")
	}
	k.nothingRan()
	if s := x.Info().State; s == sandbox.StateRunning {
		k.Errorf("an old handle says %q", s)
	}
	y.works()
	if err := x.Close(); err != nil {
		k.Errorf("Close: %v", err)
	}
	y.works() // the old handle's end is not the new one's
}

// lifeEnsureAtOnce: many ask at once, one sandbox comes of it.
func lifeEnsureAtOnce(k *kit) {
	var wg sync.WaitGroup
	boxes := make([]*box, 8)
	for i := range boxes {
		wg.Go(func() {
			x, err := k.tryEnsure(k.backend, k.spec())
			if err != nil {
				k.Errorf("Ensure: %v", explain(err))
				return
			}
			boxes[i] = x
		})
	}
	wg.Wait()
	for _, x := range boxes {
		if x == nil {
			return
		}
		if x.id != boxes[0].id {
			k.Errorf("%s and %s", x.id, boxes[0].id)
		}
		x.works()
	}
	if infos, err := k.backend.List(k.ctx); err != nil || len(infos) != 1 {
		k.Errorf("listed: %+v, %v", infos, err)
	}
}

// lifeTwoSessions: two sessions in one workspace share nothing but the directory; the coming and
// going of one does not disturb the other.
func lifeTwoSessions(k *kit) {
	k.must(os.WriteFile(filepath.Join(k.ws, "f"), []byte("there"), 0o644))
	change := func(session string) func(*sandbox.Spec) {
		return func(s *sandbox.Spec) {
			s.Session = session
			if k.features.Binds && k.features.Confined {
				// With a mount point in the shared directory.
				s.Config.Binds = []sandbox.Bind{{Source: k.dirOf("bound"), Target: sandbox.WorkspacePath + "/mnt/point", ReadOnly: true}}
			}
		}
	}
	a := k.ensure(change("a"))
	s := a.start("wait", a.witness("a")).ready()
	for i := range k.rounds(20, 5) {
		b := k.ensure(change("b"))
		b.works()
		if got := a.run("read", a.inside("f")); got != "there" {
			k.Fatalf("round %d: %q", i, got)
		}
		k.must(b.Close())
		if i%2 == 0 {
			k.must(k.backend.Remove(k.ctx, b.id))
		}
		if len(k.alive("a")) != 1 {
			k.Fatalf("round %d: the other session's command ended", i)
		}
		if k.features.Binds && k.features.Confined {
			if got := a.run("read", a.inside("mnt/point/bound")); got != "bound" {
				k.Fatalf("round %d: a bind in the workspace is gone: %q", i, got)
			}
		}
	}
	s.cancel()
	s.ended()
}

// dirOf is a directory with a file that has its name.
func (k *kit) dirOf(name string) string {
	k.Helper()
	dir := filepath.Join(k.dir, name)
	k.must(errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, name), []byte(name), 0o644)))
	return dir
}

// lifeShared: scope agent goes by the agent's key, scope shared by none.
func lifeShared(k *kit) {
	agent := func(name, session string) func(*sandbox.Spec) {
		return func(s *sandbox.Spec) { s.Scope, s.Agent, s.Session = sandbox.ScopeAgent, name, session }
	}
	a1, a2, b := k.ensure(agent("a", "1")), k.ensure(agent("a", "2")), k.ensure(agent("b", "1"))
	if a1.id != a2.id || a1.id == b.id {
		k.Errorf("agents: %s, %s, %s", a1.id, a2.id, b.id)
	}
	shared := func(session string) func(*sandbox.Spec) {
		return func(s *sandbox.Spec) { s.Scope, s.Session = sandbox.ScopeShared, session }
	}
	s1, s2 := k.ensure(shared("1")), k.ensure(shared("2"))
	if s1.id != s2.id || s1.id == a1.id {
		k.Errorf("shared: %s, %s", s1.id, s2.id)
	}
	s2.works()
}

// lifeSecondBackend: another backend over the same state, in this process or in another, knows
// the sandboxes, and takes none away from who holds it.
func lifeSecondBackend(k *kit) {
	x := k.ensure()
	s := x.start("wait", x.witness("w")).ready()
	other := k.another()
	infos, err := other.List(k.ctx)
	if err != nil || len(infos) != 1 || infos[0].ID != x.id || infos[0].State != sandbox.StateRunning {
		k.Errorf("listed by another backend: %+v, %v", infos, err)
	}
	if y, err := k.tryEnsure(other, k.spec()); err == nil {
		y.works()
	} else {
		var inUse *sandbox.InUseError
		if !errors.Is(err, sandbox.ErrInUse) || !errors.As(err, &inUse) || !inUse.Owner.Alive() {
			k.Errorf("Ensure by another backend: %v", err)
		}
	}
	if len(k.alive("w")) != 1 {
		k.Error("asking by another backend ended what runs")
	}
	x.works()
	switch err := other.Stop(k.ctx, x.id); {
	case err == nil:
		k.allDead("stopped by another backend", "w")
		<-x.Done()
		s.ended()
	case errors.Is(err, sandbox.ErrInUse):
		if len(k.alive("w")) != 1 {
			k.Error("a refused stop ended what runs")
		}
		x.works()
	default:
		k.Errorf("Stop by another backend: %v", err)
	}
	if err := x.Close(); err != nil {
		k.Errorf("Close: %v", err)
	}
	y, err := k.tryEnsure(other, k.spec())
	if err != nil {
		k.Fatalf("Ensure by another backend after the first gave it back: %v", explain(err))
	}
	y.works()
}
