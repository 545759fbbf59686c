package sandbox

import "github.com/workberth/workberth/internal/guest/proc"

// StartReason classifies a [StartError].
type StartReason = proc.StartReason

// Why a command could not be started.
const (
	// StartNoCommand: nothing of that name on PATH, or at that path.
	StartNoCommand = proc.NoCommand
	// StartNotExecutable: a file without execute permission, a directory, a bad format.
	StartNotExecutable = proc.NotExecutable
	// StartNoDirectory: the working directory does not exist.
	StartNoDirectory = proc.NoDirectory
	// StartNotDirectory: the working directory is something else, or closed to us.
	StartNotDirectory = proc.NotDirectory
	// StartOutsideDir: the working directory leaves the permitted mounts.
	StartOutsideDir = proc.OutsideDir
	// StartLimitReached: no more processes, descriptors or memory.
	StartLimitReached = proc.LimitReached
	// StartBadSpec: the command itself is malformed.
	StartBadSpec = proc.BadSpec
	// StartInternal: the backend's own machinery failed.
	StartInternal = proc.Internal
)
