package bridgetest

import (
	"io/fs"
	"sync"
	"sync/atomic"

	"github.com/workberth/workberth/fsbridge"
)

// renameChecks prove renaming, within a file system and across. C005
func renameChecks() []check {
	need := caps(fsbridge.CapRename)
	second := Options{Second: true}
	return []check{
		{name: "file", needs: need, run: renameFile},
		{name: "dir", needs: need, run: renameDir},
		{name: "link-itself", needs: need, run: renameLink},
		{name: "no-replace", needs: need, run: renameNoReplace},
		{name: "no-replace-one-of-many", needs: need, run: renameOneOfMany},
		{name: "parents", needs: need, run: renameParents},
		{name: "errors", needs: need, run: renameErrors},
		{name: "cross-device", rows: []string{"C005"}, needs: need, opts: second, run: renameCross},
		{name: "cross-device-race", rows: []string{"C005"}, needs: need, opts: second, run: renameCrossRace},
	}
}

func (k *kit) mv(from, to string, o fsbridge.RenameOptions) error {
	return fsbridge.Rename(k.ctx, k.b, from, to, o)
}

func renameFile(k *kit) {
	k.make("a", Node{Type: fsbridge.TypeRegular, Mode: 0o750, Data: []byte("content")})
	was := k.look("a")
	k.dir("d")
	k.ok("rename", k.mv("a", "d/b", fsbridge.RenameOptions{}))
	k.wantContent("d/b", "content")
	k.wantMissing("a")
	if is := k.look("d/b"); is.Inode != was.Inode || is.Mode != was.Mode || !is.ModTime.Equal(was.ModTime) {
		k.Errorf("renamed to another file: %+v, was %+v", is, was)
	}
	k.file("c", "replacing")
	k.ok("rename over a file", k.mv("c", "d/b", fsbridge.RenameOptions{}))
	k.wantContent("d/b", "replacing")
	k.wantMissing("c")
	k.ok("rename to itself", k.mv("d/b", "d/b", fsbridge.RenameOptions{}))
	k.ok("rename by absolute paths", k.mv(k.abs("d/b"), k.abs("e"), fsbridge.RenameOptions{}))
	k.wantContent("e", "replacing")
	k.wantNames(".", "d", "e")
}

func renameDir(k *kit) {
	k.file("d/sub/f", "content")
	k.ok("rename", k.mv("d", "e", fsbridge.RenameOptions{}))
	k.wantContent("e/sub/f", "content")
	k.wantMissing("d")
	k.file("full/x", "kept")
	k.refused("rename over a full directory", k.mv("e", "full", fsbridge.RenameOptions{}))
	k.file("file", "kept")
	k.refused("rename a directory over a file", k.mv("e", "file", fsbridge.RenameOptions{}))
	k.refused("rename a file over a directory", k.mv("file", "full", fsbridge.RenameOptions{}))
	k.refused("rename into itself", k.mv("e", "e/sub/e", fsbridge.RenameOptions{}))
	k.wantContent("full/x", "kept")
	k.wantContent("file", "kept")
	k.wantContent("e/sub/f", "content")
	k.wantNames(".", "e", "file", "full")
}

// renameLink moves and replaces links; what they point to stays.
func renameLink(k *kit) {
	k.file("f", "target")
	k.link("l", "f")
	k.link("out", relative(k.env.Workspace, k.env.Out)+"/s")
	k.ok("rename a link", k.mv("l", "m", fsbridge.RenameOptions{}))
	if n := k.look("m"); n.Type != fsbridge.TypeSymlink || n.Target != "f" {
		k.Errorf("renamed link: %+v", n)
	}
	k.file("g", "moved")
	k.ok("rename over a link", k.mv("g", "m", fsbridge.RenameOptions{}))
	k.wantContent("f", "target")
	if n := k.look("m"); n.Type != fsbridge.TypeRegular {
		k.Errorf("renamed over a link: %+v", n)
	}
	k.file("h", "moved")
	k.ok("rename over a link that leaves", k.mv("h", "out", fsbridge.RenameOptions{}))
	k.wantContent("out", "moved")
	k.wantNames(".", "f", "m", "out")
}

func renameNoReplace(k *kit) {
	k.file("a", "A")
	k.file("b", "B")
	k.file("d/x", "X")
	o := fsbridge.RenameOptions{NoReplace: true}
	k.refused("onto a file", k.mv("a", "b", o), fs.ErrExist)
	k.refused("onto a directory", k.mv("a", "d", o), fs.ErrExist)
	k.refused("directory onto a file", k.mv("d", "b", o), fs.ErrExist)
	if k.try("l", Node{Type: fsbridge.TypeSymlink, Target: "absent"}) {
		k.refused("onto a dangling link", k.mv("a", "l", o), fs.ErrExist)
		k.remove("l")
	}
	k.wantContent("a", "A")
	k.wantContent("b", "B")
	k.ok("to a free name", k.mv("a", "c", o))
	k.wantContent("c", "A")
	k.wantNames(".", "b", "c", "d")
}

