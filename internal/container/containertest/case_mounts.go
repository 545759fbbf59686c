package containertest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/workberth/workberth/internal/helperbin"
	"github.com/workberth/workberth/sandbox"
)

// oddNames would mean something else in an argument, in a list of mounts, or in a filter.
func oddNames() []string {
	return []string{
		"a:b", "a:/etc:rw", "a,b", "a,readonly=true", `q"u'o`, "sp ace ", "-dash", "$HOME", "`id`", "new\nline", "é世界", `back\slash`, "per%cent", "eq=ual", "br{}", "a;b", "#", "tab\t",
	}
}

// caseOddNames: workspace, binds and keys of any name are what they are, and nothing else. C045 C057
func caseOddNames(k *kit) {
	for _, name := range oddNames() {
		plain := strings.ReplaceAll(name, "/", "-")
		ws, data := k.workspace("w "+plain), k.workspace("d "+plain)
		k.must(errors.Join(os.WriteFile(filepath.Join(ws, "f"), []byte("w"+name), 0o644), os.WriteFile(filepath.Join(data, "f"), []byte("d"+name), 0o644)))
		target := "/data/" + name
		spec := k.spec(func(c *sandbox.Config) { c.Binds = []sandbox.Bind{{Source: data, Target: target, ReadOnly: true}} })
		spec.Workspace = ws
		spec.Session = strings.NewReplacer("\n", "", "\t", "").Replace(name)
		sb, err := k.b.Ensure(k.ctx, spec)
		if err != nil {
			k.Errorf("%q: %s", name, explain(err))
			continue
		}
		br, err := sb.Bridge(k.ctx, nil)
		k.must(err)
		for path, want := range map[string]string{"f": "w" + name, target + "/f": "d" + name} {
			if got, err := br.ReadFile(k.ctx, path); err != nil || string(got) != want {
				k.Errorf("%q: %s is %q, %v", name, path, got, err)
			}
			res, err := sandbox.Run(k.ctx, sb, sandbox.Command{Argv: []string{"/bin/cat", "--", path}}, nil, sandbox.RunOptions{})
			if err != nil || string(res.Stdout.Bytes()) != want {
				k.Errorf("%q: a command reads %q of %s, %v", name, res.Stdout.Bytes(), path, err)
			}
		}
		k.must(errors.Join(sb.Close(), k.b.Remove(k.ctx, sb.Info().ID)))
	}
}

// caseNamesNotText: a name that is no text cannot be told to an engine. It is refused, and never
// another directory. C045 C057
func caseNamesNotText(k *kit) {
	const bad = "bad\xffname"
	ws, data := k.workspace("w"+bad), k.workspace("d"+bad)
	// What a careless sender would name instead.
	for _, dir := range []string{"w", "d"} {
		k.workspace(dir + strings.ToValidUTF8(bad, "\uFFFD"))
	}
	spec := k.spec()
	spec.Workspace = ws
	_, err := k.b.Ensure(k.ctx, spec)
	k.refused(err, sandbox.ErrRefused, "workspace", `\xff`)
	_, err = k.b.Ensure(k.ctx, k.spec(func(c *sandbox.Config) { c.Binds = []sandbox.Bind{{Source: data, Target: "/data"}} }))
	k.refused(err, sandbox.ErrRefused, "binds", `\xff`)
	_, err = k.b.Ensure(k.ctx, k.spec(func(c *sandbox.Config) { c.Binds = []sandbox.Bind{{Source: k.ws, Target: "/data/" + bad}} }))
	k.refused(err, sandbox.ErrRefused, "binds", `\xff`)
	if left := k.containers(); len(left) != 0 {
		k.Errorf("left behind: %+v", left)
	}
}

