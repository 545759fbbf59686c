package osthread

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// Threads are distinct, never the first one, and end.
func TestGo(t *testing.T) {
	const n = 50
	var (
		mu   sync.Mutex
		seen = map[int]bool{}
		wg   sync.WaitGroup
		hold = make(chan struct{})
	)
	for range n {
		wg.Add(1)
		Go(func() {
			mu.Lock()
			seen[unix.Gettid()] = true
			mu.Unlock()
			wg.Done()
			<-hold // keeps the thread, so that its number is not used again
		})
	}
	wg.Wait()
	close(hold)
	if len(seen) != n || seen[os.Getpid()] {
		t.Errorf("%d threads for %d functions; first thread used: %v", len(seen), n, seen[os.Getpid()])
	}
}

// Started from the first thread itself.
func TestGoFromFirstThread(t *testing.T) {
	var wg sync.WaitGroup
	for range 2 * runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for range 200 {
				ran := make(chan int, 1)
				Go(func() { ran <- unix.Gettid() })
				if tid := <-ran; tid == os.Getpid() {
					t.Error("ran on the first thread")
				}
				runtime.Gosched()
			}
		})
	}
	wg.Wait()
}

func TestAsUser(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.Chmod(dir, 0o755), os.Chmod(filepath.Dir(dir), 0o755)); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 {
		err := AsUser(os.Geteuid()+1, os.Getegid(), func() { t.Error("ran") })
		if !errors.Is(err, fs.ErrPermission) {
			t.Errorf("without being root: %v", err)
		}
		return
	}
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	var mine, theirs error
	if err := AsUser(65534, 65534, func() { _, theirs = os.ReadFile(secret) }); err != nil {
		t.Fatal(err)
	}
	_, mine = os.ReadFile(secret)
	if mine != nil || !errors.Is(theirs, fs.ErrPermission) {
		t.Errorf("own read %v, read as another user %v", mine, theirs)
	}
	if err := os.Chown(secret, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if err := AsUser(65534, 65534, func() { _, theirs = os.ReadFile(secret) }); err != nil || theirs != nil {
		t.Errorf("owner's read: %v, %v", err, theirs)
	}
}
