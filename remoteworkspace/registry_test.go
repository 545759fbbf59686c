package remoteworkspace_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"testing"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/remoteworkspace"
)

// every calls each method on a workspace.
func every(w *remoteworkspace.Workspaces, docs *remoteworkspace.DocumentService, dir string) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"list": func(ctx context.Context) error { _, err := docs.List(ctx, dir); return err },
		"get": func(ctx context.Context) error {
			_, err := docs.Get(ctx, remoteworkspace.GetRequest{Dir: dir, Name: "AGENTS.md"})
			return err
		},
		"set": func(ctx context.Context) error {
			_, err := docs.Set(ctx, remoteworkspace.SetRequest{Dir: dir, Name: "AGENTS.md", Content: []byte("x")})
			return err
		},
		"identity": func(ctx context.Context) error {
			name := "Ann"
			_, err := docs.UpdateIdentity(ctx, remoteworkspace.UpdateIdentityRequest{Dir: dir, IdentityPatch: remoteworkspace.IdentityPatch{Name: &name}})
			return err
		},
		"bootstrap": func(ctx context.Context) error {
			_, err := w.LoadBootstrap(ctx, dir, remoteworkspace.BootstrapConfig{})
			return err
		},
		"compaction": func(ctx context.Context) error {
			_, err := w.ReadAfterCompaction(ctx, dir, remoteworkspace.BootstrapConfig{})
			return err
		},
	}
}

