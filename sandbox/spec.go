package sandbox

// Scope says who shares a sandbox.
type Scope string

// The scopes.
const (
	// ScopeSession: one sandbox per session key and workspace.
	ScopeSession Scope = "session"
	// ScopeAgent: one per agent id and workspace.
	ScopeAgent Scope = "agent"
	// ScopeShared: one for everybody with the same configuration.
	ScopeShared Scope = "shared"
)

// Access says how the workspace appears inside.
type Access string

// The accesses.
const (
	// AccessNone: the workspace does not appear; /workspace is a private scratch
	// directory that is deleted with the sandbox.
	AccessNone Access = "none"
	// AccessReadOnly: the workspace appears read-only at /agent.
	AccessReadOnly Access = "ro"
	// AccessReadWrite: the workspace appears at /workspace.
	AccessReadWrite Access = "rw"
)

// Where the workspace appears inside a confined sandbox.
const (
	WorkspacePath         = "/workspace"
	ReadOnlyWorkspacePath = "/agent"
)

// Spec asks for a sandbox.
type Spec struct {
	Scope Scope `json:"scope"`
	// Session is the session key; needed for ScopeSession.
	Session string `json:"session,omitempty"`
	// Agent is the agent id; needed for ScopeAgent.
	Agent string `json:"agent,omitempty"`
	// Workspace is a directory on this machine, absolute. Backends resolve links
	// in it once.
	Workspace string `json:"workspace"`
	Config    Config `json:"config"`
}

// Config is the effective configuration of a sandbox. Its hash is part of the
// identity: a changed configuration makes a new sandbox. Keys in configuration
// files have the names of the json tags.
type Config struct {
	// Workdir is the default working directory inside; empty means the workspace.
	Workdir string `json:"workdir,omitempty"`
	Access  Access `json:"access"`
	// ReadOnlyRoot makes everything outside workspace, binds and tmpfs read-only.
	ReadOnlyRoot bool    `json:"readOnlyRoot"`
	Tmpfs        []Tmpfs `json:"tmpfs,omitempty"`
	// Network is "none", "host" (dangerous) or a backend's network.
	Network string `json:"network"`
	// Env is added to the environment of every command.
	Env map[string]string `json:"env,omitempty"`
	// SetupCommand runs once, by "/bin/sh -c", when the sandbox is created; a
	// failure removes the sandbox again.
	SetupCommand string `json:"setupCommand,omitempty"`
	Limits       Limits `json:"limits"`
	Binds        []Bind `json:"binds,omitempty"`
	// SeccompProfile is "default", a file in the format of Docker profiles, or
	// "unconfined" (dangerous).
	SeccompProfile string `json:"seccompProfile"`
	// User is "" (owner of the workspace), or "UID:GID" where a backend can.
	User string `json:"user,omitempty"`
	// Engine is the address of the container engine, as unix://PATH; empty means the one
	// that the engine's own program would use.
	Engine string `json:"engine,omitempty"`
	// Image, Privileged, PidMode, CapAdd belong to container backends, too.
	Image      string   `json:"image,omitempty"`
	Privileged bool     `json:"privileged,omitempty"`
	PidMode    string   `json:"pidMode,omitempty"`
	CapAdd     []string `json:"capAdd,omitempty"`
	// SSH is the host of the ssh backend: USER@HOST:PORT, or a Host of the SSH configuration.
	SSH string `json:"ssh,omitempty"`
	// SSHConfig is a file that is read in place of the user's SSH configuration.
	SSHConfig string `json:"sshConfig,omitempty"`
	// Seed is a directory of this machine, absolute, that a workspace elsewhere is filled from
	// when it does not exist. It is no part of the identity.
	Seed string `json:"seed,omitempty"`
	// GPUs is "all", or how many graphics processors a container gets; empty means none.
	GPUs  string `json:"gpus,omitempty"`
	Prune Prune  `json:"prune"`
	// AllowDangerous names the dangerous settings that are permitted, by the
	// field of the finding ("network", "binds", ...). Each use is logged.
	AllowDangerous []string `json:"allowDangerous,omitempty"`
}

// Tmpfs is a scratch mount inside.
type Tmpfs struct {
	Path string `json:"path"`
	// SizeBytes limits it; zero means 64 MiB.
	SizeBytes int64 `json:"sizeBytes,omitempty"`
}

// Bind makes a directory or file of this machine available inside.
type Bind struct {
	Source   string `json:"source"`
	Target   string `json:"target"`
	ReadOnly bool   `json:"readOnly"`
}

// Limits of a sandbox; zero means no limit of ours.
type Limits struct {
	// Pids bounds the processes of the sandbox.
	Pids int64 `json:"pids,omitempty"`
	// MemoryBytes bounds the memory of the sandbox (with cgroups) or of each
	// process (address space, without).
	MemoryBytes int64 `json:"memoryBytes,omitempty"`
	// CPUs bounds the processor time, 1.5 means one and a half processors.
	CPUs float64 `json:"cpus,omitempty"`
	// OpenFiles bounds the descriptors per process.
	OpenFiles int64 `json:"openFiles,omitempty"`
	// FileSizeBytes bounds each file written by a command.
	FileSizeBytes int64 `json:"fileSizeBytes,omitempty"`
}

// Prune says when an unused sandbox may be removed; zero means never.
type Prune struct {
	IdleHours  float64 `json:"idleHours,omitempty"`
	MaxAgeDays float64 `json:"maxAgeDays,omitempty"`
}
