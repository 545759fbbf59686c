package attachments_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/workberth/workberth/attachments"
)

// recorded is a provider that remembers its calls and answers as told.
type recorded struct {
	calls  [][]string
	answer func(ctx context.Context, files attachments.TurnFiles) (attachments.Note, error)
}

func (r *recorded) prepare(ctx context.Context, files attachments.TurnFiles) (attachments.Note, error) {
	var names []string
	for _, f := range files.Files {
		names = append(names, f.Name)
	}
	r.calls = append(r.calls, names)
	if r.answer != nil {
		return r.answer(ctx, files)
	}
	return attachments.Note{Text: "at " + strings.Join(names, "+")}, nil
}

func paths(names ...string) []attachments.MediaFact {
	var list []attachments.MediaFact
	for _, n := range names {
		list = append(list, attachments.MediaFact{Name: n, Path: "/host/" + n})
	}
	return list
}

// Required: one file at a time, each with a result of its own, those included whose record was
// deferred. ATT-26 ATT-27 ATT-28 ATT-42
func TestRequired(t *testing.T) {
	r := &recorded{}
	media := paths("a", "b")
	note, err := attachments.PrepareForWorkspace(t.Context(), attachments.PrepareRequest{
		Media: media, RequirePreparation: true, Provider: r.prepare,
		Stored: func(context.Context) ([]attachments.MediaFact, error) {
			return append(slices.Clone(media), attachments.MediaFact{Name: "url", URL: "https://example.org"}, attachments.MediaFact{Name: "inline"}), nil
		},
	})
	if err != nil || fmt.Sprint(r.calls) != "[[a] [b] [url]]" || note.Text != "at a\nat b\nat url" {
		t.Errorf("calls %v, note %q, %v", r.calls, note.Text, err)
	}
	// Not required: one call with everything, and the deferred record stays closed. ATT-28 ATT-30
	r = &recorded{}
	note, err = attachments.PrepareForWorkspace(t.Context(), attachments.PrepareRequest{
		Media: media, Provider: r.prepare,
		Stored: func(context.Context) ([]attachments.MediaFact, error) { panic("resolved") },
	})
	if err != nil || fmt.Sprint(r.calls) != "[[a b]]" || note.Text != "at a+b" {
		t.Errorf("calls %v, note %q, %v", r.calls, note.Text, err)
	}
}

// One file that has no path blocks all, with its name and the reason. ATT-25 ATT-27 ATT-30
func TestOneFails(t *testing.T) {
	broken := errors.New("the disk is broken")
	for name, answer := range map[string]struct {
		note attachments.Note
		err  error
		want error
		soft bool // without the flag it is no failure
	}{
		"error":       {attachments.Note{}, broken, broken, false},
		"empty":       {attachments.Note{}, nil, attachments.ErrUnprepared, true},
		"blank":       {attachments.Note{Text: " \n"}, nil, attachments.ErrUnprepared, true},
		"not covered": {attachments.Note{Files: []attachments.PreparedFile{{Outcome: attachments.NotCovered, Reason: "no copy"}}}, nil, attachments.ErrUnprepared, true},
	} {
		for _, required := range []bool{true, false} {
			r := &recorded{}
			r.answer = func(_ context.Context, files attachments.TurnFiles) (attachments.Note, error) {
				if files.Files[0].Name == "b" || !required {
					return answer.note, answer.err
				}
				return attachments.Note{Text: "fine"}, nil
			}
			note, err := attachments.PrepareForWorkspace(t.Context(), attachments.PrepareRequest{Media: paths("a", "b", "c"), RequirePreparation: required, Provider: r.prepare})
			if !required && answer.soft {
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
				continue
			}
			var b *attachments.BlockedError
			if !errors.Is(err, answer.want) || !errors.Is(err, attachments.ErrDispatchBlocked) || !note.Empty() || !errors.As(err, &b) {
				t.Errorf("%s, required %v: %+v, %v", name, required, note, err)
				continue
			}
			if required && (b.Name != "b" || len(r.calls) != 2) {
				t.Errorf("%s: %v after %v", name, err, r.calls)
			}
		}
	}
	_, err := attachments.PrepareForWorkspace(t.Context(), attachments.PrepareRequest{
		RequirePreparation: true, Stored: func(context.Context) ([]attachments.MediaFact, error) { return nil, broken },
	})
	if !errors.Is(err, broken) || !errors.Is(err, attachments.ErrDispatchBlocked) {
		t.Errorf("facts that cannot be resolved: %v", err)
	}
}

