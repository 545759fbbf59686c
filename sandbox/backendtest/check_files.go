package backendtest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"syscall"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/sandbox"
)

func fileChecks() []check {
	return []check{
		{name: "one-table", run: filesOneTable},
		{name: "mounts", run: filesMounts},
		{name: "binds", needs: withBinds, run: filesBinds},
		{name: "bind-in-workspace", rows: []string{"C045"}, needs: withBinds, run: filesBindInWorkspace},
		{name: "tmpfs", needs: withTmpfs, run: filesTmpfs},
		{name: "owner", rows: []string{"C043"}, needs: confined, run: filesOwner},
		{name: "modes", rows: []string{"C041"}, run: filesModes},
		{name: "guard", rows: []string{"FSB-10", "FSB-13"}, run: filesGuard},
	}
}

func withTmpfs(f sandbox.Features) string { return unless(f.Tmpfs && f.Confined, "tmpfs") }

// filesOneTable: what a bridge reads and writes is what a command reads and writes.
func filesOneTable(k *kit) {
	x := k.ensure()
	b := x.bridge()
	for _, name := range []string{"plain", "a/b/c", " odd\n-'\"", "-n", "nonutf\xff"} {
		content := "by the bridge: " + name
		k.must(b.WriteFile(k.ctx, name, []byte(content)))
		if got := x.run("read", x.inside(name)); got != content {
			k.Errorf("a command reads %q of %q", got, name)
		}
		content = "by a command: " + name
		x.run("write", x.inside(name), content)
		if got, err := b.ReadFile(k.ctx, name); err != nil || string(got) != content {
			k.Errorf("the bridge reads %q of %q, %v", got, name, err)
		}
		if got, err := b.ReadFile(k.ctx, x.inside(name)); err != nil || string(got) != content {
			k.Errorf("the bridge reads %q of %q by its absolute name, %v", got, name, err)
		}
		if got, err := os.ReadFile(filepath.Join(k.ws, name)); err != nil || string(got) != content {
			k.Errorf("this machine reads %q of %q, %v", got, name, err)
		}
	}
}

// filesMounts: every mount that is told of is there, for both.
func filesMounts(k *kit) {
	x := k.ensure()
	b := x.bridge()
	table := x.Info().Mounts
	for _, m := range fsbridge.Mounts(b) {
		if f, rest, ok := table.Find(m.Path); !ok || rest != "." || f.Kind != m.Kind || f.ReadOnly != m.ReadOnly {
			k.Errorf("the bridge serves %+v, the sandbox tells of %+v", m, f)
		}
	}
	for _, m := range table {
		info, err := b.Stat(k.ctx, m.Path)
		if err != nil {
			k.Errorf("%s %s through the bridge: %v", m.Kind, m.Path, err)
			continue
		}
		if !info.IsDir() || m.Kind == fsbridge.MountSystem {
			continue
		}
		got := decode[[]string](k, x.run("probe", "list", m.Path))[0]
		if got != "ok" {
			k.Errorf("%s %s for a command: %s", m.Kind, m.Path, got)
		}
		probe := path.Join(m.Path, k.word)
		got = decode[[]string](k, x.run("probe", "write", probe))[0]
		err = b.WriteFile(k.ctx, probe+"-bridge", []byte("x"))
		if m.ReadOnly && (got == "ok" || !errors.Is(err, fsbridge.ErrReadOnly)) || !m.ReadOnly && (got != "ok" || err != nil) {
			k.Errorf("%s %s (read-only %t): a command writes: %s, the bridge: %v", m.Kind, m.Path, m.ReadOnly, got, err)
		}
	}
}

