package mediastore_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"go.uber.org/goleak"

	"github.com/workberth/workberth/attachments/mediastore"
	"github.com/workberth/workberth/fsbridge"
)

// A process of a test: what TestMain does then is in crash_test.go.
const roleEnv = "MEDIASTORE_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		os.Exit(play(role))
	}
	goleak.VerifyTestMain(m)
}

func digestOf(data []byte) fsbridge.Digest {
	sum := sha256.Sum256(data)
	return fsbridge.DigestOf(sum[:])
}

func openStore(t testing.TB, opts mediastore.Options) *mediastore.Store {
	t.Helper()
	if opts.Dir == "" {
		opts.Dir = filepath.Join(t.TempDir(), "media")
	}
	s, err := mediastore.Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func content(t testing.TB, s *mediastore.Store, r mediastore.Reference) string {
	t.Helper()
	o, err := s.Open(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	data, err := io.ReadAll(o)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// files lists what is below the store's directory.
func files(t testing.TB, s *mediastore.Store, below string) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(filepath.Join(s.Dir(), below), func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			list = append(list, strings.TrimPrefix(p, s.Dir()+"/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// One content, however often and by whatever way it arrives, and the facts of each arrival. ATT-18
func TestIngest(t *testing.T) {
	now := time.Date(2026, 11, 30, 1, 2, 3, 0, time.UTC)
	s := openStore(t, mediastore.Options{Now: func() time.Time { return now }})
	data := []byte("%PDF-1.7\nrest")
	path := filepath.Join(t.TempDir(), "page.txt") // the name lies
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	refs := []mediastore.Reference{
		must[mediastore.Reference](t)(s.IngestFile(ctx, path, mediastore.Facts{Origin: "cli"})),
		must[mediastore.Reference](t)(s.IngestBytes(ctx, data, mediastore.Facts{Name: "a\xff/b", Origin: "mail\n2"})),
		must[mediastore.Reference](t)(s.IngestReader(ctx, iotest.OneByteReader(bytes.NewReader(data)), int64(len(data)), mediastore.Facts{})),
		must[mediastore.Reference](t)(s.IngestReader(ctx, iotest.DataErrReader(bytes.NewReader(data)), -1, mediastore.Facts{})),
	}
	for i, want := range []mediastore.Facts{{Name: "page.txt", Origin: "cli"}, {Name: "a\xff/b", Origin: "mail\n2"}, {}, {}} {
		r := must[mediastore.Reference](t)(s.Reference(ctx, refs[i].ID))
		if r != refs[i] {
			t.Errorf("reference %d reads as %+v, was %+v", i, r, refs[i])
		}
		if r.Facts != want || r.Digest != digestOf(data) || r.Size != int64(len(data)) || r.Type != "application/pdf" || !r.Created.Equal(now) || !r.ID.Valid() {
			t.Errorf("reference %d is %+v", i, r)
		}
		if got := content(t, s, r); got != string(data) {
			t.Errorf("content %q", got)
		}
	}
	if n := len(files(t, s, "objects")); n != 1 {
		t.Errorf("%d objects, want 1", n)
	}
	if list := must[[]mediastore.Reference](t)(s.References(ctx)); len(list) != len(refs) {
		t.Errorf("%d references, want %d", len(list), len(refs))
	}
	if left := files(t, s, "tmp"); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
}

// Everything is the user's alone.
func TestModes(t *testing.T) {
	s := openStore(t, mediastore.Options{})
	r := must[mediastore.Reference](t)(s.IngestBytes(t.Context(), []byte("x"), mediastore.Facts{Name: "n.txt"}))
	if _, _, err := s.LocalPath(t.Context(), r.ID); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(s.Dir(), func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", p, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	open := filepath.Join(t.TempDir(), "open")
	if err := os.Mkdir(open, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := mediastore.Open(mediastore.Options{Dir: open}); !errors.Is(err, mediastore.ErrNotPrivate) {
		t.Errorf("a directory others can enter: %v", err)
	}
	for _, o := range []mediastore.Options{{}, {Dir: "relative"}, {Dir: open, Limit: -1}} {
		if _, err := mediastore.Open(o); !errors.Is(err, mediastore.ErrInvalid) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// The limit is inclusive, looked at before and during; nothing of a refused file is kept. ATT-22 C131
func TestLimits(t *testing.T) {
	const limit = 1000
	s := openStore(t, mediastore.Options{Limit: limit})
	dir := t.TempDir()
	for _, size := range []int{0, 1, limit - 1, limit, limit + 1, 10 * limit} {
		data := bytes.Repeat([]byte{7}, size)
		path := filepath.Join(dir, fmt.Sprint("f", size))
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		for name, ingest := range map[string]func() (mediastore.Reference, error){
			"file":  func() (mediastore.Reference, error) { return s.IngestFile(t.Context(), path, mediastore.Facts{}) },
			"bytes": func() (mediastore.Reference, error) { return s.IngestBytes(t.Context(), data, mediastore.Facts{}) },
			"reader": func() (mediastore.Reference, error) {
				return s.IngestReader(t.Context(), bytes.NewReader(data), -1, mediastore.Facts{})
			},
		} {
			r, err := ingest()
			var le *fsbridge.LimitError
			switch {
			case size <= limit && (err != nil || r.Size != int64(size)):
				t.Errorf("%s of %d bytes: %+v, %v", name, size, r, err)
			case size > limit && (!errors.As(err, &le) || le.Limit != limit || !errors.Is(err, mediastore.ErrTooLarge)):
				t.Errorf("%s of %d bytes: %v", name, size, err)
			}
		}
	}
	// A size that was announced wrongly.
	for announced, sent := range map[int64]int{5: 4, 4: 5, 0: 1} {
		_, err := s.IngestReader(t.Context(), strings.NewReader(strings.Repeat("y", sent)), announced, mediastore.Facts{})
		if !errors.Is(err, mediastore.ErrSize) {
			t.Errorf("%d announced, %d sent: %v", announced, sent, err)
		}
	}
	if _, err := s.IngestReader(t.Context(), endless{}, -1, mediastore.Facts{}); !errors.Is(err, mediastore.ErrTooLarge) {
		t.Errorf("without end: %v", err)
	}
	if n := len(files(t, s, "objects")); n != 4 {
		t.Errorf("%d objects, want 4", n)
	}
	if left := files(t, s, "tmp"); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// What is no regular file is refused without being opened, and nothing hangs. C129
func TestIngestSpecial(t *testing.T) {
	s := openStore(t, mediastore.Options{})
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{fifo, dir, os.DevNull} {
		if _, err := s.IngestFile(t.Context(), p, mediastore.Facts{}); !errors.Is(err, mediastore.ErrNotRegular) {
			t.Errorf("%s: %v", p, err)
		}
	}
	if _, err := s.IngestFile(t.Context(), filepath.Join(dir, "none"), mediastore.Facts{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := &hooked{r: endless{}, hook: cancel}
	if _, err := s.IngestReader(ctx, r, -1, mediastore.Facts{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	broken := errors.New("broken")
	if _, err := s.IngestReader(t.Context(), iotest.ErrReader(broken), -1, mediastore.Facts{}); !errors.Is(err, broken) {
		t.Errorf("a reader that fails: %v", err)
	}
	if left := append(files(t, s, "tmp"), files(t, s, "objects")...); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
}

// hooked calls hook at the first read.
type hooked struct {
	r    io.Reader
	hook func()
}

func (h *hooked) Read(p []byte) (int, error) {
	if h.hook != nil {
		h.hook()
		h.hook = nil
	}
	return h.r.Read(p)
}

// Damage shows as an error, never as content, and the next arrival repairs it. ATT-20
func TestDamage(t *testing.T) {
	s := openStore(t, mediastore.Options{})
	data := bytes.Repeat([]byte("0123456789"), 100_000)
	r := must[mediastore.Reference](t)(s.IngestBytes(t.Context(), data, mediastore.Facts{}))
	object := filepath.Join(s.Dir(), files(t, s, "objects")[0])
	for name, spoil := range map[string]func() error{
		"shorter": func() error { return os.Truncate(object, 10) },
		"other": func() error {
			return os.WriteFile(object, append([]byte("X"), data[1:]...), 0o600)
		},
		"missing": func() error { return os.Remove(object) },
		"link": func() error {
			return errors.Join(os.Remove(object), os.Symlink("/dev/zero", object))
		},
	} {
		if err := os.Chmod(object, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		o, err := s.Open(t.Context(), r)
		if err == nil {
			var got []byte
			got, err = io.ReadAll(o)
			o.Close()
			if bytes.Equal(got, data) {
				t.Errorf("%s: the content is whole", name)
			}
		}
		if !errors.Is(err, mediastore.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
		must[mediastore.Reference](t)(s.IngestBytes(t.Context(), data, mediastore.Facts{}))
		if got := content(t, s, r); got != string(data) {
			t.Errorf("%s: not repaired", name)
		}
	}
}

// A collection removes what no reference names, and nothing else.
func TestCollect(t *testing.T) {
	s := openStore(t, mediastore.Options{})
	ctx := t.Context()
	ingest := func(data string) mediastore.Reference {
		return must[mediastore.Reference](t)(s.IngestBytes(ctx, []byte(data), mediastore.Facts{Name: "n.txt"}))
	}
	twice, once, kept := ingest("shared"), ingest("alone"), ingest("kept")
	again := ingest("shared")
	if c := must[mediastore.Collected](t)(s.Collect(ctx)); c != (mediastore.Collected{}) {
		t.Errorf("collected %+v of what is referenced", c)
	}
	path, _, err := s.LocalPath(ctx, once.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []mediastore.Reference{twice, once} {
		if err := errors.Join(s.Release(ctx, r.ID), s.Release(ctx, r.ID)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the path of a released reference: %v", err)
	}
	if _, err := s.Reference(ctx, once.ID); !errors.Is(err, mediastore.ErrNoReference) {
		t.Errorf("a released reference: %v", err)
	}
	if c := must[mediastore.Collected](t)(s.Collect(ctx)); c != (mediastore.Collected{Objects: 1, Bytes: 5}) {
		t.Errorf("collected %+v", c)
	}
	if got := content(t, s, again) + content(t, s, kept); got != "sharedkept" {
		t.Errorf("content %q", got)
	}
	// A reference that cannot be read keeps its object all the same.
	if err := os.Chmod(filepath.Join(s.Dir(), "refs", string(kept.ID)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.Dir(), "refs", string(kept.ID)), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if c := must[mediastore.Collected](t)(s.Collect(ctx)); c != (mediastore.Collected{}) {
		t.Errorf("collected %+v for a damaged reference", c)
	}
	if _, err := s.Reference(ctx, kept.ID); !errors.Is(err, mediastore.ErrDamaged) {
		t.Errorf("a damaged reference: %v", err)
	}
	for _, id := range []mediastore.RefID{"", "../x", "0123456789abcdef-../../../../../../../x"} {
		if _, err := s.Reference(ctx, id); !errors.Is(err, mediastore.ErrNoReference) {
			t.Errorf("reference %q: %v", id, err)
		}
	}
}

// While contents arrive from several processes and goroutines, collections run: whoever got a
// reference has its content.
func TestCollectWhileIngesting(t *testing.T) {
	s := openStore(t, mediastore.Options{})
	ctx := t.Context()
	stop := make(chan struct{})
	var collecting sync.WaitGroup
	for range 2 {
		other := openStore(t, mediastore.Options{Dir: s.Dir()})
		collecting.Go(func() {
			for {
				if _, err := other.Collect(ctx); err != nil {
					t.Errorf("collect: %v", err)
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	var ingesting sync.WaitGroup
	for w := range 3 {
		ingesting.Go(func() {
			for i := range 25 {
				// Contents are shared, so that one is collected while it arrives again.
				data := fmt.Sprintf("content %d", i%5)
				r, err := s.IngestReader(ctx, iotest.HalfReader(strings.NewReader(data)), -1, mediastore.Facts{Name: fmt.Sprint(w)})
				if err != nil {
					t.Errorf("ingest: %v", err)
					return
				}
				o, err := s.Open(ctx, r)
				if err != nil {
					t.Errorf("open: %v", err)
					return
				}
				got, err := io.ReadAll(o)
				o.Close()
				if err != nil || string(got) != data {
					t.Errorf("content %q, %v", got, err)
				}
				if err := s.Release(ctx, r.ID); err != nil {
					t.Errorf("release: %v", err)
				}
			}
		})
	}
	out, err := processes(t, "ingest", s.Dir(), 2)
	if err != nil {
		t.Errorf("another process: %v\n%s", err, out)
	}
	ingesting.Wait()
	close(stop)
	collecting.Wait()
	must[mediastore.Collected](t)(s.Collect(ctx))
	if left := append(files(t, s, "objects"), files(t, s, "tmp")...); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
}

// processes runs n processes of a role to their end.
func processes(t *testing.T, role, dir string, n int) (string, error) {
	t.Helper()
	var all bytes.Buffer
	var mu sync.Mutex
	var errs []error
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			out, err := roleCommand(t, role, dir).CombinedOutput()
			mu.Lock()
			defer mu.Unlock()
			all.Write(out)
			errs = append(errs, err)
		})
	}
	wg.Wait()
	return all.String(), errors.Join(errs...)
}

func roleCommand(t *testing.T, role, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], dir)
	cmd.Env = append(os.Environ(), roleEnv+"="+role)
	return cmd
}

// A local path has the arrival's name, cleaned, and the content. ATT-04
func TestLocalPath(t *testing.T) {
	s := openStore(t, mediastore.Options{})
	var paths []string
	for _, name := range []string{"report.pdf", "../../evil", "", "same", "same"} {
		r := must[mediastore.Reference](t)(s.IngestBytes(t.Context(), []byte("text"), mediastore.Facts{Name: name}))
		for range 2 {
			p, ref, err := s.LocalPath(t.Context(), r.ID)
			if err != nil {
				t.Fatal(err)
			}
			if data, err := os.ReadFile(p); err != nil || string(data) != "text" {
				t.Errorf("%s: %q, %v", p, data, err)
			}
			if filepath.Base(p) != mediastore.CleanName(name) || ref != r || !strings.HasPrefix(p, s.Dir()+"/") {
				t.Errorf("%q has path %s", name, p)
			}
			paths = append(paths, p)
		}
	}
	slices.Sort(paths)
	if n := len(slices.Compact(paths)); n != 5 {
		t.Errorf("%d paths for 5 arrivals", n)
	}
	r := must[mediastore.Reference](t)(s.IngestBytes(t.Context(), []byte("gone"), mediastore.Facts{}))
	if err := os.Remove(filepath.Join(s.Dir(), "objects", string(r.Digest[:2]), string(r.Digest))); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.LocalPath(t.Context(), r.ID); !errors.Is(err, mediastore.ErrDamaged) {
		t.Errorf("a missing object: %v", err)
	}
}

// A file that changes while it is read is refused.
func TestChangedFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "media")
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, bytes.Repeat([]byte("a"), 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	s := openStore(t, mediastore.Options{Dir: dir})
	// The store's lock is held alone while the ingest wants to make its temporary file: by
	// then the source is open and its size is known.
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := s.IngestFile(t.Context(), path, mediastore.Facts{})
		done <- err
	}()
	opened(t, path)
	if err := os.WriteFile(path, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	lock.Close()
	if err := <-done; !errors.Is(err, mediastore.ErrSize) && !errors.Is(err, mediastore.ErrChanged) {
		t.Errorf("a file that changed: %v", err)
	}
}

// opened waits until this process has a file open.
func opened(t *testing.T, path string) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for time.Now().Before(deadline) {
		fds, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip(err)
		}
		for _, fd := range fds {
			if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && to == path {
				return
			}
		}
		time.Sleep(time.Millisecond) // sleep: descriptors give no event
	}
	t.Fatal("the file was not opened")
}
