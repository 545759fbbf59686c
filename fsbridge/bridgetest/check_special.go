package bridgetest

import (
	"context"
	"errors"
	"time"

	"github.com/workberth/workberth/fsbridge"
)

// specialChecks prove that files that are not regular are named, moved and removed, and never
// opened for their content. C025
func specialChecks() []check {
	return []check{
		{name: "fifo", rows: []string{"C025"}, run: func(k *kit) { specialFile(k, fsbridge.TypeFIFO) }},
		{name: "socket", rows: []string{"C025"}, run: func(k *kit) { specialFile(k, fsbridge.TypeSocket) }},
		{name: "device", rows: []string{"C025"}, run: func(k *kit) { specialFile(k, fsbridge.TypeChar) }},
		{name: "in-tree", rows: []string{"C025"}, needs: caps(fsbridge.CapWalk), run: specialWalk},
	}
}

// specialFile asks every operation for content of the file, directly and through a link, each
// within two seconds.
func specialFile(k *kit, typ fsbridge.FileType) {
	k.make("p", Node{Type: typ, Mode: 0o600})
	k.link("lp", "p")
	k.link("d/lp", "../p")
	for _, p := range []string{"p", "lp", "d/lp", k.abs("lp")} {
		i, err := k.b.Stat(k.ctx, p)
		k.ok("stat "+p, err)
		if i.Type != typ {
			k.Errorf("stat %q: type %q, want %q", p, i.Type, typ)
		}
	}
	k.eachOperation(operations(), func(k *kit, op operation) {
		switch op.name {
		case "read", "read-with-source", "read-range", "open-reader", "hash", "write", "write-stream", "append", "copy-from":
		default:
			return
		}
		for _, p := range []string{"p", "lp", "d/lp"} {
			k.refused(op.name+" "+p, k.promptly(op, p), fsbridge.ErrNotRegular)
			if n := k.look("p"); n.Type != typ {
				k.Fatalf("%s %q replaced the %s by a %s", op.name, p, typ, n.Type)
			}
		}
	})
	if k.has(fsbridge.CapReadDirectory) {
		l, err := fsbridge.ReadDirectory(k.ctx, k.b, ".")
		k.ok("list", err)
		for _, e := range l {
			if e.Name == "p" && e.Info.Type != typ {
				k.Errorf("listed as %q, want %q", e.Info.Type, typ)
			}
		}
	}
	name := "p"
	if k.has(fsbridge.CapRename) {
		k.ok("rename", fsbridge.Rename(k.ctx, k.b, "p", "q", fsbridge.RenameOptions{}))
		if n := k.look("q"); n.Type != typ {
			k.Errorf("renamed to a %s", n.Type)
		}
		name = "q"
	}
	if k.has(fsbridge.CapRemove) {
		k.ok("remove", fsbridge.Remove(k.ctx, k.b, name, fsbridge.RemoveOptions{}))
		k.wantMissing(name)
	}
}

// promptly runs the operation under a deadline of two seconds, and ends the check when the bridge
// does not even obey that.
func (k *kit) promptly(op operation, p string) error {
	k.Helper()
	ctx, cancel := context.WithTimeout(k.ctx, 2*time.Second)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := op.run(k, ctx, k.b, p)
		done <- err
	}()
	select {
	case err := <-done:
		if errors.Is(err, context.DeadlineExceeded) {
			k.Errorf("%s %q blocked", op.name, p)
		}
		return err
	case <-time.After(10 * time.Second):
		k.Fatalf("%s %q blocked, and its deadline did not help", op.name, p)
		return nil
	}
}

// specialWalk hashes a tree with a FIFO in it: the walk goes on and does not block.
func specialWalk(k *kit) {
	k.file("a", "1")
	k.make("p", Node{Type: fsbridge.TypeFIFO})
	k.file("z", "2")
	ctx, cancel := context.WithTimeout(k.ctx, 10*time.Second)
	defer cancel()
	var got []string
	err := fsbridge.Walk(ctx, k.b, ".", fsbridge.WalkOptions{Hash: true}, func(e fsbridge.WalkEntry) error {
		got = append(got, e.Path)
		if e.Path == "p" && (e.Digest != "" || e.Info.Type != fsbridge.TypeFIFO) {
			k.Errorf("walk: %+v", e)
		}
		if e.Path != "p" && e.Digest == "" {
			k.Errorf("walk: no digest for %q", e.Path)
		}
		return nil
	})
	k.ok("walk", err)
	k.same("walk", got, []string{"a", "p", "z"})
}
