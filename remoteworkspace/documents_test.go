package remoteworkspace_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/guestfs"
	"github.com/workberth/workberth/internal/guest/client"
	"github.com/workberth/workberth/internal/guest/guesttest"
	"github.com/workberth/workberth/internal/guest/server"
	"github.com/workberth/workberth/remoteworkspace"
)

func sha(s string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(s))) }

func ptr(s string) *string { return &s }

// withoutTimes makes answers comparable.
func withoutTimes(list []remoteworkspace.Document) []remoteworkspace.Document {
	for i := range list {
		list[i].ModTime = time.Time{}
	}
	return list
}

// run makes a sequence of requests and returns every answer.
func run(t *testing.T, docs *remoteworkspace.DocumentService, dir string) []any {
	t.Helper()
	ctx := t.Context()
	var answers []any
	add := func(v any, err error) {
		var text string
		if err != nil {
			text = strings.ReplaceAll(err.Error(), dir, "DIR")
		}
		answers = append(answers, v, text)
	}
	set := func(name, content string, hash *string) {
		r, err := docs.Set(ctx, remoteworkspace.SetRequest{Dir: dir, Name: name, Content: []byte(content), ExpectedHash: hash})
		r.ModTime = time.Time{}
		add(r, err)
	}
	list := func() { l, err := docs.List(ctx, dir); add(withoutTimes(l), err) }
	get := func(name string) {
		d, err := docs.Get(ctx, remoteworkspace.GetRequest{Dir: dir, Name: name})
		d.ModTime = time.Time{}
		add(d, err)
	}
	list()
	get("AGENTS.md")
	set("AGENTS.md", "one", ptr(""))
	set("AGENTS.md", "two", ptr(""))
	set("AGENTS.md", "two", ptr(sha("one")))
	set("AGENTS.md", "three", ptr(sha("one")))
	set("AGENTS.md", "three", nil)
	set("notes/deep/x.md", "new directories", nil)
	set("SOUL.md", "x", ptr(sha("x")))
	set("SOUL.md", "x", ptr("nonsense"))
	get("AGENTS.md")
	get("secret.txt")
	u, err := docs.UpdateIdentity(ctx, remoteworkspace.UpdateIdentityRequest{Dir: dir, IdentityPatch: remoteworkspace.IdentityPatch{Name: ptr("Ann"), Emoji: ptr("🦞")}})
	u.ModTime = time.Time{}
	add(u, err)
	get("IDENTITY.md")
	list()
	return answers
}

// RWS-01, RWS-02: the same requests give the same answers for a local workspace and for
// one that is bound, also over a bridge with the three core operations only (FSB-01).
func TestSameAnswers(t *testing.T) {
	wraps := map[string]func(fsbridge.Bridge) fsbridge.Bridge{"full": nil, "core": core}
	options := remoteworkspace.DocumentOptions{Allow: append(remoteworkspace.DefaultDocuments(), "notes/deep/x.md")}
	here := t.TempDir()
	w, err := remoteworkspace.New(remoteworkspace.Options{Registry: remoteworkspace.NewRegistry(remoteworkspace.RegistryOptions{}), Local: openLocal})
	if err != nil {
		t.Fatal(err)
	}
	docs, err := w.Documents(options)
	if err != nil {
		t.Fatal(err)
	}
	want := run(t, docs, here)
	if got := want[4].(remoteworkspace.SetResult); !got.Created || string(got.Hash) != sha("one") {
		t.Errorf("first save: %+v", got)
	}
	compare := func(t *testing.T, f *fixture) {
		t.Helper()
		got := run(t, f.docs, f.dir)
		for i := range want {
			if !reflect.DeepEqual(got[i], want[i]) {
				t.Errorf("answer %d: %+v, want %+v", i, got[i], want[i])
			}
		}
		if f.content(t, "AGENTS.md") != "three" || f.content(t, "IDENTITY.md") != "# Identity\n\n- **Name:** Ann\n- **Emoji:** 🦞\n" {
			t.Error("the files are not what the answers say")
		}
	}
	t.Run("sftp", func(t *testing.T) { // RWS-12: an SFTP server has the documents and no bootstrap
		f := bind(t, sftpPlace(t), nil, remoteworkspace.Options{}, options)
		compare(t, f)
		_, err := f.w.LoadBootstrap(t.Context(), f.dir, remoteworkspace.BootstrapConfig{})
		wantErr(t, "bootstrap", err, fsbridge.ErrUnsupported)
	})
	for name, wrap := range wraps {
		t.Run(name, func(t *testing.T) {
			places(t, func(t *testing.T, p place) {
				compare(t, bind(t, p, wrap, remoteworkspace.Options{}, options))
			})
		})
	}
}

