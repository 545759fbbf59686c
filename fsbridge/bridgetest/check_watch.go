package bridgetest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"syscall"
	"time"

	"github.com/workberth/workberth/fsbridge"
)

// watchChecks prove watching.
func watchChecks() []check {
	need := caps(fsbridge.CapWatch)
	return []check{
		{name: "create-write-remove", needs: need, run: watchBasic},
		{name: "own-changes", needs: need, run: watchOwn},
		{name: "rename", needs: need, run: watchRename},
		{name: "recursive", needs: need, run: watchRecursive},
		{name: "not-recursive", needs: need, run: watchFlat},
		{name: "new-directory", needs: need, run: watchNewDir},
		{name: "close", needs: need, run: watchClose},
		{name: "cancelled", needs: need, run: watchCancelled},
		{name: "errors", needs: need, run: watchErrors},
		{name: "flood", needs: need, run: watchFlood},
	}
}

// watched is a running watch whose events are collected.
type watched struct {
	k *kit
	w fsbridge.Watch

	mu     sync.Mutex
	events []fsbridge.Event
	ended  chan struct{}
}

func (k *kit) watch(p string, o fsbridge.WatchOptions) *watched {
	k.Helper()
	w, err := fsbridge.WatchDirectory(k.ctx, k.b, p, o)
	k.ok("watch "+p, err)
	x := &watched{k: k, w: w, ended: make(chan struct{})}
	go func() {
		defer close(x.ended)
		for e := range w.Events() {
			x.mu.Lock()
			x.events = append(x.events, e)
			x.mu.Unlock()
		}
	}()
	k.Cleanup(func() {
		_ = w.Close()
		<-x.ended
	})
	return x
}

func (x *watched) snapshot() []fsbridge.Event {
	x.mu.Lock()
	defer x.mu.Unlock()
	return append([]fsbridge.Event(nil), x.events...)
}

func (x *watched) forget() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.events = nil
}

func (x *watched) has(kind fsbridge.EventKind, p string) bool {
	for _, e := range x.snapshot() {
		if e.Kind == kind && e.Path == p {
			return true
		}
	}
	return false
}

// want waits for the event.
func (x *watched) want(kind fsbridge.EventKind, p string) {
	x.k.Helper()
	x.k.eventually(func() bool { return x.has(kind, p) })
	if !x.has(kind, p) {
		x.k.Errorf("no event %q of %q; there are %s", kind, p, x.text())
	}
}

// wantSeen waits for any event of the path.
func (x *watched) wantSeen(p string) {
	x.k.Helper()
	seen := func() bool {
		for _, e := range x.snapshot() {
			if e.Path == p {
				return true
			}
		}
		return false
	}
	x.k.eventually(seen)
	if !seen() {
		x.k.Errorf("no event of %q; there are %s", p, x.text())
	}
}

func (x *watched) text() string {
	var s string
	for _, e := range x.snapshot() {
		s += fmt.Sprintf("[%s %q] ", e.Kind, e.Path)
	}
	return s
}

// watchBasic sees what others do in the environment.
func watchBasic(k *kit) {
	k.file("d/old", "x")
	start := time.Now().Add(-time.Minute)
	x := k.watch("d", fsbridge.WatchOptions{})
	k.file("d/new", "x")
	x.want(fsbridge.EventCreate, "new")
	k.file("d/old", "changed")
	x.want(fsbridge.EventWrite, "old")
	k.remove("d/old")
	x.want(fsbridge.EventRemove, "old")
	k.dir("d/sub")
	x.want(fsbridge.EventCreate, "sub")
	for _, e := range x.snapshot() {
		if e.Path == "sub" && !e.Dir {
			k.Errorf("event of a directory does not say so: %+v", e)
		}
		if e.Path == "new" && e.Dir {
			k.Errorf("event of a file says directory: %+v", e)
		}
		if e.Time.Before(start) {
			k.Errorf("event without a time: %+v", e)
		}
	}
}

// watchOwn sees what the same bridge writes, under the final name.
func watchOwn(k *kit) {
	k.dir("d")
	x := k.watch("d", fsbridge.WatchOptions{})
	k.ok("write", k.b.WriteFile(k.ctx, "d/f", []byte("x")))
	x.wantSeen("f")
	x.forget()
	k.ok("write", k.b.WriteFile(k.ctx, "d/f", []byte("y")))
	x.wantSeen("f")
}

func watchRename(k *kit) {
	k.file("d/a", "x")
	k.file("elsewhere", "x")
	x := k.watch("d", fsbridge.WatchOptions{})
	if err := k.env.Oracle.Rename(k.abs("d/a"), k.abs("d/b")); err != nil {
		k.Fatalf("oracle: %v", err)
	}
	x.want(fsbridge.EventRemove, "a")
	x.want(fsbridge.EventCreate, "b")
	if err := k.env.Oracle.Rename(k.abs("elsewhere"), k.abs("d/in")); err != nil {
		k.Fatalf("oracle: %v", err)
	}
	x.want(fsbridge.EventCreate, "in")
	if err := k.env.Oracle.Rename(k.abs("d/in"), k.abs("out")); err != nil {
		k.Fatalf("oracle: %v", err)
	}
	x.want(fsbridge.EventRemove, "in")
}