// caseSourcesChange: what is bound is what the configuration names now. A source that is gone, or is
// something else, is told by its name; one behind a link that was turned is another sandbox. C017 C045
func caseSourcesChange(k *kit) {
	one, two := k.workspace("one"), k.workspace("two")
	link := filepath.Join(k.dir, "link")
	k.must(errors.Join(os.WriteFile(filepath.Join(one, "f"), []byte("one"), 0o644), os.WriteFile(filepath.Join(two, "f"), []byte("two"), 0o644), os.Symlink(one, link)))
	bind := func(c *sandbox.Config) { c.Binds = []sandbox.Bind{{Source: link, Target: "/data"}} }
	turn := func(to string) { k.must(errors.Join(os.Remove(link), os.Symlink(to, link))) }
	sb := k.ensure(k.b, bind)
	k.wantOutput(sb, "cat /data/f", "one")
	turn(two)
	other := k.ensure(k.b, bind)
	if other.Info().ID == sb.Info().ID {
		k.Error("a source behind a turned link is the same sandbox")
	}
	k.wantOutput(other, "cat /data/f", "two")
	k.wantOutput(sb, "cat /data/f", "one")
	turn(one)
	k.must(errors.Join(sb.Close(), other.Close()))

	// Gone, then something else, then back.
	k.must(os.RemoveAll(one))
	_, err := k.b.Ensure(k.ctx, k.spec(bind))
	k.refused(err, sandbox.ErrRefused, "binds", link)
	if _, err := os.Lstat(one); err == nil {
		k.Error("a missing source was made")
	}
	k.must(os.WriteFile(one, []byte("a file"), 0o644))
	if sb, err := k.b.Ensure(k.ctx, k.spec(bind)); err == nil {
		k.wantOutput(sb, "cat /data", "a file")
		k.must(sb.Close())
	} else {
		k.refused(err, sandbox.ErrUnavailable, one)
	}
	k.must(errors.Join(os.Remove(one), os.Mkdir(one, 0o755), os.WriteFile(filepath.Join(one, "f"), []byte("new"), 0o644)))
	sb = k.ensure(k.b, bind)
	k.wantOutput(sb, "cat /data/f", "new")
	k.must(sb.Close())
	turn("/etc")
	_, err = k.b.Ensure(k.ctx, k.spec(bind))
	k.refused(err, sandbox.ErrRefused, "binds")

	// The workspace itself, made anew under the same name.
	k.must(errors.Join(os.RemoveAll(k.ws), os.Mkdir(k.ws, 0o755), os.WriteFile(filepath.Join(k.ws, "again"), nil, 0o644)))
	turn(two)
	sb = k.ensure(k.b, bind)
	k.wantOutput(sb, "ls", "again")
}

// caseParents: the way to a mount belongs to who runs inside, whether it lies in the workspace, in
// another bind or in memory, and a link in it leads nowhere. C043 C045
func caseParents(k *kit) {
	const owner = 4242
	who := os.Geteuid()
	if who == 0 {
		who = owner
		k.must(os.Chown(k.ws, owner, owner))
	}
	data, outer, outside := k.workspace("data"), k.workspace("outer"), k.workspace("outside")
	file := filepath.Join(k.dir, "file")
	k.must(errors.Join(os.WriteFile(file, []byte("bound"), 0o644), os.WriteFile(filepath.Join(data, "f"), []byte("bound"), 0o644), os.Chown(outer, who, who)))
	binds := func(c *sandbox.Config) {
		c.Binds = []sandbox.Bind{
			{Source: data, Target: "/workspace/.cfg/skills/s", ReadOnly: true}, {Source: file, Target: "/workspace/.one/two/file", ReadOnly: true},
			{Source: outer, Target: "/outer"}, {Source: data, Target: "/outer/a/b", ReadOnly: true}, {Source: data, Target: "/tmp/c/d", ReadOnly: true},
		}
	}
	sb := k.ensure(k.b, binds)
	for _, path := range []string{"/workspace/.cfg/skills/s/f", "/workspace/.one/two/file", "/outer/a/b/f", "/tmp/c/d/f"} {
		k.wantOutput(sb, "cat "+path, "bound")
	}
	k.wantOutput(sb, "ls .cfg .cfg/skills .one .one/two >/dev/null && touch .cfg/x .one/x /outer/a/x && echo ok", "ok")
	for _, top := range []string{k.ws, outer} {
		k.must(filepath.WalkDir(top, func(p string, e os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := e.Info()
			if err == nil && int(info.Sys().(*syscall.Stat_t).Uid) != who {
				k.Errorf("%s belongs to user %d, want %d", p, info.Sys().(*syscall.Stat_t).Uid, who)
			}
			return err
		}))
	}
	k.must(sb.Close())
	// A command of the last life has put a link in the way.
	k.must(errors.Join(os.RemoveAll(filepath.Join(k.ws, ".cfg")), os.Symlink(outside, filepath.Join(k.ws, ".cfg"))))
	_, err := k.b.Ensure(k.ctx, k.spec(binds))
	k.refused(err, sandbox.ErrRefused, ".cfg", "link")
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 0 {
		k.Errorf("outside of the workspace: %v, %v", entries, err)
	}
}

// otherFiles is set in a process whose files below a directory are not the engine's.
const otherFiles = "BERTH_TEST_OTHER_FILES"

