package attachments

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/workberth/workberth/attachments/mediastore"
	"github.com/workberth/workberth/fsbridge"
)

// HistoryMessage is an older message of the user, as it is recorded.
type HistoryMessage struct {
	ID    string
	Media []MediaFact
}

// ContextRequest asks for the attachments of an older message.
type ContextRequest struct {
	Message HistoryMessage
	// MaxChars bounds what each file adds to the native context, in UTF-16 code units. An
	// image counts with the length of its base64 form. It must be positive.
	MaxChars int
	// Budget bounds all files together, in the same unit. Zero means no bound but MaxChars for
	// each.
	Budget int
	// AssertCurrent is the guard of the current turn; nil leaves the host's authority alone
	// to decide.
	AssertCurrent fsbridge.AssertFunc
}

// ContextFile is what a harness gets of one older attachment.
type ContextFile struct {
	Fact MediaFact
	// Text is a line about the file and, for a text file, its content.
	Text string
	// Image is the content of an image of type Fact.Type.
	Image []byte
	// Chars is what Text and Image count together.
	Chars int
	// Cut is true when the text content was longer.
	Cut bool
	// Omitted says why the file gives nothing; empty when it does.
	Omitted string
}

// ContextMedia are the attachments of one older message, in its order.
type ContextMedia struct{ Files []ContextFile }

// Chars is what all of it counts, in UTF-16 code units: to be taken from the native context
// budget. Keeps ATT-41.
func (m ContextMedia) Chars() int {
	n := 0
	for _, f := range m.Files {
		n += f.Chars
	}
	return n
}

// PrepareContextMedia gives the attachments of an older message, to restore native history
// (prepareContextMedia), under the host's authority and the media policy in force now: text
// files as text, images as they are, nothing beyond MaxChars for each and Budget for all. A
// text file that is longer is cut at a character, and says so within the bound; an image
// never is. What cannot be given is Omitted, with the reason, and never left out silently.
// Keeps ATT-40, ATT-41.
func (a *Admission) PrepareContextMedia(ctx context.Context, req ContextRequest) (ContextMedia, error) {
	m, err := a.contextMedia(ctx, req)
	if err != nil {
		return ContextMedia{}, fmt.Errorf("attachments of message %s: %w", fsbridge.DisplayPath(req.Message.ID), err)
	}
	return m, nil
}

func (a *Admission) contextMedia(ctx context.Context, req ContextRequest) (ContextMedia, error) {
	if req.MaxChars <= 0 || req.Budget < 0 {
		return ContextMedia{}, fmt.Errorf("maxChars %d, budget %d: the one must be positive, the other not negative: %w", req.MaxChars, req.Budget, ErrInvalid)
	}
	guard := guards(req.AssertCurrent, a.opts.Authority)
	if err := current(ctx, guard); err != nil {
		return ContextMedia{}, err
	}
	policy := a.opts.Policy
	if a.opts.CurrentPolicy != nil {
		policy = a.opts.CurrentPolicy().clone()
	}
	var m ContextMedia
	for _, f := range filesOf(req.Message.Media) {
		room := req.MaxChars
		if req.Budget > 0 {
			room = min(room, req.Budget-m.Chars())
		}
		file, err := a.contextFile(ctx, f, policy, room)
		if err := current(ctx, guard); err != nil {
			return ContextMedia{}, err
		}
		if err != nil {
			file = ContextFile{Fact: f, Omitted: err.Error()}
		}
		m.Files = append(m.Files, file)
	}
	return m, nil
}

// contextFile gives one file in at most room code units.
func (a *Admission) contextFile(ctx context.Context, f MediaFact, policy Policy, room int) (ContextFile, error) {
	if f.Ref == "" {
		return ContextFile{}, errors.New("the media store has no copy of it")
	}
	ref, err := a.opts.Store.Reference(ctx, f.Ref)
	if err != nil {
		return ContextFile{}, err
	}
	if err := policy.allow(ref.Type, ref.Size); err != nil {
		return ContextFile{}, err
	}
	f.Type, f.Size, f.Digest = ref.Type, ref.Size, ref.Digest
	if f.Name == "" {
		f.Name = ref.Name
	}
	if f.Origin == "" {
		f.Origin = ref.Origin
	}
	head := PreparedFile{Fact: f}.heading()
	left := room - chars(head)
	switch {
	case isImage(ref.Type):
		cost := base64.StdEncoding.EncodedLen(int(ref.Size))
		if cost > left {
			return ContextFile{}, fmt.Errorf("it counts %d characters, and %d are left: %w", chars(head)+cost, max(room, 0), ErrTooLong)
		}
		data, err := a.read(ctx, ref, ref.Size)
		return ContextFile{Fact: f, Text: head, Image: data, Chars: chars(head) + cost}, err
	case isText(ref.Type):
		if left <= 1 {
			return ContextFile{}, fmt.Errorf("%d characters are left: %w", max(room, 0), ErrTooLong)
		}
		return a.contextText(ctx, ref, ContextFile{Fact: f}, head, left)
	}
	return ContextFile{}, fmt.Errorf("%s is neither text nor an image: %w", plainType(ref.Type), fsbridge.ErrUnsupported)
}

