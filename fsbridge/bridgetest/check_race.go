package bridgetest

import (
	"regexp"
	"slices"
	"strings"

	"github.com/workberth/workberth/fsbridge"
)

// raceChecks run every operation while an attacker exchanges directories and links. C003 C013
//
// That no temporary is left is a check of its own, because an implementation without directory
// handles cannot promise it, however well it is contained.
func raceChecks() []check {
	rows := []string{"C003", "C013"}
	return []check{
		{name: "swapped-parent", rows: rows, messy: true, run: raceParent},
		{name: "swapped-file", rows: rows, messy: true, run: raceFile},
		{name: "swapped-deep", rows: rows, messy: true, run: raceDeep},
		{name: "swapped-tree", rows: rows, messy: true, run: raceTree},
		{name: "reads", rows: rows, messy: true, run: raceReads},
		{name: "writes", rows: rows, messy: true, run: raceWrites},
		{name: "no-temporaries", rows: rows, run: raceTemporaries},
	}
}

// raceTemporaries writes while the directory is exchanged; what a write began is tidied up where
// it was begun.
func raceTemporaries(k *kit) {
	k.file("p/f.txt", "legit 0")
	k.file("p/s", "legit 0")
	k.link("q", relative(k.env.Workspace, k.env.Out))
	k.file("other/f.txt", "legit 0")
	k.dir("third")
	stop := k.attack(Swap{"p", "q"}, Swap{"other", "third"})
	k.mixedOps([]string{"p/f.txt", "p/s", "p/new", "p/d/e", "other/f.txt", "third/f.txt", "other/n"},
		except("write", "write-stream", "create-exclusive", "copy-to", "copy-recursive-from", "symlink-replace", "append")...)
	k.Logf("%d exchanges", stop())
}

// except names all operations but these.
func except(names ...string) []string {
	var out []string
	for _, op := range operations() {
		if !slices.Contains(names, op.name) {
			out = append(out, op.name)
		}
	}
	return out
}

// raceReads asks for nothing but content, so that the moment between a check and a read is hit
// often.
func raceReads(k *kit) {
	k.file("p/s", "legit 0")
	k.file("s", "legit 0")
	k.link("q", relative(k.env.Workspace, k.env.Out))
	k.link("trap", k.env.Out+"/s")
	stop := k.attack(Swap{"p", "q"}, Swap{"s", "trap"})
	k.mixedOps([]string{"p/s", "s"}, except("read", "read-with-source", "read-range", "open-reader", "hash", "list")...)
	k.Logf("%d exchanges", stop())
}

// raceWrites does nothing but change, for the same reason. The names are ones that OUT has, and
// one that it has not.
func raceWrites(k *kit) {
	k.file("p/s", "legit 0")
	k.link("q", relative(k.env.Workspace, k.env.Out))
	stop := k.attack(Swap{"p", "q"})
	k.mixedOps([]string{"p/s", "p/n"}, except("write", "write-stream", "append", "create-exclusive", "mkdir", "remove",
		"rename-to", "copy-to", "chmod", "symlink-replace")...)
	k.Logf("%d exchanges", stop())
}

// raceParent exchanges the directory p with a link to OUT while every operation works in it. What
// is read was written by the test; nothing happens in OUT.
func raceParent(k *kit) {
	k.file("p/f.txt", "legit 0")
	k.file("p/s", "legit 0")
	k.file("p/sub/x", "legit 0")
	k.link("q", relative(k.env.Workspace, k.env.Out))
	stop := k.attack(Swap{"p", "q"})
	k.mixedOps([]string{"p/f.txt", "p/s", "p/sub/x", "p/new", "p/d/e", "p", "p/sub", "q/f.txt", "q/s", "q"})
	k.Logf("%d exchanges", stop())
}

// raceFile exchanges a file with a link to a file in OUT.
func raceFile(k *kit) {
	k.file("f.txt", "legit 0")
	k.file("s", "legit 0")
	rel := relative(k.env.Workspace, k.env.Out)
	k.link("trap", rel+"/f.txt")
	k.link("trap2", k.env.Out+"/s")
	stop := k.attack(Swap{"f.txt", "trap"}, Swap{"s", "trap2"})
	k.mixedOps([]string{"f.txt", "s", "trap", "trap2"}, "remove", "remove-recursive", "rename-from", "rename-to",
		"symlink-replace", "copy-to") // these would take the attacker's names away
	k.Logf("%d exchanges", stop())
}

// raceDeep exchanges directories in the middle and at the end of a path with links to OUT, and
// has a link inside that leads up again.
func raceDeep(k *kit) {
	k.file("a/b/c/f.txt", "legit 0")
	k.file("a/b/c/s", "legit 0")
	k.link("a/b/up", "../b/c")
	k.link("a/trap", k.env.Out)
	k.file("a2/b/c/f.txt", "legit 0")
	k.link("trap", k.env.Out+"/c")
	// OUT has the same shape, so that every step of the path exists there too.
	for _, p := range []string{"/c/f.txt", "/c/s", "/b/c/f.txt", "/b/c/s", "/up/f.txt"} {
		k.file(k.env.Out+p, k.secret)
	}
	k.sealed = k.tree(k.env.Out)
	stop := k.attack(Swap{"a/b", "a/trap"}, Swap{"a2/b/c", "trap"})
	k.mixedOps([]string{
		"a/b/c/f.txt", "a/b/c/s", "a/b/up/f.txt", "a/b/c", "a/b/c/new", "a/b/c/../c/f.txt", "a/b/c/n/m", "a2/b/c/f.txt", "a2/b/c/s",
	})
	k.Logf("%d exchanges", stop())
}

