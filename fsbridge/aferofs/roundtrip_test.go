package aferofs_test

import (
	"context"
	"testing"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/aferofs"
	"github.com/workberth/workberth/fsbridge/bridgetest"
)

// again presents a bridge as a file system and that file system as a bridge.
func again(t testing.TB, inner fsbridge.Bridge, o bridgetest.Options, m fsbridge.MountTable) fsbridge.Bridge {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	b, err := aferofs.NewBridge(aferofs.NewFs(ctx, inner), aferofs.Options{
		Mounts: m, Private: true, ReadLimit: o.ReadLimit, Umask: &o.Umask, Assert: o.Guard,
	})
	must(t, err)
	return b
}

// TestRoundTripMemory holds a bridge over a file system over a bridge over memory to the suite.
// FSB-01 FSB-07 FSB-08 FSB-09 FSB-10
func TestRoundTripMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("the round trip over a local bridge covers most of it: left out under -short")
	}
	bridgetest.Run(t, bridgetest.Target{
		Name: "afero-roundtrip-memory", Declared: memDeclared(), MaxFile: 64 << 20, Waive: roundTripWaivers(),
		New: memory(func(t testing.TB, inner fsbridge.Bridge, o bridgetest.Options) fsbridge.Bridge {
			return again(t, inner, o, mounts(o))
		}),
	})
}

// roundTripWaivers are what a file system over a bridge cannot carry.
func roundTripWaivers() map[string]string {
	return map[string]string{"mode/set-id": "afero sets modes by Chmod, and a bridge's Chmod refuses set-id bits"}
}
