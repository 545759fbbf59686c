package bridgetest

import (
	"io/fs"

	"github.com/workberth/workberth/fsbridge"
)

// copyChecks prove copying inside the environment.
func copyChecks() []check {
	need := caps(fsbridge.CapCopy)
	return []check{
		{name: "file", needs: need, run: copyFile},
		{name: "recursive", needs: need, run: copyRecursive},
		{name: "links", rows: []string{"C011"}, needs: need, run: copyLinks},
		{name: "no-replace", needs: need, run: copyNoReplace},
		{name: "errors", needs: need, run: copyErrors},
	}
}

func (k *kit) cp(from, to string, o fsbridge.CopyOptions) error {
	return fsbridge.Copy(k.ctx, k.b, from, to, o)
}

func copyFile(k *kit) {
	for _, n := range []int{0, 1, 65537, 3 << 20} {
		data := string(pattern(n, 1))
		k.make("a", Node{Type: fsbridge.TypeRegular, Mode: 0o750, Data: []byte(data)})
		k.ok("copy", k.cp("a", "b", fsbridge.CopyOptions{}))
		k.wantContent("b", data)
		k.wantContent("a", data)
		if k.look("a").Inode != 0 && k.look("a").Inode == k.look("b").Inode {
			k.Error("the copy is the same file")
		}
	}
	// The copy is a file of its own: changing one leaves the other.
	k.ok("write", k.b.WriteFile(k.ctx, "b", []byte("changed")))
	k.wantContent("a", string(pattern(3<<20, 1)))
	k.ok("copy over a file", k.cp("b", "a", fsbridge.CopyOptions{}))
	k.wantContent("a", "changed")
	k.wantNames(".", "a", "b")
}

func copyRecursive(k *kit) {
	k.file("d/f", "F")
	k.make("d/x.sh", Node{Type: fsbridge.TypeRegular, Mode: 0o755, Data: []byte("X")})
	k.file("d/sub/deep/g", "G")
	k.dir("d/empty")
	was := k.tree("d")
	k.refused("copy a directory without Recursive", k.cp("d", "e", fsbridge.CopyOptions{}))
	k.wantMissing("e")
	k.ok("copy", k.cp("d", "e", fsbridge.CopyOptions{Recursive: true}))
	k.wantContent("e/f", "F")
	k.wantContent("e/sub/deep/g", "G")
	k.wantNames("e", "empty", "f", "sub", "x.sh")
	k.wantNames("e/empty")
	if n := k.look("e/x.sh"); n.Mode != 0o755 {
		k.Errorf("the copy of a program has mode %04o", n.Mode)
	}
	k.wantSame("the source", "d", was)
	k.ok("copy a file recursively", k.cp("d/f", "h", fsbridge.CopyOptions{Recursive: true}))
	k.wantContent("h", "F")
	k.refused("copy into itself", k.cp("d", "d/sub/again", fsbridge.CopyOptions{Recursive: true}))
	k.wantSame("the source", "d", was)
}

// copyLinks copies a tree with links: those that stay inside arrive as links, the others are
// refused and not turned into copies of what they point to.
func copyLinks(k *kit) {
	k.file("d/f", "F")
	k.link("d/in", "f")
	k.link("d/abs", k.abs("d/f"))
	k.ok("copy", k.cp("d", "e", fsbridge.CopyOptions{Recursive: true}))
	for name, target := range map[string]string{"e/in": "f", "e/abs": k.abs("d/f")} {
		if n := k.look(name); n.Type != fsbridge.TypeSymlink || n.Target != target {
			k.Errorf("%q: %s -> %q, want a link to %q", name, n.Type, n.Target, target)
		}
	}
	rel := relative(k.env.Workspace, k.env.Out)
	for i, target := range []string{"../" + rel, "../" + rel + "/s", k.env.Out, k.env.Out + "/s", "/etc/hostname"} {
		src, dst := numbered("bad", i), numbered("copy", i)
		k.file(src+"/f", "F")
		k.link(src+"/out", target)
		k.refused("copy a link to "+target, k.cp(src, dst, fsbridge.CopyOptions{Recursive: true}), fsbridge.ErrOutsideRoot)
		if k.exists(dst + "/out") {
			k.Errorf("the link to %q was copied as a %s", target, k.look(dst+"/out").Type)
		}
	}
}

func copyNoReplace(k *kit) {
	k.file("a", "A")
	k.file("b", "B")
	k.file("d/x", "X")
	k.file("e/y", "Y")
	o := fsbridge.CopyOptions{NoReplace: true, Recursive: true}
	k.refused("onto a file", k.cp("a", "b", o), fs.ErrExist)
	k.refused("directory onto a file", k.cp("d", "b", o), fs.ErrExist)
	k.refused("directory onto a directory", k.cp("d", "e", o), fs.ErrExist)
	k.refused("file onto a directory", k.cp("a", "e", o), fs.ErrExist)
	k.refused("directory onto a directory", k.cp("d", "e", fsbridge.CopyOptions{Recursive: true}))
	k.refused("file onto a directory", k.cp("a", "e", fsbridge.CopyOptions{}))
	k.wantContent("b", "B")
	k.wantNames("e", "y")
	k.ok("to a free name", k.cp("a", "c", o))
	k.wantContent("c", "A")
	k.ok("directory to a free name", k.cp("d", "g", o))
	k.wantContent("g/x", "X")
}

func copyErrors(k *kit) {
	k.file("f", "kept")
	k.refused("of nothing", k.cp("absent", "b", fsbridge.CopyOptions{}), fs.ErrNotExist)
	k.refused("below a file", k.cp("f", "f/x", fsbridge.CopyOptions{}))
	k.refused("out", k.cp("f", "../f", fsbridge.CopyOptions{}), fsbridge.ErrOutsideRoot)
	if !k.served(k.env.Out) { // it may lie among the files of the system
		k.refused("from out", k.cp(k.env.Out+"/s", "g", fsbridge.CopyOptions{}), fsbridge.ErrOutsideRoot)
	}
	_ = k.cp("f", "f", fsbridge.CopyOptions{}) // refused or without effect
	k.wantContent("f", "kept")
	k.wantNames(".", "f")
}
