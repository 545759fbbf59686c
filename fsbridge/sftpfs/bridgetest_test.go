//go:build linux

package sftpfs_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pkg/sftp"
	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/bridgetest"
	"github.com/workberth/workberth/fsbridge/sftpfs"
	"github.com/workberth/workberth/internal/sshtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// declared is what a bridge to an OpenSSH server declares.
func declared() []fsbridge.Capability {
	missing := map[fsbridge.Capability]bool{
		fsbridge.CapReadFileWithSource: true, fsbridge.CapStreamDirectory: true, fsbridge.CapAppendFile: true,
		fsbridge.CapCopy: true, fsbridge.CapWatch: true,
	}
	var list []fsbridge.Capability
	for _, c := range fsbridge.AllCapabilities() {
		if !missing[c] {
			list = append(list, c)
		}
	}
	return list
}

// racy is why the attacks with a racing attacker are not run.
const racy = "SFTP has no directory handles: what is looked at by path can be exchanged before it is used, as the package says"

// waived are the checks this bridge cannot pass, and under -short those that take long.
func waived() map[string]string {
	list := map[string]string{
		"race/swapped-parent":      racy,
		"race/swapped-file":        racy,
		"race/swapped-deep":        racy,
		"race/swapped-tree":        racy,
		"race/reads":               racy,
		"race/writes":              racy,
		"race/no-temporaries":      racy,
		"rename/cross-device":      "a file is not moved to another file system, because SFTP cannot tell whether the source is still the one that was copied",
		"rename/cross-device-race": racy,
		"remove/deep-and-wide":     "SFTP names files by their whole path, so that nothing deeper than 4096 bytes can be reached",
		"list/entries":             "SFTP tells times in whole seconds; see TestListing",
	}
	if testing.Short() {
		for _, name := range []string{
			"atomic/readers-see-whole", "bytes/200MiB", "concurrent/own-files", "create/appears-whole", "if/counter", "list/10000-sorted", "walk/large",
		} {
			list[name] = "takes long: left out under -short"
		}
	}
	return list
}

// umasks are those the suite asks for. Each has a subsystem of its own, because a server has only one. It
// is sshd's built-in one, which is the same program and needs no shell to start.
func umasks() []fsbridge.Mode { return []fsbridge.Mode{0o022, 0o002, 0o077} }

// TestConformance holds the bridge to the public suite, against a real OpenSSH server. FSB-01 FSB-07 FSB-08
// FSB-09 FSB-10 FSB-11 FSB-12 C001 C005 C007 C009 C011 C015 C025 C031 C033 C037 C039 C041 C113
func TestConformance(t *testing.T) {
	sshtest.Available(t)
	opts := sshtest.Options{}
	for _, mask := range umasks() {
		opts.ExtraConfig = append(opts.ExtraConfig, fmt.Sprintf("Subsystem sftp-%03o internal-sftp -u %03o", mask, mask))
	}
	conn := sshtest.Start(t, opts).Dial(t)
	var cut atomic.Bool
	bridgetest.Run(t, bridgetest.Target{
		Name:     "sftpfs",
		Declared: declared(),
		Waive:    waived(),
		// A cut connection leaves the temporary file of the write it cuts.
		IsTemporary: func(name string) bool { return strings.HasPrefix(name, ".berth-") && !cut.Load() },
		New: func(t testing.TB, o bridgetest.Options) *bridgetest.Environment {
			dirs := bridgetest.NewHostDirs(t, o)
			client, session := subsystem(t, conn, fmt.Sprintf("sftp-%03o", o.Umask))
			cut.Store(false)
			var revoked atomic.Bool
			b, err := sftpfs.New(client, sftpfs.Options{Mounts: dirs.Mounts(o), ReadLimit: o.ReadLimit, Assert: func() error {
				if revoked.Load() {
					return errors.New("revoked")
				}
				if o.Guard != nil {
					return o.Guard()
				}
				return nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			env := dirs.Environment(b)
			env.Revoke = func() { revoked.Store(true) }
			env.Sever = func() {
				cut.Store(true)
				_ = session.Close()
			}
			return env
		},
	})
}

// subsystem starts a subsystem until the end of the test.
func subsystem(t testing.TB, conn *ssh.Client, name string) (*sftp.Client, *ssh.Session) {
	t.Helper()
	session, err := conn.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	in, err1 := session.StdinPipe()
	out, err2 := session.StdoutPipe()
	if err := errors.Join(err1, err2, session.RequestSubsystem(name)); err != nil {
		t.Fatal(err)
	}
	client, err := sftp.NewClientPipe(out, in)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = client.Close()
		_ = session.Close()
	})
	return client, session
}
