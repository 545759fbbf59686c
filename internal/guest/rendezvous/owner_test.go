//go:build unix

package rendezvous_test

import (
	"os"
	"syscall"
	"testing"
)

// owner is the user a file belongs to.
func owner(t *testing.T, p string) uint32 {
	t.Helper()
	info, err := os.Lstat(p)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Uid
}
