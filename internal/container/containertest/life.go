package containertest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/workberth/workberth/internal/container"
	"github.com/workberth/workberth/sandbox"
)

// Life tests what happens to containers behind our back, and what becomes of them.
func (s Subject) Life(t *testing.T) {
	for name, run := range map[string]func(*kit){
		"paused": lifePaused, "killed": lifeKilled, "stopped": lifeStopped, "removed": lifeRemoved, "memory": lifeMemory,
		"no-image": lifeNoImage, "name-taken": lifeNameTaken, "two-products": lifeTwoProducts, "record-lost": lifeRecordLost,
		"configuration-changed": lifeConfigurationChanged, "engine-cut": lifeEngineCut, "no-engine": lifeNoEngine,
		"writable-root": lifeWritableRoot, "bare-image": lifeBareImage, "description": lifeDescription,
	} {
		t.Run(name, func(t *testing.T) {
			address := s.Address(t)
			engine, err := s.Connect(address)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			k := &kit{T: t, s: s, ctx: ctx, address: address, engine: engine, dir: t.TempDir()}
			t.Cleanup(func() {
				cancel()
				k.tidy()
				_ = engine.Close()
			})
			k.ws = k.workspace("ws")
			k.b = k.open("state")
			run(k)
		})
	}
}

// lifeWritableRoot: what a sandbox has written outside the workspace is there in its next life.
func lifeWritableRoot(k *kit) {
	writable := func(c *sandbox.Config) { c.ReadOnlyRoot = false; c.SetupCommand = "echo x >> /root/setup" }
	sb := k.ensure(k.b, writable)
	first := k.containerOf(sb)
	k.sh(sb, "echo kept > /root/file")
	k.must(sb.Close())
	if c, err := k.engine.Inspect(k.ctx, first.ID); err != nil || c.Status != container.StatusExited {
		k.Errorf("the container of a closed sandbox: %+v, %v", c, err)
	}
	sb = k.ensure(k.b, writable)
	if again := k.containerOf(sb); again.ID != first.ID {
		k.Error("a stopped container was not started again")
	}
	k.wantOutput(sb, "cat /root/file /root/setup", "kept\nx")
}

// lifePaused: a paused sandbox is reported and left alone, until it is stopped.
func lifePaused(k *kit) {
	pauser, ok := k.engine.(interface {
		Pause(ctx context.Context, id string) error
	})
	if !ok {
		k.Skip("the engine's client cannot pause")
	}
	sb := k.ensure(k.b)
	id := k.containerOf(sb).ID
	k.must(pauser.Pause(k.ctx, id))
	if info := k.info(k.b); info.State != sandbox.StatePaused || !strings.Contains(info.Detail, "unpause") {
		k.Errorf("listed as %q: %q", info.State, info.Detail)
	}
	other := k.open("state")
	k.must(other.Stop(k.ctx, sb.Info().ID))
	k.ended(sb)
	if c, err := k.engine.Inspect(k.ctx, id); err != nil || c.Status != container.StatusExited {
		k.Errorf("stopped while paused: %+v, %v", c, err)
	}
	sb = k.ensure(k.b)
	k.wantOutput(sb, "echo on", "on")
}

// lifeKilled: a container that is killed ends the sandbox with the reason, and starts again.
func lifeKilled(k *kit) {
	sb := k.ensure(k.b)
	id := k.containerOf(sb).ID
	done := make(chan sandbox.Result, 1)
	go func() {
		res, err := sandbox.Run(k.ctx, sb, sandbox.Command{Argv: []string{"/bin/sleep", "600"}}, nil, sandbox.RunOptions{})
		if err != nil {
			k.Error(explain(err))
		}
		done <- res
	}()
	k.wantOutput(sb, "while ! ps | grep -v grep | grep -q 'sleep 600'; do :; done; echo runs", "runs")
	k.must(k.engine.Kill(k.ctx, id))
	if reason := k.ended(sb); !strings.Contains(reason, "signal 9") {
		k.Errorf("reason: %s", reason)
	}
	if res := <-done; !res.Status.Unknown || !strings.Contains(res.Status.Reason, "signal 9") {
		k.Errorf("the command that ran: %+v", res.Status)
	}
	if info := k.info(k.b); info.State != sandbox.StateDead || !strings.Contains(info.Detail, "137") {
		k.Errorf("listed as %q: %q", info.State, info.Detail)
	}
	sb = k.ensure(k.b)
	if k.containerOf(sb).ID != id {
		k.Error("the container was not started again")
	}
	k.wantOutput(sb, "echo on", "on")
}

