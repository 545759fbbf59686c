package seccomp

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Action is what the kernel does with a call: a SECCOMP_RET value, for errno with
// the error number in its lower 16 bits.
type Action uint32

// The actions a policy may have.
const (
	Allow       Action = unix.SECCOMP_RET_ALLOW
	Log         Action = unix.SECCOMP_RET_LOG
	Trap        Action = unix.SECCOMP_RET_TRAP
	KillThread  Action = unix.SECCOMP_RET_KILL_THREAD
	KillProcess Action = unix.SECCOMP_RET_KILL_PROCESS
)

// Errno is the action that makes a call fail with e.
func Errno(e unix.Errno) Action { return unix.SECCOMP_RET_ERRNO | Action(e)&unix.SECCOMP_RET_DATA }

// permits reports whether the call takes place.
func (a Action) permits() bool { return a == Allow || a == Log }

// String names the action: "allow", "errno EPERM".
func (a Action) String() string {
	switch a {
	case Allow:
		return "allow"
	case Log:
		return "log"
	case Trap:
		return "trap"
	case KillThread:
		return "kill thread"
	case KillProcess:
		return "kill process"
	}
	if a&unix.SECCOMP_RET_ACTION_FULL == unix.SECCOMP_RET_ERRNO {
		e := unix.Errno(a & unix.SECCOMP_RET_DATA)
		if name := unix.ErrnoName(e); name != "" {
			return "errno " + name
		}
		return fmt.Sprintf("errno %d", uint32(e))
	}
	return fmt.Sprintf("action %#x", uint32(a))
}

// Op compares an argument with a value; both are unsigned 64-bit numbers.
type Op uint8

// The comparisons. MaskedEqual holds when argument AND Mask equals Value.
const (
	Equal Op = iota
	NotEqual
	Less
	LessOrEqual
	Greater
	GreaterOrEqual
	MaskedEqual
)

// Cond is a condition on one argument of a call.
type Cond struct {
	// Arg is the index of the argument, 0 to 5.
	Arg   int
	Op    Op
	Value uint64
	// Mask belongs to MaskedEqual.
	Mask uint64
}

// holds evaluates the condition; it defines what the compiled program must do.
func (c Cond) holds(arg uint64) bool {
	switch c.Op {
	case Equal:
		return arg == c.Value
	case NotEqual:
		return arg != c.Value
	case Less:
		return arg < c.Value
	case LessOrEqual:
		return arg <= c.Value
	case Greater:
		return arg > c.Value
	case GreaterOrEqual:
		return arg >= c.Value
	case MaskedEqual:
		return arg&c.Mask == c.Value
	}
	return false
}

// Rule decides about some calls.
type Rule struct {
	// Names of the system calls.
	Names  []string
	Action Action
	// Conds must all hold.
	Conds []Cond
	// Only and Unless say when the rule is part of the policy at all.
	Only, Unless When
	// line is where the rule stands in a file, 0 for one that has none.
	line int
}

// When is a condition on the machine. In Rule.Only everything named must hold
// (of Arches, one); in Rule.Unless anything that holds leaves the rule out. The
// zero value leaves everything in.
type When struct {
	// Caps are capabilities: "CAP_SYS_ADMIN".
	Caps []string
	// Arches are architectures in Go's spelling.
	Arches []string
	// MinKernel is the oldest kernel.
	MinKernel Version
}

// Policy says which system calls a process may make.
type Policy struct {
	// Default is for calls that no rule matches.
	Default Action
	Rules   []Rule
}

// Facts are what a policy's rules may depend on.
type Facts struct {
	// Arch is the architecture in Go's spelling: "amd64" or "arm64".
	Arch string
	// Kernel is the kernel's version.
	Kernel Version
	// Caps are the capabilities the process will have.
	Caps []string
}

// Version is the version of a kernel. The zero Version is before all others.
type Version struct{ Major, Minor int }

// ParseVersion reads the beginning of "4.8" or "6.1.0-13-amd64".
func ParseVersion(s string) (Version, error) {
	var v Version
	if n, err := fmt.Sscanf(s, "%d.%d", &v.Major, &v.Minor); n != 2 {
		return Version{}, fmt.Errorf("%q is not a kernel version such as 4.8: %w", s, err)
	}
	if v.Major < 0 || v.Minor < 0 {
		return Version{}, fmt.Errorf("%q is not a kernel version such as 4.8", s)
	}
	return v, nil
}

// Before reports whether v is older than w.
func (v Version) Before(w Version) bool {
	return v.Major < w.Major || v.Major == w.Major && v.Minor < w.Minor
}
