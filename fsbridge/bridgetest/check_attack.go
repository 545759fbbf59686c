package bridgetest

import (
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/workberth/workberth/fsbridge"
)

// attack is one way to leave the mounts.
type attack struct {
	// path is what the operation is asked for, relative to the workspace.
	path string
	// final is true when only the last element is a link that leaves; operations that mean the
	// link itself may then succeed.
	final bool
	// far is true when the path leads to anything but OUT. Then only reading is tried: should
	// the bridge let it happen, nothing of the machine may come to harm.
	far bool
}

// attackChecks prove that nothing outside the mounts is read or changed, for every operation and
// every spelling. FSB-04 C001 C009 C013.
func attackChecks() []check {
	return []check{
		{name: "links-out", rows: []string{"FSB-04", "C001", "C013"}, run: attackLinks},
		{name: "dots-out", rows: []string{"C001"}, run: attackDots},
		{name: "absolute", rows: []string{"C001", "C009"}, run: attackAbsolute},
		{name: "sibling-prefix", rows: []string{"C009"}, run: attackSibling},
		{name: "remove-link-not-target", rows: []string{"C013"}, needs: caps(fsbridge.CapRemove), run: attackRemoveLink},
		{name: "symlink-target", rows: []string{"C001"}, needs: caps(fsbridge.CapSymlink), run: attackSymlinkTarget},
		{name: "loop", run: attackLoop},
	}
}

func caps(c ...fsbridge.Capability) []fsbridge.Capability { return c }

// plantAttacks makes the links and lists the attacks, paths through links first, because the
// attacks on the links themselves may remove them.
func plantAttacks(k *kit) []attack {
	k.Helper()
	out := k.env.Out
	rel := relative(k.env.Workspace, out)
	up := "../" + rel // from a directory one level down
	for name, target := range map[string]string{
		"rel": rel + "/s", "abs": out + "/s", "reldir": rel, "absdir": out, "slashdir": out + "/",
		"c1": "c2", "c2": "a/c3", "a/c3": "../absdir",
		"a/b/up": "../" + up, "a/in": "../reldir", "self": ".",
		"parent": "..", "root": "/", "dotted": "a/../" + rel + "/s",
		"procroot": "/proc/self/root", "proccwd": "/proc/self/cwd", "procfd": "/proc/self/fd",
		"dot": rel, "slash": rel, "new": rel + "/new", "newabs": out + "/new", "newdeep": "reldir/new",
	} {
		k.remove(name)
		k.link(name, target)
	}
	var list []attack
	add := func(a attack, paths ...string) {
		for _, p := range paths {
			a.path = p
			list = append(list, a)
		}
	}
	add(
		attack{}, "reldir/s", "reldir/absent", "reldir/sub", "reldir/sub/absent", "absdir/s", "absdir/absent",
		"absdir/sub/../s", "slashdir/s", "c1/s", "a/b/up/s", "a/in/s", "self/reldir/s", "self/self/"+rel+"/s",
		"parent/"+k.outBase()+"/s", "root"+out+"/s", "procroot"+out+"/s", k.abs("absdir/s"), k.abs("reldir/absent"),
		"./reldir//s",
	)
	add(attack{far: true}, "root/etc/hostname", "root/absent", "procroot/etc/hostname", "proccwd/absent", "procfd/0")
	add(
		attack{final: true}, "rel", "abs", "reldir", "absdir", "slashdir", "c1", "a/b/up", "a/in", "dotted",
		"new", "newabs", "newdeep", "dot/.", "slash/",
	)
	add(attack{final: true, far: true}, "parent", "root", "procroot", "proccwd", "procfd")
	return list
}

// spare leaves out what could do harm.
func (a attack) spare(op operation) bool { return a.far && op.mutates }

// relative gives the path of to as seen from the directory from; both are clean and absolute.
func relative(from, to string) string {
	f, t := strings.Split(from, "/"), strings.Split(to, "/")
	i := 0
	for i < len(f) && i < len(t) && f[i] == t[i] {
		i++
	}
	return path.Clean(strings.Repeat("../", len(f)-i) + strings.Join(t[i:], "/"))
}

// attackLinks runs every operation against every link that leaves.
func attackLinks(k *kit) {
	k.eachOperation(operations(), func(k *kit, op operation) {
		for _, a := range plantAttacks(k) {
			if a.spare(op) {
				continue
			}
			got, err := k.do(op, a.path)
			k.judge(op, a, got, err)
		}
		k.verifyOut()
	})
}