// Who needs a provider: files that must be prepared, and nobody else. ATT-31 ATT-32 ATT-33
func TestProviderNeeded(t *testing.T) {
	text := []attachments.MediaFact{{Name: "inline image", Type: "image/png"}}
	for _, tc := range []struct {
		media    []attachments.MediaFact
		required bool
		blocked  bool
	}{
		{nil, true, false},
		{nil, false, false},
		{text, true, false},
		{paths("a"), false, false},
		{paths("a"), true, true},
		{append(text, attachments.MediaFact{URL: "https://example.org"}), true, true},
	} {
		note, err := attachments.PrepareForWorkspace(t.Context(), attachments.PrepareRequest{Media: tc.media, RequirePreparation: tc.required})
		if (err != nil) != tc.blocked || tc.blocked && (!errors.Is(err, attachments.ErrNoProvider) || !errors.Is(err, attachments.ErrDispatchBlocked)) || !note.Empty() {
			t.Errorf("%+v: %v", tc, err)
		}
		r := &recorded{}
		if _, err := attachments.PrepareForWorkspace(t.Context(), attachments.PrepareRequest{Media: tc.media, RequirePreparation: tc.required, Provider: r.prepare}); err != nil {
			t.Errorf("%+v with a provider: %v", tc, err)
		}
		if (len(r.calls) > 0) != slices.ContainsFunc(tc.media, attachments.MediaFact.HasFile) {
			t.Errorf("%+v: calls %v", tc, r.calls)
		}
	}
}

// One time for all files together; its end blocks. ATT-29
func TestTotalTimeout(t *testing.T) {
	r := &recorded{}
	r.answer = func(ctx context.Context, files attachments.TurnFiles) (attachments.Note, error) {
		if files.Files[0].Name == "c" {
			<-ctx.Done()
		}
		return attachments.Note{Text: "late"}, nil
	}
	for _, required := range []bool{true, false} {
		media := paths("a", "b", "c", "d")
		if !required {
			media = media[2:]
		}
		note, err := attachments.PrepareForWorkspace(t.Context(), attachments.PrepareRequest{Media: media, RequirePreparation: required, Provider: r.prepare, Timeout: 50 * time.Millisecond})
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, attachments.ErrDispatchBlocked) || !note.Empty() {
			t.Errorf("required %v: %+v, %v", required, note, err)
		}
	}
	if fmt.Sprint(r.calls) != "[[a] [b] [c] [c d]]" {
		t.Errorf("calls %v", r.calls)
	}
	for _, req := range []attachments.PrepareRequest{{Timeout: -1}, {MaxChars: -1}} {
		if _, err := attachments.PrepareForWorkspace(t.Context(), req); !errors.Is(err, attachments.ErrInvalid) {
			t.Errorf("%+v: %v", req, err)
		}
	}
}

// The guard is asked around each file; the note bound is all or nothing. ATT-14 ATT-25
func TestDispatchGuard(t *testing.T) {
	gone := errors.New("gone")
	for allowed := 0; ; allowed++ {
		left := allowed
		note, err := attachments.PrepareForWorkspace(t.Context(), attachments.PrepareRequest{
			Media: paths("a", "b"), RequirePreparation: true, Provider: (&recorded{}).prepare,
			AssertCurrent: func() error {
				if left--; left < 0 {
					return gone
				}
				return nil
			},
		})
		if err == nil {
			if allowed < 4 {
				t.Errorf("%d checks were enough", allowed)
			}
			break
		}
		if !errors.Is(err, gone) || !errors.Is(err, attachments.ErrNotCurrent) || !note.Empty() {
			t.Fatalf("%+v, %v", note, err)
		}
	}
	for _, required := range []bool{true, false} {
		for limit, fits := range map[int]bool{len("at a"): true, len("at a") - 1: false} {
			note, err := attachments.PrepareForWorkspace(t.Context(), attachments.PrepareRequest{Media: paths("a"), RequirePreparation: required, Provider: (&recorded{}).prepare, MaxChars: limit})
			if note.Empty() == fits || (err != nil) != (required && !fits) {
				t.Errorf("required %v, room for %d: %+v, %v", required, limit, note, err)
			}
		}
	}
}
