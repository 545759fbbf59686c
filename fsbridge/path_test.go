package fsbridge

import (
	"errors"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestValidPath(t *testing.T) {
	long := strings.Repeat("x", 255)
	for _, p := range []string{
		"a", "/", ".", "..", "a/b", "//", "a//b", " ", "\n", "\xff", "-", "\\", "*", long, long + "/" + long, "/" + long,
		strings.Repeat("a/", MaxPath/2), strings.Repeat("/", MaxPath),
	} {
		if err := ValidPath(p); err != nil {
			t.Errorf("%.20q (%d bytes): %v", p, len(p), err)
		}
	}
	for _, p := range []string{
		"", "\x00", "a\x00b", "a/\x00", long + "x", "/" + long + "x", "a/" + long + "x/b", long + "x/",
		strings.Repeat("a/", MaxPath/2) + "a", strings.Repeat("/", MaxPath+1), strings.Repeat("a/", 2500),
	} {
		err := ValidPath(p)
		if !errors.Is(err, ErrInvalidPath) || !errors.Is(err, ErrOutsideRoot) {
			t.Errorf("%.20q (%d bytes): %v", p, len(p), err)
		}
	}
}

// TestDisplayPath shows names as a person reads them, and nothing that a terminal would obey. C019 C023
func TestDisplayPath(t *testing.T) {
	for p, want := range map[string]string{
		"": "", "plain.txt": "plain.txt", "a/b c": "a/b c", "\u00e9\u4e16": "\u00e9\u4e16", "x\ny": `x\x0ay`, "t\tab": `t\x09ab`,
		`b\s`: `b\\s`, `\x41`: `\\x41`, "bad\xff\xfe": `bad\xff\xfe`, "\x1b[31m": `\x1b[31m`, "\u202egpj": `\xe2\x80\xaegpj`,
		"\ufeff": `\xef\xbb\xbf`, "\ufffd": "\ufffd", "\xef\xbf": `\xef\xbf`, "a\u00a0b": `a\xc2\xa0b`, "\x00": `\x00`, "\x7f": `\x7f`,
		"'\"$(id)`*": "'\"$(id)`*", "\U0001f600": "\U0001f600", "\xf0\x9f\x98": `\xf0\x9f\x98`, "\\": `\\`,
	} {
		got := DisplayPath(p)
		if got != want {
			t.Errorf("%q is shown as %q, want %q", p, got, want)
		}
		back, err := ParseDisplayPath(got)
		if err != nil || back != p {
			t.Errorf("%q comes back as %q, %v", p, back, err)
		}
	}
}

func TestParseDisplayPath(t *testing.T) {
	for s, want := range map[string]string{`\xC3\xa9`: "\u00e9", `a\\b`: `a\b`, "plain": "plain", "": "", `\x41`: "A"} {
		if got, err := ParseDisplayPath(s); err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", s, got, err, want)
		}
	}
	for _, s := range []string{`\`, `a\`, `\x`, `\x4`, `\xg0`, `\x0g`, `\n`, `\X41`, `\ x41`, `\\\`, `\x4\x41`, `\u0041`} {
		if got, err := ParseDisplayPath(s); err == nil {
			t.Errorf("%q was taken for %q", s, got)
		}
	}
}

// shown demands what must hold for every shown name.
func shown(t interface{ Fatalf(string, ...any) }, p string) {
	s := DisplayPath(p)
	if !utf8.ValidString(s) {
		t.Fatalf("%q is shown as %q, which is not UTF-8", p, s)
	}
	for _, r := range s {
		if !unicode.IsPrint(r) {
			t.Fatalf("%q is shown as %q with %U in it", p, s, r)
		}
	}
	back, err := ParseDisplayPath(s)
	if err != nil || back != p {
		t.Fatalf("%q is shown as %q, which is read as %q, %v", p, s, back, err)
	}
}

// TestDisplayPathProperties: every name is shown in printable UTF-8, reversibly, and a JSON string
// carries it.
func TestDisplayPathProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shown(t, string(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "bytes")))
		shown(t, rapid.String().Draw(t, "text"))
		shown(t, rapid.StringOfN(rapid.RuneFrom([]rune{'\\', 'x', '0', 'f', '\n', 0xfffd}), 0, 12, -1).Draw(t, "escapes"))
	})
}

func FuzzDisplayPath(f *testing.F) {
	for _, p := range []string{"", "a", "\\", `\x41`, "\xff", "x\ny", "\u202e", "\xef\xbf\xbd", "\xed\xa0\x80"} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, p string) { shown(t, p) })
}

// FuzzParseDisplayPath: whatever a person types is refused, or is read as a name whose shown form is
// read as the same name.
func FuzzParseDisplayPath(f *testing.F) {
	for _, s := range []string{"", "a", `\\`, `\x41`, `\xff`, `\`, `\x`, `\xzz`, `a\\\x0a`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParseDisplayPath(s)
		if err != nil {
			return
		}
		shown(t, p)
	})
}

// FuzzValidPath: the answer is what its parts say.
func FuzzValidPath(f *testing.F) {
	for _, p := range []string{"", "a", "\x00", strings.Repeat("a", 256), strings.Repeat("a/", 2049), "/", "a//b"} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, p string) {
		want := p != "" && len(p) <= MaxPath && !strings.Contains(p, "\x00")
		for e := range strings.SplitSeq(p, "/") {
			want = want && len(e) <= 255
		}
		if err := ValidPath(p); (err == nil) != want {
			t.Errorf("%q: %v, want valid %t", p, err, want)
		}
	})
}
