package remoteworkspace

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/workberth/workberth/fsbridge"
)

// Identity is how an agent presents itself: the fields of IDENTITY.md. An empty
// field is not stated.
type Identity struct {
	Name     string `json:"name,omitempty"`
	Creature string `json:"creature,omitempty"`
	Vibe     string `json:"vibe,omitempty"`
	Theme    string `json:"theme,omitempty"`
	Emoji    string `json:"emoji,omitempty"`
	// Avatar is a path below the workspace, an http(s) address or a data URI.
	Avatar string `json:"avatar,omitempty"`
}

// IdentityPatch is the identity form of agents.update: nil leaves a field as it is,
// an empty string clears it.
type IdentityPatch struct {
	Name, Creature, Vibe, Theme, Emoji, Avatar *string
}

// Limits of a value, in bytes. An avatar may be a data URI.
const (
	maxIdentityValue = 4 << 10
	maxAvatar        = 1 << 20
)

// identityField ties a label to the places of its value.
type identityField struct {
	label string // as it is written into a document
	value func(*Identity) *string
	patch func(*IdentityPatch) *string
}

// identityFields lists the fields in the order in which new ones are written.
func identityFields() []identityField {
	return []identityField{
		{"Name", func(i *Identity) *string { return &i.Name }, func(p *IdentityPatch) *string { return p.Name }},
		{"Creature", func(i *Identity) *string { return &i.Creature }, func(p *IdentityPatch) *string { return p.Creature }},
		{"Vibe", func(i *Identity) *string { return &i.Vibe }, func(p *IdentityPatch) *string { return p.Vibe }},
		{"Theme", func(i *Identity) *string { return &i.Theme }, func(p *IdentityPatch) *string { return p.Theme }},
		{"Emoji", func(i *Identity) *string { return &i.Emoji }, func(p *IdentityPatch) *string { return p.Emoji }},
		{"Avatar", func(i *Identity) *string { return &i.Avatar }, func(p *IdentityPatch) *string { return p.Avatar }},
	}
}

// ParseIdentity reads the identity of a Markdown document: lines of the form
// "- **Name:** value", with any bullet or none, any emphasis or none, the label in
// any letter case, the value on the line or on indented lines below it. The first
// line of a label counts. A value in emphasised parentheses, "_(pick one)_", is a
// placeholder and reads as empty. Front matter, fenced code and comments are passed
// over.
func ParseIdentity(doc []byte) Identity {
	d := splitIdentity(doc)
	var id Identity
	for _, f := range identityFields() {
		if at := d.find(f.label); at >= 0 {
			*f.value(&id) = d.value(at)
		}
	}
	return id
}

// Apply returns the document with the fields of the patch set, and every other line
// untouched, byte for byte. A field without a line gets one behind the last field, in
// the same form. Values are trimmed; one that is no single line of text, too long, or
// would read differently from the document is ErrInvalid.
func (p IdentityPatch) Apply(doc []byte) ([]byte, error) {
	want := ParseIdentity(doc)
	d := splitIdentity(doc)
	for _, f := range identityFields() {
		v := f.patch(&p)
		if v == nil {
			continue
		}
		value, err := identityValue(f.label, *v)
		if err != nil {
			return nil, err
		}
		*f.value(&want) = value
		d = splitIdentity(d.set(f.label, value))
	}
	out := d.bytes()
	if got := ParseIdentity(out); got != want {
		return nil, fmt.Errorf("the identity would read as %+v from the document, not as %+v: %w", got, want, ErrInvalid)
	}
	return out, nil
}

// identityValue checks and trims a value.
func identityValue(label, v string) (string, error) {
	limit := maxIdentityValue
	if label == "Avatar" {
		limit = maxAvatar
	}
	v = strings.TrimSpace(v)
	switch {
	case !utf8.ValidString(v):
		return "", fmt.Errorf("%s is not UTF-8: %w", label, ErrInvalid)
	case len(v) > limit:
		return "", fmt.Errorf("%s: %w", label, &fsbridge.LimitError{What: "length", Limit: int64(limit), Actual: int64(len(v))})
	case strings.ContainsFunc(v, func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r == '\ufeff' }):
		return "", fmt.Errorf("%s has a line break or another control character: %w", label, ErrInvalid)
	case readValue(v) != v:
		return "", fmt.Errorf("%s %q reads as %q in Markdown: %w", label, v, readValue(v), ErrInvalid)
	}
	return v, nil
}

// readValue is the value that a text stands for: without emphasis around the whole,
// and empty for a placeholder.
func readValue(s string) string {
	s = strings.TrimSpace(s)
	for _, mark := range []string{"**", "__", "*", "_"} {
		if len(s) > 2*len(mark) && strings.HasPrefix(s, mark) && strings.HasSuffix(s, mark) {
			inner := strings.TrimSpace(s[len(mark) : len(s)-len(mark)])
			if strings.HasPrefix(inner, "(") && strings.HasSuffix(inner, ")") {
				return ""
			}
			if inner == "" || strings.Contains(inner, mark[:1]) {
				return s
			}
			return inner
		}
	}
	return s
}
