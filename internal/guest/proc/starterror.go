package proc

import "fmt"

// StartReason classifies why a command could not be started.
type StartReason string

// The reasons.
const (
	NoCommand     StartReason = "no-command"     // nothing of that name on PATH or at that path
	NotExecutable StartReason = "not-executable" // a file without execute permission, a directory, a bad format
	NoDirectory   StartReason = "no-directory"   // the working directory does not exist
	NotDirectory  StartReason = "not-directory"  // the working directory is something else, or closed to us
	OutsideDir    StartReason = "outside"        // the working directory leaves the permitted mounts
	LimitReached  StartReason = "limit"          // no more processes, descriptors or memory
	BadSpec       StartReason = "bad-spec"       // the specification itself is malformed
	Internal      StartReason = "internal"       // the helper failed
)

// StartError says why a command could not be started; nothing was run.
type StartError struct {
	Reason StartReason
	// What is the command or directory in question.
	What string
	// Err is the underlying error, an errno where there is one; may be nil.
	Err error
}

// Error gives one line.
func (e *StartError) Error() string {
	var s string
	switch e.Reason {
	case NoCommand:
		s = fmt.Sprintf("no such command: %q", e.What)
	case NotExecutable:
		s = fmt.Sprintf("cannot execute %q", e.What)
	case NoDirectory:
		s = fmt.Sprintf("no such working directory: %q", e.What)
	case NotDirectory:
		s = fmt.Sprintf("cannot use %q as working directory", e.What)
	case OutsideDir:
		s = fmt.Sprintf("working directory %q is outside the permitted directories", e.What)
	case LimitReached:
		s = fmt.Sprintf("cannot start %q: a limit on processes, files or memory is reached", e.What)
	case BadSpec:
		s = fmt.Sprintf("malformed command: %s", e.What)
	default:
		s = fmt.Sprintf("cannot start %q", e.What)
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the underlying error.
func (e *StartError) Unwrap() error { return e.Err }
