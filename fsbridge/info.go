package fsbridge

import (
	"io/fs"
	"time"
)

// Mode is a Unix permission: the lower twelve bits as chmod(2) takes them.
type Mode uint32

// The bits of a Mode above the nine permission bits.
const (
	ModeSetUID Mode = 0o4000
	ModeSetGID Mode = 0o2000
	ModeSticky Mode = 0o1000
	ModePerm   Mode = 0o0777
	// ModeAll has every bit a Mode can have.
	ModeAll Mode = 0o7777
)

// FileType is the type of a file.
type FileType string

// The file types.
const (
	TypeRegular FileType = "file"
	TypeDir     FileType = "dir"
	TypeSymlink FileType = "symlink"
	TypeFIFO    FileType = "fifo"
	TypeSocket  FileType = "socket"
	TypeChar    FileType = "char"
	TypeBlock   FileType = "block"
	TypeUnknown FileType = "unknown"
)

// FileInfo describes a file as the environment's kernel reports it.
type FileInfo struct {
	// Name is the last element of the path asked for, as bytes.
	Name    string
	Type    FileType
	Mode    Mode
	Size    int64 // bytes
	ModTime time.Time
	UID     uint32
	GID     uint32
	Nlink   uint64
	Dev     uint64
	Inode   uint64
}

// IsDir reports whether the file is a directory.
func (i FileInfo) IsDir() bool { return i.Type == TypeDir }

// IsRegular reports whether the file is a regular file.
func (i FileInfo) IsRegular() bool { return i.Type == TypeRegular }

// FSMode converts to the standard library's mode.
func (i FileInfo) FSMode() fs.FileMode {
	m := fs.FileMode(i.Mode & ModePerm)
	if i.Mode&ModeSetUID != 0 {
		m |= fs.ModeSetuid
	}
	if i.Mode&ModeSetGID != 0 {
		m |= fs.ModeSetgid
	}
	if i.Mode&ModeSticky != 0 {
		m |= fs.ModeSticky
	}
	switch i.Type {
	case TypeDir:
		m |= fs.ModeDir
	case TypeSymlink:
		m |= fs.ModeSymlink
	case TypeFIFO:
		m |= fs.ModeNamedPipe
	case TypeSocket:
		m |= fs.ModeSocket
	case TypeChar:
		m |= fs.ModeDevice | fs.ModeCharDevice
	case TypeBlock:
		m |= fs.ModeDevice
	case TypeRegular:
	default:
		m |= fs.ModeIrregular
	}
	return m
}

// DirEntry is one entry of a directory; a final link is described itself.
type DirEntry struct {
	// Name is the entry's name as bytes, without separators.
	Name string
	// Info describes the entry. Info.Name equals Name.
	Info FileInfo
	// LinkTarget is the text of a symbolic link.
	LinkTarget string
}