// lifeStopped: Stop from elsewhere ends everything and keeps the container.
func lifeStopped(k *kit) {
	sb := k.ensure(k.b)
	c := k.containerOf(sb)
	other := k.open("state")
	k.must(other.Stop(k.ctx, sb.Info().ID))
	k.ended(sb)
	if c, err := k.engine.Inspect(k.ctx, c.ID); err != nil || c.Status != container.StatusExited {
		k.Errorf("%+v, %v", c, err)
	}
	k.must(other.Remove(k.ctx, sb.Info().ID))
	if _, err := k.engine.Inspect(k.ctx, c.ID); !errors.Is(err, container.ErrNotFound) {
		k.Errorf("removed: %v", err)
	}
	if entries, err := os.ReadDir(k.ws); err != nil || len(entries) != 0 {
		k.Errorf("the workspace: %v, %v", entries, err)
	}
}

// lifeRemoved: a container that is removed ends the sandbox; the next one is set up again.
func lifeRemoved(k *kit) {
	setup := func(c *sandbox.Config) { c.SetupCommand = "echo x >> /workspace/setup" }
	sb := k.ensure(k.b, setup)
	k.must(k.engine.Remove(k.ctx, k.containerOf(sb).ID))
	if reason := k.ended(sb); !strings.Contains(reason, "removed") && !strings.Contains(reason, "signal 9") {
		k.Errorf("reason: %s", reason)
	}
	if info := k.info(k.b); info.State != sandbox.StateStopped || !strings.Contains(info.Detail, "no container") {
		k.Errorf("listed as %q: %q", info.State, info.Detail)
	}
	sb = k.ensure(k.b, setup)
	k.wantOutput(sb, "cat setup", "x\nx")
}

// lifeMemory: a command that takes too much is ended, the sandbox lives, or says why it does not.
func lifeMemory(k *kit) {
	if !k.b.Features().MemoryLimit {
		k.Skip("the engine keeps no limit on memory")
	}
	sb := k.ensure(k.b, func(c *sandbox.Config) { c.Limits.MemoryBytes = 64 << 20 })
	got, status := k.sh(sb, "dd if=/dev/zero of=/tmp/f bs=1M count=400; x=$(dd if=/dev/zero bs=1M count=400 | tr '\\000' x)")
	k.Logf("%q, %+v", got, status)
	if status.Unknown {
		if reason := k.ended(sb); !strings.Contains(reason, "memory") && !strings.Contains(reason, "signal 9") {
			k.Errorf("reason: %s", reason)
		}
	} else if status == (sandbox.ExitStatus{}) {
		k.Error("the command was not ended")
	}
}

// lifeNoImage: an image that cannot be had is a clear error, and nothing is left.
func lifeNoImage(k *kit) {
	_, err := k.b.Ensure(k.ctx, k.spec(func(c *sandbox.Config) { c.Image = "localhost:1/nothing:none" }))
	k.refused(err, sandbox.ErrUnavailable, "image", "pull")
	if infos, err := k.b.List(k.ctx); err != nil || len(infos) != 0 {
		k.Errorf("listed: %+v, %v", infos, err)
	}
}

// lifeNameTaken: a container of that name that is not ours stays as it is.
func lifeNameTaken(k *kit) {
	sb := k.ensure(k.b)
	name, id := sb.Info().Runtime["name"], sb.Info().ID
	k.must(sb.Close())
	k.must(k.b.Remove(k.ctx, id))
	made, err := k.engine.Create(k.ctx, container.Spec{
		Name: name, Image: Image, Argv: []string{"/bin/true"}, User: "0:0", Workdir: "/", Network: "none", Labels: map[string]string{"test": k.dir},
	})
	k.must(err)
	_, err = k.b.Ensure(k.ctx, k.spec())
	k.refused(err, sandbox.ErrUnavailable, name, "rename")
	k.must(errors.Join(k.b.Stop(k.ctx, id), k.b.Remove(k.ctx, id)))
	if _, err := k.engine.Inspect(k.ctx, made.ID); err != nil {
		k.Errorf("the foreign container: %v", err)
	}
}

// lifeTwoProducts: two directories of records never share a sandbox, and neither ends what is the other's.
func lifeTwoProducts(k *kit) {
	sb := k.ensure(k.b)
	other := k.open("other")
	if infos, err := other.List(k.ctx); err != nil || len(infos) != 0 {
		k.Errorf("the other lists %+v, %v", infos, err)
	}
	second := k.ensure(other)
	if k.containerOf(sb).ID == k.containerOf(second).ID {
		k.Fatal("they share a container")
	}
	k.must(second.Close())
	k.must(other.Remove(k.ctx, second.Info().ID))
	k.wantOutput(sb, "echo on", "on")
}

// lifeRecordLost: a container tells of a sandbox whose record is lost, and can be removed by its name.
func lifeRecordLost(k *kit) {
	sb := k.ensure(k.b)
	id, c := sb.Info().ID, k.containerOf(sb)
	k.must(sb.Close())
	k.must(os.RemoveAll(filepath.Join(k.dir, "state", "sandboxes", string(id))))
	info := k.info(k.b)
	if info.ID != id || info.Workspace != k.ws || info.Session != "s" || info.State != sandbox.StateStopped {
		k.Errorf("%+v", info)
	}
	k.must(k.b.Remove(k.ctx, id))
	if _, err := k.engine.Inspect(k.ctx, c.ID); !errors.Is(err, container.ErrNotFound) {
		k.Errorf("removed: %v", err)
	}
	sb = k.ensure(k.b)
	k.wantOutput(sb, "echo on", "on")
}

