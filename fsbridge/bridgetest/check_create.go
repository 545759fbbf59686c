package bridgetest

import (
	"bytes"
	"errors"
	"io/fs"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/workberth/workberth/fsbridge"
)

// createChecks prove that an exclusive creation creates, once, and whole. FSB-08
func createChecks() []check {
	need := caps(fsbridge.CapCreateFileExclusive)
	return []check{
		{name: "new", rows: []string{"FSB-08"}, needs: need, run: createNew},
		{name: "taken", rows: []string{"FSB-08"}, needs: need, run: createTaken},
		{name: "one-of-many", rows: []string{"FSB-08"}, needs: need, run: createOneOfMany},
		{name: "appears-whole", rows: []string{"FSB-08"}, needs: need, run: createWhole},
	}
}

func createNew(k *kit) {
	for p, content := range map[string]string{"f": "text", "a/b/f": "deep", "empty": "", k.abs("abs"): "absolute", "big": string(pattern(1<<20, 1))} {
		k.ok("create", fsbridge.CreateFileExclusive(k.ctx, k.b, p, []byte(content)))
		k.wantContent(p, content)
	}
	k.wantNames(".", "a", "abs", "big", "empty", "f")
}

// createTaken meets every kind of file that may be in the way.
func createTaken(k *kit) {
	k.file("f", "kept")
	k.file("empty", "")
	k.dir("d")
	list := []string{"f", "empty", "d", "./f", k.abs("f")}
	if k.try("l", Node{Type: fsbridge.TypeSymlink, Target: "f"}) {
		k.link("dangling", "absent")
		list = append(list, "l", "dangling")
	}
	if k.try("p", Node{Type: fsbridge.TypeFIFO}) {
		list = append(list, "p")
	}
	was := k.tree(".")
	for _, p := range list {
		k.refused("create "+p, fsbridge.CreateFileExclusive(k.ctx, k.b, p, []byte("new")), fs.ErrExist)
	}
	delete(was, ".") // the directory's own time may move while a temporary comes and goes
	is := k.tree(".")
	delete(is, ".")
	for name := range was {
		if is[name] != was[name] {
			k.Errorf("%s changed\n  was %s\n  is  %s", name, was[name], is[name])
		}
	}
	if len(is) != len(was) {
		k.Errorf("%d files, want %d", len(is), len(was))
	}
	k.refused("create below a file", fsbridge.CreateFileExclusive(k.ctx, k.b, "f/x", []byte("new")))
	k.wantContent("f", "kept")
}

// createOneOfMany lets many create the same name: one wins, and the bytes are the winner's.
func createOneOfMany(k *kit) {
	for round := range 20 {
		p := numbered("d/f", round)
		var winner atomic.Int64
		var wins atomic.Int64
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				err := fsbridge.CreateFileExclusive(k.ctx, k.b, p, []byte("winner "+strconv.Itoa(w)))
				if err == nil {
					wins.Add(1)
					winner.Store(int64(w))
				} else if !errors.Is(err, fs.ErrExist) {
					k.Errorf("create: %v", err)
				}
			})
		}
		wg.Wait()
		if wins.Load() != 1 {
			k.Fatalf("%d creations of one name succeeded", wins.Load())
		}
		k.wantContent(p, "winner "+strconv.FormatInt(winner.Load(), 10))
	}
}

// createWhole looks at the new name while it is created: it is missing or complete.
func createWhole(k *kit) {
	data := pattern(500_000, 2)
	for round := range 20 {
		p := numbered("f", round)
		stop := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			for {
				got, err := readAll(k.env.Oracle, k.abs(p))
				if err == nil && !bytes.Equal(got, data) {
					k.Errorf("%q appeared with %d bytes", p, len(got))
				}
				if err != nil && !errors.Is(err, fs.ErrNotExist) {
					k.Errorf("oracle: %v", err)
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
		err := fsbridge.CreateFileExclusive(k.ctx, k.b, p, data)
		close(stop)
		wg.Wait()
		k.ok("create", err)
	}
}
