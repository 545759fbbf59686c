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
	for round := range 100 {
		p := numbered("d/f", round)
		var winner, wins atomic.Int64
		k.together(8, func(w int) {
			err := fsbridge.CreateFileExclusive(k.ctx, k.b, p, []byte("winner "+strconv.Itoa(w)))
			if err == nil {
				wins.Add(1)
				winner.Store(int64(w))
			} else if !errors.Is(err, fs.ErrExist) {
				k.Errorf("create: %v", err)
			}
		})
		if wins.Load() != 1 {
			k.Fatalf("%d creations of one name succeeded", wins.Load())
		}
		k.wantContent(p, "winner "+strconv.FormatInt(winner.Load(), 10))
	}
}

// createWhole looks at the new names while they are created: each is missing or complete.
func createWhole(k *kit) {
	const rounds = 150
	data := pattern(60_000, 2)
	var round atomic.Int64
	var seen atomic.Int64
	looking := make(chan struct{}, 2)
	var wg sync.WaitGroup
	for range cap(looking) {
		wg.Go(func() {
			for first := true; ; first = false {
				r := round.Load()
				if r >= rounds {
					return
				}
				got, err := readAll(k.env.Oracle, k.abs(numbered("f", int(r))))
				switch {
				case err == nil && !bytes.Equal(got, data):
					k.Errorf("%d of %d bytes appeared", len(got), len(data))
					return
				case err == nil:
					seen.Add(1)
				case !errors.Is(err, fs.ErrNotExist):
					k.Errorf("oracle: %v", err)
					return
				}
				if first {
					looking <- struct{}{}
				}
			}
		})
	}
	<-looking
	var err error
	for r := int64(0); r < rounds && err == nil && !k.Failed(); r++ {
		round.Store(r)
		err = fsbridge.CreateFileExclusive(k.ctx, k.b, numbered("f", int(r)), data)
	}
	round.Store(rounds)
	wg.Wait()
	k.ok("create", err)
	k.Logf("seen complete %d times", seen.Load())
}
