//go:build linux

package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/bridgetest"
	"github.com/workberth/workberth/internal/rooted"
	"golang.org/x/sys/unix"
)

// attackOps is how many operations each attack lasts.
func attackOps(t testing.TB, normal int) int {
	t.Helper()
	if s := os.Getenv("BERTH_ATTACK_OPS"); s != "" {
		n, err := strconv.Atoi(s)
		must(t, err)
		return n
	}
	if testing.Short() {
		return normal / 10
	}
	return normal
}

// attack exchanges names until the test calls stop.
func attack(t *testing.T, swaps ...bridgetest.Swap) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		n, err := bridgetest.SwapLoop(ctx, swaps)
		if err != nil {
			t.Errorf("the attacker: %v", err)
		}
		t.Logf("%d exchanges", n)
	})
	var once sync.Once
	stop = func() { once.Do(func() { cancel(); wg.Wait() }) }
	t.Cleanup(stop)
	return stop
}

// TestSwappedParent: a directory and a link to OUT change places as fast as the kernel can do it,
// while every kind of operation works in it from several goroutines. Nothing happens in OUT, nothing
// is read from it, no descriptor is lost. C003 C013
func TestSwappedParent(t *testing.T) {
	for _, name := range []string{"kernel", "careful", "bare"} {
		t.Run(name, func(t *testing.T) {
			d := newDirs(t, ways()[name])
			ctx := t.Context()
			for _, dir := range []string{d.in("p"), d.in("deep/p")} {
				d.put(dir+"/f.txt", "legit")
				d.put(dir+"/sub/g", "legit")
			}
			d.link("../out", d.in("q"))
			d.link(d.out, d.in("deep/q"))
			for _, p := range []string{"f.txt", "sub/g", "keep/k", "d"} {
				d.put(d.at(p), "secret")
			}
			before := shape(t, d.out)
			fds := openFDs(t)
			stop := attack(t, bridgetest.Swap{A: d.in("p"), B: d.in("q")}, bridgetest.Swap{A: d.in("deep/p"), B: d.in("deep/q")})
			const workers = 4
			n := attackOps(t, 8_000) / workers
			var wg sync.WaitGroup
			for w := range workers {
				wg.Go(func() {
					for i := range n {
						dir := []string{"p", "deep/p", "q", d.in("deep/q")}[i%4]
						if err := oneAttackedOp(ctx, d.b, i/4+w, dir, w); err != nil {
							t.Errorf("operation %d: %v", i, err)
							return
						}
					}
				})
			}
			wg.Wait()
			stop()
			if after := shape(t, d.out); after != before {
				t.Errorf("OUT was changed from\n%s\nto\n%s", before, after)
			}
			noTemps(t, d.ws)
			if now := openFDs(t); now > fds {
				t.Errorf("%d descriptors lost", now-fds)
			}
		})
	}
}

