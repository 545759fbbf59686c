// Package backendtest is the conformance and attack suite for implementations of
// [sandbox.Backend].
//
// A backend plugs in with a [Target] of a few lines and is then held to everything package
// sandbox promises: the order of a launch and the accounting of its tokens, exact streams and
// true exit codes, the end of whole process trees however they hide, revocation, the walls, the
// life cycle, the end of the owner by SIGKILL, and through package bridgetest its files.
//
//	func TestConformance(t *testing.T) {
//		backendtest.Run(t, backendtest.Target{
//			Name: "mine",
//			New: func(t testing.TB, o backendtest.Options) sandbox.Backend {
//				b, err := mine.New(mine.Options{StateDir: o.StateDir, Logger: o.Logger})
//				if err != nil {
//					t.Fatal(err)
//				}
//				return b
//			},
//		})
//	}
//
// # How the suite knows
//
// What runs inside is a static program of the suite's own (testprog, built once per run), so that
// nothing is needed of an image. Whether a process is dead is never asked of the backend: each
// process of a tree holds a lock on a file of the workspace, and the kernel gives a lock back
// only when its holder has ended, whatever it did to hide. That nothing is left on this machine
// after a check is looked up in the process table by a random word in every argument list.
//
// Every sandbox of the suite is wrapped by a recorder that proves the order of the calls of a
// launch and that each token is finalised exactly once.
//
// # Skips
//
// A check that needs a feature the backend does not declare ([sandbox.Features]) is skipped with
// the feature's name. A known weakness is written down in [Target.Waive] with its reason. Nothing
// is skipped silently: [Report] lists both, and is written as JSON when the environment variable
// BERTH_CAPABILITY_REPORT names a directory.
//
// # Knobs
//
// With -short, rounds and crowds are smaller. BERTH_TERMINATE_TRIALS is the number of hostile
// trees of 100 processes to terminate (default 10), BERTH_SANDBOXES that of sandboxes at once.
//
// The package must not know any implementation.
package backendtest
