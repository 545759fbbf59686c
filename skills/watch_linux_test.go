package skills_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/skills"
)

// wait waits for a signal.
func wait(t *testing.T, w *skills.Watcher, what string) {
	t.Helper()
	select {
	case _, ok := <-w.Changed():
		if !ok {
			t.Fatalf("%s: the watcher has ended: %v", what, w.Err())
		}
	case <-time.After(10 * time.Second):
		t.Fatalf("%s is not told", what)
	}
}

// Changes below a root are told, also of a root that did not exist and of one that went and came
// back.
func TestWatch(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"skills/a/SKILL.md": good("a")})
	b := bridge(t, dir)
	w, err := skills.Watch(t.Context(), b, workspace())
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, map[string]string{"skills/b/SKILL.md": good("b")})
	wait(t, w, "a new skill")
	write(t, dir, map[string]string{".agents/skills/c/SKILL.md": good("c")})
	wait(t, w, "a new root")
	if err := os.RemoveAll(filepath.Join(dir, "skills")); err != nil {
		t.Fatal(err)
	}
	wait(t, w, "a root that is gone")
	// Signals may be joined or not: what counts is that after the last change one comes.
	for i := 0; ; i++ {
		d, _ := found(t, b)
		if len(d.Roots) == 1 && len(d.Skills) == 1 {
			break
		}
		wait(t, w, "the rest of it")
	}
	write(t, dir, map[string]string{"skills/d/SKILL.md": good("d")})
	for {
		wait(t, w, "a root that came back")
		if d, _ := found(t, b); len(d.Skills) == 2 {
			break
		}
	}
	if err := w.Close(); err != nil || w.Err() != nil {
		t.Errorf("%v, %v", err, w.Err())
	}
	for range w.Changed() { // until it is closed
		continue
	}
}

// A root that becomes a file, a link that leads nowhere, in a circle or out of the workspace, or that comes and goes
// as fast as it can: the watcher goes on.
func TestWatchHostileRoot(t *testing.T) {
	dir, out := t.TempDir(), t.TempDir()
	write(t, dir, map[string]string{"skills/a/SKILL.md": good("a"), ".agents": "-> " + out})
	b, at := bridge(t, dir), filepath.Join(dir, "skills")
	w, err := skills.Watch(t.Context(), b, workspace())
	if err != nil {
		t.Fatal(err)
	}
	away := filepath.Join(dir, "away")
	for i, plant := range []func() error{
		func() error { return os.WriteFile(at, nil, 0o644) }, func() error { return os.Symlink(out, at) }, func() error { return os.Symlink("skills", at) },
		func() error { return os.Symlink("nowhere", at) }, func() error { return nil },
		func() error {
			for range 200 {
				if err := errors.Join(os.Rename(away, at), os.Rename(at, away), os.Symlink(out, at), os.Remove(at)); err != nil {
					return err
				}
			}
			return nil
		},
	} {
		if err := errors.Join(os.Rename(at, away), plant()); err != nil {
			t.Fatal(err)
		}
		wait(t, w, "what became of the root")
		if err := errors.Join(os.RemoveAll(at), os.Rename(away, at)); err != nil {
			t.Fatal(err)
		}
		write(t, dir, map[string]string{fmt.Sprintf("skills/n%d/SKILL.md", i): good(fmt.Sprint("n", i))})
		for {
			wait(t, w, "a root that came back")
			if d, err := skills.Discover(t.Context(), b, workspace(), nil, skills.Options{Parallel: 4}); err == nil && len(d.Skills) == i+2 {
				break
			}
		}
	}
	if err := w.Close(); err != nil || w.Err() != nil {
		t.Errorf("%v, %v", err, w.Err())
	}
}

func TestWatchUnsupported(t *testing.T) {
	if _, err := skills.Watch(t.Context(), bare{bridge(t, t.TempDir())}, workspace()); !errors.Is(err, fsbridge.ErrUnsupported) {
		t.Error(err)
	}
}
