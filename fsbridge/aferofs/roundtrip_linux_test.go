package aferofs_test

import (
	"testing"

	"github.com/spf13/afero"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/aferofs"
	"github.com/workberth/workberth/fsbridge/bridgetest"
	"github.com/workberth/workberth/fsbridge/local"
)

// diskDeclared is what a bridge over a file system with links declares.
func diskDeclared() []fsbridge.Capability {
	return without(fsbridge.CapReadFileWithSource, fsbridge.CapStreamDirectory, fsbridge.CapWatch)
}

// TestRoundTripLocal puts the same two layers over a bridge to a directory of this machine: the
// containment of that bridge, races included, must come through.
// FSB-01 FSB-08 FSB-09 FSB-10 C001 C003 C013
func TestRoundTripLocal(t *testing.T) {
	waive := roundTripWaivers()
	waive["mode/owner-kept"] = "a file system over a bridge cannot set owners"
	waive["race/no-temporaries"] = "afero knows names only: a temporary in a directory that was exchanged is not found again"
	bridgetest.Run(t, bridgetest.Target{
		Name: "afero-roundtrip-local", Declared: diskDeclared(), AttackOps: 1000, Waive: waive,
		New: func(t testing.TB, o bridgetest.Options) *bridgetest.Environment {
			dirs := bridgetest.NewHostDirs(t, o)
			inner, err := local.New(local.Options{Mounts: dirs.Mounts(o)})
			must(t, err)
			t.Cleanup(func() { must(t, inner.Close()) })
			return dirs.Environment(again(t, inner, o, dirs.Mounts(o)))
		},
	})
}

// TestDisk holds the bridge over the operating system's files to the suite. Links that lie still
// are contained; a race is not, and is waived as the package says.
func TestDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("the round trip over a local bridge covers most of it: left out under -short")
	}
	const race = "an afero.Fs on disk can be changed between check and use"
	bridgetest.Run(t, bridgetest.Target{
		Name: "afero-disk", Declared: diskDeclared(),
		Waive: map[string]string{
			"race/swapped-parent": race, "race/swapped-file": race, "race/swapped-deep": race, "race/swapped-tree": race,
			"race/reads": race, "race/writes": race, "race/no-temporaries": race,
			"rename/cross-device-race": race,
		},
		New: func(t testing.TB, o bridgetest.Options) *bridgetest.Environment {
			dirs := bridgetest.NewHostDirs(t, o)
			m := dirs.Mounts(o)
			if dirs.Second != "" { // afero does not tell that it is another file system
				m = append(m, fsbridge.Mount{Path: dirs.Second, Kind: fsbridge.MountTmpfs})
			}
			b, err := aferofs.NewBridge(afero.NewOsFs(), aferofs.Options{
				Mounts: m, Private: true, ReadLimit: o.ReadLimit, Umask: &o.Umask, Assert: o.Guard,
			})
			must(t, err)
			return dirs.Environment(b)
		},
	})
}
