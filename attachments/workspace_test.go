package attachments_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
)

func unquote(s string) (v string, err error) {
	err = json.Unmarshal([]byte(s), &v)
	return v, err
}

// Files arrive under their own paths, identical content once, and a second turn sends what is new.
// ATT-17 ATT-18 ATT-19 ATT-21 C123 C133
func TestStage(t *testing.T) {
	places(t, func(t *testing.T, p place) {
		s := openStore(t, 0)
		big := strings.Repeat("0123456789abcdef", 40_000)
		facts := []attachments.MediaFact{
			ingest(t, s, "a.txt", "mail", "1"), ingest(t, s, "a.txt", "", "2"), ingest(t, s, "a.txt", "chat", "1"),
			ingest(t, s, "empty", "", ""), ingest(t, s, "big.bin", "", big),
		}
		was := slices.Clone(facts)
		prep := preparer(t, attachments.WorkspaceOptions{Store: s, CreateBridge: p.open})
		want := map[string]string{
			staged("a.txt", "1"): "1", staged("a.txt", "2"): "2", staged("empty", ""): "", staged("big.bin", big): big, "kept.txt": "kept",
		}
		if err := os.WriteFile(filepath.Join(p.root, "kept.txt"), []byte("kept"), 0o644); err != nil {
			t.Fatal(err)
		}
		var outcomes []attachments.Outcome
		for range 2 {
			n, err := prep.Prepare(t.Context(), turn(facts...))
			if err != nil {
				t.Fatal(err)
			}
			names, paths := notePaths(t, n)
			if len(paths) != len(facts) || names[2] != "a.txt" || paths[0] != paths[2] || paths[0] == paths[1] {
				t.Errorf("note:\n%s", n.Text)
			}
			if !strings.Contains(n.Text, `from "mail"`) || !strings.Contains(n.Text, `from "chat"`) || !strings.HasSuffix(paths[1], staged("a.txt", "2")) || !filepath.IsAbs(paths[1]) {
				t.Errorf("note:\n%s", n.Text)
			}
			for _, f := range n.Files {
				outcomes = append(outcomes, f.Outcome)
			}
			sandboxtest.WantTree(t, p.root, want)
		}
		if got := fmt.Sprint(outcomes); got != "[staged staged present staged staged present present present present present]" {
			t.Errorf("outcomes %s", got)
		}
		next := ingest(t, s, "a.txt", "", "3")
		if _, err := prep.Prepare(t.Context(), turn(next)); err != nil {
			t.Fatal(err)
		}
		want[staged("a.txt", "3")] = "3"
		sandboxtest.WantTree(t, p.root, want)
		if !slices.Equal(facts, was) {
			t.Error("the facts have changed")
		}
	})
}