// judge looks at the outcome of an attack.
func (k *kit) judge(op operation, a attack, got []byte, err error) {
	k.Helper()
	what := op.name + " " + a.path
	switch {
	case op.final == quiet:
		// Patterns: nothing may match beyond the link; the link itself may.
		if s := string(got); err == nil && s != "" && (!a.final || op.name != "glob") {
			k.Errorf("%s: matched %q", what, s)
		}
	case !a.final || op.final == follows:
		k.refused(what, err, fsbridge.ErrOutsideRoot)
		k.namesAsked(what, err, a.path)
	case op.final == taken && (strings.HasSuffix(a.path, "/") || strings.HasSuffix(a.path, "/.")):
		// A spelling that names a directory: how it is refused is left open.
		k.refused(what, err)
	case op.final == taken:
		k.refused(what, err, fsbridge.ErrOutsideRoot, fs.ErrExist)
	}
}

// namesAsked demands that the error carries the path as it was asked for; operations on two paths
// may name either.
func (k *kit) namesAsked(what string, err error, p string) {
	k.Helper()
	var pe *fsbridge.PathError
	if errors.As(err, &pe) && pe.Path != p && !strings.HasPrefix(pe.Path, "to-") && !strings.HasPrefix(pe.Path, "from-") {
		k.Errorf("%s: the error names %q", what, pe.Path)
	}
}

// attackDots climbs out with "..", without any link.
func attackDots(k *kit) {
	k.dir("a/b")
	rel := relative(k.env.Workspace, k.env.Out)
	var list []attack
	for _, p := range []string{
		rel, rel + "/s", rel + "/absent", "./" + rel + "/s", "a/../../" + strings.TrimPrefix(rel, "../") + "/s",
		"a/b/../../" + rel + "/s", "absent/../" + rel + "/s", k.abs(rel + "/s"), k.abs(rel + "/absent"),
	} {
		list = append(list, attack{path: p})
	}
	for _, p := range []string{
		"..", "../", "../.", "../" + path.Base(k.env.Workspace) + "x", k.abs(".."),
		"../../../../../../../../../../../../etc/hostname", "../../../../../../../../../../../../../..",
	} {
		list = append(list, attack{path: p, far: true})
	}
	k.eachOperation(operations(), func(k *kit, op operation) {
		for _, a := range list {
			p := a.path
			if a.spare(op) || strings.HasPrefix(p, "/") && k.served(path.Clean(p)) {
				continue // harmful, or an absolute name of a system file, which a mount permits
			}
			got, err := k.do(op, p)
			switch {
			case op.final == quiet && err == nil && len(got) > 0:
				k.Errorf("%s %q: matched %q", op.name, p, got)
			case op.final == quiet:
			case strings.HasPrefix(p, "absent/"):
				// The kernel answers that there is no such directory; also right.
				k.refused(op.name+" "+p, err, fsbridge.ErrOutsideRoot, fs.ErrNotExist)
			default:
				k.refused(op.name+" "+p, err, fsbridge.ErrOutsideRoot)
				k.namesAsked(op.name+" "+p, err, p)
			}
		}
		k.verifyOut()
	})
}

// served tells whether a mount of the bridge holds the absolute path p.
func (k *kit) served(p string) bool {
	_, _, ok := fsbridge.Mounts(k.b).Find(p)
	return ok
}

// attackAbsolute names files outside by absolute paths.
func attackAbsolute(k *kit) {
	var list []attack
	for _, p := range []string{k.env.Out, k.env.Out + "/s", k.env.Out + "/absent", "/" + k.env.Out + "/s", k.env.Out + "/./s"} {
		list = append(list, attack{path: p})
	}
	for _, p := range []string{
		"/", "//", "/.", "/..", "/etc/hostname", "/etc/absent", "/proc/self/environ", "/proc/self/root" + k.env.Out + "/s",
		"/proc/self/cwd", "/dev/null", "/absent", path.Dir(k.env.Workspace),
	} {
		list = append(list, attack{path: p, far: true})
	}
	k.eachOperation(operations(), func(k *kit, op operation) {
		for _, a := range list {
			p := a.path
			if a.spare(op) || k.served(p) {
				continue // harmful, or for the mounts checks
			}
			got, err := k.do(op, p)
			if op.final == quiet {
				if err == nil && len(got) > 0 {
					k.Errorf("%s %q: matched %q", op.name, p, got)
				}
				continue
			}
			k.refused(op.name+" "+p, err, fsbridge.ErrOutsideRoot)
			k.namesAsked(op.name+" "+p, err, p)
		}
		k.verifyOut()
	})
}