// RWS-06: names outside the allowlist are refused before the bridge is touched, however
// they lead to an allowed document.
func TestAllowlist(t *testing.T) {
	root := t.TempDir()
	f := bind(t, place{root: root, open: localFactory(root)}, nil, remoteworkspace.Options{}, remoteworkspace.DocumentOptions{Allow: []string{"AGENTS.md", "notes/a.md"}})
	f.write(t, "AGENTS.md", "a")
	f.write(t, "SOUL.md", "s")
	for _, name := range []string{"SOUL.md", "agents.md", "./AGENTS.md", "notes/../AGENTS.md", "AGENTS.md/", "/etc/passwd", "../AGENTS.md", "", "notes", "a\x00"} {
		_, err := f.docs.Get(t.Context(), remoteworkspace.GetRequest{Dir: f.dir, Name: name})
		wantErr(t, "get "+name, err, remoteworkspace.ErrNotAllowed)
		_, err = f.docs.Set(t.Context(), remoteworkspace.SetRequest{Dir: f.dir, Name: name})
		wantErr(t, "set "+name, err, remoteworkspace.ErrNotAllowed)
	}
	_, err := f.docs.UpdateIdentity(t.Context(), remoteworkspace.UpdateIdentityRequest{Dir: f.dir})
	wantErr(t, "identity", err, remoteworkspace.ErrNotAllowed)
	if n := f.opened.Load(); n != 0 {
		t.Errorf("the bridge was touched %d times", n)
	}
	list, err := f.docs.List(t.Context(), f.dir)
	if err != nil || len(list) != 2 || list[0].Name != "AGENTS.md" || !list[1].Missing {
		t.Errorf("list %+v, %v", list, err)
	}
	for _, bad := range []string{"/x", "../x", "a/../b", "", ".", "a//b"} {
		_, err := f.w.Documents(remoteworkspace.DocumentOptions{Allow: []string{bad}})
		wantErr(t, "allow "+bad, err)
		if err == nil {
			t.Errorf("%q was taken into the allowlist", bad)
		}
	}
	none, err := f.w.Documents(remoteworkspace.DocumentOptions{Allow: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = none.Get(t.Context(), remoteworkspace.GetRequest{Dir: f.dir, Name: "AGENTS.md"})
	wantErr(t, "empty list", err, remoteworkspace.ErrNotAllowed)
}

// RWS-07: the authorisation check comes first, for bound and local workspaces, and its
// guard is asked again before each command.
func TestAuthorisation(t *testing.T) {
	errNo := errors.New("not yours")
	here := t.TempDir()
	var refuse, gone atomic.Bool
	var asked []remoteworkspace.Operation
	root := t.TempDir()
	f := bind(t, place{root: root, open: localFactory(root)}, nil, remoteworkspace.Options{
		Authorize: func(_ context.Context, op remoteworkspace.Operation) (fsbridge.AssertFunc, error) {
			asked = append(asked, op)
			if refuse.Load() {
				return nil, errNo
			}
			return func() error {
				if gone.Load() {
					return errNo
				}
				return nil
			}, nil
		},
	}, remoteworkspace.DocumentOptions{})
	for _, dir := range []string{f.dir, here} {
		refuse.Store(true)
		gone.Store(false)
		before := f.opened.Load() + f.locals.Load()
		for name, call := range every(f.w, f.docs, dir) {
			wantErr(t, name, call(t.Context()), remoteworkspace.ErrUnauthorized, errNo)
		}
		if f.opened.Load()+f.locals.Load() != before {
			t.Error("a bridge was made for somebody without the right")
		}
		refuse.Store(false)
		gone.Store(true)
		for name, call := range every(f.w, f.docs, dir) {
			wantErr(t, "guard: "+name, call(t.Context()), fsbridge.ErrNotCurrent, errNo)
		}
	}
	if asked[0].Dir != f.dir || asked[0].Method == "" {
		t.Errorf("asked about %+v", asked[0])
	}
	if list, err := os.ReadDir(root); err != nil || len(list) != 0 {
		t.Errorf("something was written: %v %v", list, err)
	}
}

// RWS-09: a save on top of other content is refused with the present hash and writes
// nothing.
func TestConflict(t *testing.T) {
	for name, wrap := range map[string]func(fsbridge.Bridge) fsbridge.Bridge{
		"full": nil, "core": core, "exclusive": with(faulty{denied: []fsbridge.Capability{fsbridge.CapWriteStream}}),
	} {
		t.Run(name, func(t *testing.T) {
			places(t, func(t *testing.T, p place) {
				f := bind(t, p, wrap, remoteworkspace.Options{}, remoteworkspace.DocumentOptions{})
				p.write(t, "AGENTS.md", "present")
				for _, want := range []string{"", sha("other")} {
					_, err := f.docs.Set(t.Context(), remoteworkspace.SetRequest{Dir: f.dir, Name: "AGENTS.md", Content: []byte("new"), ExpectedHash: &want})
					wantErr(t, "set", err, remoteworkspace.ErrConflict)
					var c *remoteworkspace.ConflictError
					if !errors.As(err, &c) || string(c.Current) != sha("present") || string(c.Expected) != want {
						t.Errorf("expected %q: %+v", want, c)
					}
				}
				_, err := f.docs.Set(t.Context(), remoteworkspace.SetRequest{Dir: f.dir, Name: "SOUL.md", Content: []byte("new"), ExpectedHash: ptr(sha("x"))})
				var c *remoteworkspace.ConflictError
				if !errors.As(err, &c) || c.Current != "" {
					t.Errorf("missing document: %v", err)
				}
				if p.content(t, "AGENTS.md") != "present" {
					t.Error("the refused save has written")
				}
			})
		})
	}
}

// RWS-09: saves through one service wait for each other, so that of many with the same
// expectation one wins, even over a bridge that cannot check.
func TestSavesQueue(t *testing.T) {
	root := t.TempDir()
	f := bind(t, place{root: root, open: localFactory(root)}, core, remoteworkspace.Options{}, remoteworkspace.DocumentOptions{})
	f.write(t, "AGENTS.md", "old")
	var wg sync.WaitGroup
	var won atomic.Int64
	for i := range 16 {
		wg.Go(func() {
			_, err := f.docs.Set(t.Context(), remoteworkspace.SetRequest{Dir: f.dir, Name: "AGENTS.md", Content: fmt.Append(nil, i), ExpectedHash: ptr(sha("old"))})
			if err == nil {
				won.Add(1)
			} else if !errors.Is(err, remoteworkspace.ErrConflict) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		t.Errorf("%d saves won", won.Load())
	}
}

// RWS-10: the check is no lock. What a program on the far side writes between check and
// save is overwritten, and nobody claims otherwise.
func TestCheckIsNoLock(t *testing.T) {
	root := t.TempDir()
	p := place{root: root, open: localFactory(root)}
	p.write(t, "AGENTS.md", "old")
	inner := with(faulty{before: func(op, _ string) error {
		if op == "write" {
			p.write(t, "AGENTS.md", "written in between")
		}
		return nil
	}})
	f := bind(t, p, func(b fsbridge.Bridge) fsbridge.Bridge { return core(inner(b)) }, remoteworkspace.Options{}, remoteworkspace.DocumentOptions{})
	r, err := f.docs.Set(t.Context(), remoteworkspace.SetRequest{Dir: f.dir, Name: "AGENTS.md", Content: []byte("new"), ExpectedHash: ptr(sha("old"))})
	if err != nil || string(r.Hash) != sha("new") || p.content(t, "AGENTS.md") != "new" {
		t.Errorf("%+v, %v, %q", r, err, p.content(t, "AGENTS.md"))
	}
	if doc, err := os.ReadFile("doc.go"); err != nil || !strings.Contains(string(doc), "is not a lock") {
		t.Errorf("the package does not say that the check is no lock: %v", err)
	}
}

// RWS-11: a save whose connection fails, or whose caller stops waiting, is neither
// success nor failure, and is not repeated.
func TestOutcomeUnknown(t *testing.T) {
	for _, c := range []struct {
		name  string
		cause error
		wrap  func(func(fsbridge.Bridge) fsbridge.Bridge) func(fsbridge.Bridge) fsbridge.Bridge
	}{
		{"cut", fmt.Errorf("%w: cut", fsbridge.ErrOutcomeUnknown), nil},
		{"gave up", context.DeadlineExceeded, nil},
		{"cut, core", fmt.Errorf("%w: cut", fsbridge.ErrOutcomeUnknown), func(w func(fsbridge.Bridge) fsbridge.Bridge) func(fsbridge.Bridge) fsbridge.Bridge {
			return func(b fsbridge.Bridge) fsbridge.Bridge { return core(w(b)) }
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			p := place{root: root, open: localFactory(root)}
			p.write(t, "IDENTITY.md", "- Name: old\n")
			var writes int
			wrap := with(faulty{after: func(op, _ string, err error) error {
				if op == "write" {
					writes++
					return c.cause
				}
				return err
			}})
			if c.wrap != nil {
				wrap = c.wrap(wrap)
			}
			f := bind(t, p, wrap, remoteworkspace.Options{}, remoteworkspace.DocumentOptions{})
			_, err := f.docs.Set(t.Context(), remoteworkspace.SetRequest{Dir: f.dir, Name: "AGENTS.md", Content: []byte("x")})
			wantErr(t, "set", err, remoteworkspace.ErrOutcomeUnknown, c.cause)
			if errors.Is(err, remoteworkspace.ErrUnavailable) {
				t.Error("unknown is told as unavailable, which would mean that nothing was written")
			}
			_, err = f.docs.UpdateIdentity(t.Context(), remoteworkspace.UpdateIdentityRequest{Dir: f.dir, IdentityPatch: remoteworkspace.IdentityPatch{Name: ptr("new")}})
			wantErr(t, "identity", err, remoteworkspace.ErrOutcomeUnknown)
			var de *remoteworkspace.DocumentError
			if !errors.As(err, &de) || !strings.Contains(de.Hint, "compare its hash") {
				t.Errorf("no advice in %+v", de)
			}
			if writes != 2 {
				t.Errorf("%d writes, want 2: nothing is repeated", writes)
			}
			if s := f.registry.State(f.dir); s != remoteworkspace.StateReady {
				t.Errorf("state %s", s)
			}
		})
	}
}

// RWS-11, RWS-16: a real connection that is cut after the content was written: the save
// is unknown, and what follows is unavailable.
func TestConnectionCut(t *testing.T) {
	root := t.TempDir()
	served, err := localFactory(root)(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var host net.Conn
	inner := with(faulty{after: func(op, _ string, err error) error {
		if op == "write" {
			_ = host.Close() // the answer does not arrive
		}
		return err
	}})(served)
	t.Cleanup(func() { _ = closing{served}.Close() })
	a, b := guesttest.SocketPair(t)
	host = a
	var wg sync.WaitGroup
	wg.Go(func() { _ = server.Serve(context.WithoutCancel(t.Context()), b, server.Config{Files: inner}) })
	t.Cleanup(wg.Wait)
	conn, err := client.New(t.Context(), a, client.Options{Build: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	far := guestfs.New(conn, guestfs.Options{})
	f := simple(t, place{root: root, open: func(_ context.Context, assert fsbridge.AssertFunc) (fsbridge.Bridge, error) {
		return far.Guarded(assert), nil
	}})
	_, err = f.docs.Set(t.Context(), remoteworkspace.SetRequest{Dir: f.dir, Name: "AGENTS.md", Content: []byte("x")})
	wantErr(t, "set", err, remoteworkspace.ErrOutcomeUnknown)
	if f.content(t, "AGENTS.md") != "x" {
		t.Error("this test wants the write to have happened")
	}
	for name, call := range every(f.w, f.docs, f.dir) {
		wantErr(t, name, call(t.Context()), remoteworkspace.ErrUnavailable)
	}
	if f.locals.Load() != 0 {
		t.Error("a local workspace was opened instead")
	}
}

// RWS-16: whether the connection cannot be made, fails before a command or during a read,
// the call fails, and no local copy is read.
func TestUnreachable(t *testing.T) {
	stale := place{root: t.TempDir()}
	stale.write(t, "AGENTS.md", "stale")
	errDown := errors.New("no route to host")
	for name, open := range map[string]fsbridge.Factory{
		"no connection": func(context.Context, fsbridge.AssertFunc) (fsbridge.Bridge, error) { return nil, errDown },
		"no bridge":     func(context.Context, fsbridge.AssertFunc) (fsbridge.Bridge, error) { return nil, nil },
		"fails at once": func(ctx context.Context, assert fsbridge.AssertFunc) (fsbridge.Bridge, error) {
			b, err := localFactory(stale.root)(ctx, assert)
			if err != nil {
				return nil, err
			}
			return with(faulty{before: func(string, string) error { return fmt.Errorf("%w: %w", fsbridge.ErrUnavailable, errDown) }})(b), nil
		},
		"closed": func(ctx context.Context, assert fsbridge.AssertFunc) (fsbridge.Bridge, error) {
			b, err := localFactory(stale.root)(ctx, assert)
			if err == nil {
				err = closing{b}.Close()
			}
			return b, err
		},
	} {
		f := simple(t, place{root: stale.root, open: open})
		for method, call := range every(f.w, f.docs, f.dir) {
			err := call(t.Context())
			wantErr(t, name+": "+method, err, remoteworkspace.ErrUnavailable)
			if !strings.Contains(err.Error(), "cannot be reached") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if f.locals.Load() != 0 || stale.content(t, "AGENTS.md") != "stale" {
			t.Errorf("%s: the local copy was used", name)
		}
	}
}

// the limit is exact, in both directions, and an error, never a cut.
func TestDocumentLimit(t *testing.T) {
	places(t, func(t *testing.T, p place) {
		f := simple(t, p)
		fits := strings.Repeat("x", remoteworkspace.DefaultMaxDocument)
		p.write(t, "AGENTS.md", fits)
		p.write(t, "SOUL.md", fits+"x")
		d, err := f.docs.Get(t.Context(), remoteworkspace.GetRequest{Dir: f.dir, Name: "AGENTS.md"})
		if err != nil || len(d.Content) != len(fits) {
			t.Errorf("%d bytes, %v", len(d.Content), err)
		}
		d, err = f.docs.Get(t.Context(), remoteworkspace.GetRequest{Dir: f.dir, Name: "SOUL.md"})
		wantErr(t, "get", err, fsbridge.ErrTooLarge)
		if len(d.Content) != 0 {
			t.Error("a part of it was returned")
		}
		for size, ok := range map[int]bool{len(fits): true, len(fits) + 1: false} {
			_, err = f.docs.Set(t.Context(), remoteworkspace.SetRequest{Dir: f.dir, Name: "USER.md", Content: make([]byte, size)})
			if (err == nil) != ok || !ok && !errors.Is(err, fsbridge.ErrTooLarge) {
				t.Errorf("save of %d bytes: %v", size, err)
			}
		}
		list, err := f.docs.List(t.Context(), f.dir)
		if err != nil || list[0].Hash == "" || !errors.Is(list[1].Problem, fsbridge.ErrTooLarge) || list[1].Size != int64(len(fits)+1) {
			t.Errorf("list %+v, %v", list[:2], err)
		}
	})
}

// RWS-01 C007: what stands in a document's place is told, and one bad document does not
// hide the others; honest links inside are followed and stay links.
func TestOddDocuments(t *testing.T) {
	places(t, func(t *testing.T, p place) {
		f := simple(t, p)
		p.write(t, "shared/agents.md", "shared")
		for name, plant := range map[string]func(string) error{
			"AGENTS.md": func(s string) error { return os.Symlink("shared/agents.md", s) },
			"SOUL.md":   func(s string) error { return os.Mkdir(s, 0o755) },
			"TOOLS.md":  func(s string) error { return os.Symlink("/etc/passwd", s) },
			"USER.md":   func(s string) error { return os.Symlink("nowhere", s) },
		} {
			if err := plant(filepath.Join(p.root, name)); err != nil {
				t.Fatal(err)
			}
		}
		list, err := f.docs.List(t.Context(), f.dir)
		if err != nil {
			t.Fatal(err)
		}
		of := map[string]remoteworkspace.Document{}
		for _, d := range list {
			of[d.Name] = d
		}
		if string(of["AGENTS.md"].Hash) != sha("shared") || !of["USER.md"].Missing || !of["MEMORY.md"].Missing {
			t.Errorf("list %+v", list)
		}
		wantErr(t, "directory", of["SOUL.md"].Problem, fsbridge.ErrNotRegular)
		wantErr(t, "link that leaves", of["TOOLS.md"].Problem, fsbridge.ErrOutsideRoot)
		if _, err := f.docs.Set(t.Context(), remoteworkspace.SetRequest{Dir: f.dir, Name: "AGENTS.md", Content: []byte("new"), ExpectedHash: ptr(sha("shared"))}); err != nil {
			t.Error(err)
		}
		if link, err := os.Readlink(filepath.Join(p.root, "AGENTS.md")); err != nil || link != "shared/agents.md" || p.content(t, "shared/agents.md") != "new" {
			t.Errorf("%q, %v", link, err)
		}
		_, err = f.docs.Set(t.Context(), remoteworkspace.SetRequest{Dir: f.dir, Name: "TOOLS.md", Content: []byte("evil")})
		wantErr(t, "save through a link that leaves", err, fsbridge.ErrOutsideRoot)
	})
}

// RWS-02: an update starts over when somebody else has saved, gives up after three times,
// and writes nothing when nothing changes.
func TestUpdateIdentityConflicts(t *testing.T) {
	for name, wrapped := range map[string]bool{"full": false, "core": true} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			p := place{root: root, open: localFactory(root)}
			p.write(t, "IDENTITY.md", "- Name: old\r\n- Vibe: calm\r\n")
			var disturb, reads, writes int
			wrap := with(faulty{
				before: func(op, _ string) error {
					if op == "write" {
						writes++
					}
					return nil
				},
				after: func(op, path string, err error) error {
					if op == "read" && path == "IDENTITY.md" {
						if reads++; disturb > 0 {
							disturb--
							p.write(t, "IDENTITY.md", fmt.Sprintf("- Name: old\r\n- Vibe: other %d\r\n", disturb))
						}
					}
					return err
				},
			})
			if wrapped {
				inner := wrap
				wrap = func(b fsbridge.Bridge) fsbridge.Bridge { return core(inner(b)) }
			}
			f := bind(t, p, wrap, remoteworkspace.Options{}, remoteworkspace.DocumentOptions{})
			update := func(name string) (remoteworkspace.IdentityResult, error) {
				return f.docs.UpdateIdentity(t.Context(), remoteworkspace.UpdateIdentityRequest{Dir: f.dir, IdentityPatch: remoteworkspace.IdentityPatch{Name: &name}})
			}
			disturb = 1
			r, err := update("new")
			if err != nil || !r.Changed || r.Identity.Name != "new" || r.Identity.Vibe != "other 0" {
				t.Fatalf("%+v, %v", r, err)
			}
			if got := p.content(t, "IDENTITY.md"); got != "- Name: new\r\n- Vibe: other 0\r\n" || string(r.Hash) != sha(got) {
				t.Errorf("%q, %+v", got, r)
			}
			writes = 0
			if r, err = update("new"); err != nil || r.Changed || writes != 0 {
				t.Errorf("nothing to change: %+v, %v, %d writes", r, err, writes)
			}
			disturb = 1000
			_, err = update("newer")
			wantErr(t, "disturbed for ever", err, remoteworkspace.ErrConflict)
			disturb = 0
			_, err = f.docs.UpdateIdentity(t.Context(), remoteworkspace.UpdateIdentityRequest{Dir: f.dir, IdentityPatch: remoteworkspace.IdentityPatch{Name: ptr("two\nlines")}})
			wantErr(t, "two lines", err, remoteworkspace.ErrInvalid)
		})
	}
}

// A caller that waits for another save can give up.
func TestQueueGivesUp(t *testing.T) {
	root := t.TempDir()
	entered, goOn := make(chan struct{}), make(chan struct{})
	f := bind(t, place{root: root, open: localFactory(root)}, with(faulty{before: func(op, _ string) error {
		if op == "write" {
			close(entered)
			<-goOn
		}
		return nil
	}}), remoteworkspace.Options{}, remoteworkspace.DocumentOptions{})
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := f.docs.Set(t.Context(), remoteworkspace.SetRequest{Dir: f.dir, Name: "AGENTS.md"}); err != nil {
			t.Error(err)
		}
	})
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := f.docs.Set(ctx, remoteworkspace.SetRequest{Dir: f.dir, Name: "AGENTS.md"})
	wantErr(t, "set", err, context.Canceled)
	close(goOn)
	wg.Wait()
}

// RWS-11, RWS-16: a connection that fails before any one command leaves the document as it
// was, and says so; one that fails after the save does not take its success back.
func TestCutAnywhere(t *testing.T) {
	for name, outer := range map[string]func(fsbridge.Bridge) fsbridge.Bridge{"full": nil, "core": core} {
		for method, call := range map[string]func(*fixture) error{
			"set": func(f *fixture) error {
				_, err := f.docs.Set(t.Context(), remoteworkspace.SetRequest{Dir: f.dir, Name: "IDENTITY.md", Content: []byte("- Name: new\n"), ExpectedHash: ptr(sha("- Name: old\n"))})
				return err
			},
			"identity": func(f *fixture) error {
				_, err := f.docs.UpdateIdentity(t.Context(), remoteworkspace.UpdateIdentityRequest{Dir: f.dir, IdentityPatch: remoteworkspace.IdentityPatch{Name: ptr("new")}})
				return err
			},
		} {
			t.Run(name+"/"+method, func(t *testing.T) {
				for n, saved := 0, false; ; n++ {
					root := t.TempDir()
					p := place{root: root, open: localFactory(root)}
					p.write(t, "IDENTITY.md", "- Name: old\n")
					calls, done := 0, false
					wrap := with(faulty{
						before: func(string, string) error {
							if calls++; calls > n {
								return fsbridge.ErrUnavailable
							}
							return nil
						},
						after: func(op, _ string, err error) error { done = done || op == "write"; return err },
					})
					if inner := wrap; outer != nil {
						wrap = func(b fsbridge.Bridge) fsbridge.Bridge { return outer(inner(b)) }
					}
					f := bind(t, p, wrap, remoteworkspace.Options{}, remoteworkspace.DocumentOptions{})
					err := call(f)
					want := "- Name: old\n"
					if done {
						saved, want = true, "- Name: new\n"
						if err != nil {
							t.Errorf("cut after %d commands: %v, and it was saved", n, err)
						}
					} else {
						wantErr(t, "cut", err, remoteworkspace.ErrUnavailable)
					}
					if got := p.content(t, "IDENTITY.md"); got != want {
						t.Errorf("cut after %d commands: %q", n, got)
					}
					if calls <= n {
						if !saved {
							t.Error("nothing was ever saved")
						}
						return
					}
				}
			})
		}
	}
}
