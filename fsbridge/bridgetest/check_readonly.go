package bridgetest

import (
	"errors"
	"strings"
	"syscall"

	"github.com/workberth/workberth/fsbridge"
)

// readOnlyChecks prove that a read-only workspace is one.
func readOnlyChecks() []check {
	return []check{
		{name: "workspace", opts: Options{ReadOnly: true}, run: readOnlyWorkspace},
		{name: "told", opts: Options{ReadOnly: true}, needs: caps(fsbridge.CapMounts), run: readOnlyTold},
		{name: "into-from-other", opts: Options{ReadOnly: true, Bind: true}, run: readOnlyOther},
	}
}

// readOnlyWorkspace tries every change. What would work elsewhere is refused as read-only; what
// would fail anyway fails, for whichever reason; nothing changes. Reading works.
func readOnlyWorkspace(k *kit) {
	plantForOps(k)
	k.make("x.sh", Node{Type: fsbridge.TypeRegular, Mode: 0o755, Data: []byte("x")})
	linked := k.try("l", Node{Type: fsbridge.TypeSymlink, Target: "f"})
	k.eachOperation(writeOperations(), func(k *kit, op operation) {
		was := k.tree("d")
		p := opPath(k, op)
		_, err := k.do(op, p)
		k.refused(op.name+" "+p, err, fsbridge.ErrReadOnly)
		list := []string{"f", "d", "new", "d/new", k.abs("f"), "no/such/new"}
		if linked {
			list = append(list, "l")
		}
		for _, p := range list {
			_, err := k.do(op, p)
			if op.name == "mkdir-parents" && p == "d" {
				continue // it exists already, so that there is nothing to do
			}
			k.refused(op.name+" "+p, err)
		}
		k.wantSame("d", "d", was)
		k.wantContent("f", "content")
	})
	for _, p := range []string{"new", "no"} {
		k.wantMissing(p)
	}
	for name := range k.names(".") {
		if strings.HasPrefix(name, "to-") || strings.HasPrefix(name, "new-") {
			k.Errorf("%q appeared", name)
		}
	}
	k.eachOperation(readOperations(), func(k *kit, op operation) {
		p := opPath(k, op)
		if p == "" {
			return
		}
		_, err := k.do(op, p)
		k.ok(op.name, err)
	})
}

func readOnlyTold(k *kit) {
	ws, ok := fsbridge.Mounts(k.b).Workspace()
	if !ok || !ws.ReadOnly {
		k.Errorf("the workspace mount is told as %+v", ws)
	}
}

// readOnlyOther moves between a read-only workspace and a writable mount.
func readOnlyOther(k *kit) {
	k.file("f", "kept")
	k.file(k.env.Bind+"/g", "writable")
	k.ok("write to the other mount", k.b.WriteFile(k.ctx, k.env.Bind+"/new", []byte("x")))
	k.wantContent(k.env.Bind+"/new", "x")
	if k.has(fsbridge.CapRename) {
		k.refused("rename out of it", k.mv("f", k.env.Bind+"/f", fsbridge.RenameOptions{}), fsbridge.ErrReadOnly)
		k.refused("rename into it", k.mv(k.env.Bind+"/g", "g", fsbridge.RenameOptions{}), fsbridge.ErrReadOnly)
	}
	if k.has(fsbridge.CapCopy) {
		k.refused("copy into it", k.cp(k.env.Bind+"/g", "g", fsbridge.CopyOptions{}), fsbridge.ErrReadOnly)
		k.ok("copy out of it", k.cp("f", k.env.Bind+"/copy", fsbridge.CopyOptions{}))
		k.wantContent(k.env.Bind+"/copy", "kept")
	}
	// A link in the writable mount does not make the workspace writable.
	if k.try(k.env.Bind+"/l", Node{Type: fsbridge.TypeSymlink, Target: k.abs("f")}) {
		k.refused("write through a link", k.b.WriteFile(k.ctx, k.env.Bind+"/l", []byte("x")), fsbridge.ErrReadOnly)
	}
	k.wantContent("f", "kept")
	k.wantNames(".", "f")
	k.wantContent(k.env.Bind+"/g", "writable")
}

// diskFullChecks prove that a full disk harms nothing. C037
func diskFullChecks() []check {
	o := Options{DiskSize: 1 << 20}
	rows := []string{"C037"}
	return []check{
		{name: "replace", rows: rows, opts: o, run: diskFullReplace},
		{name: "every-way", rows: rows, opts: o, run: diskFullEvery},
		{name: "announced", rows: rows, opts: o, needs: caps(fsbridge.CapWriteStream), run: diskFullAnnounced},
	}
}

// noSpace demands ENOSPC in the chain.
func (k *kit) noSpace(what string, err error) {
	k.Helper()
	k.refused(what, err, syscall.ENOSPC)
	if errors.Is(err, fsbridge.ErrOutcomeUnknown) {
		k.Errorf("%s: a full disk is a known outcome: %v", what, err)
	}
}

func diskFullReplace(k *kit) {
	old := string(pattern(300<<10, 1))
	k.ok("write", k.b.WriteFile(k.ctx, "f", []byte(old)))
	k.file("fill", string(pattern(500<<10, 2)))
	k.noSpace("overwrite", k.b.WriteFile(k.ctx, "f", pattern(600<<10, 3)))
	k.wantContent("f", old)
	k.noSpace("new file", k.b.WriteFile(k.ctx, "new/g", pattern(600<<10, 3)))
	k.wantMissing("new/g")
	// No temporary eats the space: what was free is still free.
	k.ok("write what fits", k.b.WriteFile(k.ctx, "h", pattern(150<<10, 4)))
	k.wantContent("h", string(pattern(150<<10, 4)))
	k.wantContent("f", old)
}

func diskFullEvery(k *kit) {
	old := string(pattern(300<<10, 1))
	k.file("f", old)
	k.file("fill", string(pattern(500<<10, 2)))
	big := pattern(600<<10, 3)
	if k.has(fsbridge.CapWriteStream) {
		_, err := fsbridge.WriteStream(k.ctx, k.b, "f", stringReader(string(big)), fsbridge.WriteOptions{Sync: true})
		k.noSpace("write-stream", err)
		k.wantContent("f", old)
	}
	if k.has(fsbridge.CapCreateFileExclusive) {
		k.noSpace("create", fsbridge.CreateFileExclusive(k.ctx, k.b, "c", big))
		k.wantMissing("c")
	}
	if k.has(fsbridge.CapCopy) {
		k.noSpace("copy", k.cp("fill", "copy", fsbridge.CopyOptions{}))
		k.wantMissing("copy")
	}
	k.wantNames(".", "f", "fill")
	if k.has(fsbridge.CapAppendFile) {
		k.noSpace("append", fsbridge.AppendFile(k.ctx, k.b, "f", big))
		// Appending is not atomic, but what was there is still there.
		if got := string(k.content("f")); len(got) < len(old) || got[:len(old)] != old {
			k.Error("a failed append changed what was there")
		}
	}
}

// diskFullAnnounced tells the size first; the answer is the same.
func diskFullAnnounced(k *kit) {
	k.file("f", "old")
	_, err := fsbridge.WriteStream(k.ctx, k.b, "f", stringReader(string(pattern(3<<20, 1))), fsbridge.WriteOptions{Size: 3 << 20})
	k.noSpace("write", err)
	k.wantContent("f", "old")
	k.wantNames(".", "f")
	k.ok("write what fits", k.b.WriteFile(k.ctx, "g", pattern(700<<10, 4)))
}
