package bench

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/local"
	"github.com/workberth/workberth/skills"
)

func TestRoundTrips(t *testing.T) {
	got := roundTrips(series{0.300, 0.512, 0.9}, series{0.050, 0.500})
	if want := (series{5, 0.2}); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestCompareAll(t *testing.T) {
	ours, theirs := timed{name: "ours", times: series{1}}, timed{name: "a", times: series{2}}
	broken := timed{name: "b", err: errors.New("broken")}
	rows, err := compareAll("it", Speed, []timed{ours, theirs, broken}, Budget{MinRatio: 2})
	if err != nil || len(rows) != 2 {
		t.Fatalf("%+v, %v", rows, err)
	}
	if r := rows[0].judged(); r.Measured != "it" || r.Peer != "a" || r.Verdict != Met {
		t.Errorf("the first row is %+v", r)
	}
	if r := rows[1]; r.Peer != "b" || r.Theirs != nil || r.Budget != (Budget{}) || !strings.Contains(r.Note, "broken") {
		t.Errorf("the row of a peer that failed is %+v", r)
	}
	if _, err := compareAll("it", Speed, []timed{broken, theirs}); !errors.Is(err, broken.err) {
		t.Errorf("we failed: %v", err)
	}
}

// What is taken while something runs is seen, and what was there before is not.
func TestGrowth(t *testing.T) {
	const taken = 64 << 20
	got, err := growth(t.Context(), func(context.Context) error {
		block := make([]byte, taken)
		for i := 0; i < len(block); i += 4096 {
			block[i] = 1
		}
		return os.WriteFile(filepath.Join(t.TempDir(), "f"), block[:1], 0o600) // it is in use up to here
	})
	if err != nil || got < taken/2 || got > 2*taken {
		t.Errorf("%.0f bytes, want about %d: %v", got, taken, err)
	}
	broken := errors.New("broken")
	if _, err := growth(t.Context(), func(context.Context) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("the error was lost: %v", err)
	}
}

// Every planted skill is one that loads, also the one behind a link, and they ask for 50 programs.
func TestPlantSkills(t *testing.T) {
	dir := t.TempDir()
	if err := plantSkills(dir, 120); err != nil {
		t.Fatal(err)
	}
	fb, err := local.New(local.Options{Mounts: fsbridge.MountTable{{Path: dir, Kind: fsbridge.MountWorkspace}}})
	if err != nil {
		t.Fatal(err)
	}
	d, err := skills.Discover(t.Context(), fb, []skills.Root{{Path: "skills", Kind: skills.KindWorkspace}}, nil, skills.Options{})
	if err != nil || len(d.Skills) != 120 || len(d.Notices) > 0 {
		t.Fatalf("%d skills, notices %v: %v", len(d.Skills), d.Notices, err)
	}
	programs, resources := map[string]bool{}, 0
	for _, s := range d.Skills {
		if s.Rejected() || len(s.Requires.Binaries) != 1 {
			t.Fatalf("%+v", s)
		}
		programs[s.Requires.Binaries[0]] = true
		resources += len(s.Resources)
	}
	if len(programs) != skillPrograms || resources != 6 {
		t.Errorf("%d programs, %d resources", len(programs), resources)
	}
}

// A copy is renewed in the same files each time, and one that lacks anything has not arrived.
func TestCopiesAreCompared(t *testing.T) {
	dir := t.TempDir()
	c := &copier{dir: dir, from: filepath.Join(dir, "from")}
	var err error
	if c.paths, err = plant(c.from, copiedFiles, copiedSize); err != nil || len(c.paths) != copiedFiles {
		t.Fatalf("%d files: %v", len(c.paths), err)
	}
	if err := os.CopyFS(c.theirs(), os.DirFS(c.from)); err != nil {
		t.Fatal(err)
	}
	if err := c.arrived(c.theirs()); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := c.change(""); err != nil {
			t.Fatal(err)
		}
		differ := 0
		for _, p := range c.paths {
			ours, err1 := os.ReadFile(filepath.Join(c.from, p))
			theirs, err2 := os.ReadFile(filepath.Join(c.theirs(), p))
			if err := errors.Join(err1, err2); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(ours, theirs) {
				differ++
			}
		}
		if differ != copiedChanged {
			t.Errorf("%d files differ, want %d", differ, copiedChanged)
		}
		if err := c.arrived(c.theirs()); err == nil {
			t.Error("a copy of old files has arrived")
		}
	}
}