// renameOneOfMany lets many rename to one free name: exactly one succeeds.
func renameOneOfMany(k *kit) {
	for round := range 20 {
		var wins atomic.Int64
		var wg sync.WaitGroup
		to := numbered("to", round)
		const n = 6
		for w := range n {
			from := numbered(numbered("from", round), w)
			k.file(from, from)
			wg.Go(func() {
				if k.mv(from, to, fsbridge.RenameOptions{NoReplace: true}) == nil {
					wins.Add(1)
				}
			})
		}
		wg.Wait()
		if wins.Load() != 1 {
			k.Fatalf("%d renames to one name succeeded", wins.Load())
		}
		if left := len(k.names(".")); left != (round+1)*n {
			k.Fatalf("%d files are left, want %d", left, (round+1)*n)
		}
	}
}

func renameParents(k *kit) {
	k.file("a", "A")
	k.refused("without parents", k.mv("a", "x/y/b", fsbridge.RenameOptions{}), fs.ErrNotExist)
	k.wantNames(".", "a")
	k.ok("with parents", k.mv("a", "x/y/b", fsbridge.RenameOptions{Parents: true}))
	k.wantContent("x/y/b", "A")
	k.wantMode("parents", "x", 0o755)
	k.refused("of nothing", k.mv("absent", "n/b", fsbridge.RenameOptions{Parents: true}), fs.ErrNotExist)
}

func renameErrors(k *kit) {
	k.file("f", "kept")
	k.dir("d")
	k.refused("of nothing", k.mv("absent", "b", fsbridge.RenameOptions{}), fs.ErrNotExist)
	k.refused("below a file", k.mv("d", "f/x", fsbridge.RenameOptions{}))
	k.refused("of the root", k.mv(".", "d/x", fsbridge.RenameOptions{}))
	k.refused("onto the root", k.mv("f", ".", fsbridge.RenameOptions{}))
	k.refused("onto the root", k.mv("d", k.env.Workspace, fsbridge.RenameOptions{}))
	k.refused("out", k.mv("f", "../f", fsbridge.RenameOptions{}), fsbridge.ErrOutsideRoot)
	k.wantContent("f", "kept")
	k.wantNames(".", "d", "f")
}

// renameCross moves between two file systems. C005
func renameCross(k *kit) {
	k.make("a", Node{Type: fsbridge.TypeRegular, Mode: 0o751, Data: pattern(300_000, 1)})
	k.ok("file across", k.mv("a", "m/b", fsbridge.RenameOptions{}))
	k.wantContent("m/b", string(pattern(300_000, 1)))
	k.wantMode("across", "m/b", 0o751)
	k.wantMissing("a")
	k.ok("and back, over a file", func() error {
		k.file("c", "old")
		return k.mv("m/b", "c", fsbridge.RenameOptions{})
	}())
	k.wantContent("c", string(pattern(300_000, 1)))
	k.wantNames("m")
	k.file("m/taken", "kept")
	k.refused("across, no replace", k.mv("c", "m/taken", fsbridge.RenameOptions{NoReplace: true}), fs.ErrExist)
	k.wantContent("m/taken", "kept")
	k.wantContent("c", string(pattern(300_000, 1)))
	k.file("d/x", "kept")
	k.refused("directory across", k.mv("d", "m/d", fsbridge.RenameOptions{}), fsbridge.ErrCrossDevice)
	k.wantContent("d/x", "kept")
	k.wantNames("m", "taken")
	k.refused("mount point", k.mv("m", "n", fsbridge.RenameOptions{}))
	k.wantContent("m/taken", "kept")
	if k.has(fsbridge.CapRemove) {
		k.refused("remove the mount point", k.rm("m", fsbridge.RemoveOptions{Recursive: true}))
		k.wantContent("m/taken", "kept")
	}
}

// renameCrossRace moves files across while their directory is exchanged for a link to OUT, which
// holds files of the same names. Those are neither moved nor removed; a failed move leaves its
// source whole and no destination. C005
func renameCrossRace(k *kit) {
	n := min(2000, k.target.attackOps(k.T))
	for i := range n {
		k.file(numbered("sub/src", i), "source")
		k.file(numbered(k.env.Out+"/src", i), k.secret)
	}
	k.sealed = k.tree(k.env.Out)
	k.link("trap", relative(k.env.Workspace, k.env.Out))
	stop := k.attack(Swap{"sub", "trap"})
	moved := 0
	for i := range n {
		to := numbered("m/dst", i)
		if k.mv(numbered("sub/src", i), to, fsbridge.RenameOptions{}) == nil {
			moved++
			k.wantContent(to, "source")
		} else {
			k.wantMissing(to)
		}
		if k.Failed() {
			break
		}
	}
	k.Logf("%d exchanges, %d of %d files moved", stop(), moved, n)
	if left := len(k.names("sub")); left+moved != n {
		k.Errorf("%d files are left and %d were moved, of %d", left, moved, n)
	}
}
