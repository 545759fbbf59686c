package bridgetest

import (
	"context"
	"testing"

	"github.com/workberth/workberth/fsbridge"
)

// Target is a bridge implementation under test: what it claims, and how an environment with one
// is made.
type Target struct {
	// Name says which implementation this is, in the report and in its file name.
	Name string
	// New makes a fresh environment with an empty workspace, as o asks, and registers its end
	// with t.Cleanup. Where it cannot honour an option it calls t.Skip with the reason. It is
	// called once per check, one after the other, never concurrently. Anything shared by
	// several environments must exist before Run is called, or it counts as a leak.
	New func(t testing.TB, o Options) *Environment
	// Declared is exactly what the bridge must declare, in any order. Nil means that there is
	// no expectation; an empty list means core operations only.
	Declared []fsbridge.Capability
	// MaxFile is the largest file the environment can hold, in bytes; zero means that 256 MiB
	// are possible.
	MaxFile int64
	// AttackOps is the number of operations in each racing attack; zero means 3,000. The
	// environment variable BERTH_ATTACK_OPS overrides both.
	AttackOps int
	// Waive maps the name of a check ("race/swapped-parent") to the documented reason why this
	// target is known not to pass it. The check is skipped with that reason and the report says
	// so. A name that no check has is an error.
	Waive map[string]string
	// IsTemporary recognises the base name of a temporary file of this bridge; none may be left
	// after a check. Nil means: the name begins with ".berth-".
	IsTemporary func(name string) bool
}

// Options is what a check asks of a new environment. The zero value is the plain environment: a
// writable workspace, no guard, the bridge's default limit, umask 022.
type Options struct {
	// ReadOnly makes the workspace mount read-only.
	ReadOnly bool
	// Guard is the assertion the bridge is made with; nil means none.
	Guard fsbridge.AssertFunc
	// ReadLimit is the bridge's read limit in bytes; zero means the default.
	ReadLimit int64
	// DiskSize puts the workspace on a file system of so many bytes of its own; zero means no
	// such bound.
	DiskSize int64
	// Second asks for another file system at the directory "m" of the workspace.
	Second bool
	// Bind asks for one more mount of kind MountBind, outside the workspace.
	Bind bool
	// Umask is the file mode creation mask of the process that serves the bridge. Run sets it
	// on the test process itself before New is called, so only targets whose files are made by
	// a process that does not inherit it have to look.
	Umask fsbridge.Mode
}

// Environment is one place with a bridge to it, as made by Target.New. Paths in it are absolute
// paths as the environment sees them.
type Environment struct {
	// Bridge is the bridge under test.
	Bridge fsbridge.Bridge
	// Oracle makes and looks at files without the bridge.
	Oracle Oracle
	// Workspace is the root of the workspace.
	Workspace string
	// Out is a directory outside every mount of the bridge, best a sibling of Workspace, where
	// the oracle can make files. Attacks try to reach it.
	Out string
	// Second is the other file system inside the workspace, when Options.Second was asked.
	Second string
	// Bind is the further mount, when Options.Bind was asked.
	Bind string

	// Attack runs an attacker inside the environment that performs swaps as fast as it can, by
	// [SwapLoop], until ctx is done, and returns the number of exchanges. Nil means that the
	// attack runs on this machine, on the paths a [HostPather] oracle tells.
	Attack func(ctx context.Context, swaps []Swap) (int64, error)
	// Revoke ends the authority to execute in the environment, as its owner would. Nil means
	// that this target has no such notion.
	Revoke func()
	// Sever cuts the transport between bridge and environment at once, and for good. Nil means
	// that there is no transport.
	Sever func()
}

// Swap is a pair of paths that an attacker exchanges atomically, again and again.
type Swap struct{ A, B string }
