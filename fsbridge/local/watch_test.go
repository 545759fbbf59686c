//go:build linux

package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/rooted"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// hang bounds the wait for an event, against hangs only.
const hang = 20 * time.Second

// noLeaks demands that the goroutines of a test end with it.
func noLeaks(t *testing.T) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
}

// watching starts a watch and ends it with the test.
func watching(t *testing.T, b *Bridge, path string, opts fsbridge.WatchOptions) fsbridge.Watch {
	t.Helper()
	w, err := b.Watch(t.Context(), path, opts)
	must(t, err)
	t.Cleanup(func() { must(t, w.Close()) })
	return w
}

// until reads events up to the first that satisfies f and returns all of them.
func until(t *testing.T, w fsbridge.Watch, f func(fsbridge.Event) bool) []fsbridge.Event {
	t.Helper()
	deadline := time.After(hang)
	var got []fsbridge.Event
	for {
		select {
		case e, ok := <-w.Events():
			if !ok {
				t.Fatalf("the watch ended with %v after %v", w.Err(), brief(got))
			}
			got = append(got, e)
			if f(e) {
				return got
			}
		case <-deadline:
			t.Fatalf("nothing more after %v", brief(got))
		}
	}
}

// ended waits for the end of a watch and returns the events before it.
func ended(t *testing.T, w fsbridge.Watch) []fsbridge.Event {
	t.Helper()
	deadline := time.After(hang)
	var got []fsbridge.Event
	for {
		select {
		case e, ok := <-w.Events():
			if !ok {
				return got
			}
			got = append(got, e)
		case <-deadline:
			t.Fatalf("the watch does not end after %v", brief(got))
		}
	}
}

func brief(list []fsbridge.Event) string {
	var b strings.Builder
	for _, e := range list {
		fmt.Fprintf(&b, "%s %q; ", e.Kind, e.Path)
	}
	return b.String()
}

func is(kind fsbridge.EventKind, path string) func(fsbridge.Event) bool {
	return func(e fsbridge.Event) bool { return e.Kind == kind && e.Path == path }
}

// Whatever is made below a watched directory is reported, however fast directories and their content
// appear: once, as far as names go that are not removed again.
func TestWatchFindsFastTrees(t *testing.T) {
	noLeaks(t)
	d := newDirs(t, ways()["kernel"])
	w := watching(t, d.b, ".", fsbridge.WatchOptions{Recursive: true})
	want := map[string]int{}
	for i := range 40 {
		dir := fmt.Sprintf("t%d", i)
		must(t, os.MkdirAll(d.in(dir+"/a/b/c"), 0o755))
		for _, p := range []string{dir, dir + "/a", dir + "/a/b", dir + "/a/b/c"} {
			want[p] = 0
		}
		for _, p := range []string{dir + "/f", dir + "/a/f", dir + "/a/b/c/f"} {
			must(t, os.WriteFile(d.in(p), []byte("x"), 0o644))
			want[p] = 0
		}
	}
	must(t, os.WriteFile(d.in("last"), nil, 0o644))
	missing := len(want)
	until(t, w, func(e fsbridge.Event) bool {
		if e.Kind == fsbridge.EventOverflow {
			t.Fatal("events were lost")
		}
		if n, ok := want[e.Path]; ok && e.Kind == fsbridge.EventCreate {
			if n == 0 {
				missing--
			} else {
				t.Errorf("%s was reported twice", e.Path)
			}
			want[e.Path]++
		}
		return missing == 0
	})
}

// A directory that is moved keeps being watched under its new name, and not under the old one.
func TestWatchFollowsMoves(t *testing.T) {
	d := newDirs(t, ways()["kernel"])
	d.put(d.in("a/b/f"), "x")
	w := watching(t, d.b, ".", fsbridge.WatchOptions{Recursive: true})
	must(t, os.Rename(d.in("a"), d.in("z")))
	until(t, w, is(fsbridge.EventCreate, "z/b/f"))
	must(t, os.WriteFile(d.in("z/b/new"), nil, 0o644))
	got := until(t, w, is(fsbridge.EventCreate, "z/b/new"))
	must(t, os.Rename(d.in("z"), d.at("gone")))
	got = append(got, until(t, w, is(fsbridge.EventRemove, "z"))...)
	must(t, os.WriteFile(d.at("gone/b/unseen"), nil, 0o644))
	must(t, os.WriteFile(d.in("mark"), nil, 0o644))
	got = append(got, until(t, w, is(fsbridge.EventCreate, "mark"))...)
	for _, e := range got {
		if strings.HasPrefix(e.Path, "a/") || strings.Contains(e.Path, "unseen") {
			t.Errorf("event %s %q", e.Kind, e.Path)
		}
	}
}

