package attachments

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/workberth/workberth/attachments"
	"github.com/workberth/workberth/attachments/mediastore"
	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/sandboxtest"
	"github.com/workberth/workberth/remoteworkspace"
)

// bind makes the methods of a workspace bound to the sandbox, and the Gateway's name for it.
func (w workspace) bind(t testing.TB, provider attachments.Provider) (*remoteworkspace.Workspaces, string) {
	t.Helper()
	const dir = "/bound/workspace"
	reg := remoteworkspace.NewRegistry(remoteworkspace.RegistryOptions{})
	if err := reg.Declare(dir); err != nil {
		t.Fatal(err)
	}
	release, err := reg.Register(dir, remoteworkspace.Access{Bridge: w.sb.Bridge, PrepareTurnAttachments: provider})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	all, err := remoteworkspace.New(remoteworkspace.Options{Registry: reg})
	if err != nil {
		t.Fatal(err)
	}
	return all, dir
}

// The rows that concern a remote workspace, on every kind of one.
func TestRows(t *testing.T) {
	t.Parallel()
	sandboxtest.Each(t, sandboxtest.Kinds(), func(t *testing.T, p *sandboxtest.Place) {
		w := workspace{Place: p, sb: p.Sandbox(t), store: openStore(t)}
		for _, row := range []struct {
			name string
			test func(*testing.T, workspace)
		}{
			{"turns", testTurns}, {"names", testNames}, {"directory", testDirectory}, {"store", testStore}, {"limit", testLimit},
			{"guard", testGuard}, {"required", testRequired}, {"optional", testOptional}, {"capability", testCapability}, {"crowd", testCrowd},
		} {
			if err := os.RemoveAll(filepath.Join(p.Root, "media")); err != nil {
				t.Fatal(err)
			}
			t.Run(row.name, func(t *testing.T) { row.test(t, w) })
		}
	})
}

// Before the attempt and before a steering input the binding stages what is new, under paths at which
// commands there find it; the facts stay. ATT-15 ATT-16 ATT-17 ATT-18 ATT-19 ATT-34 C123 C133
func testTurns(t *testing.T, w workspace) {
	all, dir := w.bind(t, w.preparer(t).Prepare)
	big := strings.Repeat("0123456789abcdef", 60_000)
	first := []attachments.MediaFact{w.ingest(t, "a.txt", "1"), w.ingest(t, "a.txt", "2"), w.ingest(t, "big", big), w.ingest(t, "empty", "")}
	was := slices.Clone(first)
	want := map[string]string{staged("a.txt", "1"): "1", staged("a.txt", "2"): "2", staged("big", big): big, staged("empty", ""): ""}
	for _, turn := range []struct {
		facts    []attachments.MediaFact
		outcomes string
	}{
		{first, "staged staged staged staged"}, {first, "present present present present"}, {[]attachments.MediaFact{w.ingest(t, "a.txt", "3"), first[0]}, "staged present"},
	} {
		n, err := all.PrepareAttachments(t.Context(), dir, attachments.PrepareRequest{Media: turn.facts})
		if err != nil {
			t.Fatal(err)
		}
		var outcomes []string
		for _, f := range n.Files {
			outcomes = append(outcomes, string(f.Outcome))
		}
		if got := strings.Join(outcomes, " "); got != turn.outcomes {
			t.Errorf("%s, want %s", got, turn.outcomes)
		}
		sums := strings.Fields(w.sh(t, `sha256sum -- "$@" | cut -d' ' -f1`, notePaths(t, n)...))
		for i, f := range turn.facts {
			if i >= len(sums) || sums[i] != string(f.Digest) {
				t.Fatalf("the note leads to %q", sums)
			}
		}
		if text := attachments.ExecutionInput("input", n); text != "input\n\n"+n.Text {
			t.Errorf("execution input %q", text)
		}
	}
	want[staged("a.txt", "3")] = "3"
	sandboxtest.WantTree(t, w.Root, want)
	if !slices.Equal(first, was) {
		t.Error("the facts have changed")
	}
}