func watchRecursive(k *kit) {
	k.file("d/a/b/c/f", "x")
	k.dir("d/other")
	x := k.watch("d", fsbridge.WatchOptions{Recursive: true})
	k.file("d/a/b/c/new", "x")
	x.want(fsbridge.EventCreate, "a/b/c/new")
	k.file("d/a/b/c/f", "changed")
	x.want(fsbridge.EventWrite, "a/b/c/f")
	k.remove("d/a/b/c/f")
	x.want(fsbridge.EventRemove, "a/b/c/f")
	k.file("d/other/g", "x")
	x.want(fsbridge.EventCreate, "other/g")
	k.remove("d/other")
	x.want(fsbridge.EventRemove, "other")
}

// watchFlat does not see below. A later event at the top proves that an earlier one below would
// have arrived.
func watchFlat(k *kit) {
	k.dir("d/sub")
	x := k.watch("d", fsbridge.WatchOptions{})
	k.file("d/sub/f", "x")
	k.file("d/after", "x")
	x.want(fsbridge.EventCreate, "after")
	if x.has(fsbridge.EventCreate, "sub/f") {
		k.Error("a flat watch told of a file below")
	}
}

// watchNewDir makes directories and files in them at once: none is missed.
func watchNewDir(k *kit) {
	k.dir("d")
	x := k.watch("d", fsbridge.WatchOptions{Recursive: true})
	for i := range 20 {
		k.file(numbered("d/n", i)+"/deep/f", "x")
	}
	for i := range 20 {
		x.want(fsbridge.EventCreate, numbered("n", i))
		x.wantSeen(numbered("n", i) + "/deep")
		x.wantSeen(numbered("n", i) + "/deep/f")
	}
	x.forget()
	k.file("d/n00007/deep/later", "x")
	x.want(fsbridge.EventCreate, "n00007/deep/later")
}

func watchClose(k *kit) {
	k.dir("d")
	x := k.watch("d", fsbridge.WatchOptions{Recursive: true})
	k.ok("close", x.w.Close())
	select {
	case <-x.ended:
	case <-k.ctx.Done():
		k.Fatal("the events were not closed")
	}
	if err := x.w.Err(); err != nil {
		k.Errorf("error after close: %v", err)
	}
	_ = x.w.Close() // once more does no harm
	k.file("d/f", "x")
	_, err := k.b.Stat(k.ctx, "d/f")
	k.ok("stat", err)
}

func watchCancelled(k *kit) {
	k.dir("d")
	ctx, cancel := context.WithCancel(k.ctx)
	defer cancel()
	w, err := fsbridge.WatchDirectory(ctx, k.b, "d", fsbridge.WatchOptions{})
	k.ok("watch", err)
	cancel()
	for range w.Events() {
	}
	if err := w.Err(); !errors.Is(err, context.Canceled) {
		k.Errorf("error after cancel: %v, want %v", err, context.Canceled)
	}
	_ = w.Close()
}

func watchErrors(k *kit) {
	k.file("f", "x")
	for i := range 10 {
		k.dir(numbered("many/d", i))
	}
	for p, want := range map[string]error{"absent": fs.ErrNotExist, "f": syscall.ENOTDIR, "..": fsbridge.ErrOutsideRoot} {
		w, err := fsbridge.WatchDirectory(k.ctx, k.b, p, fsbridge.WatchOptions{})
		k.refused("watch "+p, err, want)
		if w != nil {
			k.Errorf("watch %q: a watch and an error", p)
		}
	}
	_, err := fsbridge.WatchDirectory(k.ctx, k.b, "many", fsbridge.WatchOptions{Recursive: true, MaxDirs: 5})
	k.tooLarge("watch many directories", nil, err, 5)
}

// watchFlood does not drain for a while: the environment is never blocked, and what was lost is
// told as an overflow.
func watchFlood(k *kit) {
	k.dir("d")
	w, err := fsbridge.WatchDirectory(k.ctx, k.b, "d", fsbridge.WatchOptions{})
	k.ok("watch", err)
	defer func() { _ = w.Close() }()
	const n = 20_000 // more than the kernel queues
	for i := range n {
		k.file(numbered("d/f", i), "")
	}
	k.ok("write while nobody drains", k.b.WriteFile(k.ctx, "d/last", []byte("x")))
	created, overflow := 0, false
	for e := range w.Events() {
		switch {
		case e.Kind == fsbridge.EventOverflow:
			overflow = true
		case e.Kind == fsbridge.EventCreate:
			created++
		}
		if overflow || created > n {
			break
		}
	}
	k.Logf("%d creations, overflow %t", created, overflow)
	if !overflow && created <= n {
		k.Errorf("%d of %d creations were told, and no overflow", created, n+1)
	}
}
