package backendtest

import (
	"log/slog"
	"testing"

	"github.com/workberth/workberth/fsbridge/bridgetest"
	"github.com/workberth/workberth/sandbox"
)

// Target is a backend under test.
type Target struct {
	// Name says which implementation this is, in the report and in its file name.
	Name string
	// New makes a backend whose state lies below Options.StateDir. Where the machine lacks
	// what it needs, it calls t.Skip with the reason. It may be called several times for one
	// state directory, also from several processes at once: that is how the suite plays other
	// owners. Anything it makes beside sandboxes must end with t.
	New func(t testing.TB, o Options) sandbox.Backend
	// Adapt changes a spec of the suite before it is used: sets an image, a network name. Nil
	// changes nothing. It must give the same result for the same spec.
	Adapt func(t testing.TB, spec *sandbox.Spec)
	// Program makes the suite's program, a static executable of this machine at host, available
	// to sandboxes of the spec and returns its path inside. Nil means: where commands run with
	// the user's own rights, the program itself; otherwise a read-only bind.
	Program func(t testing.TB, host string, spec *sandbox.Spec) string
	// Remote says that sandboxes are on another machine as far as the backend knows: no link of a
	// workspace's path is followed before it is named, and what runs inside descends from no
	// process of the backend's.
	Remote bool
	// Sandboxes is the number of sandboxes at once; zero means 64.
	Sandboxes int
	// Bridge adapts the environment for package bridgetest that the suite made: its Sever, its
	// Out. Nil changes nothing.
	Bridge func(t testing.TB, o bridgetest.Options, env *bridgetest.Environment)
	// Waive maps the name of a check ("trees/regicide"), or of a check of package bridgetest
	// behind "bridge/", to the documented reason why this target is known not to pass it. The
	// check is skipped with that reason and the report says so. A name that no check has is
	// an error.
	Waive map[string]string
}

// Options is what a backend is made with.
type Options struct {
	// StateDir is a private directory; it may not exist yet. Two backends with the same
	// one share their registry.
	StateDir string
	// Logger gets the backend's log. It is never nil; the suite looks for secrets in it.
	Logger *slog.Logger
}
