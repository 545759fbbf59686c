package remoteworkspace_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/workberth/workberth/attachments"
	"github.com/workberth/workberth/attachments/mediastore"
	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/remoteworkspace"
)

func mediaStore(t *testing.T) *mediastore.Store {
	t.Helper()
	s, err := mediastore.Open(mediastore.Options{Dir: filepath.Join(t.TempDir(), "media")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// The binding that serves the documents stages the files too. ATT-15 ATT-16 C133
func TestPrepareAttachments(t *testing.T) {
	places(t, func(t *testing.T, p place) {
		s := mediaStore(t)
		r, err := s.IngestBytes(t.Context(), []byte("text"), mediastore.Facts{Name: "a.txt"})
		if err != nil {
			t.Fatal(err)
		}
		prep, err := attachments.NewWorkspacePreparer(attachments.WorkspaceOptions{Store: s, CreateBridge: p.open})
		if err != nil {
			t.Fatal(err)
		}
		reg := remoteworkspace.NewRegistry(remoteworkspace.RegistryOptions{})
		const dir = "/bound/workspace"
		if err := reg.Declare(dir); err != nil {
			t.Fatal(err)
		}
		release, err := reg.Register(dir, remoteworkspace.Access{Bridge: p.open, PrepareTurnAttachments: prep.Prepare})
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		w, err := remoteworkspace.New(remoteworkspace.Options{Registry: reg})
		if err != nil {
			t.Fatal(err)
		}
		for _, required := range []bool{true, false} { // an attempt, then a steering input
			n, err := w.PrepareAttachments(t.Context(), dir, attachments.PrepareRequest{Media: []attachments.MediaFact{attachments.FactOf(r)}, RequirePreparation: required})
			if err != nil || len(n.Files) != 1 {
				t.Fatalf("%+v, %v", n, err)
			}
			if data, err := os.ReadFile(filepath.Join(p.root, n.Files[0].WorkspacePath)); string(data) != "text" {
				t.Errorf("%q, %v", data, err)
			}
		}
	})
}

// Who prepares, in each state of a binding. ATT-16 ATT-31 ATT-32 ATT-33
func TestPrepareAttachmentsStates(t *testing.T) {
	reg := remoteworkspace.NewRegistry(remoteworkspace.RegistryOptions{})
	refused := errors.New("refused")
	allowed := true
	w, err := remoteworkspace.New(remoteworkspace.Options{Registry: reg, Authorize: func(context.Context, remoteworkspace.Operation) (fsbridge.AssertFunc, error) {
		if !allowed {
			return nil, refused
		}
		return nil, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	local := func(context.Context, attachments.TurnFiles) (attachments.Note, error) {
		return attachments.Note{Text: "local path"}, nil
	}
	files := []attachments.MediaFact{{Name: "a", Path: "/host/a"}}
	call := func(dir string, media []attachments.MediaFact, required bool) (string, error) {
		n, err := w.PrepareAttachments(t.Context(), dir, attachments.PrepareRequest{Media: media, RequirePreparation: required, Provider: local})
		return n.Text, err
	}
	if n, err := call("/local/workspace", files, true); n != "local path" || err != nil {
		t.Errorf("unbound: %q, %v", n, err)
	}
	const dir = "/bound/workspace"
	if err := reg.Declare(dir); err != nil {
		t.Fatal(err)
	}
	for _, required := range []bool{true, false} {
		_, err := call(dir, files, required)
		if !errors.Is(err, remoteworkspace.ErrUnavailable) || !errors.Is(err, attachments.ErrDispatchBlocked) {
			t.Errorf("declared: %v", err)
		}
		if n, err := call(dir, nil, required); n != "" || err != nil {
			t.Errorf("declared, text only: %q, %v", n, err)
		}
	}
	release, err := reg.Register(dir, remoteworkspace.Access{Bridge: localFactory(t.TempDir())})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := call(dir, files, false); n != "" || err != nil {
		t.Errorf("bound without a provider: %q, %v", n, err)
	}
	if _, err := call(dir, files, true); !errors.Is(err, attachments.ErrNoProvider) || !errors.Is(err, attachments.ErrDispatchBlocked) {
		t.Errorf("bound without a provider, required: %v", err)
	}
	if n, err := call(dir, nil, true); n != "" || err != nil {
		t.Errorf("bound without a provider, text only: %q, %v", n, err)
	}
	release()
	allowed = false
	if _, err := call(dir, nil, false); !errors.Is(err, remoteworkspace.ErrUnauthorized) {
		t.Errorf("not authorised: %v", err)
	}
}

// A registration that ends or is replaced on the way blocks: all files of one call use the same. ATT-29
func TestPrepareAttachmentsOneBinding(t *testing.T) {
	reg := remoteworkspace.NewRegistry(remoteworkspace.RegistryOptions{})
	w, err := remoteworkspace.New(remoteworkspace.Options{Registry: reg})
	if err != nil {
		t.Fatal(err)
	}
	const dir = "/bound/workspace"
	if err := reg.Declare(dir); err != nil {
		t.Fatal(err)
	}
	var release func()
	var calls []string
	access := func(name string) remoteworkspace.Access {
		return remoteworkspace.Access{
			Bridge: localFactory(t.TempDir()),
			PrepareTurnAttachments: func(_ context.Context, files attachments.TurnFiles) (attachments.Note, error) {
				calls = append(calls, name+" "+files.Files[0].Name)
				if files.Files[0].Name == "b" {
					release()
					var err error
					if release, err = reg.Register(dir, access2(t)); err != nil {
						return attachments.Note{}, err
					}
				}
				return attachments.Note{Text: "path"}, nil
			},
		}
	}
	if release, err = reg.Register(dir, access("first")); err != nil {
		t.Fatal(err)
	}
	var files []attachments.MediaFact
	for _, n := range []string{"a", "b", "c"} {
		files = append(files, attachments.MediaFact{Name: n, Path: "/host/" + n})
	}
	n, err := w.PrepareAttachments(t.Context(), dir, attachments.PrepareRequest{Media: files, RequirePreparation: true})
	if !errors.Is(err, attachments.ErrDispatchBlocked) || !errors.Is(err, attachments.ErrNotCurrent) || !n.Empty() {
		t.Errorf("%+v, %v", n, err)
	}
	if got := strings.Join(calls, ", "); got != "first a, first b" {
		t.Errorf("calls %s", got)
	}
	release()
}

// access2 is a registration that must not be asked.
func access2(t *testing.T) remoteworkspace.Access {
	return remoteworkspace.Access{
		Bridge: localFactory(t.TempDir()),
		PrepareTurnAttachments: func(context.Context, attachments.TurnFiles) (attachments.Note, error) {
			t.Error("the second registration was asked")
			return attachments.Note{}, nil
		},
	}
}