// oneAttackedOp runs one operation, which may fail; the error is about bytes that must not be seen.
func oneAttackedOp(ctx context.Context, b *Bridge, kind int, dir string, worker int) error {
	own := dir + "/w" + strconv.Itoa(worker)
	switch kind % 14 {
	case 0, 1, 2, 3:
		_ = b.WriteFile(ctx, dir+"/f.txt", []byte("legit"))
	case 4:
		_ = b.Mkdir(ctx, dir+"/d", fsbridge.MkdirOptions{})
	case 5:
		_ = b.WriteFile(ctx, own+"/x/y", []byte("legit"))
	case 6:
		_ = b.Remove(ctx, own, fsbridge.RemoveOptions{Recursive: true})
	case 7:
		_ = b.Rename(ctx, dir+"/sub/g", dir+"/sub/h", fsbridge.RenameOptions{})
		_ = b.Rename(ctx, dir+"/sub/h", dir+"/sub/g", fsbridge.RenameOptions{})
	case 8:
		_ = b.AppendFile(ctx, own+".log", []byte("legit"))
		_ = b.Remove(ctx, own+".log", fsbridge.RemoveOptions{})
	case 9:
		_ = b.Copy(ctx, dir+"/f.txt", own+".copy", fsbridge.CopyOptions{})
	case 10:
		_ = b.Symlink(ctx, "f.txt", own+".link", fsbridge.SymlinkOptions{Replace: true})
		_ = b.Chmod(ctx, dir+"/f.txt", 0o640)
	case 11:
		h, err := b.HashFile(ctx, dir+"/f.txt")
		if err == nil && h.Digest == hashOf("secret") {
			return errors.New("OUT was hashed")
		}
		return b.Walk(ctx, ".", fsbridge.WalkOptions{Hash: true}, func(e fsbridge.WalkEntry) error {
			if e.Digest == hashOf("secret") || strings.Contains(e.Path, "keep") {
				return fmt.Errorf("the walk came to %s", e.Path)
			}
			return nil
		})
	case 12:
		src, err := b.ReadFileWithSource(ctx, dir+"/f.txt")
		if err == nil && (string(src.Data) == "secret" || !strings.HasSuffix(src.WorkspaceRelativePath, "p/f.txt") && !strings.HasSuffix(src.WorkspaceRelativePath, "q/f.txt")) {
			return fmt.Errorf("read %q from %s", src.Data, src.ResolvedPath)
		}
		fallthrough
	default:
		data, err := b.ReadFile(ctx, dir+"/f.txt")
		if err == nil && string(data) != "legit" {
			return fmt.Errorf("read %q", data)
		}
		list, _ := b.ReadDirectory(ctx, dir)
		for _, e := range list {
			if e.Name == "keep" {
				return fmt.Errorf("OUT was listed: %s is in it", e.Name)
			}
		}
	}
	return nil
}

// TestMoveAcrossUnderAttack: files are moved to another file system while the directory they are in
// is exchanged for a link to OUT, which holds files of the same names. C005
func TestMoveAcrossUnderAttack(t *testing.T) {
	for _, name := range []string{"kernel", "careful"} {
		t.Run(name, func(t *testing.T) {
			d := newDirs(t, ways()[name])
			ctx := t.Context()
			tmpfs(t, d.in("m"), "8m")
			d.put(d.at("src"), "secret")
			must(t, os.Mkdir(d.in("sub"), 0o755))
			d.link(d.out, d.in("swap"))
			var was unix.Stat_t
			must(t, unix.Lstat(d.at("src"), &was))
			before := shape(t, d.out)
			stop := attack(t, bridgetest.Swap{A: d.in("sub"), B: d.in("swap")})
			real, err := os.Open(d.in("sub"))
			for err != nil || sameDir(t, real, d.out) {
				real, err = os.Open(d.in("sub"))
			}
			moved, n := 0, attackOps(t, 2000)
			for range n {
				must(t, writeAt(real, "src", "legit"))
				err := d.b.Rename(ctx, "sub/src", "m/dst", fsbridge.RenameOptions{})
				left := existsAt(real, "src")
				data, rerr := os.ReadFile(d.in("m/dst"))
				switch {
				case err == nil && (left || string(data) != "legit"):
					t.Fatalf("moved: source left %v, new file %q, %v", left, data, rerr)
				case err != nil && !left:
					t.Fatalf("failed with %v, and the source is gone", err)
				case rerr == nil && string(data) != "legit":
					t.Fatalf("the new file holds %q", data)
				case err == nil:
					moved++
				}
				must(t, d.b.Remove(ctx, "m/dst", fsbridge.RemoveOptions{IgnoreMissing: true}))
			}
			stop()
			t.Logf("%d of %d moved", moved, n)
			if moved == 0 {
				t.Error("no move succeeded: the attack proved nothing")
			}
			var now unix.Stat_t
			must(t, unix.Lstat(d.at("src"), &now))
			if now.Ino != was.Ino || shape(t, d.out) != before {
				t.Error("OUT has changed")
			}
			noTemps(t, d.in("m"))
		})
	}
}

func sameDir(t *testing.T, f *os.File, dir string) bool {
	t.Helper()
	a, err := f.Stat()
	must(t, err)
	b, err := os.Stat(dir)
	must(t, err)
	return os.SameFile(a, b)
}

func writeAt(dir *os.File, name, content string) error {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_CREAT|unix.O_TRUNC|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return err
	}
	defer rooted.Close(fd)
	_, err = unix.Write(fd, []byte(content))
	return err
}

func existsAt(dir *os.File, name string) bool {
	var st unix.Stat_t
	return unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil
}
