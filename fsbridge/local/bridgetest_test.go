//go:build linux

package local

import (
	"errors"
	"os"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/bridgetest"
	"github.com/workberth/workberth/internal/rooted"
)

// TestConformance holds the bridge to the public suite: with everything the kernel offers, with the
// substitutes for what it may not offer, and with the mount table of a sandbox, where the files of
// the system are served too. FSB-01 FSB-03 FSB-04 FSB-05 FSB-06 FSB-07 FSB-08 FSB-09 FSB-10 FSB-12
func TestConformance(t *testing.T) {
	for name, how := range ways() {
		t.Run(name, func(t *testing.T) { conform(t, name, how, nil) })
	}
	system := fsbridge.MountTable{{Path: "/", Kind: fsbridge.MountSystem, ReadOnly: true}}
	t.Run("system", func(t *testing.T) { conform(t, "system", rooted.Options{}, system) })
	t.Run("system-careful", func(t *testing.T) { conform(t, "system-careful", rooted.Options{NoOpenat2: true}, system) })
}

func conform(t *testing.T, name string, how rooted.Options, more fsbridge.MountTable) {
	t.Helper()
	switch {
	case name == "kernel":
	case testing.Short():
		t.Skip("left out under -short")
	case name != "careful" && os.Getenv("BERTH_ATTACK_OPS") == "":
		t.Skip("a further variant: runs when BERTH_ATTACK_OPS is set")
	}
	declared := fsbridge.AllCapabilities()
	if how.NoProc {
		declared = slices.DeleteFunc(declared, func(c fsbridge.Capability) bool {
			return c == fsbridge.CapReadFileWithSource || c == fsbridge.CapWatch
		})
	}
	full := "local"
	if name != "kernel" {
		full += "-" + name
	}
	bridgetest.Run(t, bridgetest.Target{
		Name:      full,
		Declared:  declared,
		AttackOps: 1000,
		New: func(t testing.TB, o bridgetest.Options) *bridgetest.Environment {
			return environment(t, o, how, more)
		},
	})
}

func environment(t testing.TB, o bridgetest.Options, how rooted.Options, more fsbridge.MountTable) *bridgetest.Environment {
	t.Helper()
	dirs := bridgetest.NewHostDirs(t, o)
	var revoked atomic.Bool
	b, err := newBridge(Options{
		Mounts:    append(dirs.Mounts(o), more...),
		ReadLimit: o.ReadLimit,
		Assert: func() error {
			if revoked.Load() {
				return errors.New("revoked")
			}
			if o.Guard != nil {
				return o.Guard()
			}
			return nil
		},
	}, how)
	must(t, err)
	t.Cleanup(func() { must(t, b.Close()) })
	env := dirs.Environment(b)
	env.Revoke = func() { revoked.Store(true) }
	return env
}
