package backendtest

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// witnessDir holds the witnesses, below the workspace.
const witnessDir = "alive"

// witness is the path inside of a witness.
func (x *box) witness(name string) string {
	return path.Join(x.inside(witnessDir), x.k.word+"-"+name)
}

// alive lists the witnesses whose name begins with prefix and that a living process holds.
func (k *kit) alive(prefix string) []string {
	k.Helper()
	return k.aliveIn(k.ws, prefix)
}

func (k *kit) aliveIn(workspace, prefix string) []string {
	k.Helper()
	dir := filepath.Join(workspace, witnessDir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		k.Fatalf("witnesses: %v", err)
	}
	var held []string
	for _, e := range entries {
		name, ok := strings.CutPrefix(e.Name(), k.word+"-")
		if ok && strings.HasPrefix(name, prefix) && isHeld(filepath.Join(dir, e.Name())) {
			held = append(held, name)
		}
	}
	slices.Sort(held)
	return held
}

// isHeld asks the kernel whether somebody has the file locked.
func isHeld(file string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	return errors.Is(err, syscall.EWOULDBLOCK)
}

// allDead demands that no process behind the witnesses lives.
func (k *kit) allDead(when, prefix string) {
	k.Helper()
	if held := k.alive(prefix); len(held) > 0 {
		k.Errorf("%s: %d processes are alive: %q", when, len(held), held)
	}
}

// eventually polls a fact of the operating system that gives no event.
func (k *kit) eventually(what string, fact func() bool) {
	k.Helper()
	for deadline := time.Now().Add(30 * time.Second); !fact(); {
		if time.Now().After(deadline) {
			k.Fatalf("in vain waited for: %s", what)
		}
		time.Sleep(2 * time.Millisecond) //sleep: polls a fact that has no event
	}
}

// processesWith lists the processes of this machine that have word in an argument. Where the
// process table is not there, it lists none.
func processesWith(word string) []string {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	var found []string
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err == nil && strings.Contains(string(data), word) {
			found = append(found, path.Base(path.Dir(f))+" "+strings.ReplaceAll(string(data), "\x00", " "))
		}
	}
	return found
}
