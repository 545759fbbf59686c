package backendtest

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/sandbox"
)

func accessChecks() []check {
	return []check{
		{name: "none", needs: withAccess(sandbox.AccessNone), run: accessNone},
		{name: "read-only", needs: withAccess(sandbox.AccessReadOnly), run: accessReadOnly},
		{name: "two-workspaces", rows: []string{"C057"}, run: accessTwoWorkspaces},
		{name: "bad-workspace", run: accessBadWorkspace},
	}
}

func withPrivateFile(k *kit) map[string]string {
	k.Helper()
	k.must(os.WriteFile(filepath.Join(k.ws, "private"), []byte("of the user"), 0o644))
	return k.snapshot(k.ws)
}

// accessNone: the workspace does not appear; there is a private scratch directory instead.
func accessNone(k *kit) {
	before := withPrivateFile(k)
	none := func(s *sandbox.Spec) { s.Config.Access = sandbox.AccessNone }
	x := k.ensure(none)
	if x.root != sandbox.WorkspacePath {
		k.Errorf("the workspace is at %q", x.root)
	}
	if names := decode[[]string](k, x.run("list", x.root)); slices.Contains(names, "private") || slices.Contains(names, witnessDir) {
		k.Errorf("the user's files appear: %q", names)
	}
	if m, _ := x.Info().Mounts.Workspace(); strings.HasPrefix(m.HostPath, k.ws) {
		k.Errorf("mount %+v", m)
	}
	x.run("write", x.inside("scratch"), "kept")
	b := x.bridge()
	k.must(b.WriteFile(k.ctx, "by-bridge", []byte("kept")))
	if got, err := b.ReadFile(k.ctx, "scratch"); err != nil || string(got) != "kept" {
		k.Errorf("the bridge reads %q, %v", got, err)
	}
	k.wantSnapshot("access none", k.ws, before)

	// It lasts as long as the sandbox, and no longer.
	k.must(k.backend.Stop(k.ctx, x.id))
	y := k.ensure(none)
	if got := y.run("read", y.inside("by-bridge")); y.id != x.id || got != "kept" {
		k.Errorf("after a stop: %q in %s, was %s", got, y.id, x.id)
	}
	k.must(k.backend.Remove(k.ctx, x.id))
	z := k.ensure(none)
	if names := decode[[]string](k, z.run("list", z.root)); len(names) != 0 {
		k.Errorf("after the removal: %q", names)
	}
	k.wantSnapshot("access none", k.ws, before)
}

// accessReadOnly: the workspace can be read and not be changed, by nobody.
func accessReadOnly(k *kit) {
	before := withPrivateFile(k)
	x := k.ensure(func(s *sandbox.Spec) { s.Config.Access = sandbox.AccessReadOnly })
	if k.features.Confined && x.root != sandbox.ReadOnlyWorkspacePath || x.Info().Workdir != x.root {
		k.Errorf("the workspace is at %q, the working directory is %q", x.root, x.Info().Workdir)
	}
	if got := x.run("read", x.inside("private")); got != "of the user" {
		k.Errorf("a command reads %q", got)
	}
	if got := x.run("pwd"); got != x.root {
		k.Errorf("a command runs in %q", got)
	}
	probes := decode[[]string](k, x.run("probe", "write", x.inside("new"), "write", x.inside("private"), "mkdir", x.inside("dir")))
	for i, got := range probes {
		if got == "ok" {
			k.Errorf("probe %d changed a read-only workspace", i)
		}
	}
	b := x.bridge()
	for what, err := range map[string]error{
		"write": b.WriteFile(k.ctx, "private", []byte("x")), "new": b.WriteFile(k.ctx, "new", []byte("x")),
		"remove": fsbridge.Remove(k.ctx, b, "private", fsbridge.RemoveOptions{}),
	} {
		if !errors.Is(err, fsbridge.ErrReadOnly) && !errors.Is(err, fsbridge.ErrUnsupported) {
			k.Errorf("%s through the bridge: %v", what, err)
		}
	}
	k.wantSnapshot("access ro", k.ws, before)
}

// accessTwoWorkspaces: the same key in two workspaces is two sandboxes that know nothing of
// each other.
func accessTwoWorkspaces(k *kit) {
	other := k.workspace("other")
	one, two := k.spec(), k.spec(func(s *sandbox.Spec) { s.Workspace = other })
	x, err := k.tryEnsure(k.backend, one)
	k.must(err)
	y, err := k.tryEnsure(k.backend, two)
	k.must(err)
	if x.id == y.id {
		k.Fatal("two workspaces share one sandbox")
	}
	x.run("write", x.inside("in-one"), "1")
	y.run("write", y.inside("in-two"), "2")
	if names := decode[[]string](k, y.run("list", y.root)); slices.Contains(names, "in-one") || !slices.Contains(names, "in-two") {
		k.Errorf("in the second workspace: %q", names)
	}
	if k.features.Confined {
		if got := decode[[]string](k, y.run("probe", "read", filepath.Join(k.ws, "in-one")))[0]; got == "ok" {
			k.Error("the first workspace can be read from the second sandbox")
		}
	}
	s := y.start("wait", y.witness("y"))
	s.waitFor("ready")
	k.must(k.backend.Stop(k.ctx, x.id))
	k.must(k.backend.Remove(k.ctx, x.id))
	if len(k.aliveIn(other, "y")) != 1 {
		k.Error("the end of one sandbox ended a command of the other")
	}
	y.works()
	if _, err := os.Stat(filepath.Join(k.ws, "in-one")); err != nil {
		k.Errorf("the removal touched the workspace: %v", err)
	}
}

// accessBadWorkspace: a workspace that is none is refused before anything is made.
func accessBadWorkspace(k *kit) {
	file := filepath.Join(k.dir, "file")
	k.must(os.WriteFile(file, nil, 0o644))
	before := k.stateSnapshot()
	for what, ws := range map[string]string{"missing": filepath.Join(k.dir, "missing"), "a file": file, "empty": "", "relative": "ws", "root": "/", "etc": "/etc"} {
		x, err := k.tryEnsure(k.backend, k.spec(func(s *sandbox.Spec) { s.Workspace = ws }))
		var p *sandbox.Problem
		if x != nil || !errors.Is(err, sandbox.ErrRefused) || !errors.As(err, &p) || p.Remedy == "" {
			k.Errorf("%s: %v", what, err)
		}
	}
	k.wantStateSnapshot(before)
}