// filesBinds: directories and files, writable and not.
func filesBinds(k *kit) {
	rw, ro := k.workspace("rw"), k.workspace("ro")
	file := filepath.Join(k.dir, "file")
	k.must(errors.Join(os.WriteFile(filepath.Join(rw, "f"), []byte("rw"), 0o644), os.WriteFile(filepath.Join(ro, "f"), []byte("ro"), 0o644),
		os.WriteFile(file, []byte("one"), 0o644)))
	x := k.ensure(func(s *sandbox.Spec) {
		s.Config.Binds = []sandbox.Bind{
			{Source: rw, Target: "/data/rw"}, {Source: ro, Target: "/data/ro", ReadOnly: true}, {Source: file, Target: "/data/one", ReadOnly: true},
			{Source: rw, Target: "/data/again", ReadOnly: true},
		}
	})
	b := x.bridge()
	for p, want := range map[string]string{"/data/rw/f": "rw", "/data/ro/f": "ro", "/data/one": "one", "/data/again/f": "rw"} {
		if got := x.run("read", p); got != want {
			k.Errorf("a command reads %q of %s", got, p)
		}
		if got, err := b.ReadFile(k.ctx, p); err != nil || string(got) != want {
			k.Errorf("the bridge reads %q of %s, %v", got, p, err)
		}
	}
	x.run("write", "/data/rw/new", "x")
	k.must(b.WriteFile(k.ctx, "/data/rw/newer", []byte("x")))
	for _, name := range []string{"new", "newer"} {
		if _, err := os.Stat(filepath.Join(rw, name)); err != nil {
			k.Errorf("not written to the source: %v", err)
		}
	}
	for _, p := range []string{"/data/ro/new", "/data/ro/f", "/data/one", "/data/again/f"} {
		if got := decode[[]string](k, x.run("probe", "write", p))[0]; got == "ok" {
			k.Errorf("a command wrote %s, which is read-only", p)
		}
		if err := b.WriteFile(k.ctx, p, []byte("x")); !errors.Is(err, fsbridge.ErrReadOnly) {
			k.Errorf("the bridge wrote %s, which is read-only: %v", p, err)
		}
	}
}

// filesBindInWorkspace: the way to a bind below the workspace belongs to the workspace's owner.
func filesBindInWorkspace(k *kit) {
	const owner = 4242
	root := os.Geteuid() == 0
	if root {
		k.must(chownTree(k.ws, owner))
	}
	data := k.workspace("data")
	k.must(os.WriteFile(filepath.Join(data, "f"), []byte("bound"), 0o644))
	x := k.ensure(func(s *sandbox.Spec) {
		s.Config.Binds = []sandbox.Bind{{Source: data, Target: sandbox.WorkspacePath + "/.cfg/skills/s", ReadOnly: true}}
	})
	if got := x.run("read", x.inside(".cfg/skills/s/f")); got != "bound" {
		k.Errorf("read %q", got)
	}
	x.run("write", x.inside(".cfg/mine"), "x")
	k.must(filepath.WalkDir(filepath.Join(k.ws, ".cfg"), func(p string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil && root && info.Sys().(*syscall.Stat_t).Uid != owner {
			k.Errorf("%s belongs to user %d", p, info.Sys().(*syscall.Stat_t).Uid)
		}
		return err
	}))
}

// chownTree gives a directory of the suite to a user.
func chownTree(dir string, uid int) error {
	return filepath.WalkDir(dir, func(p string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(p, uid, uid)
	})
}

// filesTmpfs: scratch space has its size, and is private.
func filesTmpfs(k *kit) {
	set := func(s *sandbox.Spec) {
		s.Config.Tmpfs = append(s.Config.Tmpfs, sandbox.Tmpfs{Path: "/scratch", SizeBytes: 1 << 20})
	}
	x := k.ensure(set)
	var written int
	var why string
	if _, err := fmt.Sscan(x.run("fill", "/scratch/full", fmt.Sprint(4<<20)), &written, &why); err != nil || written > 1<<20 || why != "ENOSPC" {
		k.Errorf("wrote %d bytes into 1 MiB: %s, %v", written, why, err)
	}
	x.run("remove", "/scratch/full")
	k.must(x.bridge().WriteFile(k.ctx, "/scratch/f", []byte("scratch")))
	if got := x.run("read", "/scratch/f"); got != "scratch" {
		k.Errorf("a command reads %q", got)
	}
	y := k.ensure(set, func(s *sandbox.Spec) { s.Session = "other" })
	for _, dir := range []string{"/scratch", "/tmp"} {
		x.run("write", path.Join(dir, k.word), "x")
		if got := decode[[]string](k, y.run("probe", "read", path.Join(dir, k.word)))[0]; got != "ENOENT" {
			k.Errorf("%s is shared between two sandboxes: %s", dir, got)
		}
	}
}

