package bridgetest

import (
	"errors"
	"io/fs"
	"syscall"

	"github.com/workberth/workberth/fsbridge"
)

// dirChecks prove the making of directories.
func dirChecks() []check {
	need := caps(fsbridge.CapMkdir)
	return []check{
		{name: "mkdir", needs: need, run: dirMkdir},
		{name: "mkdir-parents", needs: need, run: dirParents},
		{name: "mkdir-mode", rows: []string{"C041"}, needs: need, run: dirMode},
	}
}

func dirMkdir(k *kit) {
	mk := func(p string) error { return fsbridge.Mkdir(k.ctx, k.b, p, fsbridge.MkdirOptions{}) }
	k.ok("mkdir", mk("d"))
	k.ok("mkdir", mk("d/e"))
	k.ok("mkdir", mk(k.abs("abs")))
	k.ok("mkdir", mk("slash/"))
	for _, p := range []string{"d", "d/e", "abs", "slash"} {
		if k.look(p).Type != fsbridge.TypeDir {
			k.Errorf("%q is a %s", p, k.look(p).Type)
		}
	}
	k.file("f", "kept")
	k.refused("mkdir of a directory", mk("d"), fs.ErrExist)
	k.refused("mkdir of a file", mk("f"), fs.ErrExist)
	k.refused("mkdir of the root", mk("."), fs.ErrExist)
	k.refused("mkdir without parent", mk("no/such"), fs.ErrNotExist)
	k.refused("mkdir below a file", mk("f/x"), syscall.ENOTDIR, fs.ErrNotExist)
	k.wantNames(".", "abs", "d", "f", "slash")
	k.wantContent("f", "kept")
}

func dirParents(k *kit) {
	mk := func(p string) error { return fsbridge.Mkdir(k.ctx, k.b, p, fsbridge.MkdirOptions{Parents: true}) }
	k.ok("mkdir", mk("a/b/c"))
	k.ok("mkdir again", mk("a/b/c"))
	k.ok("mkdir of the root", mk("."))
	k.ok("mkdir", mk("a/b/d"))
	k.wantNames("a/b", "c", "d")
	k.file("f", "kept")
	k.refused("mkdir of a file", mk("f"), fs.ErrExist, syscall.ENOTDIR)
	k.refused("mkdir below a file", mk("f/x/y"))
	k.wantContent("f", "kept")
	if k.try("l", Node{Type: fsbridge.TypeSymlink, Target: "a/b"}) {
		k.ok("mkdir through a link", mk("l/n/m"))
		k.wantNames("a/b/n", "m")
	}
}

func dirMode(k *kit) {
	for _, c := range []struct {
		p    string
		mode fsbridge.Mode
	}{{"d700", 0o700}, {"d777", 0o777}, {"d750", 0o750}} {
		k.ok("mkdir", fsbridge.Mkdir(k.ctx, k.b, c.p, fsbridge.MkdirOptions{Mode: c.mode}))
		k.wantMode("mkdir", c.p, c.mode)
	}
	k.refused("mode with unknown bits", fsbridge.Mkdir(k.ctx, k.b, "bad", fsbridge.MkdirOptions{Mode: 0o40755}), fsbridge.ErrInvalid)
	k.wantMissing("bad")
}

// removeChecks prove removal.
func removeChecks() []check {
	need := caps(fsbridge.CapRemove)
	return []check{
		{name: "file", needs: need, run: removeFile},
		{name: "recursive", needs: need, run: removeRecursive},
		{name: "links-inside", rows: []string{"C013"}, needs: need, run: removeLinksInside},
		{name: "root", needs: need, run: removeRoot},
		{name: "deep-and-wide", needs: need, run: removeDeep},
	}
}

func (k *kit) rm(p string, o fsbridge.RemoveOptions) error { return fsbridge.Remove(k.ctx, k.b, p, o) }

