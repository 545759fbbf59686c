package attachments_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/pkg/sftp"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/workberth/workberth/attachments"
	"github.com/workberth/workberth/attachments/mediastore"
	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/local"
	"github.com/workberth/workberth/fsbridge/sftpfs"
	"github.com/workberth/workberth/internal/helperbin"
	"github.com/workberth/workberth/internal/sshtest"
	"github.com/workberth/workberth/sandbox"
	"github.com/workberth/workberth/sandbox/bubblewrap"
)

// helperDir has the guest helper, built once.
var helperDir = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "attachments-helper-")
	if err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", filepath.Join(dir, helperbin.Name), "github.com/workberth/workberth/cmd/berth-guest")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return dir, fmt.Errorf("build the helper: %w\n%s", err, out)
	}
	return dir, os.Chmod(dir, 0o755)
})

func TestMain(m *testing.M) {
	if args := os.Getenv(stageEnv); args != "" { // a process of TestKilledWhileStaging
		os.Exit(stageForever(strings.Split(args, "\n")))
	}
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if dir, _ := helperDir(); dir != "" {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
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
		test(t, bubblewrapPlace(t))
	})
	t.Run("sftp", func(t *testing.T) {
		t.Parallel()
		test(t, sftpPlace(t))
	})
}

// sftpPlace is served by OpenSSH's SFTP server alone.
func sftpPlace(t testing.TB) place {
	t.Helper()
	sshtest.Available(t)
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(sshtest.Program(t, "sftp-server"), "-e", "-u", "022") //nolint:noctx // ends with its input
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() })
	c, err := sftp.NewClientPipe(out, in)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return place{root: root, cut: func() { _ = c.Close() }, open: func(_ context.Context, assert fsbridge.AssertFunc) (fsbridge.Bridge, error) {
		return sftpfs.New(c, sftpfs.Options{Mounts: fsbridge.MountTable{{Path: root, Kind: fsbridge.MountWorkspace}}, Assert: assert})
	}}
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

func need(t testing.TB, what string, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if os.Getenv("BERTH_REQUIRE_ENGINES") == "1" {
		t.Fatalf("%s: %v", what, err)
	}
	t.Skipf("%s: %v", what, err)
}

func bubblewrapPlace(t testing.TB) place {
	t.Helper()
	_, err := exec.LookPath("bwrap")
	need(t, "bubblewrap is not installed", err)
	helper, err := helperDir()
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.MkdirTemp("", "at-") // short: a socket's path is bounded
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	ws := filepath.Join(root, "ws")
	if err := os.Mkdir(ws, 0o755); err != nil {
		t.Fatal(err)
	}
	sb, err := bubblewrapSandbox(t.Context(), root, filepath.Join(helper, helperbin.Name), ws)
	need(t, "no sandbox", err)
	t.Cleanup(func() { _ = sb.Close() })
	return place{root: ws, open: sb.Bridge, cut: func() { _ = sb.Close() }}
}

func bubblewrapSandbox(ctx context.Context, root, helper, ws string) (sandbox.Sandbox, error) {
	b, err := bubblewrap.New(bubblewrap.Options{StateDir: filepath.Join(root, "state"), HelperPath: helper})
	if err != nil {
		return nil, err
	}
	return b.Ensure(ctx, sandbox.Spec{Scope: sandbox.ScopeSession, Session: "test", Workspace: ws, Config: sandbox.DefaultConfig()})
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

// tree maps the files below dir to their content.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(p)
		found[strings.TrimPrefix(p, dir+"/")] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func wantTree(t testing.TB, dir string, want map[string]string) {
	t.Helper()
	got := tree(t, dir)
	for name, data := range want {
		if is, ok := got[name]; !ok || is != data {
			t.Errorf("%s: %s of %d bytes, want %d", name, map[bool]string{true: "a file", false: "nothing"}[ok], len(is), len(data))
		}
		delete(got, name)
	}
	for name := range got {
		t.Errorf("%s is there", strconv.Quote(name))
	}
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
