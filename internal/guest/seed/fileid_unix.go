//go:build unix

package seed

import (
	"io/fs"
	"syscall"
)

// fileID tells whether two names are one file.
type fileID struct{ dev, ino uint64 }

// idOf returns a file's identity and whether it has several names.
func idOf(info fs.FileInfo) (id fileID, several bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return id, false
	}
	return fileID{uint64(st.Dev), st.Ino}, st.Nlink > 1 //nolint:unconvert // not a uint64 everywhere
}
