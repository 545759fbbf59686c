package bridgetest

import (
	"io"
	"time"

	"github.com/workberth/workberth/fsbridge"
)

// Oracle makes and looks at the files of an environment without the bridge under test. Paths are
// absolute paths in the environment; those of the workspace and of OUT must work, others may.
// What an oracle cannot do is an error that matches [errors.ErrUnsupported]; the check that needs
// it is then skipped. Other errors fail the check.
//
// An oracle may also be a [HostPather].
type Oracle interface {
	// Make creates what n describes at path, with missing parents (mode 0755). It ignores the
	// umask. An existing regular file gets the new content and mode; other existing files
	// are an error, except that a directory is accepted for a directory.
	Make(path string, n Node) error
	// Look describes path itself; a final link is not followed. A missing path is an error that
	// matches fs.ErrNotExist.
	Look(path string) (Node, error)
	// Names lists the directory at path, in any order.
	Names(path string) ([]string, error)
	// Open opens the regular file at path.
	Open(path string) (io.ReadCloser, error)
	// Rename renames a file atomically, replacing an existing one.
	Rename(oldPath, newPath string) error
	// Remove removes path and everything below it. A missing path is a success.
	Remove(path string) error
}

// HostPather is an oracle of an environment whose files lie on this machine.
type HostPather interface {
	// HostPath gives the host's path for a path of the environment.
	HostPath(path string) (string, bool)
}

// Node describes a file, to be made or as found.
type Node struct {
	Type fsbridge.FileType
	// Mode is the permission. Make takes zero as 0644, for a directory 0755.
	Mode fsbridge.Mode
	// Data is the content of a regular file to be made.
	Data []byte
	// Size is the size in bytes as found. When a file is made and Size is larger than Data, the
	// file is extended to it without taking space.
	Size int64
	// Target is the text of a symbolic link.
	Target string
	// HardLink asks Make for one more name of this existing file; all else is ignored.
	HardLink string
	// ModTime is the time of modification as found. Make sets it when it is not zero.
	ModTime time.Time
	// UID and GID are the owner as found. Make sets them when one of them is not zero.
	UID, GID uint32
	// Inode and Nlink are as found; zero where the oracle cannot tell.
	Inode, Nlink uint64
}
