package gitenv_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/workberth/workberth/gitenv"
)

// oddValues are the values of C137.
var oddValues = map[string]string{
	"empty": "", "quote": "it's", "mark": "wow!", "line feed": "a\nb", "backslash": `back\slash`, "tab": "a\tb",
	"variable": "$HOME", "command": "`id`", "substitution": "$(id)", "beyond ASCII": "日本", "not UTF-8": "\xff\xfe",
	"trailing line feed": "a\n", "trailing backslash": `a\`, "only quotes": "''''", "looks quoted": `'a.b'='c'`,
	"blanks at the ends": "  a  ", "equals": "=a=b=", "escape": `'\''`, "marks": "!!'!", "carriage return": "a\r\nb\r",
	"100 KiB": strings.Repeat("0123456789abcde\n", 100*1024/16),
}

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{
		"": `''`, "a b": `'a b'`, "it's": `'it'\''s'`, "wow!": `'wow'\!''`, "a\n$x`y`\\": "'a\n$x`y`\\'", "日\xff": "'日\xff'",
	} {
		if got, err := gitenv.Quote(in); err != nil || got != want {
			t.Errorf("Quote(%q) = %s, %v; want %s", in, got, err, want)
		}
	}
	if got, err := gitenv.Quote("a\x00b"); !errors.Is(err, gitenv.ErrNUL) || got != "" {
		t.Errorf("Quote of a NUL byte = %q, %v; want ErrNUL", got, err)
	}
}

// C137: git writes the same quoting as Quote does.
func TestQuoteIsGits(t *testing.T) {
	git := newGit(t)
	for name, value := range oddValues {
		t.Run(name, func(t *testing.T) {
			if len(value) > 1<<15 {
				t.Skip("too long for one argument beside its quoted form")
			}
			quoted, err := gitenv.Quote(value)
			if err != nil {
				t.Fatal(err)
			}
			written := git.must(t, git.environ(), "-c", "a.b="+value,
				"-c", "alias.tell=!printf %s \"$GIT_CONFIG_PARAMETERS\"", "tell")
			if want := "'a.b'=" + quoted + " "; !strings.HasPrefix(written, want) {
				t.Errorf("git writes %q, want it to start with %q", written, want)
			}
		})
	}
}

// C137: git reads back exactly what went in, in both forms.
func TestFragmentRoundTripThroughGit(t *testing.T) {
	git := newGit(t)
	for name, value := range oddValues {
		t.Run(name, func(t *testing.T) {
			for _, key := range []string{"a.b", "a.x=y.b"} {
				fragment := mustFragment(t, pair(key, value))
				got := git.must(t, git.environ(parameters(fragment)), "config", "-z", "--get", key)
				if got != value+"\x00" {
					t.Errorf("%s: git reads %.60q, want %.60q", key, got, value)
				}
			}
		})
	}
}

func TestFragment(t *testing.T) {
	for _, tc := range []struct {
		explanation string
		pairs       []gitenv.Pair
		want        string
	}{
		{"nothing gives nothing", nil, ""},
		{"the old form, which every git reads", []gitenv.Pair{pair("a.b", "c")}, `'a.b=c'`},
		{"order and repetition are kept", []gitenv.Pair{pair("a.b", "2"), pair("a.b", "1"), pair("a.a", "")}, `'a.b=2' 'a.b=1' 'a.a='`},
		{"valueless", []gitenv.Pair{flag("a.b")}, `'a.b'`},
		{"the new form where the key contains an equals sign", []gitenv.Pair{pair("a.x=y.b", "c=d")}, `'a.x=y.b'='c=d'`},
		{"valueless with an equals sign", []gitenv.Pair{flag("a.x=y.b")}, `'a.x=y.b'=`},
		{"quotes and marks", []gitenv.Pair{pair("a.i's!.b", "it's!")}, `'a.i'\''s'\!'.b=it'\''s'\!''`},
		{"the spelling of the key is kept", []gitenv.Pair{pair("Safe.Directory", "/x")}, `'Safe.Directory=/x'`},
	} {
		if got, err := gitenv.Fragment(tc.pairs...); err != nil || got != tc.want {
			t.Errorf("%s: %s, %v; want %s", tc.explanation, got, err, tc.want)
		}
	}
}

