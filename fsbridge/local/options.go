package local

import (
	"log/slog"

	"github.com/workberth/workberth/fsbridge"
)

// DefaultEntryLimit bounds ReadDirectory where Options say nothing, in entries.
const DefaultEntryLimit = 1_000_000

// MountError reports a mount that cannot be served. Unwrap gives the reason: fs.ErrNotExist for a
// missing directory, syscall.ENOTDIR for a file in its place, fs.ErrPermission, or
// fsbridge.ErrInvalid for a malformed table.
type MountError struct {
	Mount fsbridge.Mount
	Err   error
}

// Error names the mount and the reason.
func (e *MountError) Error() string {
	return "local bridge: " + string(e.Mount.Kind) + " mount " + fsbridge.DisplayPath(e.Mount.Path) + ": " + e.Err.Error()
}

// Unwrap returns the reason.
func (e *MountError) Unwrap() error { return e.Err }

// Options describe a bridge.
type Options struct {
	// Mounts are the directories to serve. Their paths must exist in this process's view; any
	// spelling of an absolute path without ".." is accepted. HostPath is not looked at.
	Mounts fsbridge.MountTable
	// ReadLimit bounds ReadFile, ReadFileWithSource and the n of ReadRange, in bytes; zero means
	// fsbridge.DefaultReadLimit.
	ReadLimit int64
	// EntryLimit bounds ReadDirectory; zero means DefaultEntryLimit. StreamDirectory and Walk have
	// no such need.
	EntryLimit int
	// Umask is taken off the mode of new files and directories; nil means the umask of the process.
	Umask *fsbridge.Mode
	// TempTag marks temporary files: 16 lower-case hexadecimal digits, random when empty. Keep it
	// where a successor can find it if temporary files of a crash are to be swept. Two live bridges
	// must not share a tag.
	TempTag string
	// Assert is the guard; nil means none. Keeps FSB-10.
	Assert fsbridge.AssertFunc
	// Logger gets what a person may want to know of the bridge; nil discards it.
	Logger *slog.Logger
}
