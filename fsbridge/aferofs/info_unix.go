//go:build unix

package aferofs

import (
	"syscall"

	"github.com/workberth/workberth/fsbridge"
)

// systemInfo adds what only the operating system's own file systems tell.
func systemInfo(out *fsbridge.FileInfo, sys any) {
	switch st := sys.(type) {
	case *syscall.Stat_t:
		out.UID, out.GID = st.Uid, st.Gid
		out.Nlink, out.Dev, out.Inode = uint64(st.Nlink), uint64(st.Dev), st.Ino
	case fsbridge.FileInfo:
		out.UID, out.GID = st.UID, st.GID
		out.Nlink, out.Dev, out.Inode = st.Nlink, st.Dev, st.Inode
	}
}
