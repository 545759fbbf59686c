package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// errLocked: another open file holds the lock.
var errLocked = errors.New("locked")

// tryLock opens the lock file at path and locks it without waiting. The kernel
// gives the lock back when the file is closed or the process ends, in whatever
// way. The file is never opened through a link.
func tryLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err == nil {
		return f, nil
	}
	f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, errLocked
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}

// waitLock locks the file at path, waiting until ctx ends. flock has no wait that
// a context could end, so it asks again and again, at most every 25 ms.
func waitLock(ctx context.Context, path string) (*os.File, error) {
	pause := time.Millisecond
	for {
		f, err := tryLock(path)
		if !errors.Is(err, errLocked) {
			return f, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, fmt.Errorf("wait for the lock %s: %w", path, ctx.Err())
		}
		pause = min(2*pause, 25*time.Millisecond)
	}
}
