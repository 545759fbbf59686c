package attachments_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/workberth/workberth/attachments"
	"github.com/workberth/workberth/fsbridge"
)

// The original facts, images and deferred ones included, as a copy. ATT-35 ATT-36 ATT-37 ATT-38 ATT-39
func TestResolveInputMedia(t *testing.T) {
	s := openStore(t, 0)
	facts := []attachments.MediaFact{ingest(t, s, "a.png", "", "\x89PNG\r\n\x1a\n"), {Name: "b", Path: "/no/such/file"}}
	deferred := ingest(t, s, "later", "", "x")
	valid := true
	gone := errors.New("gone")
	var during func()
	a := admit(t, attachments.AdmissionOptions{
		Store: s, Media: facts, Authority: func() error {
			if !valid {
				return gone
			}
			return nil
		},
		Deferred: func(context.Context) ([]attachments.MediaFact, error) {
			if during != nil {
				during()
			}
			return []attachments.MediaFact{deferred}, nil
		},
	})
	want := []attachments.MediaFact{facts[0], facts[1], deferred}
	for range 2 {
		got, err := attachments.OriginalMedia(t.Context(), a.ResolveInputMedia, nil)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("media %+v, %v", got, err)
		}
		got[0].Name, facts[1].Name = "changed", "changed by the host"
	}
	during = func() { valid = false }
	if got, err := a.ResolveInputMedia(t.Context()); !errors.Is(err, gone) || got != nil {
		t.Errorf("authority lost on the way: %+v, %v", got, err)
	}
	if got, err := a.ResolveInputMedia(t.Context()); !errors.Is(err, attachments.ErrNotCurrent) || got != nil {
		t.Errorf("without authority: %+v, %v", got, err)
	}
	attempt := []attachments.MediaFact{{Name: "attempt"}}
	got, err := attachments.OriginalMedia(t.Context(), nil, attempt)
	if err != nil || !slices.Equal(got, attempt) {
		t.Errorf("an older host: %+v, %v", got, err)
	}
}

// Older attachments come back inside the bounds, under the policy of now, or with a reason. ATT-40 ATT-41
func TestContextMedia(t *testing.T) {
	s := openStore(t, 0)
	long := strings.Repeat("ü𝄞", 1000)
	message := attachments.HistoryMessage{ID: "m1", Media: []attachments.MediaFact{
		ingest(t, s, "short.txt", "mail", "hello"), ingest(t, s, "long.txt", "", long), ingest(t, s, "data.json", "", `{"a":1}`),
		ingest(t, s, "p.png", "", "\x89PNG\r\n\x1a\n"+strings.Repeat("\x00", 90)), ingest(t, s, "big.png", "", "\x89PNG\r\n\x1a\n"+strings.Repeat("\x00", 9000)),
		ingest(t, s, "a.pdf", "", "%PDF-1.7\n"), {Name: "url", URL: "https://example.org"}, {Name: "path", Path: "/etc/passwd"}, {Name: "no file"},
	}}
	policy := attachments.Policy{}
	a := admit(t, attachments.AdmissionOptions{Store: s, Policy: attachments.Policy{Types: []string{}}, CurrentPolicy: func() attachments.Policy { return policy }})
	const room = 500
	m, err := a.PrepareContextMedia(t.Context(), attachments.ContextRequest{Message: message, MaxChars: room})
	if err != nil || len(m.Files) != 8 {
		t.Fatalf("%+v, %v", m, err)
	}
	total := 0
	for i, f := range m.Files {
		total += f.Chars
		if f.Chars > room || !utf8.ValidString(f.Text) || (f.Omitted == "") != (i < 4) || (f.Omitted != "") != (f.Chars == 0) || f.Cut != (i == 1) {
			t.Errorf("file %d: %+v", i, f)
		}
	}
	if got := m.Files[0].Text; got != "Attached file \"short.txt\" (text/plain; charset=utf-8, 5 bytes, from \"mail\")\nhello" {
		t.Errorf("text %q", got)
	}
	if got := m.Files[1]; got.Chars < room-3 || !strings.HasSuffix(got.Text, "\n[cut: the file has 6000 bytes]") {
		t.Errorf("a long text: %+v", got)
	}
	if len(m.Files[3].Image) != 98 || m.Chars() != total {
		t.Errorf("image of %d bytes, %d characters of %d", len(m.Files[3].Image), m.Chars(), total)
	}
	for _, budget := range []int{1, 100, 300, 600, 1000} {
		m, err := a.PrepareContextMedia(t.Context(), attachments.ContextRequest{Message: message, MaxChars: room, Budget: budget})
		if err != nil || m.Chars() > budget || len(m.Files) != 8 {
			t.Errorf("budget %d: %d characters, %v", budget, m.Chars(), err)
		}
	}
	policy.Types = []string{"image/*"} // the policy in force now
	m, err = a.PrepareContextMedia(t.Context(), attachments.ContextRequest{Message: message, MaxChars: room})
	if err != nil || m.Files[0].Omitted == "" || m.Files[3].Omitted != "" {
		t.Errorf("%+v, %v", m, err)
	}
	for _, req := range []attachments.ContextRequest{{}, {MaxChars: -1}, {MaxChars: 1, Budget: -1}} {
		if _, err := a.PrepareContextMedia(t.Context(), req); !errors.Is(err, attachments.ErrInvalid) {
			t.Errorf("%+v: %v", req, err)
		}
	}
	gone := errors.New("gone")
	for allowed := range 5 {
		left := allowed
		_, err := a.PrepareContextMedia(t.Context(), attachments.ContextRequest{Message: message, MaxChars: room, AssertCurrent: func() error {
			if left--; left < 0 {
				return gone
			}
			return nil
		}})
		if !errors.Is(err, gone) || !errors.Is(err, attachments.ErrNotCurrent) {
			t.Errorf("%d checks: %v", allowed, err)
		}
	}
}

// An older host: text history needs none, attachments are not dropped silently. ATT-40
func TestOlderHostHistory(t *testing.T) {
	text := attachments.ContextRequest{Message: attachments.HistoryMessage{ID: "m"}, MaxChars: 100}
	if m, err := attachments.RestoreContextMedia(t.Context(), nil, text); err != nil || len(m.Files) != 0 {
		t.Errorf("text: %+v, %v", m, err)
	}
	text.Message.Media = paths("a")
	if _, err := attachments.RestoreContextMedia(t.Context(), nil, text); !errors.Is(err, fsbridge.ErrUnsupported) {
		t.Errorf("attachments: %v", err)
	}
}
