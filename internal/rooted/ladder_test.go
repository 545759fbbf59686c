//go:build linux

package rooted

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// deep makes a chain of directories longer than any path may be, and returns its top.
func deep(t *testing.T, top string, depth int) {
	t.Helper()
	fd, err := unix.Open(top, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	must(t, err)
	for range depth {
		must(t, unix.Mkdirat(fd, "directory", 0o755))
		next, err := unix.Openat(fd, "directory", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		must(t, err)
		Close(fd)
		fd = next
	}
	Close(fd)
}

func TestLadder(t *testing.T) {
	for name, how := range ways() {
		dir := tempDir(t)
		const depth = 1200 // of 10 bytes each
		deep(t, dir, depth)
		tree := open(t, how, workspace(dir))
		h := tree.Roots()[0].Handle()
		before := openFDs(t)
		l, err := tree.Ladder(&h)
		must(t, err)
		inodes := []uint64{l.Stat().Inode}
		for range depth {
			must(t, l.Down("directory"))
			inodes = append(inodes, l.Stat().Inode)
		}
		if n := openFDs(t) - before; n > ladderBound+1 {
			t.Errorf("%s: %d descriptors at the bottom", name, n)
		}
		if err := l.Down("directory"); !errors.Is(err, errNotExist) {
			t.Errorf("%s: below the bottom: %v", name, err)
		}
		lowest := l.Handle()
		if len(lowest.names) != depth || l.Depth() != depth {
			t.Errorf("%s: %d names at depth %d", name, len(lowest.names), l.Depth())
		}
		for i := depth - 1; i >= 0; i-- {
			must(t, l.Up())
			if l.Stat().Inode != inodes[i] {
				t.Fatalf("%s: not the directory it was at depth %d", name, i)
			}
			if st, err := tree.Fstat(l.FD()); err != nil || st.Inode != inodes[i] {
				t.Fatalf("%s: descriptor at depth %d: %v", name, i, err)
			}
		}
		l.Close()
		if n := openFDs(t) - before; n != 0 {
			t.Errorf("%s: %d descriptors leaked", name, n)
		}
	}
}

// A directory moved away during a visit is noticed on the way back, not followed.
func TestLadderNoticesMoves(t *testing.T) {
	dir := tempDir(t)
	deep(t, dir, 100)
	plant(t, dir, map[string]string{"elsewhere/": ""})
	tree := open(t, Options{}, workspace(dir))
	h := tree.Roots()[0].Handle()
	l, err := tree.Ladder(&h)
	must(t, err)
	defer l.Close()
	for range 100 {
		must(t, l.Down("directory"))
	}
	// The directory at depth 10 was given up; its child goes elsewhere.
	p := dir + strings.Repeat("/directory", 11)
	must(t, os.Rename(p, dir+"/elsewhere/moved"))
	for range 100 {
		if err = l.Up(); err != nil {
			break
		}
	}
	if !errors.Is(err, ErrMoved) {
		t.Errorf("on the way back: %v, want %v", err, ErrMoved)
	}
}

func TestLadderFollowsNoLink(t *testing.T) {
	dir := tempDir(t)
	plant(t, dir, map[string]string{"d/": "", "l": "-> d", "f": "x"})
	tree := open(t, Options{}, workspace(dir))
	h := tree.Roots()[0].Handle()
	l, err := tree.Ladder(&h)
	must(t, err)
	defer l.Close()
	for _, name := range []string{"l", "f"} {
		if err := l.Down(name); err == nil {
			t.Errorf("%q was entered", name)
			must(t, l.Up())
		}
	}
}

func TestReadDir(t *testing.T) {
	dir := tempDir(t)
	want := map[string]string{}
	for i := range 3000 {
		name := strings.Repeat("n", i%200+1) + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676))
		want[name] = ""
	}
	plant(t, dir, want)
	must(t, os.WriteFile(dir+"/new\nline", nil, 0o644))
	must(t, os.WriteFile(dir+"/bad\xff\xfe", nil, 0o644))
	want["new\nline"], want["bad\xff\xfe"] = "", ""
	tree := open(t, Options{}, workspace(dir))
	h := tree.Roots()[0].Handle()
	for _, size := range []int{4096, BufferSize} {
		fd, err := tree.OpenDir(&h)
		must(t, err)
		got := map[string]bool{}
		for d := ReadDir(fd, make([]byte, size)); ; {
			e, err := d.Next()
			if err == io.EOF {
				break
			}
			must(t, err)
			if got[e.Name] {
				t.Errorf("%q twice", e.Name)
			}
			got[e.Name] = true
			if _, ok := want[e.Name]; !ok || e.Type != "file" {
				t.Errorf("%q of type %q", e.Name, e.Type)
			}
		}
		Close(fd)
		if len(got) != len(want) {
			t.Errorf("%d entries, want %d", len(got), len(want))
		}
	}
}
