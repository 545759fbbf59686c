package attachments_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/workberth/workberth/attachments"
	"github.com/workberth/workberth/attachments/mediastore"
	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/local"
	"github.com/workberth/workberth/internal/helpertest"
	"github.com/workberth/workberth/internal/sandboxtest"
)

func TestMain(m *testing.M) {
	os.Exit(helpertest.Main(m, func() error { return goleak.Find() }))
}

// place is a workspace and how it is reached.
type place struct {
	root string // where its files lie on this machine
	open fsbridge.Factory
	// cut ends the connection for good.
	cut func()
}

// places runs a test with the files served by each kind of bridge.
func places(t *testing.T, test func(t *testing.T, p place)) {
	t.Run("local", func(t *testing.T) {
		t.Parallel()
		test(t, localPlace(t))
	})
	t.Run("bubblewrap", func(t *testing.T) {
		t.Parallel()
		test(t, sandboxPlace(t, sandboxtest.Bubblewrap))
	})
	t.Run("sftp", func(t *testing.T) {
		t.Parallel()
		test(t, sftpPlace(t))
	})
}

// sftpPlace is served by OpenSSH's SFTP server alone.
func sftpPlace(t testing.TB) place {
	t.Helper()
	root, open, cut := sandboxtest.SFTP(t)
	return place{root: root, open: open, cut: cut}
}

func localPlace(t testing.TB) place {
	root := t.TempDir()
	return place{root: root, open: localFactory(root), cut: func() {}}
}

func localFactory(root string) fsbridge.Factory {
	return func(_ context.Context, assert fsbridge.AssertFunc) (fsbridge.Bridge, error) {
		return local.New(local.Options{Mounts: fsbridge.MountTable{{Path: root, Kind: fsbridge.MountWorkspace}}, Assert: assert})
	}
}

// sandboxPlace is a workspace in a sandbox.
func sandboxPlace(t testing.TB, kind sandboxtest.Kind) place {
	t.Helper()
	p := sandboxtest.New(t, kind)
	sb := p.Sandbox(t)
	return place{root: p.Root, open: sb.Bridge, cut: func() { _ = sb.Close() }}
}

// quickDir is a directory in memory where there is room: what survives a crash is for the tests of
// the store itself.
func quickDir(t testing.TB) string {
	t.Helper()
	var st unix.Statfs_t
	if unix.Statfs("/dev/shm", &st) != nil || st.Bavail*uint64(st.Bsize) < 1<<30 {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp("/dev/shm", "attachments-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func openStore(t testing.TB, limit int64) *mediastore.Store {
	t.Helper()
	s, err := mediastore.Open(mediastore.Options{Dir: filepath.Join(quickDir(t), "media"), Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func ingest(t testing.TB, s *mediastore.Store, name, origin, data string) attachments.MediaFact {
	t.Helper()
	r, err := s.IngestBytes(t.Context(), []byte(data), mediastore.Facts{Name: name, Origin: origin})
	if err != nil {
		t.Fatal(err)
	}
	return attachments.FactOf(r)
}

func preparer(t testing.TB, opts attachments.WorkspaceOptions) *attachments.WorkspacePreparer {
	t.Helper()
	p, err := attachments.NewWorkspacePreparer(opts)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func turn(facts ...attachments.MediaFact) attachments.TurnFiles {
	return attachments.TurnFiles{Files: facts}
}

func sum(data string) string {
	h := sha256.Sum256([]byte(data))
	return hex.EncodeToString(h[:])
}

// staged is the path of the contract for a content under a name.
func staged(name, data string) string { return "media/inbound/" + sum(data)[:16] + "/" + name }

var lineForm = regexp.MustCompile(`^Attached file ("(?:[^"\\]|\\.)*"): ("(?:[^"\\]|\\.)*") \(.*[0-9]+ bytes(?:, from "(?:[^"\\]|\\.)*")?\)$`)

// notePaths reads the paths from a note, as a reader of JSON strings does.
func notePaths(t testing.TB, n attachments.Note) (names, paths []string) {
	t.Helper()
	if n.Empty() {
		return nil, nil
	}
	for line := range strings.SplitSeq(n.Text, "\n") {
		m := lineForm.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("line %q of the note", line)
		}
		name, err1 := unquote(m[1])
		path, err2 := unquote(m[2])
		if err := errors.Join(err1, err2); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		names, paths = append(names, name), append(paths, path)
	}
	return names, paths
}

// full are the operations of a bridge that the package uses.
type full interface {
	fsbridge.Bridge
	fsbridge.Lstater
	fsbridge.Hasher
	fsbridge.StreamReader
	fsbridge.StreamWriter
	fsbridge.ExclusiveCreator
	fsbridge.Remover
	fsbridge.Mounter
}

// spied is a local bridge whose writes can be tampered with and whose calls are counted.
type spied struct {
	full
	write func(ctx context.Context, path string, next func() (fsbridge.WriteResult, error)) (fsbridge.WriteResult, error)
}
