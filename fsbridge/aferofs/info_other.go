//go:build !unix

package aferofs

import "github.com/workberth/workberth/fsbridge"

// systemInfo adds what the file system below tells.
func systemInfo(out *fsbridge.FileInfo, sys any) {
	if st, ok := sys.(fsbridge.FileInfo); ok {
		out.UID, out.GID = st.UID, st.GID
		out.Nlink, out.Dev, out.Inode = st.Nlink, st.Dev, st.Inode
	}
}
