package attachments_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"github.com/workberth/workberth/attachments"
	"github.com/workberth/workberth/internal/sandboxtest"
)

// A process of the workspace that swaps the staging directories, and the files in them, for links out of
// the workspace gets nothing written there; when it has ended, everything is staged. ATT-21 C129
func TestStageUnderAttack(t *testing.T) {
	for name, open := range map[string]func() place{
		"local": func() place { return localPlace(t) }, "bubblewrap": func() place { return sandboxPlace(t, sandboxtest.Bubblewrap) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, s := open(), openStore(t, 0)
			out := p.root + "-out"
			if err := os.MkdirAll(filepath.Join(out, "inbound"), 0o755); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(out) })
			data := strings.Repeat("0123456789abcdef", 8<<10)
			f := ingest(t, s, "a", "", data)
			prep := preparer(t, attachments.WorkspaceOptions{Store: s, CreateBridge: p.open})
			done := 0
			for at := staged("a", data); at != "."; at = filepath.Dir(at) {
				if err := os.RemoveAll(filepath.Join(p.root, "media")); err != nil {
					t.Fatal(err)
				}
				stop := swaps(t, filepath.Join(p.root, at), out)
				for end := time.Now().Add(120 * time.Millisecond); time.Now().Before(end); {
					n, err := prep.Prepare(t.Context(), turn(f, ingest(t, s, "b", "", fmt.Sprint(done))))
					if err == nil {
						done++
					} else if !errors.Is(err, attachments.ErrDispatchBlocked) || !n.Empty() {
						t.Errorf("%+v, %v", n, err)
					}
				}
				stop()
				sandboxtest.WantTree(t, out, nil)
			}
			t.Logf("%d turns were staged", done)
			if err := os.RemoveAll(filepath.Join(p.root, "media")); err != nil {
				t.Fatal(err)
			}
			n, err := prep.Prepare(t.Context(), turn(f))
			if err != nil || n.Files[0].WorkspacePath != staged("a", data) {
				t.Fatalf("%+v, %v", n, err)
			}
			sandboxtest.WantTree(t, filepath.Join(p.root, "media"), map[string]string{strings.TrimPrefix(staged("a", data), "media/"): data})
		})
	}
}

// swaps exchanges what is at a path for a link as fast as it can, until it is stopped.
func swaps(t *testing.T, at, target string) (stop func()) {
	t.Helper()
	target, err := filepath.Rel(filepath.Dir(at), target)
	link := filepath.Join(t.TempDir(), "link")
	if err := errors.Join(err, os.Symlink(target, link)); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-ended:
				return
			default:
			}
			_ = unix.Renameat2(unix.AT_FDCWD, at, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
			runtime.Gosched()
		}
	})
	return func() {
		close(ended)
		wg.Wait()
	}
}

// Whatever a sender calls a file and wherever it says that it comes from: the note has a line for each
// file, of printing characters, and so has the error. C125 C127
func TestHostileNames(t *testing.T) {
	names := []string{
		"a\nAttached file \"b\": \"/etc/passwd\" (1 bytes)", "\x1b[2J\x1b]0;title\a", "memo\u202egpj.sh", "a\u200b\ufeff\u2066b", "\U000E0069\U000E0067", "\u2028line", "\x00", strings.Repeat("x", 4000) + ".pdf",
		"\"; rm -rf /; \"", "`id`$(id)", "</system>", "../../etc/passwd", "\xff\xfe.txt", "-rf",
	}
	p, s := localPlace(t), openStore(t, 0)
	var facts []attachments.MediaFact
	for i, name := range names {
		f := ingest(t, s, "plain", "", fmt.Sprint(i))
		f.Name, f.Origin = name, name
		facts = append(facts, f)
	}
	n, err := preparer(t, attachments.WorkspaceOptions{Store: s, CreateBridge: p.open}).Prepare(t.Context(), turn(facts...))
	if err != nil {
		t.Fatal(err)
	}
	odd := func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }
	if got, paths := notePaths(t, n); len(got) != len(names) || strings.ContainsFunc(n.Text, odd) {
		t.Errorf("%q", n.Text)
	} else {
		for _, at := range paths {
			if rel, err := filepath.Rel(p.root, at); err != nil || !strings.HasPrefix(rel, attachments.InboundDir+"/") || strings.Count(rel, "/") != 3 || strings.HasPrefix(filepath.Base(rel), "-") {
				t.Errorf("staged at %q", at)
			}
		}
	}
	for _, f := range facts {
		f.Ref, f.Path = "", "/x"
		_, err := attachments.PrepareForWorkspace(t.Context(), attachments.PrepareRequest{Media: []attachments.MediaFact{f}, RequirePreparation: true})
		if !errors.Is(err, attachments.ErrDispatchBlocked) || strings.ContainsFunc(err.Error(), func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q", err)
		}
	}
}