// Whatever has the name already stays, and the file arrives beside it; a link planted there leads
// nowhere, and a FIFO stops nobody. ATT-21 C123 C129
func TestTaken(t *testing.T) {
	places(t, func(t *testing.T, p place) {
		s := openStore(t, 0)
		out := t.TempDir()
		if err := os.WriteFile(filepath.Join(out, "f"), []byte("outside"), 0o644); err != nil {
			t.Fatal(err)
		}
		prep := preparer(t, attachments.WorkspaceOptions{Store: s, CreateBridge: p.open})
		for i, plant := range []func(at string) error{
			func(at string) error { return os.WriteFile(at, []byte("edited by the agent"), 0o644) },
			func(at string) error { return os.WriteFile(at, []byte("content 1"+"!"), 0o644) }, // the same size and another content
			func(at string) error { return os.Mkdir(at, 0o755) },
			func(at string) error { return syscall.Mkfifo(at, 0o644) },
			func(at string) error { return os.Symlink(filepath.Join(out, "f"), at) },
			func(at string) error { return os.Symlink("../../../nowhere", at) },
		} {
			data := fmt.Sprint("content ", i, "!")
			at := filepath.Join(p.root, staged("a.tar.gz", data))
			if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), plant(at)); err != nil {
				t.Fatal(err)
			}
			if i == 1 {
				if err := os.WriteFile(at, []byte("CONTENT 1!"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			was, err := os.Lstat(at)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []attachments.Outcome{attachments.Staged, attachments.Present} {
				n, err := prep.Prepare(t.Context(), turn(ingest(t, s, "a.tar.gz", "", data)))
				if err != nil {
					t.Fatalf("case %d: %v", i, err)
				}
				if got := n.Files[0]; got.WorkspacePath != staged("a.tar-2.gz", data) || got.Outcome != want {
					t.Errorf("case %d: %+v", i, got)
				}
			}
			is, err := os.Lstat(at)
			if err != nil || !os.SameFile(was, is) || is.Size() != was.Size() || !is.ModTime().Equal(was.ModTime()) {
				t.Errorf("case %d: what was there has changed", i)
			}
			if got, err := os.ReadFile(filepath.Join(p.root, staged("a.tar-2.gz", data))); string(got) != data {
				t.Errorf("case %d: staged %q, %v", i, got, err)
			}
		}
		if _, err := os.Lstat(filepath.Join(p.root, "nowhere")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the target of a dangling link: %v", err)
		}
		sandboxtest.WantTree(t, out, map[string]string{"f": "outside"})
	})
}

// The staging directory itself leads out, or is a file: refused, and nothing is written. C129 ATT-25
func TestBadDirectory(t *testing.T) {
	places(t, func(t *testing.T, p place) {
		s := openStore(t, 0)
		out := p.root + "-out" // also seen from inside, a link there leads out of the workspace
		if err := os.Mkdir(out, 0o755); err != nil {
			t.Fatal(err)
		}
		prep := preparer(t, attachments.WorkspaceOptions{Store: s, CreateBridge: p.open})
		media := filepath.Join(p.root, "media")
		for i, plant := range []func() error{
			func() error { return os.Symlink("../"+filepath.Base(out), media) },
			func() error { return os.WriteFile(media, nil, 0o644) },
			func() error {
				return errors.Join(os.Mkdir(media, 0o755), os.Symlink("../../"+filepath.Base(out), media+"/inbound"))
			},
		} {
			if err := errors.Join(os.RemoveAll(media), plant()); err != nil {
				t.Fatal(err)
			}
			_, err := prep.Prepare(t.Context(), turn(ingest(t, s, "evil\n.txt", "", "x")))
			if !errors.Is(err, attachments.ErrDispatchBlocked) || !strings.Contains(err.Error(), `"evil\n.txt"`) {
				t.Errorf("case %d: %v", i, err)
			}
		}
		sandboxtest.WantTree(t, out, nil)
	})
}

// All names are taken: an error that says so.
func TestAllTaken(t *testing.T) {
	s, p := openStore(t, 0), localPlace(t)
	f := ingest(t, s, "a", "", "x")
	for n := 1; n < 20; n++ {
		name := "a"
		if n > 1 {
			name = fmt.Sprint("a-", n)
		}
		if err := os.MkdirAll(filepath.Join(p.root, staged(name, "x")), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	_, err := preparer(t, attachments.WorkspaceOptions{Store: s, CreateBridge: p.open}).Prepare(t.Context(), turn(f))
	if !errors.Is(err, attachments.ErrTaken) || !errors.Is(err, attachments.ErrDispatchBlocked) {
		t.Errorf("error %v", err)
	}
}

// A bridge without exclusive creation is refused before anything is sent; one with nothing else will do.
// ATT-19 ATT-34 FSB-09
func TestCapabilities(t *testing.T) {
	s, p := openStore(t, 0), localPlace(t)
	f := ingest(t, s, "a", "", "data")
	open := func(wrap func(full) fsbridge.Bridge) fsbridge.Factory {
		return func(ctx context.Context, a fsbridge.AssertFunc) (fsbridge.Bridge, error) {
			b, err := p.open(ctx, a)
			if err != nil {
				return nil, err
			}
			return wrap(b.(full)), nil
		}
	}
	core := open(func(b full) fsbridge.Bridge { return struct{ fsbridge.Bridge }{b} })
	_, err := preparer(t, attachments.WorkspaceOptions{Store: s, CreateBridge: core}).Prepare(t.Context(), turn(f))
	var un *fsbridge.UnsupportedError
	if !errors.As(err, &un) || un.Capability != fsbridge.CapCreateFileExclusive || !errors.Is(err, attachments.ErrDispatchBlocked) {
		t.Errorf("without exclusive creation: %v", err)
	}
	sandboxtest.WantTree(t, p.root, nil)
	least := open(func(b full) fsbridge.Bridge {
		return struct {
			fsbridge.Bridge
			fsbridge.ExclusiveCreator
		}{b, b}
	})
	for _, want := range []attachments.Outcome{attachments.Staged, attachments.Present} {
		n, err := preparer(t, attachments.WorkspaceOptions{Store: s, CreateBridge: least}).Prepare(t.Context(), turn(f))
		if err != nil || n.Files[0].Outcome != want || n.Files[0].Path != staged("a", "data") {
			t.Errorf("with exclusive creation alone: %+v, %v", n, err)
		}
	}
	sandboxtest.WantTree(t, p.root, map[string]string{staged("a", "data"): "data"})
	for _, o := range []attachments.WorkspaceOptions{{}, {Store: s}, {CreateBridge: p.open}, {Store: s, CreateBridge: p.open, Limit: -1}} {
		if _, err := attachments.NewWorkspacePreparer(o); !errors.Is(err, attachments.ErrInvalid) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// The limit in force is at least 50 MiB, inclusive, and is looked at before anything is sent. ATT-22 ATT-23 C131
func TestStagingLimit(t *testing.T) {
	const mib = 1 << 20
	for configured, want := range map[int64]int64{0: 50 * mib, 1: 50 * mib, 60 * mib: 60 * mib} {
		if got := attachments.LimitInForce(configured); got != want {
			t.Errorf("LimitInForce(%d) = %d", configured, got)
		}
	}
	s, p := openStore(t, 200*mib), localPlace(t)
	sparse := func(name string, size int64) attachments.MediaFact {
		r, err := s.IngestReader(t.Context(), io.LimitReader(zeros{}, size), size, mediastore.Facts{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		return attachments.FactOf(r)
	}
	at, over := sparse("at", 50*mib), sparse("over", 50*mib+1)
	prep := preparer(t, attachments.WorkspaceOptions{Store: s, CreateBridge: p.open, Limit: 1})
	_, err := prep.Prepare(t.Context(), turn(ingest(t, s, "small", "", "x"), over))
	var le *fsbridge.LimitError
	if !errors.As(err, &le) || le.Limit != 50*mib || le.Actual != 50*mib+1 || !errors.Is(err, attachments.ErrDispatchBlocked) || !strings.Contains(err.Error(), `"over"`) {
		t.Errorf("over the limit: %v", err)
	}
	sandboxtest.WantTree(t, p.root, nil)
	if _, err := prep.Prepare(t.Context(), turn(at)); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	higher := preparer(t, attachments.WorkspaceOptions{Store: s, CreateBridge: p.open, Limit: 60 * mib})
	if _, err := higher.Prepare(t.Context(), turn(over)); err != nil {
		t.Errorf("below a higher limit: %v", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// A source outside the media store is never read. ATT-20 ATT-30
func TestOutsideTheStore(t *testing.T) {
	s, p := openStore(t, 0), localPlace(t)
	fifo := filepath.Join(t.TempDir(), "fifo") // reading it would hang
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	gone := ingest(t, s, "gone", "", "x")
	if err := s.Release(t.Context(), gone.Ref); err != nil {
		t.Fatal(err)
	}
	files := turn(attachments.MediaFact{Name: "path", Path: fifo}, attachments.MediaFact{Name: "url", URL: "https://example.org/x"}, gone)
	made := 0
	prep := preparer(t, attachments.WorkspaceOptions{Store: s, CreateBridge: func(ctx context.Context, a fsbridge.AssertFunc) (fsbridge.Bridge, error) {
		made++
		return p.open(ctx, a)
	}})
	n, err := prep.Prepare(t.Context(), files)
	if err != nil || !n.Empty() || len(n.Files) != 3 || made != 0 {
		t.Errorf("note %+v, %v; %d bridges", n, err, made)
	}
	for _, f := range n.Files {
		if f.Outcome != attachments.NotCovered || f.Reason == "" {
			t.Errorf("%+v", f)
		}
	}
	for i := range files.Files {
		_, err := attachments.PrepareForWorkspace(t.Context(), attachments.PrepareRequest{Media: files.Files[i : i+1], Provider: prep.Prepare, RequirePreparation: true})
		if !errors.Is(err, attachments.ErrDispatchBlocked) || !errors.Is(err, attachments.ErrUnprepared) {
			t.Errorf("required: %v", err)
		}
	}
	sandboxtest.WantTree(t, p.root, nil)
}

// Whichever check of the guard fails, the call fails, and no command follows. ATT-24 FSB-10
func TestGuard(t *testing.T) {
	places(t, func(t *testing.T, p place) {
		s := openStore(t, 0)
		files := turn(ingest(t, s, "a", "", strings.Repeat("a", 300_000)), ingest(t, s, "b", "", "b"))
		prep := preparer(t, attachments.WorkspaceOptions{Store: s, CreateBridge: p.open})
		gone := errors.New("the turn was stopped")
		for allowed := 0; ; allowed++ {
			if err := os.RemoveAll(filepath.Join(p.root, "media")); err != nil {
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
			n, err := prep.Prepare(t.Context(), files)
			if err == nil {
				if allowed < 8 || len(n.Files) != 2 {
					t.Errorf("%d checks were enough for %+v", allowed, n)
				}
				return
			}
			if !errors.Is(err, gone) || !errors.Is(err, attachments.ErrNotCurrent) || !errors.Is(err, attachments.ErrDispatchBlocked) || !n.Empty() {
				t.Fatalf("%d checks: %+v, %v", allowed, n, err)
			}
			for name, data := range sandboxtest.Tree(t, p.root) {
				if data != "b" && len(data) != 300_000 {
					t.Errorf("%d checks: half of %s was left", allowed, name)
				}
			}
		}
	})
}

func spiedFactory(p place, write func(ctx context.Context, path string, next func() (fsbridge.WriteResult, error)) (fsbridge.WriteResult, error)) fsbridge.Factory {
	return func(ctx context.Context, a fsbridge.AssertFunc) (fsbridge.Bridge, error) {
		b, err := p.open(ctx, a)
		if err != nil {
			return nil, err
		}
		return &spied{full: b.(full), write: write}, nil
	}
}

func (s *spied) WriteStream(ctx context.Context, path string, r io.Reader, o fsbridge.WriteOptions) (fsbridge.WriteResult, error) {
	return s.write(ctx, path, func() (fsbridge.WriteResult, error) { return s.full.WriteStream(ctx, path, r, o) })
}

// What an interrupted transfer leaves: an incomplete file that this call began is removed, anything
// else stays, a file that did arrive counts. ATT-25 FSB-11
func TestInterrupted(t *testing.T) {
	s := openStore(t, 0)
	const data = "complete content"
	f := ingest(t, s, "a", "", data)
	unknown := &fsbridge.PathError{Op: "write", Path: "x", Err: fsbridge.ErrOutcomeUnknown}
	put := func(p place, path, text string) {
		t.Helper()
		at := filepath.Join(p.root, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		leaves *string
		err    error
		want   map[string]string
		ok     bool
	}{
		"nothing":          {nil, unknown, nil, false},
		"a beginning":      {new("complete"), unknown, nil, false},
		"an empty file":    {new(""), unknown, nil, false},
		"everything":       {new(data), unknown, map[string]string{staged("a", data): data}, true},
		"somebody else's":  {new("other"), unknown, map[string]string{staged("a", data): "other"}, false},
		"a full disk":      {nil, syscall.ENOSPC, nil, false},
		"half, disk full":  {new("compl"), syscall.ENOSPC, nil, false},
		"refused outright": {new("compl"), fsbridge.ErrUnavailable, map[string]string{staged("a", data): "compl"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := localPlace(t)
			open := spiedFactory(p, func(_ context.Context, path string, _ func() (fsbridge.WriteResult, error)) (fsbridge.WriteResult, error) {
				if tc.leaves != nil {
					put(p, path, *tc.leaves)
				}
				return fsbridge.WriteResult{}, tc.err
			})
			n, err := preparer(t, attachments.WorkspaceOptions{Store: s, CreateBridge: open}).Prepare(t.Context(), turn(f))
			if tc.ok != (err == nil) || !tc.ok && (!n.Empty() || !errors.Is(err, attachments.ErrDispatchBlocked) || !errors.Is(err, tc.err)) {
				t.Errorf("note %+v, %v", n, err)
			}
			sandboxtest.WantTree(t, p.root, tc.want)
		})
	}
	t.Run("cannot be told", func(t *testing.T) {
		p := localPlace(t)
		var made int
		open := func(ctx context.Context, a fsbridge.AssertFunc) (fsbridge.Bridge, error) {
			if made++; made > 1 {
				return nil, fsbridge.ErrUnavailable
			}
			b, err := p.open(ctx, a)
			if err != nil {
				return nil, err
			}
			dead := &dying{spied{full: b.(full)}, false}
			dead.write = func(context.Context, string, func() (fsbridge.WriteResult, error)) (fsbridge.WriteResult, error) {
				dead.dead = true
				return fsbridge.WriteResult{}, unknown
			}
			return dead, nil
		}
		_, err := preparer(t, attachments.WorkspaceOptions{Store: s, CreateBridge: open}).Prepare(t.Context(), turn(f))
		if !errors.Is(err, fsbridge.ErrOutcomeUnknown) || !strings.Contains(err.Error(), "an incomplete file may be left") || made != 2 {
			t.Errorf("%d bridges, error %v", made, err)
		}
	})
}

// dying is a bridge whose connection is lost at some moment.
type dying struct {
	spied
	dead bool
}

func (d *dying) Lstat(ctx context.Context, path string) (fsbridge.FileInfo, error) {
	if d.dead {
		return fsbridge.FileInfo{}, &fsbridge.PathError{Op: "lstat", Path: path, Err: fsbridge.ErrUnavailable}
	}
	return d.full.Lstat(ctx, path)
}

// The connection is cut in the middle of a transfer: no note, nothing half, and a new connection
// completes it. ATT-25
func TestCut(t *testing.T) {
	t.Parallel()
	p := sandboxPlace(t, sandboxtest.Bubblewrap)
	s := openStore(t, 0)
	data := strings.Repeat("0123456789abcdef", 1<<20)
	f := ingest(t, s, "a.bin", "", data)
	cut := false
	prep := preparer(t, attachments.WorkspaceOptions{Store: s, CreateBridge: p.open, Progress: func(pr attachments.Progress) {
		if pr.Sent > 4<<20 && !cut {
			cut = true
			p.cut()
		}
	}})
	n, err := prep.Prepare(t.Context(), turn(f))
	if !cut || !errors.Is(err, attachments.ErrDispatchBlocked) || !n.Empty() {
		t.Fatalf("note %+v, %v", n, err)
	}
	if !errors.Is(err, fsbridge.ErrOutcomeUnknown) && !errors.Is(err, fsbridge.ErrUnavailable) {
		t.Errorf("error %v", err)
	}
	sandboxtest.WantTree(t, filepath.Join(p.root), nil)
	again := preparer(t, attachments.WorkspaceOptions{Store: s, CreateBridge: localFactory(p.root)})
	if _, err := again.Prepare(t.Context(), turn(f)); err != nil {
		t.Error(err)
	}
	sandboxtest.WantTree(t, p.root, map[string]string{staged("a.bin", data): data})
}

// The total time is one for all files, and its end blocks. ATT-25 ATT-29
func TestStageTimeout(t *testing.T) {
	s, p := openStore(t, 0), localPlace(t)
	files := turn(ingest(t, s, "a", "", "a"), ingest(t, s, "b", "", "b"))
	open := spiedFactory(p, func(ctx context.Context, path string, next func() (fsbridge.WriteResult, error)) (fsbridge.WriteResult, error) {
		if strings.HasSuffix(path, "/b") {
			<-ctx.Done()
			return fsbridge.WriteResult{}, ctx.Err()
		}
		return next()
	})
	n, err := preparer(t, attachments.WorkspaceOptions{Store: s, CreateBridge: open, Timeout: 300 * time.Millisecond}).Prepare(t.Context(), files)
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, attachments.ErrDispatchBlocked) || !n.Empty() || !strings.Contains(err.Error(), `"b"`) {
		t.Errorf("note %+v, %v", n, err)
	}
	sandboxtest.WantTree(t, p.root, map[string]string{staged("a", "a"): "a"})
}

// Several preparers of one workspace at once: each file once, and everybody gets the paths.
func TestConcurrentStage(t *testing.T) {
	places(t, func(t *testing.T, p place) {
		s := openStore(t, 0)
		var files []attachments.MediaFact
		want := map[string]string{}
		for i := range 10 {
			data := strings.Repeat(fmt.Sprint(i), 50_000)
			files = append(files, ingest(t, s, "f", "", data))
			want[staged("f", data)] = data
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				n, err := preparer(t, attachments.WorkspaceOptions{Store: s, CreateBridge: p.open}).Prepare(t.Context(), turn(files...))
				if err != nil || len(n.Files) != len(files) {
					t.Errorf("note %+v, %v", n, err)
				}
			})
		}
		wg.Wait()
		sandboxtest.WantTree(t, p.root, want)
	})
}

// Damaged content is never completed on the far side. ATT-20
func TestDamagedSource(t *testing.T) {
	s, p := openStore(t, 0), localPlace(t)
	data := strings.Repeat("x", 200_000)
	f := ingest(t, s, "a", "", data)
	object := filepath.Join(s.Dir(), "objects", sum(data)[:2], sum(data))
	if err := errors.Join(os.Chmod(object, 0o600), os.WriteFile(object, []byte(data[1:]+"y"), 0o600)); err != nil {
		t.Fatal(err)
	}
	_, err := preparer(t, attachments.WorkspaceOptions{Store: s, CreateBridge: p.open}).Prepare(t.Context(), turn(f))
	if !errors.Is(err, mediastore.ErrDamaged) || !errors.Is(err, attachments.ErrDispatchBlocked) {
		t.Errorf("error %v", err)
	}
	sandboxtest.WantTree(t, p.root, nil)
}
