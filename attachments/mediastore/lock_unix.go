//go:build unix

package mediastore

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// lock takes the advisory lock of an open file, shared or alone, and waits for it as
// long as ctx lasts. It ends with the file.
func lock(ctx context.Context, f *os.File, alone bool) error {
	for wait := 100 * time.Microsecond; ; wait = min(2*wait, 20*time.Millisecond) {
		got, err := tryLock(f, alone)
		if got || err != nil {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
	}
}

// tryLock does not wait.
func tryLock(f *os.File, alone bool) (bool, error) {
	how := unix.LOCK_SH
	if alone {
		how = unix.LOCK_EX
	}
	for {
		switch err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB); {
		case err == nil:
			return true, nil
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EWOULDBLOCK):
			return false, nil
		default:
			return false, err
		}
	}
}

// private refuses a directory that another user owns or can enter.
func private(info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if ok && int(st.Uid) != os.Geteuid() || info.Mode().Perm()&0o077 != 0 {
		return ErrNotPrivate
	}
	return nil
}

// nonblock keeps an open of a FIFO that took a file's place from waiting.
const nonblock = unix.O_NONBLOCK
