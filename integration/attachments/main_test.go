package attachments

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/workberth/workberth/attachments"
	"github.com/workberth/workberth/attachments/mediastore"
	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/helpertest"
	"github.com/workberth/workberth/internal/sandboxtest"
	"github.com/workberth/workberth/sandbox"
)

func TestMain(m *testing.M) {
	if args := os.Getenv(stageEnv); args != "" { // a process of TestSenderKilled
		os.Exit(stage(args))
	}
	os.Exit(helpertest.Main(m, func() error { return goleak.Find() }))
}

// workspace is a sandbox with a media store of this machine.
type workspace struct {
	*sandboxtest.Place
	sb    sandbox.Sandbox
	store *mediastore.Store
}

func openStore(t testing.TB) *mediastore.Store {
	t.Helper()
	s, err := mediastore.Open(mediastore.Options{Dir: filepath.Join(t.TempDir(), "media"), Limit: 200 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func (w workspace) ingest(t testing.TB, name, data string) attachments.MediaFact {
	t.Helper()
	return ingest(t, w.store, name, data)
}

func ingest(t testing.TB, s *mediastore.Store, name, data string) attachments.MediaFact {
	t.Helper()
	r, err := s.IngestBytes(t.Context(), []byte(data), mediastore.Facts{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return attachments.FactOf(r)
}

// preparer stages by bridges that open makes.
func preparer(t testing.TB, s *mediastore.Store, open fsbridge.Factory, change ...func(*attachments.WorkspaceOptions)) *attachments.WorkspacePreparer {
	t.Helper()
	o := attachments.WorkspaceOptions{Store: s, CreateBridge: open}
	for _, c := range change {
		c(&o)
	}
	p, err := attachments.NewWorkspacePreparer(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (w workspace) preparer(t testing.TB) *attachments.WorkspacePreparer {
	return preparer(t, w.store, w.sb.Bridge)
}

// sh runs a script in the sandbox.
func (w workspace) sh(t testing.TB, script string, args ...string) string {
	t.Helper()
	r, err := sandbox.Run(t.Context(), w.sb, sandbox.Command{Argv: append([]string{"sh", "-c", script, "sh"}, args...)}, nil, sandbox.RunOptions{})
	if err != nil || r.Status.Code != 0 {
		t.Fatalf("%s: %+v, %v\n%s", script, r.Status, err, r.Stderr.Bytes())
	}
	return string(r.Stdout.Bytes())
}

func turn(facts ...attachments.MediaFact) attachments.TurnFiles {
	return attachments.TurnFiles{Files: facts}
}

func sum(data string) string {
	h := sha256.Sum256([]byte(data))
	return hex.EncodeToString(h[:])
}

// staged is the path of a content under a name, below the workspace.
func staged(name, data string) string {
	return attachments.InboundDir + "/" + sum(data)[:16] + "/" + name
}

var lineForm = regexp.MustCompile(`^Attached file "(?:[^"\\]|\\.)*": ("(?:[^"\\]|\\.)*") \(.*[0-9]+ bytes\)$`)

// notePaths reads the paths from a note as a harness does.
func notePaths(t testing.TB, n attachments.Note) (paths []string) {
	t.Helper()
	for line := range strings.SplitSeq(n.Text, "\n") {
		var p string
		m := lineForm.FindStringSubmatch(line)
		if m == nil || json.Unmarshal([]byte(m[1]), &p) != nil {
			t.Fatalf("line %q of the note", line)
		}
		paths = append(paths, p)
	}
	return paths
}

// hidden is a bridge with its core alone.
type hidden struct{ fsbridge.Bridge }
