// Package proc is the vocabulary of commands inside an environment: what to run,
// how it ended, why it could not start. It knows neither the wire nor how a
// command is run.
package proc

import (
	"context"
	"io"
	"time"
)

// MarkerVar is the environment variable that carries the process marker.
const MarkerVar = "BERTH_MARK"

// DefaultGrace is the time between SIGTERM and SIGKILL where none is given.
const DefaultGrace = 2 * time.Second

// Spec says what to run. All strings are bytes without NUL.
type Spec struct {
	// Argv is the program and its arguments. Argv[0] without a slash is looked
	// up in the PATH of Env.
	Argv []string
	// Env is the complete environment, "KEY=VALUE". Later keys win.
	Env []string
	// Dir is the working directory: absolute, or relative to the workspace;
	// empty means the workspace. It must be a directory in the environment.
	Dir string
	// TTY runs the command on a new pseudo-terminal of this size; standard error
	// is then part of standard output.
	TTY *Size
	// Stdin is false to give the command an empty standard input.
	Stdin bool
	// Limits are set on the command and inherited by what it starts.
	Limits Limits
	// Marker is the process marker, 32 hexadecimal digits. It is put into the
	// environment as MarkerVar and names the tree for Terminate.
	Marker string
	// KeepDescendants leaves processes running that outlive the direct child.
	// Otherwise they are terminated once the direct child has ended.
	KeepDescendants bool
	// Grace is the time between SIGTERM and SIGKILL; zero means DefaultGrace.
	Grace time.Duration
}

// Size is the size of a terminal in characters.
type Size struct{ Rows, Cols uint16 }

// Limits are resource limits; zero leaves a limit as it is.
type Limits struct {
	OpenFiles     uint64 // file descriptors per process
	FileSize      uint64 // bytes
	AddressSpace  uint64 // bytes of virtual memory per process
	Processes     uint64 // RLIMIT_NPROC, per user id
	CPUSeconds    uint64
	CoreFileBytes uint64 // 0 means no core files
}

// IO are the streams of a command. Output is written in order; a writer that
// blocks holds the command up. A Stdin that fails (other than with io.EOF) ends
// the command. Stderr is not used with a terminal.
type IO struct {
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
}

// Status says how a command ended. Exactly one of the cases holds: it exited
// with Code, it was killed by Signal (then Code is 128+Signal), or Unknown.
type Status struct {
	Code   int
	Signal int
	// Unknown is true when nobody can tell: its reaper or the environment was
	// lost. Reason says what happened.
	Unknown bool
	Reason  string
	// Leftover is the number of descendants that were still running when the
	// direct child ended.
	Leftover int
}

// Termination says what is known after an attempt to end a process tree.
type Termination string

// The outcomes of Terminate.
const (
	// Gone: it is proven that nothing of the tree is left.
	Gone Termination = "gone"
	// Survivors: processes are left; they are listed.
	Survivors Termination = "survivors"
	// Unknown: the environment could not be asked.
	Unknown Termination = "unknown"
)

// TerminateResult is a Termination with the processes that are left, by their
// ids inside the environment.
type TerminateResult struct {
	Outcome Termination
	Pids    []int
	// Killed counts the processes that were ended by this call, as far as seen.
	Killed int
}

// Process is a started command. Its methods are safe for concurrent use.
type Process interface {
	// Pid is the process id inside the environment.
	Pid() int
	// Wait returns when the direct child has ended and everything it wrote has
	// been delivered to IO. A descendant that holds the output open does not
	// delay it. ctx ends only the waiting.
	Wait(ctx context.Context) (Status, error)
	// Signal sends a signal to the direct child's process group.
	Signal(ctx context.Context, signal int) error
	// Resize sets the terminal's size. It is no error when the command is over.
	Resize(ctx context.Context, size Size) error
	// Terminate ends the whole tree: SIGTERM, grace, SIGKILL until nothing is
	// left. It may be called at any time, repeatedly and concurrently.
	Terminate(ctx context.Context, grace time.Duration) (TerminateResult, error)
}

// Runner starts commands in an environment.
type Runner interface {
	// Start starts the command. A command that cannot be started is a
	// *StartError and leaves nothing behind. ctx bounds the start only.
	Start(ctx context.Context, spec Spec, streams IO) (Process, error)
	// Terminate ends the tree that carries the marker, whether or not its
	// reaper still lives. No tree with that marker is Gone.
	Terminate(ctx context.Context, marker string, grace time.Duration) (TerminateResult, error)
}
