package backendtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/workberth/workberth/fsbridge/bridgetest"
	"github.com/workberth/workberth/sandbox"
)

// outsideDir is a directory that commands inside can write and that lies in no mount that a
// bridge may change. It plays what lies beside the workspace.
const outsideDir = "/dev/shm"

// runBridgetest holds the bridges of the backend's sandboxes to package bridgetest. The attackers
// run inside.
func runBridgetest(t *testing.T, target *Target, prog string) {
	t.Helper()
	waive := map[string]string{}
	for name, reason := range target.Waive {
		if check, ok := strings.CutPrefix(name, "bridge/"); ok {
			waive[check] = reason
		}
	}
	bridgetest.Run(t, bridgetest.Target{
		Name: "sandbox-" + target.Name, // neither the backend nor a bridge of the same name
		New: func(t testing.TB, o bridgetest.Options) *bridgetest.Environment {
			return newBridgeEnvironment(t, target, prog, o)
		},
		Waive: waive,
	})
}

// newBridgeEnvironment makes a sandbox over directories of this machine.
func newBridgeEnvironment(t testing.TB, target *Target, prog string, o bridgetest.Options) *bridgetest.Environment {
	t.Helper()
	if o.ReadLimit > 0 {
		t.Skip("the read limit of a sandbox's bridge is its own")
	}
	tt, ok := t.(*testing.T)
	if !ok {
		t.Skip("not a test")
	}
	k := &kit{T: tt, target: target, prog: prog, name: "bridge"}
	k.prepare()
	dirs := bridgetest.NewHostDirs(t, o)
	if o.ReadOnly && !k.features.Confined {
		t.Skip("where commands are not confined, the access is read-write")
	}
	spec := plainSpec(dirs.Workspace)
	if o.ReadOnly {
		spec.Config.Access = sandbox.AccessReadOnly
	}
	bind := ""
	if o.Bind {
		if !k.features.Binds || !k.features.Confined {
			t.Skip("the backend does not declare binds")
		}
		bind = "/bound"
		spec.Config.Binds = append(spec.Config.Binds, sandbox.Bind{Source: dirs.Bind, Target: bind})
	}
	x, err := k.tryEnsure(k.backend, spec)
	if err != nil {
		t.Fatalf("Ensure: %v", explain(err))
	}
	b, err := x.Bridge(k.ctx, o.Guard)
	if err != nil {
		t.Fatalf("Bridge: %v", err)
	}
	insider := x.insider()
	out := path.Join(outsideDir, k.word)
	t.Cleanup(func() { _ = insider.Remove(out) })
	host := bridgetest.HostOracle{x.root: dirs.Workspace}
	env := &bridgetest.Environment{
		Bridge: b, Oracle: &splitOracle{host: host, inside: insider},
		Workspace: x.root, Out: out, Bind: bind,
		Revoke: func() { x.Revoke("bridge check") },
		Sever: func() {
			insider.freeze(out) // what lies inside goes with the sandbox
			_ = k.backend.Stop(context.WithoutCancel(k.ctx), x.id)
		},
		Attack: x.attack,
	}
	if bind != "" {
		host[bind] = dirs.Bind
	}
	if o.Second {
		env.Second = path.Join(x.root, "m")
	}
	if target.Bridge != nil {
		target.Bridge(t, o, env)
	}
	return env
}

// attack swaps names from inside, as fast as a process there can.
func (x *box) attack(ctx context.Context, swaps []bridgetest.Swap) (int64, error) {
	args := []string{"swap"}
	for _, s := range swaps {
		args = append(args, s.A, s.B)
	}
	r, w := io.Pipe()
	stop := context.AfterFunc(ctx, func() { _ = w.Close() })
	defer stop()
	res, err := sandbox.Run(context.WithoutCancel(ctx), x.Sandbox, x.role(args...), nil, sandbox.RunOptions{Stdin: r})
	_ = w.Close()
	if err != nil {
		return 0, err
	}
	var n int64
	if _, err := fmt.Sscanf(string(res.Stdout.Bytes()), "ready\n%d", &n); err != nil {
		return 0, fmt.Errorf("the attacker wrote %q and %q: %w", res.Stdout.Bytes(), res.Stderr.Bytes(), err)
	}
	return n, nil
}

// splitOracle asks this machine about its directories and a process inside about the rest. A
// link by an absolute path leads somewhere inside only, so the process is also asked where this
// machine finds nothing.
type splitOracle struct {
	host   bridgetest.HostOracle
	inside *insider
}

var (
	_ bridgetest.Oracle     = (*splitOracle)(nil)
	_ bridgetest.HostPather = (*splitOracle)(nil)
)

func (s *splitOracle) HostPath(p string) (string, bool) { return s.host.HostPath(p) }

func (s *splitOracle) oracle(p string) bridgetest.Oracle {
	if _, ok := s.host.HostPath(p); ok {
		return s.host
	}
	return s.inside
}

func (s *splitOracle) Make(p string, n bridgetest.Node) error { return s.oracle(p).Make(p, n) }
func (s *splitOracle) Look(p string) (bridgetest.Node, error) {
	return ask(s, p, bridgetest.Oracle.Look)
}
func (s *splitOracle) Names(p string) ([]string, error) { return ask(s, p, bridgetest.Oracle.Names) }
func (s *splitOracle) Open(p string) (io.ReadCloser, error) {
	return ask(s, p, bridgetest.Oracle.Open)
}

// ask asks who knows about p.
func ask[V any](s *splitOracle, p string, question func(bridgetest.Oracle, string) (V, error)) (V, error) {
	v, err := question(s.oracle(p), p)
	if _, local := s.host.HostPath(p); local && errors.Is(err, fs.ErrNotExist) {
		if w, e := question(s.inside, p); e == nil {
			return w, nil
		}
	}
	return v, err
}
func (s *splitOracle) Rename(oldPath, newPath string) error {
	return s.oracle(oldPath).Rename(oldPath, newPath)
}
func (s *splitOracle) Remove(p string) error { return s.oracle(p).Remove(p) }