// The bridge's own atomic writes are one event per name; temporary files are not reported.
func TestWatchHidesOwnTemporaries(t *testing.T) {
	for _, way := range []string{"kernel", "no-tmpfile"} {
		d := newDirs(t, ways()[way])
		d.put(d.in("old"), "x")
		w := watching(t, d.b, ".", fsbridge.WatchOptions{})
		ctx := t.Context()
		must(t, d.b.WriteFile(ctx, "old", []byte("y")))
		must(t, d.b.WriteFile(ctx, "new", []byte("y")))
		must(t, d.b.WriteFile(ctx, "mark", nil))
		got := until(t, w, is(fsbridge.EventCreate, "mark"))
		for _, e := range got {
			if strings.Contains(e.Path, ".berth-") {
				t.Errorf("%s: event %s %q", way, e.Kind, e.Path)
			}
		}
		if b := brief(got); strings.Count(b, `create "old"`) != 1 || strings.Count(b, `create "new"`) != 1 {
			t.Errorf("%s: %s", way, b)
		}
	}
}

// Links to directories, inside or out, are not followed.
func TestWatchFollowsNoLink(t *testing.T) {
	d := newDirs(t, ways()["kernel"])
	d.link(d.out, d.in("l"))
	w := watching(t, d.b, ".", fsbridge.WatchOptions{Recursive: true})
	d.link("../out", d.in("l2"))
	until(t, w, is(fsbridge.EventCreate, "l2"))
	d.put(d.at("secret"), "x")
	d.put(d.in("mark"), "x")
	for _, e := range until(t, w, is(fsbridge.EventCreate, "mark")) {
		if strings.Contains(e.Path, "secret") {
			t.Errorf("event %s %q", e.Kind, e.Path)
		}
	}
	if _, err := d.b.Watch(t.Context(), "l", fsbridge.WatchOptions{}); !errors.Is(err, fsbridge.ErrOutsideRoot) {
		t.Errorf("watch a link that leaves: %v", err)
	}
}

func TestWatchEnds(t *testing.T) {
	noLeaks(t)
	revoked := make(chan struct{})
	for name, c := range map[string]struct {
		end  func(d *dirs, b *Bridge, w fsbridge.Watch, cancel func())
		want error
	}{
		"closed":    {func(_ *dirs, _ *Bridge, w fsbridge.Watch, _ func()) { must(t, w.Close()) }, nil},
		"cancelled": {func(_ *dirs, _ *Bridge, _ fsbridge.Watch, cancel func()) { cancel() }, context.Canceled},
		"bridge":    {func(_ *dirs, b *Bridge, _ fsbridge.Watch, _ func()) { must(t, b.Close()) }, fs.ErrClosed},
		"removed":   {func(d *dirs, _ *Bridge, _ fsbridge.Watch, _ func()) { must(t, os.RemoveAll(d.in("w"))) }, fs.ErrNotExist},
		"moved": {func(d *dirs, _ *Bridge, _ fsbridge.Watch, _ func()) {
			must(t, os.Rename(d.in("w"), d.at("w")))
		}, fs.ErrNotExist},
		"revoked": {func(d *dirs, _ *Bridge, _ fsbridge.Watch, _ func()) {
			close(revoked)
			d.put(d.in("w/f"), "x")
		}, fsbridge.ErrNotCurrent},
		"too many": {func(d *dirs, _ *Bridge, _ fsbridge.Watch, _ func()) {
			must(t, os.MkdirAll(d.in("w/1/2/3/4/5"), 0o755))
		}, fsbridge.ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDirs(t, ways()["kernel"])
			must(t, os.Mkdir(d.in("w"), 0o755))
			b := d.bridge(Options{Mounts: d.b.Mounts(), Assert: func() error {
				select {
				case <-revoked:
					if name == "revoked" {
						return errRevoked
					}
				default:
				}
				return nil
			}})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			fds := openFDs(t)
			w, err := b.Watch(ctx, "w", fsbridge.WatchOptions{Recursive: true, MaxDirs: 3})
			must(t, err)
			c.end(d, b, w, cancel)
			got := ended(t, w)
			if err := w.Err(); !errors.Is(err, c.want) || c.want == nil && err != nil {
				t.Errorf("ended with %v, want %v", err, c.want)
			}
			must(t, w.Close())
			if name == "removed" && !strings.Contains(brief(got), `remove ""`) {
				t.Errorf("events %s", brief(got))
			}
			if n := openFDs(t); name != "bridge" && n > fds {
				t.Errorf("%d descriptors lost", n-fds)
			}
		})
	}
}

