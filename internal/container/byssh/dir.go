package byssh

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// dirPrefix begins the names of the directories with the sockets of tunnels.
const dirPrefix = "berth-tunnel-"

// staleAfter is how old a directory must be that nobody holds, to be removed: one that has just been made
// may be held in a moment.
const staleAfter = time.Minute

// privateDir makes a directory for a socket. It is held as long as the file is open, and so no longer than
// this process lives: those of processes that have ended are removed.
func privateDir() (dir string, held *os.File, err error) {
	stale, _ := filepath.Glob(filepath.Join(os.TempDir(), dirPrefix+"*"))
	for _, dir := range stale {
		dropStale(dir)
	}
	if dir, err = os.MkdirTemp("", dirPrefix); err != nil {
		return "", nil, err
	}
	if held, err = hold(dir); err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	return dir, held, nil
}

// dropStale removes a directory of this user's that nobody holds.
func dropStale(dir string) {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() || time.Since(info.ModTime()) < staleAfter {
		return
	}
	var st unix.Stat_t
	if unix.Lstat(dir, &st) != nil || int(st.Uid) != os.Geteuid() {
		return
	}
	held, err := hold(dir)
	if err != nil {
		return
	}
	defer held.Close()
	_ = os.RemoveAll(dir)
}

// hold locks a directory. The kernel gives it back when the file is closed.
func hold(dir string) (*os.File, error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