// Nothing that has the name is replaced or followed. ATT-21 C123 C129
func testNames(t *testing.T, w workspace) {
	out := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(out, []byte("outside"), 0o666); err != nil {
		t.Fatal(err)
	}
	for i, plant := range []func(at string) error{
		func(at string) error { return os.WriteFile(at, []byte("of the same size"), 0o644) },
		func(at string) error { return os.Mkdir(at, 0o755) },
		func(at string) error { return syscall.Mkfifo(at, 0o644) },
		func(at string) error { return os.Symlink(out, at) },
		func(at string) error { return os.Symlink("/dev/zero", at) },
		func(at string) error { return os.Symlink("../../../nowhere", at) },
	} {
		data := fmt.Sprintf("attached, no. %02d", i)
		at := filepath.Join(w.Root, staged("a.gz", data))
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), plant(at)); err != nil {
			t.Fatal(err)
		}
		was, err := os.Lstat(at)
		if err != nil {
			t.Fatal(err)
		}
		n, err := w.preparer(t).Prepare(t.Context(), turn(w.ingest(t, "a.gz", data)))
		if err != nil || n.Files[0].WorkspacePath != staged("a-2.gz", data) {
			t.Fatalf("case %d: %+v, %v", i, n, err)
		}
		is, err := os.Lstat(at)
		if err != nil || !os.SameFile(was, is) || is.Size() != was.Size() || !is.ModTime().Equal(was.ModTime()) {
			t.Errorf("case %d: what was there has changed", i)
		}
		if got, err := os.ReadFile(filepath.Join(w.Root, staged("a-2.gz", data))); string(got) != data {
			t.Errorf("case %d: %q, %v", i, got, err)
		}
	}
	if got, err := os.ReadFile(out); string(got) != "outside" {
		t.Errorf("outside: %q, %v", got, err)
	}
}

// A staging directory that leads out, or is none, blocks the input. ATT-25 C129
func testDirectory(t *testing.T, w workspace) {
	out, media := w.Root+"-out", filepath.Join(w.Root, "media")
	if err := os.Mkdir(out, 0o755); err != nil {
		t.Fatal(err)
	}
	for i, plant := range []func() error{
		func() error { return os.Symlink("../"+filepath.Base(out), media) },
		func() error { return os.Symlink("/etc", media) },
		func() error { return os.WriteFile(media, nil, 0o644) },
		func() error {
			return errors.Join(os.Mkdir(media, 0o755), os.Symlink("../../"+filepath.Base(out), filepath.Join(w.Root, attachments.InboundDir)))
		},
	} {
		if err := errors.Join(os.RemoveAll(media), plant()); err != nil {
			t.Fatal(err)
		}
		n, err := w.preparer(t).Prepare(t.Context(), turn(w.ingest(t, "a\x1b[31m\n.txt", "x")))
		if !errors.Is(err, attachments.ErrDispatchBlocked) || !n.Empty() || strings.ContainsAny(err.Error(), "\x1b\n") {
			t.Errorf("case %d: %+v, %v", i, n, err)
		}
	}
	sandboxtest.WantTree(t, out, nil)
	if err := os.RemoveAll(media); err != nil {
		t.Fatal(err)
	}
}

// A source outside the store is not read, and counts as not prepared. ATT-20 ATT-30
func testStore(t *testing.T, w workspace) {
	fifo := filepath.Join(t.TempDir(), "fifo") // reading it would hang
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	files := []attachments.MediaFact{{Name: "path", Path: fifo}, {Name: "url", URL: "https://example.org/x"}, w.ingest(t, "a", "a")}
	all, dir := w.bind(t, w.preparer(t).Prepare)
	n, err := all.PrepareAttachments(t.Context(), dir, attachments.PrepareRequest{Media: files})
	if err != nil || len(n.Files) != 3 || n.Files[0].Outcome != attachments.NotCovered || n.Files[1].Outcome != attachments.NotCovered || len(notePaths(t, n)) != 1 {
		t.Errorf("%+v, %v", n, err)
	}
	for _, f := range files[:2] {
		n, err := all.PrepareAttachments(t.Context(), dir, attachments.PrepareRequest{Media: []attachments.MediaFact{files[2], f}, RequirePreparation: true})
		if !errors.Is(err, attachments.ErrDispatchBlocked) || !errors.Is(err, attachments.ErrUnprepared) || !n.Empty() {
			t.Errorf("required: %+v, %v", n, err)
		}
	}
}

