package skills

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/local"
	"github.com/workberth/workberth/internal/helperbin"
	"github.com/workberth/workberth/sandbox"
	"github.com/workberth/workberth/sandbox/bubblewrap"
	"github.com/workberth/workberth/skills"
	"github.com/workberth/workberth/skills/mirror"
	"github.com/workberth/workberth/skills/probe"
)

// SKL-03 SKL-04: installed skills are read on this machine and seen in a local sandbox through
// read-only binds; those of its workspace are judged by what is in it.
func TestBinds(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bwrap"); err != nil {
		missing(t, "bubblewrap is not installed")
	}
	built, err := helper()
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.MkdirTemp("", "sk-") // short: a socket's path is bounded
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	src, ws := filepath.Join(root, "src"), filepath.Join(root, "ws")
	write(t, src, "one/SKILL.md", "---\nname: one\ndescription: d\n---\n", 0o644)
	write(t, ws, "skills/own/SKILL.md", "---\nname: own\ndescription: d\nmetadata: {berth: {requires: {bins: [sh], env: [ONLY_INSIDE]}}}\n---\n", 0o644)
	from, err := local.New(local.Options{Mounts: fsbridge.MountTable{{Path: src, Kind: fsbridge.MountBind, ReadOnly: true}}})
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	installed, err := skills.Discover(t.Context(), from, []skills.Root{{Path: src, Kind: skills.KindInstalled}}, nil, skills.Options{Parallel: 8})
	if err != nil {
		t.Fatal(err)
	}
	l, err := skills.Select(skills.Policy{}, installed)
	if err != nil {
		t.Fatal(err)
	}
	c := sandbox.DefaultConfig()
	c.Env = map[string]string{"ONLY_INSIDE": "1"}
	if c.Binds, err = mirror.Binds(l, "/skills"); err != nil {
		t.Fatal(err)
	}
	backend, err := bubblewrap.New(bubblewrap.Options{StateDir: filepath.Join(root, "state"), HelperPath: filepath.Join(built, helperbin.Name)})
	if err != nil {
		t.Fatal(err)
	}
	sb, err := backend.Ensure(t.Context(), sandbox.Spec{Scope: sandbox.ScopeSession, Session: "binds", Workspace: ws, Config: c})
	if err != nil {
		missing(t, err.Error())
	}
	defer sb.Close()
	r, err := sandbox.Run(t.Context(), sb, sandbox.Command{Argv: []string{"sh", "-c", "cat /skills/one/SKILL.md; echo x 2>/dev/null >> /skills/one/SKILL.md || echo kept"}}, nil, sandbox.RunOptions{})
	if err != nil || string(r.Stdout.Bytes()) != "---\nname: one\ndescription: d\n---\nkept\n" {
		t.Errorf("%q, %v", r.Stdout.Bytes(), err)
	}
	b, err := sb.Bridge(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	own, err := skills.Discover(t.Context(), b, []skills.Root{{Path: "skills", Kind: skills.KindWorkspace}}, probe.In(sb, b), skills.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if l, err = skills.Select(skills.Policy{}, own, installed); err != nil || len(l.Loaded()) != 2 {
		t.Errorf("%+v, %v", l, err)
	}
}
