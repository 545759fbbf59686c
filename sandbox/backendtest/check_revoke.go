package backendtest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/sandbox"
)

func revokeChecks() []check {
	return []check{
		{name: "matrix", rows: []string{"SBX-04", "SBX-08", "SBX-09", "SBX-13"}, run: revokeMatrix},
		{name: "files", rows: []string{"SBX-08", "FSB-12"}, run: revokeFiles},
		{name: "between", rows: []string{"SBX-04", "SBX-05", "SBX-08"}, run: revokeBetween},
		{name: "one-handle", rows: []string{"SBX-08"}, run: revokeOneHandle},
		{name: "race", rows: []string{"SBX-08"}, run: revokeRace},
	}
}

// revokeMatrix: after revocation nothing new starts, and what runs can be ended.
func revokeMatrix(k *kit) {
	x := k.ensure()
	tree := x.start("tree", x.witness("t"), "8").ready()
	prepared, err := sandbox.PrepareProcessCleanup(k.ctx, x.Sandbox, nil)
	k.must(err)
	spec, err := x.BuildExecSpec(k.ctx, x.role("wait", x.witness("new")), prepared.Env)
	k.must(err)
	k.must(spec.AssertCurrent())

	x.Revoke("the matrix")
	x.Revoke("a second time") // changes nothing

	refused := func(what string, err error) {
		k.Helper()
		if !errors.Is(err, sandbox.ErrRevoked) {
			k.Errorf("%s: %v; want ErrRevoked", what, err)
		} else if !strings.Contains(err.Error(), "the matrix") {
			k.Errorf("%s: %q does not give the reason", what, err)
		}
	}
	_, err = sandbox.PrepareProcessCleanup(k.ctx, x.Sandbox, nil)
	refused("a new cleanup preparation", err)
	_, err = x.BuildExecSpec(k.ctx, x.role("true"), nil)
	refused("a new exec spec", err)
	_, err = sandbox.Run(k.ctx, x.Sandbox, x.role("true"), nil, sandbox.RunOptions{})
	refused("a new command", err)
	refused("the last check of a spec made before", spec.AssertCurrent())
	_, err = spec.Spawn(k.ctx, sandbox.IO{})
	refused("the launch of a spec made before", err)
	refused("an interrupt", tree.Interrupt(k.ctx))
	refused("a signal", tree.Signal(k.ctx, 15))
	k.must(x.FinalizeExec(k.ctx, spec.Token, sandbox.OutcomeLaunchFailed))
	k.allDead("refused", "new")
	if len(k.alive("t")) < 8 {
		k.Error("revocation ended what runs; that is its owner's decision")
	}

	if k.features.ProcessCleanup {
		tree.terminate(100 * time.Millisecond)
		k.allDead("terminated after revocation", "t")
		if res, err := prepared.Terminate(k.ctx, 0); err != nil || res.Outcome != sandbox.TerminationGone {
			k.Errorf("Terminate of what was never launched = %+v, %v", res, err)
		}
	}
	tree.cancel()
	tree.ended()
	if n := x.OpenTokens(); n != 0 {
		k.Errorf("%d open tokens", n)
	}
	if err := x.Close(); err != nil {
		k.Errorf("Close after revocation: %v", err)
	}
}