// filesOwner: what is made inside belongs to the owner of the workspace, so that a person can
// go on working with it.
func filesOwner(k *kit) {
	owners := []int{os.Geteuid()}
	if os.Geteuid() == 0 {
		owners = []int{4242, 0}
	}
	for _, owner := range owners {
		ws := k.workspace(fmt.Sprintf("of-%d", owner))
		k.must(chownTree(ws, owner))
		spec := k.spec()
		spec.Workspace = ws
		x, err := k.tryEnsure(k.backend, spec)
		if err != nil {
			k.Fatalf("Ensure: %v", explain(err))
		}
		x.run("write", x.inside("by-command"), "x")
		b := x.bridge()
		k.must(b.WriteFile(k.ctx, "deep/by-bridge", []byte("x")))
		k.must(b.WriteFile(k.ctx, "by-command", []byte("again")))
		for _, name := range []string{"by-command", "deep", "deep/by-bridge"} {
			info, err := os.Lstat(filepath.Join(ws, name))
			k.must(err)
			if st := info.Sys().(*syscall.Stat_t); int(st.Uid) != owner || int(st.Gid) != owner {
				k.Errorf("%s belongs to %d:%d, the workspace to %d", name, st.Uid, st.Gid, owner)
			}
		}
		// Inside it looks the same way.
		if got := decode[map[string]int64](k, x.run("stat", x.inside("by-command"))); int(got["uid"]) != owner {
			k.Errorf("inside it belongs to %d", got["uid"])
		}
	}
}

// filesModes: permissions arrive as they were meant; nothing becomes set-id by accident.
func filesModes(k *kit) {
	x := k.ensure()
	b := x.bridge()
	for _, mode := range []fsbridge.Mode{0o644, 0o755, 0o600, 0o400, 0o777, 0o640} {
		name := fmt.Sprintf("m%o", mode)
		if _, err := fsbridge.WriteStream(k.ctx, b, name, emptyReader{}, fsbridge.WriteOptions{Mode: mode}); err != nil {
			if errors.Is(err, fsbridge.ErrUnsupported) {
				k.skip("the bridge does not declare streamed writes")
			}
			k.Errorf("write with mode %o: %v", mode, err)
			continue
		}
		if got := decode[map[string]int64](k, x.run("stat", x.inside(name)))["mode"] & 0o7777; got != int64(mode) {
			k.Errorf("mode %o inside, asked for %o", got, mode)
		}
	}
	if _, err := fsbridge.WriteStream(k.ctx, b, "setuid", emptyReader{}, fsbridge.WriteOptions{Mode: 0o4755}); err == nil {
		k.Error("a set-id bit was accepted without being permitted")
	}
}

// filesGuard: a guard is asked before each command, and what it says is kept.
func filesGuard(k *kit) {
	x := k.ensure()
	gone := errors.New("authority of the suite is gone")
	asked, ok := 0, true
	b, err := x.Bridge(k.ctx, func() error {
		asked++
		if ok {
			return nil
		}
		return gone
	})
	k.must(err)
	k.must(b.WriteFile(k.ctx, "f", []byte("x")))
	if asked == 0 {
		k.Error("the guard was not asked")
	}
	ok = false
	if err := b.WriteFile(k.ctx, "g", []byte("x")); !errors.Is(err, gone) || !errors.Is(err, fsbridge.ErrNotCurrent) {
		k.Errorf("write: %v", err)
	}
	if _, err := b.ReadFile(k.ctx, "f"); !errors.Is(err, gone) {
		k.Errorf("read: %v", err)
	}
	if _, err := os.Stat(filepath.Join(k.ws, "g")); err == nil {
		k.Error("written without authority")
	}
}

type emptyReader struct{}

func (emptyReader) Read([]byte) (int, error) { return 0, io.EOF }