// A receiver that does not look gets an overflow, and afterwards what happens then. What appeared in
// between is watched all the same.
func TestWatchOverflow(t *testing.T) {
	d := newDirs(t, ways()["kernel"])
	w := watching(t, d.b, ".", fsbridge.WatchOptions{Recursive: true})
	must(t, os.Mkdir(d.in("sub"), 0o755))
	for i := range 3 * watchBuffer {
		must(t, os.WriteFile(d.in(fmt.Sprintf("f%d", i)), nil, 0o644))
	}
	d.put(d.in("late/f"), "x")
	until(t, w, func(e fsbridge.Event) bool { return e.Kind == fsbridge.EventOverflow })
	for i := 0; ; i++ {
		// The receiver has caught up once something new comes through.
		p := fmt.Sprintf("late/again%d", i)
		must(t, os.WriteFile(d.in(p), nil, 0o644))
		select {
		case e := <-w.Events():
			if strings.HasPrefix(e.Path, "late/again") {
				return
			}
		case <-time.After(hang):
			t.Fatal("nothing comes after the overflow")
		}
	}
}

// When the kernel's own queue overflows, everything below is looked for again: what appeared is
// watched, what went away is not.
func TestWatchRescan(t *testing.T) {
	d := newDirs(t, ways()["kernel"])
	must(t, os.MkdirAll(d.in("a/b"), 0o755))
	must(t, os.MkdirAll(d.in("old"), 0o755))
	h, err := d.b.tree.Open(".", 0)
	must(t, err)
	h.Close()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	must(t, err)
	defer rooted.Close(fd)
	// A watch without its goroutine: the test hands it what the kernel would say.
	w := &watch{
		b: d.b, ctx: t.Context(), path: ".", opts: fsbridge.WatchOptions{Recursive: true, MaxDirs: 10},
		root: h.Stat, fd: fd, dirs: make(map[int32]*watched), events: make(chan fsbridge.Event, watchBuffer),
	}
	must(t, w.add("", false))
	must(t, os.MkdirAll(d.in("c/d"), 0o755))
	must(t, os.Rename(d.in("old"), d.at("old")))
	e, err := w.event(&notice{dir: -1, mask: unix.IN_Q_OVERFLOW})
	if err != nil || e.Kind != fsbridge.EventOverflow {
		t.Errorf("event %q, %v", e.Kind, err)
	}
	paths := map[string]bool{}
	for _, dir := range w.dirs {
		paths[dir.path] = true
	}
	for _, p := range []string{"", "a", "a/b", "c", "c/d"} {
		if !paths[p] {
			t.Errorf("%q is not watched", p)
		}
	}
	if len(paths) != 5 {
		t.Errorf("watched: %v", paths)
	}
}

func TestWatchRefuses(t *testing.T) {
	d := newDirs(t, ways()["kernel"])
	d.put(d.in("f"), "x")
	must(t, os.MkdirAll(d.in("1/2/3"), 0o755))
	for name, c := range map[string]struct {
		path string
		opts fsbridge.WatchOptions
		want error
	}{
		"file":     {"f", fsbridge.WatchOptions{}, unix.ENOTDIR},
		"missing":  {"absent", fsbridge.WatchOptions{}, fs.ErrNotExist},
		"outside":  {"..", fsbridge.WatchOptions{}, fsbridge.ErrOutsideRoot},
		"too many": {".", fsbridge.WatchOptions{Recursive: true, MaxDirs: 3}, fsbridge.ErrTooLarge},
		"negative": {".", fsbridge.WatchOptions{MaxDirs: -1}, fsbridge.ErrInvalid},
	} {
		fds := openFDs(t)
		w, err := d.b.Watch(t.Context(), c.path, c.opts)
		if err == nil {
			must(t, w.Close())
		}
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if n := openFDs(t); n != fds {
			t.Errorf("%s: %d descriptors lost", name, n-fds)
		}
	}
}
