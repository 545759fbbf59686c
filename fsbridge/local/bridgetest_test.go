//go:build linux

package local

import (
	"errors"
	"os"
	"sync/atomic"
	"testing"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/bridgetest"
	"github.com/workberth/workberth/internal/rooted"
)

// TestConformance holds the bridge to the public suite, once with everything the kernel offers and
// once for each substitute. FSB-01 FSB-03 FSB-04 FSB-05 FSB-06 FSB-07 FSB-08 FSB-09 FSB-10 FSB-12
func TestConformance(t *testing.T) {
	noProc := fsbridge.AllCapabilities()
	without := noProc[:0:0]
	for _, c := range noProc {
		if c != fsbridge.CapReadFileWithSource && c != fsbridge.CapWatch {
			without = append(without, c)
		}
	}
	for name, how := range ways() {
		t.Run(name, func(t *testing.T) {
			switch {
			case name == "kernel":
			case testing.Short():
				t.Skip("left out under -short")
			case name != "careful" && os.Getenv("BERTH_ATTACK_OPS") == "":
				t.Skip("one more substitute: runs when BERTH_ATTACK_OPS is set")
			}
			declared := fsbridge.AllCapabilities()
			if how.NoProc {
				declared = without
			}
			bridgetest.Run(t, bridgetest.Target{
				Name:      "local-" + name,
				Declared:  declared,
				AttackOps: 1000,
				New: func(t testing.TB, o bridgetest.Options) *bridgetest.Environment {
					return environment(t, o, how)
				},
			})
		})
	}
}

func environment(t testing.TB, o bridgetest.Options, how rooted.Options) *bridgetest.Environment {
	t.Helper()
	dirs := bridgetest.NewHostDirs(t, o)
	var revoked atomic.Bool
	b, err := newBridge(Options{
		Mounts:    dirs.Mounts(o),
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
