package sandbox

import (
	"context"
	"time"

	"github.com/workberth/workberth/fsbridge"
)

// ID names a sandbox: "<backend>-<16 hexadecimal digits>", derived from its
// identity (see [Identity]).
type ID string

// State is the state of a sandbox.
type State string

// The states.
const (
	// StateRunning: commands can start at once.
	StateRunning State = "running"
	// StateStopped: it exists without processes; Ensure starts it again.
	StateStopped State = "stopped"
	// StatePaused: its processes are frozen by somebody; it is reported, never
	// resumed behind that person's back.
	StatePaused State = "paused"
	// StateDead: it ended by itself; Info.Detail says how.
	StateDead State = "dead"
)

// Backend makes and manages sandboxes of one kind. A backend is chosen by name;
// none ever falls back to another or to the host. Methods are safe for
// concurrent use, also from several processes that share the registry.
type Backend interface {
	// Name is the word in --backend and the prefix of every ID.
	Name() string
	// Features declares what this backend can do on this machine in principle.
	Features() Features
	// Check looks whether the backend works here and now, without creating
	// anything that stays.
	Check(ctx context.Context) Diagnosis
	// Ensure returns a live handle on the sandbox that spec identifies: the
	// running one, or the stopped one started again, or a new one. A dangerous
	// or impossible setting is refused before anything is created.
	Ensure(ctx context.Context, spec Spec) (Sandbox, error)
	// List tells every sandbox of this backend that the registry or the engine
	// knows and that is ours.
	List(ctx context.Context) ([]Info, error)
	// Stop ends all processes of a sandbox; its files stay. A stopped or unknown
	// sandbox is no error.
	Stop(ctx context.Context, id ID) error
	// Remove stops a sandbox and deletes what belongs to it alone. The workspace
	// of the user is never touched. An unknown sandbox is no error.
	Remove(ctx context.Context, id ID) error
}

// Sandbox is a live handle on one sandbox: one generation of it, pinned. When
// the generation ends (stopped, crashed, recycled), Done is closed and every
// call fails with ErrGone; Ensure gives a new handle. Safe for concurrent use.
type Sandbox interface {
	// Info describes the sandbox as it is now.
	Info() Info
	// Bridge makes a guarded bridge over the sandbox's files; it implements
	// fsbridge.Factory. A nil guard means that only revocation is checked. Keeps
	// FSB-10, FSB-12, FSB-13.
	Bridge(ctx context.Context, assertCurrent fsbridge.AssertFunc) (fsbridge.Bridge, error)
	// BuildExecSpec checks a command against policy and turns it into something
	// that can be launched once. It refuses with ErrRevoked after Revoke. Every
	// spec it returns must be finalised. Keeps SBX-02, SBX-08.
	BuildExecSpec(ctx context.Context, cmd Command, env Env) (ExecSpec, error)
	// FinalizeExec releases what the backend kept for one exec spec, whatever
	// became of it. It kills nothing and disarms nothing. A nil token and a
	// token finalised before are no error. Keeps SBX-05.
	FinalizeExec(ctx context.Context, token Token, outcome Outcome) error
	// OpenTokens is the number of exec specs not yet finalised.
	OpenTokens() int
	// Revoke withdraws the authority to start commands and to write files,
	// for this handle and everything made from it, for good. Reading,
	// terminating and closing stay possible. reason is kept for the errors.
	Revoke(reason string)
	// Done is closed when this generation has ended; Err then says why.
	Done() <-chan struct{}
	Err() error
	// Close gives the handle back and, where this process owns the sandbox, ends
	// its processes. Files and registry entry stay.
	Close() error
}

// ProcessCleaner is the optional capability of a Sandbox to give cleanup custody
// for one command. Keeps SBX-06, SBX-07.
type ProcessCleaner interface {
	PrepareProcessCleanup(ctx context.Context, env Env) (Prepared, error)
}