// lifeConfigurationChanged: another configuration is another sandbox.
func lifeConfigurationChanged(k *kit) {
	a := k.ensure(k.b)
	b := k.ensure(k.b, func(c *sandbox.Config) { c.ReadOnlyRoot = false })
	if a.Info().ID == b.Info().ID || k.containerOf(a).ID == k.containerOf(b).ID {
		k.Error("they share a container")
	}
}

// lifeEngineCut: an engine that does not answer any more takes nothing from a sandbox that lives, and new
// ones are refused.
func lifeEngineCut(k *kit) {
	gate := newGate(k)
	b := k.openAt("cut", gate.address)
	sb := k.ensure(b)
	id := k.containerOf(sb).ID
	gate.close()
	k.wantOutput(sb, "echo on > f; cat f", "on")
	_, err := b.Ensure(k.ctx, k.spec(func(c *sandbox.Config) { c.ReadOnlyRoot = false }))
	k.refused(err, sandbox.ErrUnavailable, gate.address)
	// It is not known to have ended as long as nobody can tell.
	short, cancel := context.WithTimeout(k.ctx, time.Second)
	defer cancel()
	if err := b.Stop(short, sb.Info().ID); !errors.Is(err, context.DeadlineExceeded) {
		k.Errorf("Stop: %v", err)
	}
	gate.open(k)
	k.ended(sb)
	k.must(ignore(k.engine.Wait(k.ctx, id)))
	sb = k.ensure(b)
	k.wantOutput(sb, "cat f", "on")
}

func ignore(_ int, err error) error { return err }

// lifeNoEngine: without an engine nothing works, and every error says what to do.
func lifeNoEngine(k *kit) {
	b := k.openAt("none", "unix://"+filepath.Join(k.dir, "nobody"))
	_, err := b.Ensure(k.ctx, k.spec())
	k.refused(err, sandbox.ErrUnavailable, "nobody")
	if infos, err := b.List(k.ctx); err != nil || len(infos) != 0 {
		k.Errorf("List: %+v, %v", infos, err)
	}
	d := b.Check(k.ctx)
	if d.Usable {
		k.Errorf("usable: %+v", d)
	}
	for _, c := range d.Checks {
		if c.Result == sandbox.CheckFail && c.Remedy == "" {
			k.Errorf("no remedy for %+v", c)
		}
	}
}

// lifeBareImage: an image without a shell serves files, and says that there is no shell.
func lifeBareImage(k *kit) {
	rootfs, err := bareRootFS()
	k.must(err)
	name := "localhost/berth-test-bare:1"
	_, err = k.engine.Import(k.ctx, name, strings.NewReader(string(rootfs)))
	k.must(err)
	sb := k.ensure(k.b, func(c *sandbox.Config) { c.Image = name })
	br, err := sb.Bridge(k.ctx, nil)
	k.must(err)
	k.must(br.WriteFile(k.ctx, "f", []byte("x")))
	if data, err := br.ReadFile(k.ctx, "/data"); err != nil || string(data) != "of the image" {
		k.Errorf("%q, %v", data, err)
	}
	_, err = sandbox.Run(k.ctx, sb, sandbox.Command{Argv: []string{"/bin/sh", "-c", "true"}}, nil, sandbox.RunOptions{})
	var start *sandbox.StartError
	if !errors.As(err, &start) {
		k.Errorf("no shell: %v", err)
	}
	res, err := sandbox.Run(k.ctx, sb, sandbox.Command{Argv: []string{sandbox.HelperPath + "/berth-guest", "version"}}, nil, sandbox.RunOptions{})
	if err != nil || !strings.Contains(string(res.Stdout.Bytes()), "protocol") {
		k.Errorf("%q, %v", res.Stdout.Bytes(), err)
	}
}

// lifeDescription: what is said of a sandbox is true.
func lifeDescription(k *kit) {
	sb := k.ensure(k.b)
	facts, c := sb.Info().Runtime, k.containerOf(sb)
	if facts["container"] != c.ID || facts["name"] != c.Name || facts["image"] != Image || facts["imageId"] != c.ImageID {
		k.Errorf("facts %v of %+v", facts, c)
	}
	got, _ := k.sh(sb, "id -u; id -g")
	if user := strings.ReplaceAll(got, "\n", ":"); user != facts["user"] {
		k.Errorf("user %q, said %q", user, facts["user"])
	}
	k.wantOutput(sb, "cat /proc/1/comm | tr -d '\\n' | wc -c | tr -d ' ' >/dev/null; [ $(cat /proc/1/comm) != berth-guest ] && echo init", "init")
	for _, check := range k.b.Check(k.ctx).Checks {
		if check.Result == sandbox.CheckFail {
			k.Errorf("%+v", check)
		}
	}
}
