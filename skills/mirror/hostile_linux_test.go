package mirror_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/skills"
	"github.com/workberth/workberth/skills/mirror"
)

// What the agent puts in the place of copies is replaced or kept, and never read further than a copy is
// long; a record that is none is refused.
func TestSyncHostile(t *testing.T) {
	p := newPlace(t)
	p.sync(t, skills.Policy{})
	at := func(name string) string { return filepath.Join(p.ws, mirror.DefaultDir, name) }
	if err := errors.Join(os.Chmod(at("one/SKILL.md"), 0o644), os.Truncate(at("one/SKILL.md"), 8<<40), os.Remove(at("one/empty")), syscall.Mkfifo(at("one/empty"), 0o644),
		os.Chmod(at("two/SKILL.md"), 0o644), os.Truncate(at("two/SKILL.md"), 8<<40)); err != nil {
		t.Fatal(err)
	}
	res := p.sync(t, skills.Policy{Deny: []string{"two"}})
	if len(res.Written) != 2 || len(res.Removed) != 0 || len(res.Kept) != 1 || res.Kept[0] != "two/SKILL.md" {
		t.Errorf("%+v", res)
	}
	record := at(".manifest.json")
	for name, c := range map[string]struct {
		plant func() error
		want  error
	}{
		"huge":   {func() error { return errors.Join(os.WriteFile(record, []byte("{"), 0o644), os.Truncate(record, 1<<30)) }, mirror.ErrForeign},
		"pipe":   {func() error { return syscall.Mkfifo(record, 0o644) }, fsbridge.ErrNotRegular},
		"link":   {func() error { return os.Symlink("/etc/passwd", record) }, fsbridge.ErrOutsideRoot},
		"nested": {func() error { return os.WriteFile(record, []byte(strings.Repeat("[", 1<<20)), 0o644) }, mirror.ErrForeign},
	} {
		if err := errors.Join(os.RemoveAll(record), c.plant()); err != nil {
			t.Fatal(err)
		}
		if _, err := mirror.Sync(t.Context(), p.list(t, skills.Policy{}), p.from, p.to, mirror.Options{}); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A process of the workspace that swaps folders of the copy for links out of the workspace gets no file
// written or removed there; when it has ended, a call puts everything right.
func TestSyncUnderAttack(t *testing.T) {
	p := newPlace(t)
	p.sync(t, skills.Policy{})
	out := t.TempDir()
	write(t, out, "SKILL.md", "outside", 0o644)
	write(t, out, "scripts/run.sh", "outside", 0o644)
	link, one := filepath.Join(p.ws, "link"), filepath.Join(p.ws, mirror.DefaultDir, "one")
	if err := os.Symlink(out, link); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = unix.Renameat2(unix.AT_FDCWD, one, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
			runtime.Gosched()
		}
	})
	policies := []skills.Policy{{}, {Deny: []string{"one"}}}
	for i, end := 0, time.Now().Add(300*time.Millisecond); time.Now().Before(end); i++ {
		_, _ = mirror.Sync(t.Context(), p.list(t, policies[i%2]), p.from, p.to, mirror.Options{}) // it may fail
	}
	close(stop)
	wg.Wait()
	for _, name := range []string{"SKILL.md", "scripts/run.sh"} {
		if data, err := os.ReadFile(filepath.Join(out, name)); string(data) != "outside" {
			t.Errorf("outside, %s: %q, %v", name, data, err)
		}
	}
	if list, err := os.ReadDir(out); err != nil || len(list) != 2 {
		t.Errorf("outside: %v, %v", list, err)
	}
	p.sync(t, skills.Policy{})
	if res := p.sync(t, skills.Policy{}); len(res.Written) != 0 || res.Unchanged != 4 {
		t.Errorf("%+v", res)
	}
}

// No folder is bound but the skill's own: a SKILL.md that is a link to a file elsewhere shows nothing of
// what lies there.
func TestBindsOwnFolderOnly(t *testing.T) {
	p := newPlace(t)
	write(t, p.src, "private/notes.md", skill("three"), 0o644)
	write(t, p.src, "private/key", "secret", 0o600)
	if err := errors.Join(os.Mkdir(filepath.Join(p.src, "three"), 0o755), os.Symlink("../private/notes.md", filepath.Join(p.src, "three/SKILL.md"))); err != nil {
		t.Fatal(err)
	}
	l := p.list(t, skills.Policy{})
	if binds, err := mirror.Binds(l, "/skills"); !errors.Is(err, fsbridge.ErrUnsupported) || binds != nil {
		t.Errorf("%v, %v", binds, err)
	}
	if binds, err := mirror.Binds(p.list(t, skills.Policy{Deny: []string{"three"}}), "/skills"); err != nil || len(binds) != 2 {
		t.Errorf("%v, %v", binds, err)
	}
}
