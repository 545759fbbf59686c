package gitenv_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/workberth/workberth/gitenv"
)

// pair, flag make tables short.
func pair(key, value string) gitenv.Pair { return gitenv.Pair{Key: key, Value: value} }
func flag(key string) gitenv.Pair        { return gitenv.Pair{Key: key, Valueless: true} }

// parseCases are values with what git 2.39 makes of them. offset is -1 for an accepted value.
var parseCases = []struct {
	name, value string
	want        []gitenv.Pair
	offset      int
}{
	{"empty", "", nil, -1},
	{"old form", `'a.b=c'`, []gitenv.Pair{pair("a.b", "c")}, -1},
	{"new form", `'a.b'='c'`, []gitenv.Pair{pair("a.b", "c")}, -1},
	{"mixed", `'a.b=c' 'a.b'='d' 'a.e=f'`, []gitenv.Pair{pair("a.b", "c"), pair("a.b", "d"), pair("a.e", "f")}, -1},
	{"old valueless", `'a.b'`, []gitenv.Pair{flag("a.b")}, -1},
	{"new valueless", `'a.b'=`, []gitenv.Pair{flag("a.b")}, -1},
	{"new valueless, then another", `'a.b'=  'a.c'`, []gitenv.Pair{flag("a.b"), flag("a.c")}, -1},
	{"new empty", `'a.b'=''`, []gitenv.Pair{pair("a.b", "")}, -1},
	{"old empty", `'a.b='`, []gitenv.Pair{pair("a.b", "")}, -1},
	{"two blanks", `'a.b=c'  'a.b=d'`, []gitenv.Pair{pair("a.b", "c"), pair("a.b", "d")}, -1},
	{"tab", "'a.b=c'\t'a.b=d'", []gitenv.Pair{pair("a.b", "c"), pair("a.b", "d")}, -1},
	{"line feed", "'a.b=c'\n'a.b'='d'", []gitenv.Pair{pair("a.b", "c"), pair("a.b", "d")}, -1},
	{"carriage return", "'a.b'='c'\r'a.b=d'", []gitenv.Pair{pair("a.b", "c"), pair("a.b", "d")}, -1},
	{"trailing blank", `'a.b=c' `, []gitenv.Pair{pair("a.b", "c")}, -1},
	{"trailing line feed", "'a.b'='c'\n", []gitenv.Pair{pair("a.b", "c")}, -1},
	{"escaped quote", `'a.b=it'\''s'`, []gitenv.Pair{pair("a.b", "it's")}, -1},
	{"escaped mark", `'a.b'='wow'\!''`, []gitenv.Pair{pair("a.b", "wow!")}, -1},
	{"plain mark", `'a.b=wow!'`, []gitenv.Pair{pair("a.b", "wow!")}, -1},
	{"only escapes", `'a.b'=''\'''\'''`, []gitenv.Pair{pair("a.b", "''")}, -1},
	{"equals in the old value", `'a.b=c=d'`, []gitenv.Pair{pair("a.b", "c=d")}, -1},
	{"equals in a new key", `'a.x=y.b'='c'`, []gitenv.Pair{pair("a.x=y.b", "c")}, -1},
	{"equals in a new valueless key", `'a.x=y.b'=`, []gitenv.Pair{flag("a.x=y.b")}, -1},
	{"old key is trimmed", "' \ta.b\r\n= c '", []gitenv.Pair{pair("a.b", " c ")}, -1},
	{"case of section and name", `'A.Sub.B=C'`, []gitenv.Pair{pair("a.Sub.b", "C")}, -1},
	{"dots in the subsection", `'a.x..y.b=1'`, []gitenv.Pair{pair("a.x..y.b", "1")}, -1},
	{"empty subsection", `'a..b=1'`, []gitenv.Pair{pair("a..b", "1")}, -1},
	{"empty section", `'.a.b=1'`, []gitenv.Pair{pair(".a.b", "1")}, -1},
	{"escape within the quotes", "'url.https://x/!\\!'.insteadOf=y'", nil, 19},
	{"bytes in the subsection", "'url.https://x/\xff \t;#\".insteadOf=y'", []gitenv.Pair{pair("url.https://x/\xff \t;#\".insteadof", "y")}, -1},
	{"digits and dashes", `'1-a.b-1=x'`, []gitenv.Pair{pair("1-a.b-1", "x")}, -1},
	{"bytes in the value", "'a.b=\xff\x01\n\t\\\"$HOME`id`'", []gitenv.Pair{pair("a.b", "\xff\x01\n\t\\\"$HOME`id`")}, -1},

	{"unquoted", `broken`, nil, 0},
	{"only blanks", `  `, nil, 0},
	{"leading blank", ` 'a.b=c'`, nil, 0},
	{"leading line feed", "\n'a.b=c'", nil, 0},
	{"comma", `'a.b=c','a.b=d'`, nil, 7},
	{"form feed between", "'a.b=c'\f'a.b=d'", nil, 7},
	{"vertical tab behind", "'a.b=c'\v", nil, 7},
	{"unquoted value", `'a.b'=c`, nil, 6},
	{"blank before equals", `'a.b' ='c'`, nil, 6},
	{"blank behind equals", `'a.b'= 'c'`, nil, 7},
	{"something behind the value", `'a.b'='c'x`, nil, 9},
	{"two words", `'a.b'='c''d'`, nil, 9},
	{"two words in the old form", `'a.b=c''d'`, nil, 7},
	{"second equals", `'a.b'='c'='d'`, nil, 9},
	{"unterminated key", `'a.b`, nil, 0},
	{"unterminated value", `'a.b'='c`, nil, 6},
	{"unterminated second", `'a.b=c' 'a.d=`, nil, 8},
	{"single quote", `'`, nil, 0},
	{"escape of another byte", `'a.b=c'\x'd'`, nil, 7},
	{"escape at the end", `'a.b=c'\'`, nil, 7},
	{"escape without going on", `'a.b=c'\!`, nil, 7},
	{"escape going on with something else", `'a.b=c'\!xd'`, nil, 7},
	{"backslash at the end", `'a.b=c'\`, nil, 7},
	{"double quotes", `"a.b=c"`, nil, 0},
	{"empty item", `''`, nil, 0},
	{"empty new key", `''='c'`, nil, 0},
	{"no key", `'a.b' '=c'`, nil, 6},
	{"blank key", `'  =c'`, nil, 0},
	{"no section", `'ab=c'`, nil, 0},
	{"no section before the dot", `'.b=c'`, nil, 0},
	{"no name", `'a.=c'`, nil, 0},
	{"name starts with a digit", `'a.1b=c'`, nil, 0},
	{"name starts with a dash", `'a.-b=c'`, nil, 0},
	{"underscore in the name", `'a.b_c=d'`, nil, 0},
	{"blank in the section", `'a b.c=d'`, nil, 0},
	{"letter beyond ASCII in the section", `'ä.b=c'`, nil, 0},
	{"letter beyond ASCII in the name", `'a.bä=c'`, nil, 0},
	{"new key is not trimmed", `' a.b '='c'`, nil, 0},
	{"line feed in the subsection", "'a.x\ny.b=c'", nil, 0},
	{"late error", `'a.b=c' 'd=e'`, nil, 8},
}

// C135: what is accepted, with which meaning, and where an error is.
func TestParse(t *testing.T) {
	for _, tc := range parseCases {
		t.Run(tc.name, func(t *testing.T) {
			got, err := gitenv.Parse(tc.value)
			if tc.offset < 0 {
				if err != nil {
					t.Fatalf("Parse(%q): %v", tc.value, err)
				}
				if !samePairs(got, tc.want) {
					t.Fatalf("Parse(%q) = %+v, want %+v", tc.value, got, tc.want)
				}
				return
			}
			var syntax *gitenv.SyntaxError
			if !errors.As(err, &syntax) || !errors.Is(err, gitenv.ErrMalformed) {
				t.Fatalf("Parse(%q) = %+v, %v; want a SyntaxError", tc.value, got, err)
			}
			if got != nil || syntax.Offset != tc.offset || syntax.Var != gitenv.ParametersVar {
				t.Errorf("Parse(%q) = %+v, %v; want no pairs and offset %d", tc.value, got, err, tc.offset)
			}
		})
	}
}

// C135: the installed git agrees with every line of the table.
func TestParseAgreesWithGit(t *testing.T) {
	git := newGit(t)
	for _, tc := range parseCases {
		t.Run(tc.name, func(t *testing.T) {
			got, accepted := git.list(t, parameters(tc.value))
			if accepted != (tc.offset < 0) {
				t.Fatalf("git accepts %q: %v", tc.value, accepted)
			}
			if !samePairs(got, tc.want) {
				t.Errorf("git reads %q as %+v, want %+v", tc.value, got, tc.want)
			}
		})
	}
}

// C135: a key that stands alone is true, an empty value is false.
func TestValuelessIsTrue(t *testing.T) {
	git := newGit(t)
	for value, want := range map[string]string{
		`'a.b'`: "true\n", `'a.b'=`: "true\n", `'a.b='`: "false\n", `'a.b'=''`: "false\n",
	} {
		if got := git.must(t, git.environ(parameters(value)), "config", "--bool", "a.b"); got != want {
			t.Errorf("%s is %q, want %q", value, got, want)
		}
	}
}

// C135: what git itself writes for -c, also behind an inherited value, is read back.
func TestParseWhatGitWrites(t *testing.T) {
	git := newGit(t)
	written := git.must(t, git.environ(parameters(`'x.y=old' `), "V=it's\n!"),
		"-c", "a.b=it's wow!", "-c", "A.Sub.C", "-c", "a.d=", "--config-env=a.x=y.e=V",
		"-c", "alias.tell=!printf %s \"$GIT_CONFIG_PARAMETERS\"", "tell")
	got, err := gitenv.Parse(written)
	if err != nil {
		t.Fatalf("Parse(%q): %v", written, err)
	}
	want := []gitenv.Pair{
		pair("x.y", "old"), pair("a.b", "it's wow!"), flag("a.Sub.c"), pair("a.d", ""), pair("a.x=y.e", "it's\n!"),
		pair("alias.tell", `!printf %s "$GIT_CONFIG_PARAMETERS"`),
	}
	if !samePairs(got, want) {
		t.Errorf("Parse(%q) = %+v, want %+v", written, got, want)
	}
}

// No environment variable holds a NUL byte; git would see a shorter value.
func TestParseRefusesNUL(t *testing.T) {
	_, err := gitenv.Parse("'a.b=c\x00d'")
	var syntax *gitenv.SyntaxError
	if !errors.As(err, &syntax) || !errors.Is(err, gitenv.ErrNUL) || syntax.Offset != 6 {
		t.Errorf("error %v, want ErrNUL at byte 6", err)
	}
}

// GIT-10: an error may be logged, so it holds nothing of a key or a value.
func TestErrorsHoldNoContent(t *testing.T) {
	const secret = "hunter2"
	for _, value := range []string{
		`'http.extraHeader=` + secret, `'` + secret + `=` + secret + `'`, `'url.https://` + secret + `@x.in_steadOf=y'`,
		secret, `'a.b'=` + secret, `'a.b'='c'` + secret, `'a.` + secret + "\n.b=c'",
	} {
		_, err := gitenv.Parse(value)
		_, composeErr := gitenv.Compose(&value, nil, `'a.b=c'`)
		_, fragmentErr := gitenv.Prepare(gitenv.Facts{Placement: gitenv.LocalHost}, &value)
		_, pairErr := gitenv.Fragment(pair(secret, secret))
		for _, err := range []error{err, composeErr, fragmentErr, pairErr} {
			if err == nil || strings.Contains(err.Error(), secret) {
				t.Errorf("%q: error %v", value, err)
			}
		}
	}
}