// revokeFiles: nothing is written any more, through bridges made before and after; reading
// goes on.
func revokeFiles(k *kit) {
	x := k.ensure()
	k.must(os.WriteFile(filepath.Join(k.ws, "f"), []byte("before"), 0o644))
	k.must(os.MkdirAll(filepath.Join(k.ws, "d"), 0o755))
	old := x.bridge()
	k.must(old.WriteFile(k.ctx, "g", []byte("permitted")))
	x.Revoke("no more files")
	fresh, err := x.Bridge(k.ctx, nil)
	k.must(err)
	before := k.snapshot(k.ws)
	for name, b := range map[string]fsbridge.Bridge{"made before": old, "made after": fresh} {
		for op, err := range map[string]error{
			"write":  b.WriteFile(k.ctx, "f", []byte("after")),
			"new":    b.WriteFile(k.ctx, "n", []byte("after")),
			"create": fsbridge.CreateFileExclusive(k.ctx, b, "n", []byte("after")),
			"stream": streamed(fsbridge.WriteStream(k.ctx, b, "n", strings.NewReader("after"), fsbridge.WriteOptions{})),
			"append": fsbridge.AppendFile(k.ctx, b, "f", []byte("after")),
			"mkdir":  fsbridge.Mkdir(k.ctx, b, "e", fsbridge.MkdirOptions{}),
			"remove": fsbridge.Remove(k.ctx, b, "f", fsbridge.RemoveOptions{}),
			"rename": fsbridge.Rename(k.ctx, b, "f", "n", fsbridge.RenameOptions{}),
			"copy":   fsbridge.Copy(k.ctx, b, "f", "n", fsbridge.CopyOptions{}),
			"link":   fsbridge.Symlink(k.ctx, b, "f", "n", fsbridge.SymlinkOptions{}),
			"chmod":  fsbridge.Chmod(k.ctx, b, "f", 0o600),
		} {
			if errors.Is(err, fsbridge.ErrUnsupported) {
				continue
			}
			if !errors.Is(err, sandbox.ErrRevoked) || !errors.Is(err, fsbridge.ErrNotCurrent) {
				k.Errorf("%s through a bridge %s: %v; want ErrRevoked and ErrNotCurrent", op, name, err)
			}
		}
		if data, err := b.ReadFile(k.ctx, "f"); err != nil || string(data) != "before" {
			k.Errorf("read through a bridge %s: %q, %v", name, data, err)
		}
		if _, err := b.Stat(k.ctx, "f"); err != nil {
			k.Errorf("stat through a bridge %s: %v", name, err)
		}
	}
	k.wantSnapshot("refused writes", k.ws, before)
}

func streamed(_ fsbridge.WriteResult, err error) error { return err }

// revokeBetween revokes between the building of a spec and its launch: the owner's last check
// finds it, nothing runs, and the token is finalised.
func revokeBetween(k *kit) {
	x := k.ensure()
	sb := &betweener{Sandbox: x, x: x}
	_, err := sandbox.Start(k.ctx, sb, x.role("wait", x.witness("a")), nil, sandbox.IO{}, sandbox.StartOptions{})
	if !errors.Is(err, sandbox.ErrRevoked) {
		k.Errorf("Start: %v", err)
	}
	k.allDead("revoked before the launch", "a")
	history := strings.Join(x.rec.last(), ", ")
	if !strings.HasSuffix(history, "assert, finalize launch-failed") || strings.Contains(history, "spawn") {
		k.Errorf("history %s", history)
	}
	if n := x.OpenTokens(); n != 0 {
		k.Errorf("%d open tokens", n)
	}
}

// betweener revokes when a spec has been built.
type betweener struct {
	sandbox.Sandbox
	x *box
}

func (b *betweener) BuildExecSpec(ctx context.Context, cmd sandbox.Command, env sandbox.Env) (sandbox.ExecSpec, error) {
	spec, err := b.Sandbox.BuildExecSpec(ctx, cmd, env)
	b.x.Revoke("in between")
	return spec, err
}

func (b *betweener) PrepareProcessCleanup(ctx context.Context, env sandbox.Env) (sandbox.Prepared, error) {
	return sandbox.PrepareProcessCleanup(ctx, b.x.Sandbox, env)
}

// revokeOneHandle: another handle, with an authority of its own, is not concerned.
func revokeOneHandle(k *kit) {
	one := k.ensure()
	two, err := k.tryEnsure(k.backend, k.spec())
	k.must(err)
	one.Revoke("one of two")
	if _, err := one.BuildExecSpec(k.ctx, one.role("true"), nil); !errors.Is(err, sandbox.ErrRevoked) {
		k.Errorf("the revoked handle: %v", err)
	}
	two.works()
	k.must(two.bridge().WriteFile(k.ctx, "f", []byte("x")))
}

// revokeRace revokes while commands are being launched: each of them either runs, and is ended
// by its custody, or does not.
func revokeRace(k *kit) {
	for i := range k.rounds(15, 4) {
		x := k.ensure()
		done := make(chan struct{})
		stop := k.after(i, func() {
			x.Revoke("now")
			close(done)
		})
		var running []*started
		for range 1000 {
			s, err := x.tryStart(x.role("wait", x.witness("r")), nil)
			if err != nil {
				if !errors.Is(err, sandbox.ErrRevoked) {
					k.Errorf("Start: %v", err)
				}
				break
			}
			running = append(running, s)
			s.cancel()
		}
		<-done
		stop()
		if _, err := x.BuildExecSpec(k.ctx, x.role("true"), nil); !errors.Is(err, sandbox.ErrRevoked) {
			k.Errorf("after revocation: %v", err)
		}
		for _, s := range running {
			s.ended()
		}
		k.allDead("terminated", "r")
		k.must(x.Close())
	}
}
