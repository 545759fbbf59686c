//go:build linux

package guestfs_test

import (
	"testing"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/bridgetest"
	"github.com/workberth/workberth/fsbridge/guestfs"
	"github.com/workberth/workberth/fsbridge/local"
	"github.com/workberth/workberth/internal/guest/client"
	"github.com/workberth/workberth/internal/guest/guesttest"
	"github.com/workberth/workberth/internal/guest/server"
)

// TestConformance holds the bridge to the whole suite, over a socket with a real
// local bridge at its other end. FSB-01 to FSB-12
func TestConformance(t *testing.T) {
	bridgetest.Run(t, bridgetest.Target{
		Name:     "guestfs",
		Declared: fsbridge.AllCapabilities(),
		New: func(t testing.TB, o bridgetest.Options) *bridgetest.Environment {
			dirs := bridgetest.NewHostDirs(t, o)
			umask := o.Umask
			files, err := local.New(local.Options{Mounts: dirs.Mounts(o), Umask: &umask})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = files.Close() })
			var revoked revocation
			host, guest := guesttest.SocketPair(t)
			serve(t, guest, server.Config{Files: files, Build: "test"})
			conn, err := client.New(t.Context(), host, client.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			env := dirs.Environment(guestfs.New(conn, guestfs.Options{
				Assert: o.Guard, ReadLimit: o.ReadLimit, Revoked: revoked.check, Mounts: dirs.Mounts(o),
			}))
			env.Revoke = revoked.revoke
			env.Sever = func() { _ = guest.Close() }
			return env
		},
	})
}
