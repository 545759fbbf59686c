// Package bridgetest is the conformance and attack suite for implementations of [fsbridge.Bridge].
//
// A bridge plugs in with a [Target] of about twenty lines and is then held to everything package
// fsbridge promises: the truth of every operation, byte exactness, atomic writes, preconditions,
// limits, guards, declared capabilities, and one table of attacks run against every operation,
// with a racing attacker at the end.
//
//	func TestConformance(t *testing.T) {
//		bridgetest.Run(t, bridgetest.Target{
//			Name:     "local",
//			Declared: fsbridge.AllCapabilities(),
//			New: func(t testing.TB, o bridgetest.Options) *bridgetest.Environment {
//				dirs := bridgetest.NewHostDirs(t, o)
//				b := mybridge.New(dirs.Mounts(o), o.ReadLimit, o.Guard)
//				return dirs.Environment(b)
//			},
//		})
//	}
//
// # How the suite sees the environment
//
// What a bridge says is never checked against the same bridge. Every environment brings an
// [Oracle], a second way to make and look at its files: the host's own file system where the
// workspace is a host directory ([HostOracle]), or six methods over whatever a remote target
// offers. Beside the workspace lies OUT, a directory outside every mount. It holds a random
// secret; after every single check its content, modes, times and inodes must be unchanged, the
// secret must not have crossed the bridge, and no temporary file may be left in a mount.
//
// A bridge that fails does no harm to the machine: every change that the attacks ask for lies in OUT
// or in the environment's own directories; what lies elsewhere is only asked to be read.
//
// # Skips
//
// A check that needs a capability the bridge does not declare is skipped with the capability's
// name; one that needs something the environment cannot offer (a full disk, a device node) is
// skipped with that reason. A known weakness is written down in [Target.Waive] with its reason.
// Nothing is skipped silently: [Report] lists all three, and is written as JSON when the
// environment variable BERTH_CAPABILITY_REPORT names a directory.
//
// The suite runs on Unix; attackers, full disks and second file systems need Linux, and the last two
// the right to mount. Where BERTH_REQUIRE_ENGINES=1 is set, lacking that right is a failure.
//
// The package must not know any implementation; it imports the vocabulary only.
package bridgetest