// 50 MiB, unless more is configured; what is above is refused before anything is sent. ATT-22 ATT-23 C131
func testLimit(t *testing.T, w workspace) {
	const limit = attachments.DefaultStagingLimit
	r, err := w.store.IngestReader(t.Context(), io.LimitReader(zeros{}, limit+1), limit+1, mediastore.Facts{Name: "over"})
	if err != nil {
		t.Fatal(err)
	}
	over := attachments.FactOf(r)
	_, err = w.preparer(t).Prepare(t.Context(), turn(w.ingest(t, "small", "x"), over))
	var le *fsbridge.LimitError
	if !errors.As(err, &le) || le.Limit != limit || le.Actual != limit+1 || !errors.Is(err, attachments.ErrDispatchBlocked) || !strings.Contains(err.Error(), `"over"`) {
		t.Errorf("over the limit: %v", err)
	}
	sandboxtest.WantTree(t, w.Root, nil)
	if testing.Short() {
		return
	}
	higher := preparer(t, w.store, w.sb.Bridge, func(o *attachments.WorkspaceOptions) { o.Limit = limit + 1 })
	n, err := higher.Prepare(t.Context(), turn(over))
	if err != nil || w.sh(t, `wc -c < "$1"`, notePaths(t, n)...) != fmt.Sprintln(limit+1) {
		t.Errorf("%+v, %v", n, err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// Whichever check of the guard fails, the input is blocked, nothing half is left, and no path is told.
// ATT-24 ATT-25
func testGuard(t *testing.T, w workspace) {
	big := strings.Repeat("a", 300_000)
	files := turn(w.ingest(t, "a", big), w.ingest(t, "b", "b"))
	gone := errors.New("the turn was stopped")
	for allowed := 0; ; allowed++ {
		if err := os.RemoveAll(filepath.Join(w.Root, "media")); err != nil {
			t.Fatal(err)
		}
		left := allowed
		var mu sync.Mutex
		files.AssertCurrent = func() error {
			mu.Lock()
			defer mu.Unlock()
			if left--; left < 0 {
				return gone
			}
			return nil
		}
		n, err := w.preparer(t).Prepare(t.Context(), files)
		if err == nil {
			if allowed < 8 || len(n.Files) != 2 {
				t.Errorf("%d checks were enough for %+v", allowed, n)
			}
			return
		}
		if !errors.Is(err, gone) || !errors.Is(err, attachments.ErrNotCurrent) || !errors.Is(err, attachments.ErrDispatchBlocked) || !n.Empty() {
			t.Fatalf("%d checks: %+v, %v", allowed, n, err)
		}
		for name, data := range sandboxtest.Tree(t, w.Root) {
			if data != "b" && data != big {
				t.Errorf("%d checks: %d bytes of %s", allowed, len(data), name)
			}
		}
	}
}

// Required: every stored file with a path, one at a time by the same binding, within one time, or
// none. ATT-26 ATT-27 ATT-28 ATT-29 ATT-30 ATT-31 ATT-42
func testRequired(t *testing.T, w workspace) {
	deferred := w.ingest(t, "deferred", "d")
	var calls []string
	var slow string
	prep := w.preparer(t)
	all, dir := w.bind(t, func(ctx context.Context, files attachments.TurnFiles) (attachments.Note, error) {
		for _, f := range files.Files {
			calls = append(calls, f.Name)
		}
		calls = append(calls, ";")
		if files.Files[0].Name == slow {
			<-ctx.Done()
		}
		return prep.Prepare(ctx, files)
	})
	req := attachments.PrepareRequest{
		Media: []attachments.MediaFact{w.ingest(t, "a", "a")}, RequirePreparation: true,
		Stored: func(context.Context) ([]attachments.MediaFact, error) {
			return []attachments.MediaFact{w.ingest(t, "a", "a"), w.ingest(t, "b", "b"), deferred}, nil
		},
	}
	n, err := all.PrepareAttachments(t.Context(), dir, req)
	if err != nil || len(notePaths(t, n)) != 3 || strings.Join(calls, " ") != "a ; b ; deferred ;" {
		t.Fatalf("%+v, %v after %q", n, err, calls)
	}
	calls, slow, req.Timeout = nil, "b", 100*time.Millisecond
	n, err = all.PrepareAttachments(t.Context(), dir, req)
	if !errors.Is(err, attachments.ErrDispatchBlocked) || !errors.Is(err, context.DeadlineExceeded) || !n.Empty() || strings.Join(calls, " ") != "a ; b ;" {
		t.Errorf("%+v, %v after %q", n, err, calls)
	}
	calls, slow = nil, ""
	n, err = all.PrepareAttachments(t.Context(), dir, attachments.PrepareRequest{RequirePreparation: true, Media: []attachments.MediaFact{{Name: "inline", Type: "image/png"}}})
	if err != nil || !n.Empty() || calls != nil {
		t.Errorf("text alone: %+v, %v after %q", n, err, calls)
	}
}

// A binding for documents only: nothing is sent, and who requires it is told. ATT-31 ATT-32 ATT-33
func testOptional(t *testing.T, w workspace) {
	all, dir := w.bind(t, nil)
	media := []attachments.MediaFact{w.ingest(t, "a", "a")}
	for _, at := range []string{dir, t.TempDir()} { // the other is a local workspace that nothing is configured for
		n, err := all.PrepareAttachments(t.Context(), at, attachments.PrepareRequest{Media: media})
		if err != nil || !n.Empty() {
			t.Errorf("%+v, %v", n, err)
		}
		_, err = all.PrepareAttachments(t.Context(), at, attachments.PrepareRequest{Media: media, RequirePreparation: true})
		if !errors.Is(err, attachments.ErrDispatchBlocked) || !errors.Is(err, attachments.ErrNoProvider) {
			t.Errorf("required: %v", err)
		}
	}
	sandboxtest.WantTree(t, w.Root, nil)
}

// Without exclusive creation nothing is sent. ATT-19
func testCapability(t *testing.T, w workspace) {
	prep := preparer(t, w.store, func(ctx context.Context, a fsbridge.AssertFunc) (fsbridge.Bridge, error) {
		b, err := w.sb.Bridge(ctx, a)
		return hidden{b}, err
	})
	_, err := prep.Prepare(t.Context(), turn(w.ingest(t, "a", "a")))
	var un *fsbridge.UnsupportedError
	if !errors.As(err, &un) || un.Capability != fsbridge.CapCreateFileExclusive || !errors.Is(err, attachments.ErrDispatchBlocked) {
		t.Errorf("error %v", err)
	}
	sandboxtest.WantTree(t, w.Root, nil)
}

// Several preparers at once: each file arrives once. ATT-21
func testCrowd(t *testing.T, w workspace) {
	want := map[string]string{}
	var files []attachments.MediaFact
	for i := range 8 {
		data := strings.Repeat(fmt.Sprint(i), 50_000)
		files, want[staged("f", data)] = append(files, w.ingest(t, "f", data)), data
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if n, err := w.preparer(t).Prepare(t.Context(), turn(files...)); err != nil || len(n.Files) != len(files) {
				t.Errorf("%+v, %v", n, err)
			}
		})
	}
	wg.Wait()
	sandboxtest.WantTree(t, w.Root, want)
}
