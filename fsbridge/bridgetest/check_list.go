package bridgetest

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"github.com/workberth/workberth/fsbridge"
)

// listChecks prove listings. FSB-07
func listChecks() []check {
	whole, stream := caps(fsbridge.CapReadDirectory), caps(fsbridge.CapStreamDirectory)
	return []check{
		{name: "entries", rows: []string{"FSB-07"}, needs: whole, run: listEntries},
		{name: "links", needs: whole, run: listLinks},
		{name: "errors", rows: []string{"FSB-07"}, needs: whole, run: listErrors},
		{name: "10000-sorted", needs: whole, run: listMany},
		{name: "stream", needs: stream, run: listStream},
		{name: "stream-10000", needs: stream, run: listStreamMany},
		{name: "stream-stops", needs: stream, run: listStreamStops},
		{name: "stream-cancelled", needs: stream, run: listStreamCancelled},
	}
}

func listEntries(k *kit) {
	k.make("d/b.txt", Node{Type: fsbridge.TypeRegular, Mode: 0o640, Data: []byte("hello")})
	k.file("d/B", "")
	k.make("d/sub", Node{Type: fsbridge.TypeDir, Mode: 0o750})
	k.file("d/sub/inner", "x")
	k.file("d/a", "1")
	k.file("d/.hidden", "22")
	for _, p := range []string{"d", "d/", k.abs("d"), "./d/."} {
		l, err := fsbridge.ReadDirectory(k.ctx, k.b, p)
		k.ok("list "+p, err)
		var names []string
		for _, e := range l {
			names = append(names, e.Name)
			n := k.look("d/" + e.Name)
			if e.Info.Name != e.Name || e.Info.Type != n.Type || e.Info.Mode != n.Mode || e.LinkTarget != "" {
				k.Errorf("list %q: %+v, is %+v", p, e, n)
			}
			if e.Info.IsRegular() && (e.Info.Size != n.Size || !e.Info.ModTime.Equal(n.ModTime)) {
				k.Errorf("list %q: %+v, is %+v", p, e, n)
			}
		}
		if want := []string{".hidden", "B", "a", "b.txt", "sub"}; !slices.Equal(names, want) {
			k.Errorf("list %q: %q, want %q", p, names, want)
		}
	}
	k.dir("empty")
	l, err := fsbridge.ReadDirectory(k.ctx, k.b, "empty")
	k.ok("list an empty directory", err)
	if len(l) != 0 {
		k.Errorf("an empty directory has %+v", l)
	}
	l, err = fsbridge.ReadDirectory(k.ctx, k.b, ".")
	k.ok("list the root", err)
	if len(l) != 2 {
		k.Errorf("the root has %+v", l)
	}
}

// listLinks lists links as what they are, even those that leave.
func listLinks(k *kit) {
	k.file("f", "x")
	want := map[string]string{
		"d/in": "../f", "d/gone": "absent", "d/out": "../" + relative(k.env.Workspace, k.env.Out) + "/s", "d/abs": k.env.Out,
		"d/loop": "loop",
	}
	for name, target := range want {
		k.link(name, target)
	}
	l, err := fsbridge.ReadDirectory(k.ctx, k.b, "d")
	k.ok("list", err)
	for _, e := range l {
		if e.Info.Type != fsbridge.TypeSymlink || e.LinkTarget != want["d/"+e.Name] {
			k.Errorf("list: %+v, want a link to %q", e, want["d/"+e.Name])
		}
	}
	if len(l) != len(want) {
		k.Errorf("%d entries, want %d", len(l), len(want))
	}
}

func listErrors(k *kit) {
	k.file("f", "x")
	_, err := fsbridge.ReadDirectory(k.ctx, k.b, "absent")
	k.refused("list nothing", err, fs.ErrNotExist)
	_, err = fsbridge.ReadDirectory(k.ctx, k.b, "f")
	k.refused("list a file", err, syscall.ENOTDIR)
}

const many = 10_000

// plantMany makes a directory of many entries, in an order that is not sorted.
func plantMany(k *kit) {
	k.Helper()
	for i := range many {
		k.file(numbered("d/f", (i*7919)%many), "")
	}
}

func listMany(k *kit) {
	plantMany(k)
	l, err := fsbridge.ReadDirectory(k.ctx, k.b, "d")
	k.ok("list", err)
	if len(l) != many {
		k.Fatalf("%d entries, want %d", len(l), many)
	}
	for i, e := range l {
		if e.Name != numbered("f", i) || !e.Info.IsRegular() {
			k.Fatalf("entry %d is %+v", i, e)
		}
	}
}

func listStream(k *kit) {
	k.file("d/b", "22")
	k.file("d/a", "1")
	k.dir("d/sub")
	k.dir("empty")
	var names []string
	for e, err := range fsbridge.StreamDirectory(k.ctx, k.b, "d") {
		k.ok("stream", err)
		names = append(names, e.Name)
		if n := k.look("d/" + e.Name); e.Info.Type != n.Type || e.Info.Name != e.Name || e.Info.IsRegular() && e.Info.Size != n.Size {
			k.Errorf("stream: %+v, is %+v", e, n)
		}
	}
	k.same("stream", names, []string{"a", "b", "sub"})
	for e, err := range fsbridge.StreamDirectory(k.ctx, k.b, "empty") {
		k.Errorf("stream of an empty directory: %+v, %v", e, err)
	}
	for p, want := range map[string]error{"absent": fs.ErrNotExist, "d/a": syscall.ENOTDIR} {
		steps := 0
		for e, err := range fsbridge.StreamDirectory(k.ctx, k.b, p) {
			steps++
			k.refused("stream "+p, err, want)
			if e != (fsbridge.DirEntry{}) {
				k.Errorf("stream %q: an error and %+v", p, e)
			}
		}
		if steps != 1 {
			k.Errorf("stream %q: %d steps, want one error", p, steps)
		}
	}
}

func listStreamMany(k *kit) {
	plantMany(k)
	seen := map[string]bool{}
	for e, err := range fsbridge.StreamDirectory(k.ctx, k.b, "d") {
		k.ok("stream", err)
		if seen[e.Name] || !strings.HasPrefix(e.Name, "f") {
			k.Fatalf("entry %q for the second time, or invented", e.Name)
		}
		seen[e.Name] = true
	}
	if len(seen) != many {
		k.Errorf("%d entries, want %d", len(seen), many)
	}
}

// listStreamStops leaves the loop early; the bridge stays usable, and the sequence can be run
// again.
func listStreamStops(k *kit) {
	for i := range 2000 {
		k.file(numbered("d/f", i), "")
	}
	seq := fsbridge.StreamDirectory(k.ctx, k.b, "d")
	for range 30 {
		n := 0
		for _, err := range seq {
			k.ok("stream", err)
			if n++; n == 3 {
				break
			}
		}
		if n != 3 {
			k.Fatalf("%d steps, want 3", n)
		}
	}
	_, err := k.b.Stat(k.ctx, "d")
	k.ok("stat", err)
}

func listStreamCancelled(k *kit) {
	plantMany(k)
	ctx, cancel := context.WithCancel(k.ctx)
	defer cancel()
	var last error
	n := 0
	for _, err := range fsbridge.StreamDirectory(ctx, k.b, "d") {
		if last != nil {
			k.Fatal("the sequence went on after an error")
		}
		if last = err; err == nil {
			n++
			cancel()
		}
	}
	switch {
	case last == nil && n == many: // all was there before the cancellation took effect
	case !errors.Is(last, context.Canceled):
		k.Errorf("after %d entries: %v, want %v", n, last, context.Canceled)
	}
}