// contextText gives the beginning of a text file.
func (a *Admission) contextText(ctx context.Context, ref mediastore.Reference, out ContextFile, head string, left int) (ContextFile, error) {
	data, err := a.read(ctx, ref, min(ref.Size, 4*int64(left)))
	if err != nil {
		return ContextFile{}, err
	}
	all := int64(len(data)) == ref.Size
	if !all {
		data = wholeRunes(data)
	}
	if !utf8.Valid(data) {
		return ContextFile{}, fmt.Errorf("its text is not UTF-8: %w", fsbridge.ErrUnsupported)
	}
	body := "\n" + string(data)
	if !all || chars(body) > left {
		end := fmt.Sprintf("\n[cut: the file has %d bytes]", ref.Size)
		if chars(end) >= left {
			return ContextFile{}, fmt.Errorf("%d characters are left for it: %w", left, ErrTooLong)
		}
		body, out.Cut = cutChars(body, left-chars(end))+end, true
	}
	out.Text = head + body
	out.Chars = chars(out.Text)
	return out, nil
}

// wholeRunes drops an incomplete character at the end.
func wholeRunes(b []byte) []byte {
	for i := len(b) - 1; i >= 0 && i > len(b)-utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return b[:i]
			}
			break
		}
	}
	return b
}

// cutChars is the beginning of s in at most n code units.
func cutChars(s string, n int) string {
	for i, r := range s {
		if n--; r > 0xFFFF {
			n--
		}
		if n < 0 {
			return s[:i]
		}
	}
	return s
}

// read gives the first n bytes of a content, all of whose bytes are compared with its hash.
func (a *Admission) read(ctx context.Context, ref mediastore.Reference, n int64) ([]byte, error) {
	o, err := a.opts.Store.Open(ctx, ref)
	if err != nil {
		return nil, err
	}
	defer o.Close()
	data := make([]byte, n)
	if _, err := io.ReadFull(o, data); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if _, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, o, make([]byte, 64<<10)); err != nil {
		return nil, err
	}
	return data, nil
}

// heading is the line about a file whose content follows.
func (p PreparedFile) heading() string {
	s := "Attached file " + quote(shorten(p.Fact.Name)) + fmt.Sprintf(" (%s, %d bytes", plainType(p.Fact.Type), p.Fact.Size)
	if p.Fact.Origin != "" {
		s += ", from " + quote(shorten(p.Fact.Origin))
	}
	return s + ")"
}

func isImage(mediaType string) bool {
	return slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, mediaType)
}

func isText(mediaType string) bool {
	plain, _, _ := strings.Cut(mediaType, ";")
	switch {
	case strings.HasPrefix(plain, "text/"), strings.HasSuffix(plain, "+json"), strings.HasSuffix(plain, "+xml"):
		return true
	}
	return slices.Contains([]string{"application/json", "application/xml", "application/javascript", "application/x-ndjson", "application/jsonl"}, plain)
}

// ContextPreparer is PrepareContextMedia as a host offers it; nil on an older host.
type ContextPreparer func(ctx context.Context, req ContextRequest) (ContextMedia, error)

// RestoreContextMedia asks a host for the attachments of an older message. A message without
// any needs no host. On an older host, nil, restoring attachments fails, so that none is
// dropped silently; the text of the history does not depend on it.
func RestoreContextMedia(ctx context.Context, prepare ContextPreparer, req ContextRequest) (ContextMedia, error) {
	if len(filesOf(req.Message.Media)) == 0 {
		return ContextMedia{}, nil
	}
	if prepare == nil {
		return ContextMedia{}, fmt.Errorf("this host cannot give the attachments of older messages: %w", fsbridge.ErrUnsupported)
	}
	return prepare(ctx, req)
}
