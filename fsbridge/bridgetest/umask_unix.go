//go:build unix

package bridgetest

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/workberth/workberth/fsbridge"
)

// setUmask sets the file mode creation mask of the process until t ends.
func setUmask(t testing.TB, mask fsbridge.Mode) {
	t.Helper()
	old := unix.Umask(int(mask))
	t.Cleanup(func() { unix.Umask(old) })
}