// ShellCleaner is how a Sandbox without ProcessCleaner ends marked processes by a
// command of its own. Such a sandbox keeps cleanup possible by its own lifecycle
// rules. Keeps SBX-14, SBX-15.
type ShellCleaner interface {
	CleanupMarked(ctx context.Context, marker string, grace time.Duration) (TerminateResult, error)
}

// Features declares what a backend can do. It feeds docs/capabilities.md and
// lets suites skip with a reason.
type Features struct {
	// Confined is false only where commands run with the user's own rights.
	Confined bool `json:"confined"`
	// Networks are the values --network may have.
	Networks []string `json:"networks"`
	// Access are the workspace accesses that can be kept.
	Access []Access `json:"access"`
	// TTY: interactive terminals with resize.
	TTY bool `json:"tty"`
	// ProcessCleanup: the sandbox implements ProcessCleaner.
	ProcessCleanup bool `json:"processCleanup"`
	// ProcessNamespace: the sandbox has its own process ids, which end with it.
	ProcessNamespace bool `json:"processNamespace"`
	// Seccomp, ReadOnlyRoot, Tmpfs, Binds: the settings can be kept.
	Seccomp      bool `json:"seccomp"`
	ReadOnlyRoot bool `json:"readOnlyRoot"`
	Tmpfs        bool `json:"tmpfs"`
	Binds        bool `json:"binds"`
	// Limits that can be kept on this machine.
	PidsLimit   bool `json:"pidsLimit"`
	MemoryLimit bool `json:"memoryLimit"`
	CPULimit    bool `json:"cpuLimit"`
	// Image: the sandbox runs an image of the user's choice.
	Image bool `json:"image"`
}

// Diagnosis is what a backend's Check found.
type Diagnosis struct {
	Backend string  `json:"backend"`
	Usable  bool    `json:"usable"`
	Version string  `json:"version,omitempty"`
	Checks  []Check `json:"checks"`
}

// Check is one thing looked at. Remedy is the command or setting that mends it.
type Check struct {
	Name   string      `json:"name"`
	Result CheckResult `json:"result"`
	Detail string      `json:"detail,omitempty"`
	Remedy string      `json:"remedy,omitempty"`
}

// CheckResult is the outcome of a Check.
type CheckResult string

// The outcomes: a warning degrades, a failure makes the backend unusable.
const (
	CheckOK   CheckResult = "ok"
	CheckWarn CheckResult = "warn"
	CheckFail CheckResult = "fail"
)

// Info describes a sandbox.
type Info struct {
	ID      ID     `json:"id"`
	Backend string `json:"backend"`
	State   State  `json:"state"`
	// Detail explains a state that needs it: exit code and last log lines of a
	// dead sandbox, who paused it.
	Detail    string `json:"detail,omitempty"`
	Scope     Scope  `json:"scope"`
	Session   string `json:"session,omitempty"`
	Agent     string `json:"agent,omitempty"`
	Workspace string `json:"workspace"`
	// Workdir is the default working directory inside.
	Workdir    string              `json:"workdir"`
	Mounts     fsbridge.MountTable `json:"mounts"`
	Config     Config              `json:"config"`
	ConfigHash string              `json:"configHash"`
	Created    time.Time           `json:"created"`
	LastUsed   time.Time           `json:"lastUsed"`
	// Owner is the process that holds the sandbox, zero when nobody does.
	Owner ProcessRef `json:"owner"`
	// Runtime has facts of the backend: pid, container id, limits in force.
	Runtime map[string]string `json:"runtime,omitempty"`
}

// ProcessRef identifies one process for good: a reused pid has another start
// time, a reboot another boot id.
type ProcessRef struct {
	PID int `json:"pid,omitempty"`
	// StartTime is in clock ticks since boot, field 22 of /proc/PID/stat.
	StartTime uint64 `json:"startTime,omitempty"`
	BootID    string `json:"bootId,omitempty"`
}
