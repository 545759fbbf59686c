package sftpfs

import (
	"io/fs"
	"math"
	"path"
	"strings"

	"github.com/pkg/sftp"

	"github.com/workberth/workberth/fsbridge"
)

// The file types of st_mode, as SFTP servers send them.
const (
	formatBits = 0o170000
	typeFIFO   = 0o010000
	typeChar   = 0o020000
	typeDir    = 0o040000
	typeBlock  = 0o060000
	typeFile   = 0o100000
	typeLink   = 0o120000
	typeSocket = 0o140000
)

// infoOf reads the attributes a server sent for a file, under the name that was asked for.
func infoOf(name string, i fs.FileInfo) (fsbridge.FileInfo, error) {
	if i == nil {
		return fsbridge.FileInfo{}, errNoAnswer()
	}
	st, ok := i.Sys().(*sftp.FileStat)
	if !ok || st == nil {
		return fsbridge.FileInfo{}, errNoAnswer()
	}
	if st.Size > math.MaxInt64 {
		return fsbridge.FileInfo{}, &protocolError{"a file of impossible size"}
	}
	return fsbridge.FileInfo{
		Name: name, Type: typeOf(st.Mode), Mode: fsbridge.Mode(st.Mode) & fsbridge.ModeAll,
		Size: int64(st.Size), ModTime: st.ModTime(), UID: st.UID, GID: st.GID,
	}, nil
}

// typeOf is unknown for a server that does not tell.
func typeOf(mode uint32) fsbridge.FileType {
	switch mode & formatBits {
	case typeFile:
		return fsbridge.TypeRegular
	case typeDir:
		return fsbridge.TypeDir
	case typeLink:
		return fsbridge.TypeSymlink
	case typeFIFO:
		return fsbridge.TypeFIFO
	case typeSocket:
		return fsbridge.TypeSocket
	case typeChar:
		return fsbridge.TypeChar
	case typeBlock:
		return fsbridge.TypeBlock
	}
	return fsbridge.TypeUnknown
}

// fileMode is a mode for the client's Chmod.
func fileMode(m fsbridge.Mode) fs.FileMode {
	return fsbridge.FileInfo{Type: fsbridge.TypeRegular, Mode: m}.FSMode()
}

// baseName is the last element of a path as it was asked for.
func baseName(p string) string { return path.Base(strings.TrimRight(p, "/")) }

// validName refuses names in a listing that can be no names.
func validName(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") || len(name) > 255 {
		return &protocolError{"a directory with an entry that has no proper name"}
	}
	return nil
}
