package attachments_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/workberth/workberth/attachments"
	"github.com/workberth/workberth/attachments/mediastore"
)

func always() error { return nil }

func admit(t testing.TB, opts attachments.AdmissionOptions) *attachments.Admission {
	t.Helper()
	if opts.Authority == nil {
		opts.Authority = always
	}
	a, err := attachments.Admit(opts)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func localRequest() attachments.InputRequest {
	return attachments.InputRequest{Placement: attachments.PlacementLocalHost, MaxChars: 100_000, AssertCurrent: always}
}

// Only a confirmed placement is served, and only evidence confirms one. ATT-01 ATT-02
func TestPlacement(t *testing.T) {
	for _, c := range []attachments.Connection{{}, {SameMachine: true}, {Unconfined: true}} {
		if p, err := c.Placement(); !errors.Is(err, attachments.ErrPlacement) || p != "" {
			t.Errorf("%+v: %q, %v", c, p, err)
		}
	}
	p, err := attachments.Connection{SameMachine: true, Unconfined: true}.Placement()
	if err != nil || p != "local-host" {
		t.Errorf("placement %q, %v", p, err)
	}
	s := openStore(t, 0)
	a := admit(t, attachments.AdmissionOptions{Store: s, Media: []attachments.MediaFact{ingest(t, s, "a", "", "x")}})
	for _, p := range []attachments.Placement{"", "remote", "LOCAL-HOST"} {
		req := localRequest()
		req.Placement = p
		if n, err := a.PrepareInput(t.Context(), req); !errors.Is(err, attachments.ErrPlacement) || !n.Empty() {
			t.Errorf("placement %q: %+v, %v", p, n, err)
		}
	}
	req := localRequest()
	req.AssertCurrent = nil
	if n, err := a.PrepareInput(t.Context(), req); !errors.Is(err, attachments.ErrInvalid) || !n.Empty() {
		t.Errorf("without a guard: %+v, %v", n, err)
	}
	for _, o := range []attachments.AdmissionOptions{{}, {Store: s}, {Authority: always}} {
		if _, err := attachments.Admit(o); !errors.Is(err, attachments.ErrInvalid) {
			t.Errorf("admission %+v: %v", o, err)
		}
	}
}

// The note lists what the host has opened, images too, by paths that hold the content. ATT-04 ATT-05 C123
func TestPrepareInput(t *testing.T) {
	s := openStore(t, 0)
	dir, out := t.TempDir(), t.TempDir()
	for path, data := range map[string]string{dir + "/in.txt": "inside", out + "/secret": "outside"} {
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink(out+"/secret", dir+"/leak"), syscall.Mkfifo(dir+"/fifo", 0o600)); err != nil {
		t.Fatal(err)
	}
	gone := ingest(t, s, "gone", "", "gone")
	if err := s.Release(t.Context(), gone.Ref); err != nil {
		t.Fatal(err)
	}
	png := "\x89PNG\r\n\x1a\n0000"
	facts := []attachments.MediaFact{
		ingest(t, s, "a.txt", "mail", "1"), ingest(t, s, "a.txt", "", "2"), ingest(t, s, "picture.png", "", png), gone,
		{Name: "in", Path: dir + "/in.txt"}, {Name: "leak", Path: dir + "/leak"}, {Name: "fifo", Path: dir + "/fifo"},
		{Name: "out", Path: out + "/secret"}, {Name: "dots", Path: dir + "/../" + filepath.Base(out) + "/secret"}, {Name: "dir", Path: dir}, {Name: "rel", Path: "in.txt"},
		{Name: "url", URL: "https://example.org/x"}, {Name: "text only"},
	}
	was := slices.Clone(facts)
	a := admit(t, attachments.AdmissionOptions{Store: s, Media: facts, Policy: attachments.Policy{Roots: []string{dir}}})
	clear(facts) // projection has emptied the attempt's media
	n, err := a.PrepareInput(t.Context(), localRequest())
	if err != nil {
		t.Fatal(err)
	}
	names, paths := notePaths(t, n)
	if got := strings.Join(names, " "); got != "a.txt a.txt picture.png in" {
		t.Errorf("the note names %s", got)
	}
	for i, want := range []string{"1", "2", png, "inside"} {
		if data, err := os.ReadFile(paths[i]); string(data) != want || err != nil {
			t.Errorf("%s: %q, %v", paths[i], data, err)
		}
	}
	if filepath.Base(paths[2]) != "picture.png" || !strings.Contains(n.Text, `from "mail"`) || !strings.Contains(n.Text, "image/png") {
		t.Errorf("note:\n%s", n.Text)
	}
	media, err := a.ResolveInputMedia(t.Context())
	if err != nil || !slices.Equal(media, was) {
		t.Errorf("media %+v, %v", media, err)
	}
}

// A steering input gets a note about its own media. ATT-06
func TestSteering(t *testing.T) {
	s := openStore(t, 0)
	a := admit(t, attachments.AdmissionOptions{Store: s, Media: []attachments.MediaFact{ingest(t, s, "admitted", "", "1")}})
	steered, recorded := ingest(t, s, "steered", "", "2"), ingest(t, s, "recorded", "", "3")
	for want, turn := range map[string]*attachments.Turn{
		"admitted": nil, "steered": {Media: []attachments.MediaFact{steered}},
		"recorded": {Media: nil, Recorder: recorder{recorded}},
	} {
		req := localRequest()
		req.Turn = turn
		n, err := a.PrepareInput(t.Context(), req)
		if names, _ := notePaths(t, n); err != nil || len(names) != 1 || names[0] != want {
			t.Errorf("want %s: %q, %v", want, n.Text, err)
		}
	}
}

type recorder []attachments.MediaFact

func (r recorder) TurnMedia(context.Context) ([]attachments.MediaFact, error) { return r, nil }

// The complete note or none, counted in UTF-16 code units. ATT-07 ATT-08
func TestMaxCharsProperty(t *testing.T) {
	s := openStore(t, 0)
	rapid.Check(t, func(rt *rapid.T) {
		var facts []attachments.MediaFact
		for range rapid.IntRange(1, 3).Draw(rt, "files") {
			r, err := s.IngestBytes(t.Context(), []byte("x"), mediastore.Facts{Name: rapid.String().Draw(rt, "name")})
			if err != nil {
				rt.Fatal(err)
			}
			facts = append(facts, attachments.FactOf(r))
		}
		a, err := attachments.Admit(attachments.AdmissionOptions{Store: s, Media: facts, Authority: always})
		if err != nil {
			rt.Fatal(err)
		}
		whole, err := a.PrepareInput(t.Context(), localRequest())
		if err != nil || len(whole.Files) != len(facts) {
			rt.Fatalf("%+v, %v", whole, err)
		}
		req := localRequest()
		req.MaxChars = whole.Chars() + rapid.SampledFrom([]int{-whole.Chars() - 1, -whole.Chars(), -1, 0, 1}).Draw(rt, "more")
		n, err := a.PrepareInput(t.Context(), req)
		if err != nil || n.Text != "" && n.Text != whole.Text || (n.Text == whole.Text) != (req.MaxChars >= whole.Chars()) {
			rt.Fatalf("room for %d of %d: %q, %v", req.MaxChars, whole.Chars(), n.Text, err)
		}
	})
}

// A later edit of the policy widens nothing, and a path grants nothing for later turns. ATT-03 ATT-11
func TestCapturedPolicy(t *testing.T) {
	s := openStore(t, 0)
	facts := []attachments.MediaFact{ingest(t, s, "a.pdf", "", "%PDF-1.7\n"), ingest(t, s, "b.txt", "", "text")}
	policy := attachments.Policy{Types: []string{"application/pdf"}}
	a := admit(t, attachments.AdmissionOptions{
		Store: s, Media: facts, Policy: policy, CurrentPolicy: func() attachments.Policy { return attachments.Policy{} },
	})
	policy.Types[0] = "*/*"
	n, err := a.PrepareInput(t.Context(), localRequest())
	if names, _ := notePaths(t, n); err != nil || len(names) != 1 || names[0] != "a.pdf" {
		t.Errorf("note %q, %v", n.Text, err)
	}
	later := admit(t, attachments.AdmissionOptions{Store: s, Media: facts, Policy: attachments.Policy{NoRead: true}})
	if n, err := later.PrepareInput(t.Context(), localRequest()); err != nil || !n.Empty() {
		t.Errorf("a later turn without reading: %q, %v", n.Text, err)
	}
	_, paths := notePaths(t, n)
	if err := s.Release(t.Context(), facts[0].Ref); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(paths[0]); err == nil {
		t.Error("the path has outlived its reference")
	}
}

// Where files have another way, there is no path. ATT-13
func TestOtherWays(t *testing.T) {
	s := openStore(t, 0)
	facts := []attachments.MediaFact{ingest(t, s, "a", "", "x")}
	for _, o := range []attachments.AdmissionOptions{
		{Situation: attachments.Situation{RemoteTransport: true}}, {Situation: attachments.Situation{RemoteWorkspace: true}},
		{Situation: attachments.Situation{WorkspaceAdapter: true}}, {Situation: attachments.Situation{Sandboxed: true}},
		{Policy: attachments.Policy{NoRead: true}}, {Policy: attachments.Policy{WorkspaceOnly: true}},
		{Policy: attachments.Policy{Types: []string{}}},
	} {
		o.Store, o.Media = s, facts
		n, err := admit(t, o).PrepareInput(t.Context(), localRequest())
		if err != nil || !n.Empty() || len(n.Files) != 0 {
			t.Errorf("%+v: %+v, %v", o, n, err)
		}
	}
}

// Guard and authority are asked all along, and the last time before a path is told. ATT-14
func TestInputGuards(t *testing.T) {
	s := openStore(t, 0)
	facts := []attachments.MediaFact{ingest(t, s, "a", "", "x"), ingest(t, s, "b", "", "y")}
	gone := errors.New("gone")
	for _, whose := range []string{"guard", "authority"} {
		for allowed := 0; ; allowed++ {
			left := allowed
			check := func() error {
				if left--; left < 0 {
					return gone
				}
				return nil
			}
			o, req := attachments.AdmissionOptions{Store: s, Media: facts}, localRequest()
			if whose == "guard" {
				req.AssertCurrent = check
			} else {
				o.Authority = check
			}
			n, err := admit(t, o).PrepareInput(t.Context(), req)
			if err == nil {
				if allowed < 4 || len(n.Files) != 2 {
					t.Errorf("%s: %d checks were enough for %+v", whose, allowed, n)
				}
				break
			}
			if !errors.Is(err, gone) || !errors.Is(err, attachments.ErrNotCurrent) || !n.Empty() || n.Files != nil {
				t.Fatalf("%s: %+v, %v", whose, n, err)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if n, err := admit(t, attachments.AdmissionOptions{Store: s, Media: facts}).PrepareInput(ctx, localRequest()); !errors.Is(err, context.Canceled) || !n.Empty() {
		t.Errorf("cancelled: %+v, %v", n, err)
	}
}

// In a workspace of this machine the local note counts as preparation. ATT-31 ATT-33
func TestLocalProvider(t *testing.T) {
	s := openStore(t, 0)
	facts := []attachments.MediaFact{ingest(t, s, "a", "", "x"), ingest(t, s, "b", "", "y")}
	a := admit(t, attachments.AdmissionOptions{Store: s, Media: facts})
	n, err := attachments.PrepareForWorkspace(t.Context(), attachments.PrepareRequest{Media: facts, RequirePreparation: true, Provider: a.Provider(localRequest())})
	if names, _ := notePaths(t, n); err != nil || len(names) != 2 {
		t.Errorf("note %q, %v", n.Text, err)
	}
	no := admit(t, attachments.AdmissionOptions{Store: s, Media: facts, Policy: attachments.Policy{NoRead: true}})
	_, err = attachments.PrepareForWorkspace(t.Context(), attachments.PrepareRequest{Media: facts, RequirePreparation: true, Provider: no.Provider(localRequest())})
	if !errors.Is(err, attachments.ErrDispatchBlocked) {
		t.Errorf("without reading: %v", err)
	}
}