func removeFile(k *kit) {
	k.file("f", "x")
	k.file("keep", "kept")
	k.dir("empty")
	k.file("full/x", "kept")
	k.ok("remove", k.rm("f", fsbridge.RemoveOptions{}))
	k.refused("remove again", k.rm("f", fsbridge.RemoveOptions{}), fs.ErrNotExist)
	k.ok("remove what is missing", k.rm("f", fsbridge.RemoveOptions{IgnoreMissing: true}))
	k.ok("remove what is missing", k.rm("no/such", fsbridge.RemoveOptions{IgnoreMissing: true, Recursive: true}))
	k.ok("remove an empty directory", k.rm("empty", fsbridge.RemoveOptions{}))
	err := k.rm("full", fsbridge.RemoveOptions{})
	k.refused("remove a full directory", err)
	if errors.Is(err, fs.ErrNotExist) {
		k.Errorf("remove a full directory: %v", err)
	}
	k.refused("remove below a file", k.rm("keep/x", fsbridge.RemoveOptions{}), syscall.ENOTDIR, fs.ErrNotExist)
	k.wantNames(".", "full", "keep")
	k.wantContent("full/x", "kept")
}

func removeRecursive(k *kit) {
	for i := range 50 {
		k.file(numbered("t/a/b/f", i), "x")
		k.file(numbered(numbered("t/d", i)+"/f", i), "x")
	}
	k.file("keep/f", "kept")
	k.ok("remove", k.rm("t", fsbridge.RemoveOptions{Recursive: true}))
	k.wantNames(".", "keep")
	k.refused("remove again", k.rm("t", fsbridge.RemoveOptions{Recursive: true}), fs.ErrNotExist)
	k.file("single", "x")
	k.ok("remove a file recursively", k.rm("single", fsbridge.RemoveOptions{Recursive: true}))
	k.wantContent("keep/f", "kept")
	k.wantNames(".", "keep")
}

// removeLinksInside removes a directory full of links: none is followed.
func removeLinksInside(k *kit) {
	k.file("keep/f", "kept")
	k.file("t/own", "x")
	for name, target := range map[string]string{
		"t/in": "../keep", "t/inabs": k.abs("keep"), "t/file": "../keep/f", "t/up": "..", "t/self": ".", "t/dangling": "absent",
		"t/out": "../" + relative(k.env.Workspace, k.env.Out), "t/outabs": k.env.Out, "t/sub/deep": "../../keep",
	} {
		k.link(name, target)
	}
	k.ok("remove", k.rm("t", fsbridge.RemoveOptions{Recursive: true}))
	k.wantNames(".", "keep")
	k.wantContent("keep/f", "kept")
	k.link("d", "keep")
	k.ok("remove a link to a directory", k.rm("d", fsbridge.RemoveOptions{Recursive: true}))
	k.wantNames(".", "keep")
	k.wantContent("keep/f", "kept")
}

// removeRoot asks for the root of the mount, in every spelling: it is never removed, nor is what
// it holds.
func removeRoot(k *kit) {
	k.file("a/f", "kept")
	for _, p := range []string{".", "./", k.env.Workspace, k.env.Workspace + "/", k.env.Workspace + "/.", "a/..", "./a/../."} {
		for _, o := range []fsbridge.RemoveOptions{{}, {Recursive: true}, {Recursive: true, IgnoreMissing: true}} {
			k.refused("remove "+p, k.rm(p, o))
			k.wantContent("a/f", "kept")
		}
	}
}

// removeDeep removes a tree deeper than a path can be long.
func removeDeep(k *kit) {
	if !k.has(fsbridge.CapRename) || !k.has(fsbridge.CapMkdir) {
		k.Skip("a tree this deep is built by renaming, which the bridge does not declare")
	}
	// Each round puts the tree so far below a new chain of directories.
	chain := "dddddddddd"
	for range 20 {
		chain += "/dddddddddd"
	}
	k.ok("mkdir", fsbridge.Mkdir(k.ctx, k.b, "t", fsbridge.MkdirOptions{}))
	for range 30 {
		k.ok("mkdir", fsbridge.Mkdir(k.ctx, k.b, "u/"+chain, fsbridge.MkdirOptions{Parents: true}))
		k.ok("rename", fsbridge.Rename(k.ctx, k.b, "t", "u/"+chain+"/t", fsbridge.RenameOptions{}))
		k.ok("rename", fsbridge.Rename(k.ctx, k.b, "u", "t", fsbridge.RenameOptions{}))
	}
	k.ok("remove", k.rm("t", fsbridge.RemoveOptions{Recursive: true}))
	k.wantNames(".")
}
