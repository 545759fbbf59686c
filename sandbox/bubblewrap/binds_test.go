package bubblewrap

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/workberth/workberth/sandbox"
)

// C045: binds appear where they should, read-only or not, files too; the parents of
// their places belong to the owner of the workspace.
func TestBinds(t *testing.T) {
	r := newRig(t)
	src := filepath.Join(r.dir, "source")
	if err := os.MkdirAll(filepath.Join(src, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(src, "file")
	if err := os.WriteFile(file, []byte("bound\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 { // the workspace of an ordinary user
		for _, p := range []string{r.ws, src, file, filepath.Join(src, "sub")} {
			if err := os.Chown(p, unprivileged, unprivileged); err != nil {
				t.Fatal(err)
			}
		}
	}
	sb := ensure(t, r.Backend, r.spec(func(c *sandbox.Config) {
		c.Binds = []sandbox.Bind{
			{Source: src, Target: "/workspace/.cfg/skills/s", ReadOnly: true},
			{Source: src, Target: "/data/rw"},
			{Source: file, Target: "/data/one/file", ReadOnly: true},
			{Source: file, Target: "/workspace/.cfg/one"},
		}
	}))
	out := sh(t, sb, `cat .cfg/skills/s/file /data/rw/file /data/one/file .cfg/one
		touch .cfg/skills/s/x 2>/dev/null || echo refused
		(: >/data/one/file) 2>/dev/null || echo refused
		echo new >/data/rw/made; mkdir .cfg/other; ls .cfg | tr '\n' ' '`)
	if want := strings.Repeat("bound\n", 4) + "refused\nrefused\none other skills "; out != want {
		t.Errorf("got %q, want %q", out, want)
	}
	if data, err := os.ReadFile(filepath.Join(src, "made")); err != nil || string(data) != "new\n" {
		t.Errorf("written through the bind: %q, %v", data, err)
	}
	want := ownerOf(t, r.ws)
	for _, p := range []string{".cfg", ".cfg/skills", ".cfg/skills/s", ".cfg/one", ".cfg/other"} {
		if got := ownerOf(t, filepath.Join(r.ws, p)); got != want {
			t.Errorf("%s belongs to %d, the workspace to %d", p, got, want)
		}
	}
}

// A mount point that cannot be made is refused by name, and no link is followed.
func TestMountpointRefusals(t *testing.T) {
	r := newRig(t)
	outside := filepath.Join(r.dir, "outside")
	for _, d := range []string{outside, filepath.Join(r.dir, "src")} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"abs": outside, "up": "../outside", "old": "/oldroot" + outside} {
		if err := os.Symlink(target, filepath.Join(r.ws, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(r.ws, "plain"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	bind := func(target string) func(*sandbox.Config) {
		return func(c *sandbox.Config) {
			c.Binds = []sandbox.Bind{{Source: filepath.Join(r.dir, "src"), Target: target}}
		}
	}
	for target, says := range map[string]string{
		"/workspace/abs": "link", "/workspace/abs/x": "link", "/workspace/up/x": "link", "/workspace/old/x/y": "link",
		"/workspace/plain/x": "not a directory", "/workspace/plain": "not a directory",
	} {
		_, err := r.Ensure(t.Context(), r.spec(bind(target)))
		p := problem(t, err, "binds", sandbox.ErrRefused)
		if !strings.Contains(p.Rule, says) {
			t.Errorf("%s: %s", target, p.Rule)
		}
	}
	_, err := r.Ensure(t.Context(), r.spec(bind("/agent/missing"), func(c *sandbox.Config) {
		c.Access = sandbox.AccessReadOnly
		c.Binds[0].ReadOnly = true
	}))
	if p := problem(t, err, "binds", sandbox.ErrRefused); !strings.Contains(p.Rule, "read-only") {
		t.Errorf("below a read-only workspace: %s", p.Rule)
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 0 {
		t.Errorf("something was made outside: %v, %v", entries, err)
	}
	if infos, err := r.List(t.Context()); err != nil || len(infos) != 0 {
		t.Errorf("refused sandboxes are listed: %v, %v", infos, err)
	}
}
