package bridgetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// mountScratch mounts a file system of size bytes at dir until t ends.
func mountScratch(t testing.TB, dir string, size int64) {
	t.Helper()
	err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, fmt.Sprintf("size=%d,mode=755", size))
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		cannot(t, "this process may not mount a file system (run as root)")
	}
	if err != nil {
		t.Fatalf("mount a file system at %s: %v", dir, err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
}

// SwapLoop exchanges the pairs of swaps, one after the other, as fast as it can until ctx is done,
// and puts every pair back into its first order. It returns the number of exchanges. It is what
// an attacker in the environment runs.
func SwapLoop(ctx context.Context, swaps []Swap) (int64, error) {
	var n int64
	for ctx.Err() == nil || n%2 != 0 {
		for _, s := range swaps {
			if err := exchangeOnce(s.A, s.B); err != nil {
				return n, fmt.Errorf("exchange %q and %q: %w", s.A, s.B, err)
			}
		}
		n++
	}
	return n * int64(len(swaps)), nil
}

// exchangeOnce exchanges two names atomically.
func exchangeOnce(a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}

// cannot skips for want of a means, and fails where BERTH_REQUIRE_ENGINES=1 says that all means are
// there.
func cannot(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("BERTH_REQUIRE_ENGINES") == "1" {
		t.Fatal(why)
	}
	t.Skip(why)
}