// C137: NUL is refused; keys are checked as git checks them; the error says which pair.
func TestFragmentRefuses(t *testing.T) {
	for _, tc := range []struct {
		explanation string
		bad         gitenv.Pair
		want        error
	}{
		{"NUL in the value", pair("a.b", "x\x00"), gitenv.ErrNUL},
		{"NUL in the key", pair("a.\x00.b", "x"), gitenv.ErrNUL},
		{"empty key", pair("", "x"), gitenv.ErrKey},
		{"no section", pair("ab", "x"), gitenv.ErrKey},
		{"no name", pair("a.", "x"), gitenv.ErrKey},
		{"blank around the key", pair(" a.b", "x"), gitenv.ErrKey},
		{"blank behind the key", pair("a.b ", "x"), gitenv.ErrKey},
		{"line feed in the subsection", pair("a.x\n.b", "x"), gitenv.ErrKey},
		{"equals sign in the name", pair("a.b=c", "x"), gitenv.ErrKey},
		{"digit first", pair("a.1", "x"), gitenv.ErrKey},
		{"valueless with a value", gitenv.Pair{Key: "a.b", Value: "x", Valueless: true}, nil},
	} {
		got, err := gitenv.Fragment(pair("a.b", "c"), tc.bad)
		var at *gitenv.PairError
		if !errors.As(err, &at) || at.Index != 1 || got != "" {
			t.Errorf("%s: %q, %v; want a PairError for pair 1", tc.explanation, got, err)
		}
		if tc.want != nil && !errors.Is(err, tc.want) {
			t.Errorf("%s: %v; want %v", tc.explanation, err, tc.want)
		}
	}
}

// byteString draws byte strings without NUL, half of the bytes being ones with a meaning somewhere.
func byteString(maxLen int, except string) *rapid.Generator[string] {
	special := make([]byte, 0, 32)
	for _, c := range []byte("''''!!\\\\== \t\n\r\v\f.\"$`;#") {
		if strings.IndexByte(except, c) < 0 {
			special = append(special, c)
		}
	}
	other := rapid.ByteRange(1, 255).Filter(func(c byte) bool { return strings.IndexByte(except, c) < 0 })
	return rapid.Map(rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(special), other), 0, maxLen),
		func(b []byte) string { return string(b) })
}

// C137: random byte strings as values and subsections go through git unchanged, 100 to a call, 10,000 in all.
func TestRandomRoundTripThroughGit(t *testing.T) {
	git := newGit(t)
	rapid.Check(t, func(rt *rapid.T) {
		values := rapid.SliceOfN(byteString(64, ""), 100, 100).Draw(rt, "values")
		subsections := rapid.SliceOfN(byteString(8, "\n"), 100, 100).Draw(rt, "subsections")
		var want []gitenv.Pair
		for i, value := range values {
			want = append(want, pair("p"+strconv.Itoa(i)+"."+subsections[i]+".v", value))
		}
		want = append(want, flag("p."+subsections[0]+".flag"))
		fragment := mustFragment(t, want...)
		if got, err := gitenv.Parse(fragment); err != nil || !samePairs(got, want) {
			rt.Fatalf("Parse gives %+v, %v", got, err)
		}
		got, accepted := git.list(t, parameters(fragment))
		if !accepted {
			rt.Fatalf("git refuses %q", fragment)
		}
		if len(got) != len(want) {
			rt.Fatalf("git reads %d pairs, want %d", len(got), len(want))
		}
		for i := range want {
			if got[i] != want[i] {
				rt.Fatalf("pair %d: git reads %+v, want %+v", i, got[i], want[i])
			}
		}
	})
}

// CanonicalKey accepts and refuses what git does, and lowers what git lowers.
func TestCanonicalKey(t *testing.T) {
	for in, want := range map[string]string{
		"A.B": "a.b", "Core.HooksPath": "core.hookspath", "URL.HTTPS://X.InsteadOf": "url.HTTPS://X.insteadof",
		"a.b.c.d": "a.b.c.d", "a..b": "a..b", ".x.b": ".x.b", "0.a": "0.a", "-.a-0": "-.a-0",
	} {
		if got, err := gitenv.CanonicalKey(in); err != nil || got != want {
			t.Errorf("CanonicalKey(%q) = %q, %v; want %q", in, got, err, want)
		}
	}
	for _, in := range []string{"", ".", "a", ".a", "a.", "a b.c", "a.b c", "a.0", "a.-", "a_.b", "a.é", "a.x\ny.b", "a.\x00.b", "a.\u212a"} {
		if got, err := gitenv.CanonicalKey(in); !errors.Is(err, gitenv.ErrKey) || got != "" {
			t.Errorf("CanonicalKey(%q) = %q, %v; want ErrKey", in, got, err)
		}
	}
}
