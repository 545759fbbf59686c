//go:build linux

package reaper

// The private roles of the helper's program, as its first argument.
const (
	roleReap  = "reap"  // a reaper: reap MARKER TAG
	roleLimit = "limit" // sets limits and becomes the command
)

// programName is what the roles are called in a process list.
const programName = "berth-guest"

// selfExe is the running program, whatever has become of its file.
const selfExe = "/proc/self/exe"

// roleEnv is the environment of the private roles. What they need to know travels
// otherwise; one thread running Go code at a time is enough for them.
func roleEnv() []string { return []string{"GOMAXPROCS=1"} }

// IsRole reports whether args, a program's arguments without its name, ask for one
// of the package's private roles. A program that locks its main goroutine to its
// thread, for [Orphans], does so only otherwise: a reaper needs no such thing and
// would pay for it with a thread.
func IsRole(args []string) bool {
	return len(args) > 0 && (args[0] == roleReap || args[0] == roleLimit)
}

// Main plays one of the package's private roles if args, the program's arguments
// without its name, ask for it. Every program that has a [Runner] calls it first
// thing and, if played is true, exits with code. The roles are of no use to anyone
// else: they expect descriptors that only a Runner passes.
func Main(args []string) (code int, played bool) {
	if !IsRole(args) {
		return 0, false
	}
	if args[0] == roleReap {
		return reapMain(), true
	}
	return limitMain(), true
}