// raceTree walks, copies and removes trees while a directory in them is exchanged.
func raceTree(k *kit) {
	need := func(c fsbridge.Capability) bool { return k.has(c) }
	if !need(fsbridge.CapWalk) && !need(fsbridge.CapRemove) && !need(fsbridge.CapCopy) {
		k.Skipf("%s declares none of %q, %q, %q", k.target.Name, fsbridge.CapWalk, fsbridge.CapRemove, fsbridge.CapCopy)
	}
	k.link("trap", k.env.Out)
	k.file("t/in/f.txt", "legit 0")
	stop := k.attack(Swap{"t/in", "trap"})
	for i := range k.target.attackOps(k.T) / 20 {
		if need(fsbridge.CapWalk) {
			_ = fsbridge.Walk(k.ctx, k.b, "t", fsbridge.WalkOptions{Hash: true}, func(e fsbridge.WalkEntry) error {
				if k.leaks([]byte(e.Path)) || e.Digest == digest([]byte(k.secret)) {
					k.Errorf("the walk entered OUT: %+v", e)
				}
				return nil
			})
		}
		if need(fsbridge.CapCopy) {
			to := numbered("copy", i)
			_ = fsbridge.Copy(k.ctx, k.b, "t", to, fsbridge.CopyOptions{Recursive: true})
			if k.leaks(k.copied(to)) {
				k.Errorf("the copy entered OUT")
			}
			if need(fsbridge.CapRemove) {
				_ = fsbridge.Remove(k.ctx, k.b, to, fsbridge.RemoveOptions{Recursive: true, IgnoreMissing: true})
			}
		}
		if need(fsbridge.CapGlob) {
			l, _ := fsbridge.Glob(k.ctx, k.b, "t/**", fsbridge.GlobOptions{})
			if k.leaks([]byte(strings.Join(l, "\n"))) {
				k.Errorf("the pattern entered OUT: %q", l)
			}
		}
		if k.Failed() {
			break
		}
	}
	n := stop()
	if !need(fsbridge.CapRemove) {
		return
	}
	// Removing: the attacker exchanges a directory of the very tree that is removed.
	for i := range 50 {
		dir := numbered("r", i)
		for j := range 20 {
			k.file(numbered(dir+"/a/f", j), "x")
			k.file(numbered(dir+"/z/f", j), "x")
		}
		k.link(dir+"/trap", k.env.Out)
		stop := k.attackUntilGone(Swap{dir + "/z", dir + "/trap"})
		_ = fsbridge.Remove(k.ctx, k.b, dir, fsbridge.RemoveOptions{Recursive: true})
		n += stop()
	}
	k.Logf("%d exchanges", n)
}

// mixedOps runs operations on the paths in turn, as many as the target's attack has. Operations
// named in without are left out. Every successful read must give legitimate bytes.
func (k *kit) mixedOps(paths []string, without ...string) {
	k.Helper()
	skip := map[string]bool{"watch": true}
	for _, w := range without {
		skip[w] = true
	}
	var ops []operation
	for _, op := range operations() {
		if (op.cap == "" || k.has(op.cap)) && !skip[op.name] {
			ops = append(ops, op)
		}
	}
	good := 0
	total := k.target.attackOps(k.T)
	for i := range total {
		op, p := ops[i%len(ops)], paths[(i/len(ops))%len(paths)]
		if !strings.Contains(p, "/") && (op.name == "remove" || op.name == "remove-recursive" || op.name == "rename-from" ||
			op.name == "rename-to" || op.name == "symlink-replace") {
			continue // would take the attacker's own names away
		}
		got, err := k.do(op, p)
		if err == nil {
			good++
		}
		switch op.name {
		case "read", "read-with-source", "read-range", "open-reader":
			if err == nil && !legit(got) {
				k.Errorf("%s %q gave %s", op.name, p, brief(got))
			}
		}
		if k.Failed() {
			return
		}
	}
	k.Logf("%d operations, %d succeeded", total, good)
}

// legit tells whether these are bytes that the checks here write: a first content, and what was
// appended to it, the last piece of which may be cut by a range or be on its way.
func legit(data []byte) bool {
	return regexp.MustCompile(`^(legit 0|content of [a-z]+-[0-9]+)?(written)*(w(r(i(t(te?)?)?)?)?)?$`).Match(data)
}

// attackUntilGone is attack for names that end while the attacker works.
func (k *kit) attackUntilGone(s Swap) (stop func() int64) {
	k.Helper()
	run := k.env.Attack
	if run != nil {
		return func() int64 { return 0 }
	}
	hp, ok := k.env.Oracle.(HostPather)
	if !ok {
		return func() int64 { return 0 }
	}
	a, okA := hp.HostPath(k.abs(s.A))
	b, okB := hp.HostPath(k.abs(s.B))
	if !okA || !okB {
		k.Fatalf("oracle: no host path for %q or %q", s.A, s.B)
	}
	done := make(chan int64)
	quit := make(chan struct{})
	go func() {
		var n int64
		for {
			select {
			case <-quit:
				done <- n
				return
			default:
			}
			if exchangeOnce(a, b) == nil {
				n++
			}
		}
	}()
	return func() int64 { close(quit); return <-done }
}