// RWS-16 Q-08: in "declared" and "stopped" every call fails, though a stale copy lies in
// the very directory; in "ready" the far side answers. Whoever spells the directory
// otherwise gets the same.
func TestStates(t *testing.T) {
	far, stale := t.TempDir(), t.TempDir()
	for _, d := range []string{far, stale} {
		if err := os.WriteFile(filepath.Join(d, "AGENTS.md"), []byte(d), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	alias := filepath.Join(t.TempDir(), "alias")
	if err := os.Symlink(stale, alias); err != nil {
		t.Fatal(err)
	}
	r := remoteworkspace.NewRegistry(remoteworkspace.RegistryOptions{})
	w, err := remoteworkspace.New(remoteworkspace.Options{Registry: r, Local: openLocal})
	if err != nil {
		t.Fatal(err)
	}
	docs, err := w.Documents(remoteworkspace.DocumentOptions{})
	if err != nil {
		t.Fatal(err)
	}
	spellings := []string{stale, stale + "/", filepath.Dir(stale) + "/./" + filepath.Base(stale), alias}
	refused := func(state remoteworkspace.State) {
		t.Helper()
		for _, dir := range spellings {
			if got := r.State(dir); got != state {
				t.Errorf("state of %s is %s, want %s", dir, got, state)
			}
			for name, call := range every(w, docs, dir) {
				err := call(t.Context())
				wantErr(t, string(state)+" "+name, err, remoteworkspace.ErrUnavailable)
				var u *remoteworkspace.UnavailableError
				if !errors.As(err, &u) || u.Code() != "WORKSPACE_ACCESS_UNAVAILABLE" || u.State != state {
					t.Errorf("%s %s: %v", state, name, err)
				}
			}
		}
	}
	if err := r.Declare(stale); err != nil {
		t.Fatal(err)
	}
	if err := r.Declare(alias); err != nil { // the same workspace
		t.Fatal(err)
	}
	if list := r.Bindings(); len(list) != 1 {
		t.Errorf("bindings %+v, want one", list)
	}
	refused(remoteworkspace.StateDeclared)
	access := remoteworkspace.Access{Bridge: localFactory(far)}
	release, err := r.Register(alias, access)
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range spellings {
		d, err := docs.Get(t.Context(), remoteworkspace.GetRequest{Dir: dir, Name: "AGENTS.md"})
		if err != nil || string(d.Content) != far {
			t.Errorf("%s: %q, %v", dir, d.Content, err)
		}
	}
	_, err = r.Register(stale, access)
	wantErr(t, "second registration", err, remoteworkspace.ErrRegistered)
	release()
	release()
	refused(remoteworkspace.StateStopped)

	// It can be reached again; the old release does not end the new life.
	again, err := r.Register(stale, access)
	if err != nil {
		t.Fatal(err)
	}
	release()
	if s := r.State(stale); s != remoteworkspace.StateReady {
		t.Errorf("state %s after the release of an earlier life", s)
	}
	again()
	refused(remoteworkspace.StateStopped)
	if data, err := os.ReadFile(filepath.Join(stale, "AGENTS.md")); err != nil || string(data) != stale {
		t.Errorf("the local copy was touched: %q, %v", data, err)
	}
}

func TestRegisterRefuses(t *testing.T) {
	r := remoteworkspace.NewRegistry(remoteworkspace.RegistryOptions{})
	ok := remoteworkspace.Access{Bridge: localFactory(t.TempDir())}
	_, err := r.Register("/srv/undeclared", ok)
	wantErr(t, "undeclared", err, remoteworkspace.ErrNotDeclared)
	wantErr(t, "relative", r.Declare("srv"), remoteworkspace.ErrInvalid)
	wantErr(t, "empty", r.Declare(""), fsbridge.ErrInvalidPath)
	if err := r.Declare("/srv/x"); err != nil {
		t.Fatal(err)
	}
	_, err = r.Register("/srv/x", remoteworkspace.Access{})
	wantErr(t, "no bridge", err, remoteworkspace.ErrInvalid)
	if s := r.State("/srv/x"); s != remoteworkspace.StateDeclared {
		t.Errorf("state %s", s)
	}
	_, err = remoteworkspace.New(remoteworkspace.Options{})
	wantErr(t, "no registry", err, remoteworkspace.ErrInvalid)
}

// RWS-08: a directory that was never declared is served locally, bindings or not.
func TestUnboundStaysLocal(t *testing.T) {
	f := simple(t, place{root: t.TempDir(), open: localFactory(t.TempDir())})
	here := place{root: t.TempDir()}
	here.write(t, "AGENTS.md", "here")
	d, err := f.docs.Get(t.Context(), remoteworkspace.GetRequest{Dir: here.root, Name: "AGENTS.md"})
	if err != nil || string(d.Content) != "here" {
		t.Fatalf("%q, %v", d.Content, err)
	}
	if f.locals.Load() != 1 || f.opened.Load() != 0 || f.registry.State(here.root) != remoteworkspace.StateUnbound {
		t.Errorf("%d local and %d bound bridges", f.locals.Load(), f.opened.Load())
	}
	w, err := remoteworkspace.New(remoteworkspace.Options{Registry: f.registry})
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.LoadBootstrap(t.Context(), here.root, remoteworkspace.BootstrapConfig{})
	wantErr(t, "no local workspaces", err, fsbridge.ErrUnsupported)
}

// RWS-03: the end of turns, however they end, leaves the binding in force.
func TestBindingOutlivesTurns(t *testing.T) {
	root := t.TempDir()
	f := simple(t, place{root: root, open: localFactory(root)})
	f.write(t, "AGENTS.md", "a")
	for range 3 {
		turn, end := context.WithCancel(t.Context())
		for name, call := range every(f.w, f.docs, f.dir) {
			if err := call(turn); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		end()
		for name, call := range every(f.w, f.docs, f.dir) {
			wantErr(t, "ended turn: "+name, call(turn), context.Canceled)
		}
		if s := f.registry.State(f.dir); s != remoteworkspace.StateReady {
			t.Fatalf("state %s after a turn", s)
		}
	}
}

// RWS-04, RWS-22: a binding has room for a bridge and callbacks, and for no target,
// credentials, worker or agent loop.
func TestAccessIsOnlyAccess(t *testing.T) {
	for field := range reflect.TypeFor[remoteworkspace.Access]().Fields() {
		if field.Type.Kind() != reflect.Func {
			t.Errorf("Access.%s is a %s", field.Name, field.Type)
		}
	}
}

// RWS-05: whatever is done with a bound workspace, none appears on the Gateway, and
// nobody opens one there.
func TestNoSecondWorkspace(t *testing.T) {
	places(t, func(t *testing.T, p place) {
		f := simple(t, p)
		for name, call := range every(f.w, f.docs, f.dir) {
			if err := call(t.Context()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := os.Lstat(f.dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the workspace directory on the Gateway: %v", err)
		}
		if n := f.locals.Load(); n != 0 {
			t.Errorf("%d local workspaces were opened", n)
		}
		if p.content(t, "AGENTS.md") != "x" {
			t.Error("the far side was not written")
		}
	})
}

// RWS-16: calls under way when the access is released are refused their next command.
func TestReleaseDuringCall(t *testing.T) {
	root := t.TempDir()
	var f *fixture
	f = bind(t, place{root: root, open: localFactory(root)}, with(faulty{after: func(op, _ string, err error) error {
		if op == "stat" {
			f.release()
		}
		return err
	}}), remoteworkspace.Options{}, remoteworkspace.DocumentOptions{})
	f.write(t, "AGENTS.md", "a")
	_, err := f.docs.Get(t.Context(), remoteworkspace.GetRequest{Dir: f.dir, Name: "AGENTS.md"})
	wantErr(t, "get", err, remoteworkspace.ErrUnavailable, fsbridge.ErrNotCurrent)
}

// A workspace that is declared while a local call is under way ends that call.
func TestDeclareDuringLocalCall(t *testing.T) {
	r := remoteworkspace.NewRegistry(remoteworkspace.RegistryOptions{})
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "AGENTS.md"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := remoteworkspace.New(remoteworkspace.Options{Registry: r, Local: func(ctx context.Context, dir string, assert fsbridge.AssertFunc) (fsbridge.Bridge, error) {
		b, err := openLocal(ctx, dir, assert)
		if err == nil {
			err = r.Declare(dir)
		}
		return b, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.LoadBootstrap(t.Context(), dir, remoteworkspace.BootstrapConfig{})
	wantErr(t, "bootstrap", err, remoteworkspace.ErrUnavailable)
}

// Registering, releasing and asking from everywhere at once.
func TestRegistryConcurrent(t *testing.T) {
	r := remoteworkspace.NewRegistry(remoteworkspace.RegistryOptions{})
	access := remoteworkspace.Access{Bridge: localFactory(t.TempDir())}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 50 {
				dir := filepath.Join("/srv", string(rune('a'+i%3)))
				if err := r.Declare(dir); err != nil {
					t.Error(err)
				}
				if release, err := r.Register(dir, access); err == nil {
					release()
					release()
				} else if !errors.Is(err, remoteworkspace.ErrRegistered) {
					t.Error(err)
				}
				_, _ = r.State(dir), r.Bindings()
			}
		})
	}
	wg.Wait()
	for _, b := range r.Bindings() {
		if b.State != remoteworkspace.StateStopped {
			t.Errorf("%+v", b)
		}
	}
}
