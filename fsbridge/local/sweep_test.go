//go:build linux

package local

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/rooted"
)

const testTag = "00c0ffee00c0ffee"

func TestSweep(t *testing.T) {
	eachWay(t, func(t *testing.T, d *dirs) {
		ctx := t.Context()
		must(t, os.MkdirAll(d.in("ro"), 0o755))
		must(t, os.MkdirAll(d.at("tmp"), 0o755))
		ours := []string{
			d.in(".berth-" + testTag + "-1"), d.in("a/b/.berth-" + testTag + "-ff"), d.in("a/.berth-" + testTag + "-2"),
		}
		d.put(ours[0], "x")
		d.put(ours[1], "x")
		d.put(ours[2]+"/tree/x", "x") // an unfinished copy of a directory
		must(t, os.Chmod(ours[2]+"/tree", 0o500))
		d.link("../../../out", d.in("a/b/.berth-"+testTag+"-3"))
		kept := []string{
			d.in(".berth-" + testTag + "-"), d.in(".berth-" + testTag + "-x"), d.in(".berth-00c0ffee00c0ffe0-1"),
			d.in(".berth-" + d.b.TempTag() + "-1"), d.in("a/x.berth-" + testTag + "-1"),
			d.in("ro/.berth-" + testTag + "-1"), d.at("tmp/.berth-" + testTag + "-1"), d.at(".berth-" + testTag + "-1"),
		}
		for _, p := range kept {
			d.put(p, "kept")
		}
		d.link("../out", d.in("out"))
		b := d.bridge(Options{Mounts: fsbridge.MountTable{
			{Path: d.ws, Kind: fsbridge.MountWorkspace},
			{Path: d.in("ro"), Kind: fsbridge.MountBind, ReadOnly: true},
			{Path: d.at("tmp"), Kind: fsbridge.MountTmpfs},
		}})
		n, err := b.Sweep(ctx, testTag)
		if err != nil || n != 4 {
			t.Errorf("swept %d, %v, want 4", n, err)
		}
		for _, p := range ours {
			if _, err := os.Lstat(p); err == nil {
				t.Errorf("%s is still there", p)
			}
		}
		for _, p := range kept {
			if d.get(p) != "kept" {
				t.Errorf("%s has changed", p)
			}
		}
		if n, err := b.Sweep(ctx, testTag); n != 0 || err != nil {
			t.Errorf("swept again: %d, %v", n, err)
		}
		for _, bad := range []string{"", "x", "../../../../etc", strings.ToUpper(testTag)} {
			if _, err := b.Sweep(ctx, bad); !errors.Is(err, fsbridge.ErrInvalid) {
				t.Errorf("tag %q: %v", bad, err)
			}
		}
	})
}

// Listings leave out the bridge's own temporary files and hide nothing else.
func TestOwnTemporariesAreHidden(t *testing.T) {
	d := newDirs(t, ways()["kernel"])
	ctx := t.Context()
	d.put(d.in(".berth-"+d.b.TempTag()+"-1"), "x")
	d.put(d.in(".berth-"+testTag+"-1"), "x")
	d.put(d.in(".hidden"), "x")
	want := []string{".berth-" + testTag + "-1", ".hidden"}
	var got [4][]string
	list, err := d.b.ReadDirectory(ctx, ".")
	must(t, err)
	for _, e := range list {
		got[0] = append(got[0], e.Name)
	}
	for e, err := range d.b.StreamDirectory(ctx, ".") {
		must(t, err)
		got[1] = append(got[1], e.Name)
	}
	must(t, d.b.Walk(ctx, ".", fsbridge.WalkOptions{}, func(e fsbridge.WalkEntry) error {
		got[2] = append(got[2], e.Path)
		return e.Err
	}))
	got[3], err = d.b.Glob(ctx, "*", fsbridge.GlobOptions{})
	must(t, err)
	for i, names := range got {
		if len(names) != 2 || !slices.Contains(names, want[0]) || !slices.Contains(names, want[1]) {
			t.Errorf("listing %d: %q", i, names)
		}
	}
}

// TestKilledWriter kills a process in the middle of its writes, again and again. The file is always
// one of the two contents, whole; what was left is swept by its tag.
func TestKilledWriter(t *testing.T) {
	if dir := os.Getenv("BERTH_TEST_WRITER"); dir != "" {
		writeForever(dir)
	}
	rounds := 30
	if testing.Short() {
		rounds = 5
	}
	for _, way := range []string{"kernel", "no-tmpfile"} {
		d := newDirs(t, ways()[way])
		left := 0
		for round := range rounds {
			cmd := exec.Command(os.Args[0], "-test.run=^TestKilledWriter$")
			cmd.Env = append(os.Environ(), "BERTH_TEST_WRITER="+d.ws, "BERTH_TEST_WAY="+way)
			out, err := cmd.StdoutPipe()
			must(t, err)
			must(t, cmd.Start())
			// It says a line in the middle of each write and at its end: kill it after a few.
			lines := bufio.NewReader(out)
			for range 3 + round%4 {
				_, err := lines.ReadString('\n')
				must(t, err)
			}
			must(t, cmd.Process.Kill())
			_ = cmd.Wait() // killed, as it should be
			got := []byte(d.get(d.in("f")))
			if !bytes.Equal(got, writerContent('a')) && !bytes.Equal(got, writerContent('b')) {
				t.Fatalf("%s: the file is torn: %d bytes", way, len(got))
			}
			n, err := d.b.Sweep(t.Context(), testTag)
			must(t, err)
			left += n
			noTemps(t, d.ws)
		}
		t.Logf("%s: %d temporary files were swept", way, left)
		if way == "no-tmpfile" && left == 0 && !testing.Short() {
			t.Error("no temporary file was ever left: the test proved nothing")
		}
	}
}

func writerContent(c byte) []byte { return bytes.Repeat([]byte{c}, 300<<10) }

// writeForever is the process that is killed.
func writeForever(dir string) {
	b, err := newBridge(Options{
		Mounts:  fsbridge.MountTable{{Path: dir, Kind: fsbridge.MountWorkspace}},
		TempTag: testTag,
	}, ways()[os.Getenv("BERTH_TEST_WAY")])
	if err != nil {
		panic(err)
	}
	for i := 0; ; i++ {
		half := bytes.NewReader(writerContent("ab"[i%2]))
		r := readerFunc(func(p []byte) (int, error) {
			n, err := half.Read(p[:min(len(p), 32<<10)])
			if half.Len() < 150<<10 && half.Len()+n >= 150<<10 {
				fmt.Println("half")
			}
			return n, err
		})
		if _, err := b.WriteStream(context.Background(), "f", r, fsbridge.WriteOptions{}); err != nil {
			panic(err)
		}
		fmt.Println("done")
	}
}

// A live temporary file of the same bridge is not swept away.
func TestSweepSparesLiveNames(t *testing.T) {
	d := newDirs(t, rooted.Options{NoTmpfile: true})
	ctx := t.Context()
	r := readerFunc(func(p []byte) (int, error) {
		n, err := d.b.Sweep(ctx, d.b.TempTag())
		if n != 0 || err != nil {
			t.Errorf("swept %d, %v", n, err)
		}
		return copy(p, "x"), errEOF
	})
	_, err := d.b.WriteStream(ctx, "f", r, fsbridge.WriteOptions{})
	must(t, err)
	if d.get(d.in("f")) != "x" {
		t.Error("the write was lost")
	}
}
