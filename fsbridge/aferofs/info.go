package aferofs

import (
	"io/fs"
	"path"
	"strings"

	"github.com/workberth/workberth/fsbridge"
)

// infoOf describes a file under the name it was asked for.
func infoOf(name string, i fs.FileInfo) fsbridge.FileInfo {
	out := fsbridge.FileInfo{
		Name: name, Type: typeOf(i), Mode: modeOf(i.Mode()), Size: i.Size(), ModTime: i.ModTime(),
	}
	systemInfo(&out, i.Sys())
	return out
}

func typeOf(i fs.FileInfo) fsbridge.FileType {
	m := i.Mode()
	switch {
	case i.IsDir():
		return fsbridge.TypeDir
	case m&fs.ModeSymlink != 0:
		return fsbridge.TypeSymlink
	case m&fs.ModeNamedPipe != 0:
		return fsbridge.TypeFIFO
	case m&fs.ModeSocket != 0:
		return fsbridge.TypeSocket
	case m&fs.ModeCharDevice != 0:
		return fsbridge.TypeChar
	case m&fs.ModeDevice != 0:
		return fsbridge.TypeBlock
	case m.IsRegular():
		return fsbridge.TypeRegular
	}
	return fsbridge.TypeUnknown
}

func modeOf(m fs.FileMode) fsbridge.Mode {
	out := fsbridge.Mode(m.Perm())
	if m&fs.ModeSetuid != 0 {
		out |= fsbridge.ModeSetUID
	}
	if m&fs.ModeSetgid != 0 {
		out |= fsbridge.ModeSetGID
	}
	if m&fs.ModeSticky != 0 {
		out |= fsbridge.ModeSticky
	}
	return out
}

// fileMode is the reverse of modeOf.
func fileMode(m fsbridge.Mode) fs.FileMode {
	return fsbridge.FileInfo{Type: fsbridge.TypeRegular, Mode: m}.FSMode()
}

// baseName is the last element of a path as it was asked for.
func baseName(p string) string { return path.Base(strings.TrimRight(p, "/")) }