// attackSibling asks for a directory whose name begins with the name of the root.
func attackSibling(k *kit) {
	sibling := k.env.Workspace + "2"
	if k.try(sibling+"/x", Node{Type: fsbridge.TypeRegular, Data: []byte(k.secret)}) {
		defer k.remove(sibling)
	}
	base := path.Base(k.env.Workspace)
	k.link("twin", "../"+base+"2")
	k.link("twinabs", sibling)
	k.file("x", "inside")
	ws := k.env.Workspace
	for _, p := range []string{ws + "/x", ws + "//x", ws + "/./x", "/" + ws + "/x", ws + "/../" + base + "/x"} {
		data, err := k.b.ReadFile(k.ctx, p)
		if strings.Contains(p, "..") {
			continue // leaves and returns; either answer is right
		}
		k.ok("read "+p, err)
		if string(data) != "inside" {
			k.Errorf("read %q = %s", p, brief(data))
		}
	}
	for _, p := range []string{ws, ws + "/", ws + "/.", ".", "./"} {
		i, err := k.b.Stat(k.ctx, p)
		k.ok("stat "+p, err)
		if !i.IsDir() {
			k.Errorf("stat %q: type %q", p, i.Type)
		}
	}
	list := []string{"../" + base + "2/x", "twin/x", "twinabs/x"}
	if !k.served(sibling) {
		list = append(list, sibling, sibling+"/x", sibling+"/", "/"+sibling+"/x")
	}
	k.eachOperation(operations(), func(k *kit, op operation) {
		if op.final == quiet {
			return
		}
		for _, p := range list {
			_, err := k.do(op, p)
			k.refused(op.name+" "+p, err, fsbridge.ErrOutsideRoot)
		}
	})
}

// attackRemoveLink removes links and directories that hold links; what the links point to stays.
func attackRemoveLink(k *kit) {
	rel := relative(k.env.Workspace, k.env.Out)
	k.link("d", rel)
	k.file("t/f", "x")
	k.link("t/rel", "../"+rel)
	k.link("t/abs", k.env.Out)
	k.link("t/deep/rel", "../../"+rel)
	k.link("t/file", k.env.Out+"/s")
	k.file("kept/f", "kept")
	k.link("t/kept", "../kept")
	k.ok("remove d", fsbridge.Remove(k.ctx, k.b, "d", fsbridge.RemoveOptions{}))
	k.wantMissing("d")
	k.ok("remove t", fsbridge.Remove(k.ctx, k.b, "t", fsbridge.RemoveOptions{Recursive: true}))
	k.wantNames(".", "kept")
	k.wantContent("kept/f", "kept")
}

// attackSymlinkTarget makes links that would leave.
func attackSymlinkTarget(k *kit) {
	rel := relative(k.env.Workspace, k.env.Out)
	k.dir("a")
	for _, c := range []struct{ at, target string }{
		{"l", rel}, {"l", rel + "/s"}, {"l", rel + "/absent"}, {"l", ".."}, {"l", "a/../" + rel},
		{"a/l", "../" + rel}, {"a/l", "../../absent"}, {"l", k.env.Out}, {"l", k.env.Out + "/absent"}, {"l", "/"},
		{"l", "/proc/self/root"}, {"l", k.env.Workspace + "2"}, {"l", k.env.Workspace + "/../" + k.outBase()},
	} {
		for _, o := range []fsbridge.SymlinkOptions{{}, {Replace: true}} {
			err := fsbridge.Symlink(k.ctx, k.b, c.target, c.at, o)
			k.refused("symlink "+c.at+" -> "+c.target, err, fsbridge.ErrOutsideRoot)
			k.wantMissing(c.at)
		}
	}
	k.wantNames(".", "a")
	k.wantNames("a")
}

// attackLoop asks for links that end nowhere.
func attackLoop(k *kit) {
	k.link("l1", "l2")
	k.link("l2", "l1")
	k.link("me", "me")
	k.link("deeper", "deeper/x")
	k.eachOperation(operations(), func(k *kit, op operation) {
		if op.final != follows {
			return
		}
		for _, p := range []string{"l1", "me", "deeper", "l1/x", "me/x/y"} {
			_, err := k.do(op, p)
			k.refused(op.name+" "+p, err)
		}
	})
}
