package owner

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/workberth/workberth/sandbox"
)

// startLock serialises the starters of one sandbox's owner across processes. The
// kernel drops it when its holder dies.
type startLock struct{ f *os.File }

// lockStart waits for the start lock of id. The wait is a poll because flock has
// no wait that a context can end.
func lockStart(ctx context.Context, dir string, id sandbox.ID) (*startLock, error) {
	f, err := os.OpenFile(filepath.Join(dir, string(id)+".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start lock: %w", err)
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return &startLock{f}, nil
		}
		if err != unix.EWOULDBLOCK && err != unix.EINTR {
			f.Close()
			return nil, fmt.Errorf("start lock: %w", err)
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("another call is starting this sandbox: %w", ctx.Err())
		case <-tick.C:
		}
	}
}

// release gives the lock back. The file stays: removing it would let two
// starters lock two different files of one name.
func (l *startLock) release() { l.f.Close() }
