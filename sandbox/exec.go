package sandbox

import (
	"context"
	"io"
	"time"
)

// Env is an environment by name. Values are exact bytes without NUL.
type Env map[string]string

// Command is what to run in a sandbox.
type Command struct {
	// Argv is the program and its arguments; a name without slash is looked up
	// on the PATH of the environment, inside the sandbox.
	Argv []string
	// Dir is the working directory inside, absolute or relative to the
	// workspace; empty means Config.Workdir. It must exist: a command never runs
	// anywhere else.
	Dir string
	// TTY runs the command on a terminal of this size.
	TTY *TTYSize
	// Stdin is false to give the command an empty standard input.
	Stdin bool
	// KeepDescendants leaves processes running that outlive the command.
	KeepDescendants bool
	// Grace is the time between SIGTERM and SIGKILL; zero means 2 s.
	Grace time.Duration
}

// TTYSize is the size of a terminal in characters.
type TTYSize struct {
	Rows uint16 `json:"rows"`
	Cols uint16 `json:"cols"`
}

// IO are the streams of a command: exact bytes, in order. A writer that blocks
// holds the command up. A nil Stdin is empty; nil writers discard. A Stdin that
// fails, other than with io.EOF, ends the command: half an input must not pass for
// a whole one.
type IO struct {
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
}

// Token is what a backend keeps for one exec spec. Its value means nothing to
// anybody else. Nil where the backend needs none.
type Token any

// Outcome tells a backend why an exec spec is finalised.
type Outcome string

// The outcomes.
const (
	OutcomeExited       Outcome = "exited"        // it ran and ended, by exit or signal
	OutcomeTerminated   Outcome = "terminated"    // it was ended by its owner
	OutcomeLaunchFailed Outcome = "launch-failed" // it never ran
	OutcomeLost         Outcome = "lost"          // nobody knows
)

// ExecSpec is a command that can be launched once.
type ExecSpec struct {
	// Command and Env are what will run.
	Command Command
	Env     Env
	// Token is finalised by the owner with Sandbox.FinalizeExec.
	Token Token
	// AssertCurrent tells, without I/O, whether the launch is still permitted.
	// The owner calls it as the last act before Spawn. Keeps SBX-04.
	AssertCurrent func() error
	// Spawn launches the command, at most once. A command that cannot be started
	// is a *StartError and leaves nothing behind.
	Spawn func(ctx context.Context, streams IO) (Process, error)
}

// Process is a launched command. Safe for concurrent use.
type Process interface {
	// Pid is the process id inside the sandbox.
	Pid() int
	// Wait returns when the command itself has ended and all it wrote has been
	// delivered. ctx ends only the waiting. A lost sandbox is a Status with
	// Unknown set, not an error.
	Wait(ctx context.Context) (ExitStatus, error)
	// Resize sets the terminal's size; no error when the command is over.
	Resize(ctx context.Context, size TTYSize) error
	// Signal sends a signal to the command's process group. It is a live
	// execution: refused with ErrRevoked after revocation.
	Signal(ctx context.Context, signal int) error
}

// ExitStatus says how a command ended.
type ExitStatus struct {
	// Code is the exit code, 128+Signal for a death by signal.
	Code   int `json:"code"`
	Signal int `json:"signal,omitempty"`
	// Unknown is true when nobody can tell; Reason says why.
	Unknown bool   `json:"unknown,omitempty"`
	Reason  string `json:"reason,omitempty"`
	// Leftover counts descendants that were running when the command ended.
	Leftover int `json:"leftover,omitempty"`
}

// Termination says what is known after an attempt to end a process tree.
type Termination string

// The outcomes of Terminate.
const (
	TerminationGone      Termination = "gone"
	TerminationSurvivors Termination = "survivors"
	TerminationUnknown   Termination = "unknown"
)

// TerminateResult is a Termination with the survivors' process ids inside.
type TerminateResult struct {
	Outcome Termination `json:"outcome"`
	Pids    []int       `json:"pids,omitempty"`
}

// Prepared is cleanup custody for one command, made before its exec spec.
type Prepared struct {
	// Env is the environment to build the exec spec with: the caller's plus the
	// marker. The caller's map is not changed.
	Env Env
	// Marker is the random value that names the tree.
	Marker string
	// Terminate ends exactly the processes of the marked tree, in the runtime it
	// was made for and in no other: SIGTERM, grace (zero: 2 s), SIGKILL until
	// nothing is left. Idempotent, safe for concurrent use, works after
	// revocation and after finalising. A runtime that is gone counts as Gone.
	// Keeps SBX-03, SBX-09 to SBX-12.
	Terminate func(ctx context.Context, grace time.Duration) (TerminateResult, error)
	// Interrupt sends SIGINT to the command. Every call makes the ordinary
	// live-execution check; refused after revocation. Keeps SBX-13.
	Interrupt func(ctx context.Context) error

	// launched tells custody without ProcessCleaner which process it is about.
	launched func(Process)
}