// caseOtherFiles: an engine that sees other files than this process, as one on another machine does,
// is found out: the sandbox gets a copy of the workspace, and no command ever runs in another directory of
// the same name. C051
func caseOtherFiles(k *kit) {
	if os.Geteuid() != 0 {
		k.Skip("only root can have other files than the engine")
	}
	if os.Getenv(otherFiles) == "" {
		k.elsewhere()
		return
	}
	mount := func(dir string) {
		k.must(syscall.Mount("tmpfs", dir, "tmpfs", 0, ""))
		k.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	}
	marker := []byte("of this machine")
	// The workspace is not there at all.
	hidden := k.workspace("hidden")
	mount(hidden)
	ws := filepath.Join(hidden, "ws")
	k.must(errors.Join(os.Mkdir(ws, 0o755), os.WriteFile(filepath.Join(ws, "f"), marker, 0o644)))
	// The sandbox works on a copy then.
	copies := func(what string, spec sandbox.Spec) {
		k.Helper()
		sb, err := k.b.Ensure(k.ctx, spec)
		k.must(err)
		if sb.Info().Runtime["volume"] == "" {
			k.Errorf("%s: it is taken for the same: %+v", what, sb.Info().Runtime)
		}
		k.wantOutput(sb, "cat f; echo changed >f", string(marker))
		k.must(sb.Close())
		sb, err = k.b.Ensure(k.ctx, spec) // now that it is known
		k.must(err)
		k.wantOutput(sb, "cat f", "changed")
		if got := k.read(filepath.Join(spec.Workspace, "f")); got != string(marker) {
			k.Errorf("%s: the file of this machine is %q", what, got)
		}
		k.must(errors.Join(sb.Close(), k.b.Remove(k.ctx, sb.Info().ID)))
		if left := k.containers(); len(left) != 0 {
			k.Errorf("%s: left behind: %+v", what, left)
		}
	}
	fails := func(what string, sentinel error, spec sandbox.Spec, words ...string) {
		k.Helper()
		k.within(30*time.Second, what, func() {
			sb, err := k.b.Ensure(k.ctx, spec)
			if err == nil {
				k.wantOutput(sb, "pwd; ls -a", "nothing, there is no such sandbox")
				k.must(sb.Close())
				k.Errorf("%s: accepted", what)
				return
			}
			k.refused(err, sentinel, words...)
		})
		if left := k.containers(); len(left) != 0 {
			k.Errorf("%s: left behind: %+v", what, left)
		}
	}
	spec := k.spec()
	spec.Workspace = ws
	copies("no workspace", spec)
	// There is another one of the same name, empty.
	covered := k.workspace("covered")
	mount(covered)
	k.must(os.WriteFile(filepath.Join(covered, "f"), marker, 0o644))
	spec.Workspace = covered
	copies("another workspace", spec)
	spec.Config.Binds = []sandbox.Bind{{Source: k.ws, Target: "/data", ReadOnly: true}}
	fails("another workspace, and a bind", sandbox.ErrRefused, spec, "another machine", "binds")
	// The workspace is the same, a bind is not; a directory, and a file.
	spec = k.spec(func(c *sandbox.Config) { c.Binds = []sandbox.Bind{{Source: covered, Target: "/data", ReadOnly: true}} })
	fails("another bind", sandbox.ErrUnavailable, spec, covered, "sees other files")
	file := filepath.Join(k.dir, "file")
	k.must(os.WriteFile(file, nil, 0o644))
	k.must(syscall.Mount(filepath.Join(covered, "f"), file, "", syscall.MS_BIND, ""))
	k.Cleanup(func() { _ = syscall.Unmount(file, syscall.MNT_DETACH) })
	spec = k.spec(func(c *sandbox.Config) { c.Binds = []sandbox.Bind{{Source: file, Target: "/data", ReadOnly: true}} })
	fails("another file", sandbox.ErrUnavailable, spec, file, "sees other files")
	// What both see works.
	sb := k.ensure(k.b)
	k.wantOutput(sb, "echo on", "on")
	if volume := sb.Info().Runtime["volume"]; volume != "" {
		k.Errorf("what both see is in volume %s", volume)
	}
	k.must(errors.Join(sb.Close(), k.b.Remove(k.ctx, sb.Info().ID)))
	// This program's own directory is not there.
	state := k.workspace("covered-state")
	k.must(syscall.Mount("tmpfs", state, "tmpfs", 0, "mode=0700"))
	k.Cleanup(func() { _ = syscall.Unmount(state, syscall.MNT_DETACH) })
	k.b = k.open("covered-state")
	k.must(os.WriteFile(filepath.Join(k.ws, "f"), marker, 0o644))
	copies("another state", k.spec())
}

// elsewhere runs the calling test in a process with mounts of its own.
func (k *kit) elsewhere() {
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		Need(k, "the program unshare is missing")
	}
	cmd := exec.CommandContext(k.ctx, unshare, "--mount", "--propagation=private", os.Args[0], "-test.run=^"+strings.ReplaceAll(k.Name(), "/", "$/^")+"$", "-test.v")
	cmd.Env = append(os.Environ(), otherFiles+"=1", helperbin.EnvPath+"="+os.Getenv(helperbin.EnvPath))
	if out, err := cmd.CombinedOutput(); err != nil {
		k.Errorf("%v\n%s", err, out)
	}
}
