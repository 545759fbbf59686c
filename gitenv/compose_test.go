package gitenv_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/workberth/workberth/gitenv"
)

// GIT-03 GIT-05 GIT-07 GIT-08 GIT-09, Q-20
func TestCompose(t *testing.T) {
	const frag = `'f.f=1' 'f.g'='2'`
	for _, tc := range []struct {
		explanation         string
		inherited, explicit *string
		fragment, want      string
	}{
		{"GIT-03: appended to the inherited value", ptr(`'a.b=c'`), nil, frag, `'a.b=c' ` + frag},
		{"GIT-07: an explicit value replaces the inherited one as the base", ptr(`'a.b=c'`), ptr(`'d.e=f'`), frag, `'d.e=f' ` + frag},
		{"GIT-08: an explicit empty value drops the inherited one", ptr(`'a.b=c'`), ptr(""), frag, frag},
		{"GIT-08: also where nothing is inherited", nil, ptr(""), frag, frag},
		{"Q-20: nothing set gives the fragment alone", nil, nil, frag, frag},
		{"Q-20: an empty inherited value gives the fragment alone", ptr(""), nil, frag, frag},
		{"an explicit value without an inherited one", nil, ptr(`'d.e'='f'`), frag, `'d.e'='f' ` + frag},
		{"Q-20: the base is neither tidied nor sorted nor quoted again", ptr("'z.b=c'\t\n'a.b'=  'a.b'='x' \r"), nil, frag, "'z.b=c'\t\n'a.b'=  'a.b'='x' \r " + frag},
		{"GIT-05: a key of the base that the fragment sets too stays", ptr(`'f.f=0'`), nil, frag, `'f.f=0' ` + frag},
		{"the same fragment twice stays twice", ptr(frag), nil, frag, frag + " " + frag},
		{"Q-20: the fragment is not interpreted", ptr(`'a.b=c'`), nil, `$x \' "`, `'a.b=c' $x \' "`},
		{"no fragment gives the base alone", ptr(`'a.b=c' `), nil, "", `'a.b=c' `},
		{"no fragment, explicit empty", ptr(`'a.b=c'`), ptr(""), "", ""},
		{"nothing at all", nil, nil, "", ""},
		{"GIT-07: a broken inherited value does not matter if it is replaced", ptr("broken"), ptr(`'a.b=c'`), frag, `'a.b=c' ` + frag},
		{"GIT-08: nor if it is dropped", ptr("broken"), ptr(""), frag, frag},
	} {
		got, err := gitenv.Compose(tc.inherited, tc.explicit, tc.fragment)
		if err != nil || got != tc.want {
			t.Errorf("%s: %q, %v; want %q", tc.explanation, got, err, tc.want)
		}
	}
}

// an unbalanced fragment is an error; a balanced one is not, however odd.
func TestCheckBalance(t *testing.T) {
	for fragment, offset := range map[string]int{
		"": -1, `'a.b=c'`: -1, `'a'\''b'`: -1, `'a.b=c'\!''`: -1, `''`: -1, `broken`: -1, `\'`: -1, `'\'`: -1, `\\`: -1, `"'"'`: -1,
		`'`: 0, `'a.b=c`: 0, `'a.b'='c`: 6, `'a'\''b`: 5, `'a.b=c''`: 7, `\''`: 2, `x\`: 1, `'a'\`: 3, "'a\x00'": 2,
	} {
		err := gitenv.CheckBalance(fragment)
		if offset < 0 {
			if err != nil {
				t.Errorf("CheckBalance(%q): %v", fragment, err)
			}
			continue
		}
		want := gitenv.ErrUnbalanced
		if strings.Contains(fragment, "\x00") {
			want = gitenv.ErrNUL
		}
		var at *gitenv.FragmentError
		if !errors.As(err, &at) || at.Offset != offset || !errors.Is(err, want) {
			t.Errorf("CheckBalance(%q): %v; want %v at byte %d", fragment, err, want, offset)
		}
		if got, err := gitenv.Compose(ptr(`'a.b=c'`), nil, fragment); !errors.Is(err, want) || got != "" {
			t.Errorf("Compose with %q: %q, %v; want %v", fragment, got, err, want)
		}
	}
}

// brokenBases are values found in real environments that git refuses (C139).
var brokenBases = []string{"broken", `'a.b'='c`, "  ", `a.b=c`, `'a.b=c',`, `'nodot=1'`, ` 'a.b=c'`, `''`}

// C139 Q-20: a broken base is an error that says whose it is, never a value git refuses.
func TestComposeRefusesBrokenBase(t *testing.T) {
	for _, base := range brokenBases {
		for _, explicit := range []bool{false, true} {
			inherited, set, word := &base, (*string)(nil), "inherited"
			if explicit {
				inherited, set, word = ptr(`'a.b=c'`), &base, "explicit"
			}
			got, err := gitenv.Compose(inherited, set, `'f.f=1'`)
			var baseErr *gitenv.BaseError
			var syntax *gitenv.SyntaxError
			if got != "" || !errors.As(err, &baseErr) || !errors.As(err, &syntax) || !errors.Is(err, gitenv.ErrMalformed) {
				t.Errorf("%q: %q, %v; want a BaseError", base, got, err)
				continue
			}
			if baseErr.Explicit != explicit || !strings.Contains(err.Error(), word) {
				t.Errorf("%q: %v; want it to name the %s value", base, err, word)
			}
		}
	}
}

// C139: after appending to what was there, the old settings and the new ones are effective, in that order.
func TestComposedIsEffective(t *testing.T) {
	git := newGit(t)
	fragment, err := gitenv.SafeDirectories("/work space/it's!")
	if err != nil {
		t.Fatal(err)
	}
	for _, base := range []string{"", `'a.b=c'`, `'a.b'='c'`, "'a.b=c' ", "'x.y' 'a.b=c'\n", `'safe.directory=/old' 'a.b'='c'`} {
		value, err := gitenv.Compose(&base, nil, fragment)
		if err != nil {
			t.Fatal(err)
		}
		env := git.environ(parameters(value))
		if base != "" {
			if got := git.must(t, env, "config", "--get", "a.b"); got != "c\n" {
				t.Errorf("base %q: a.b is %q", base, got)
			}
		}
		got := git.must(t, env, "config", "--get-all", "safe.directory")
		if want := "/work space/it's!\n"; got != want && got != "/old\n"+want {
			t.Errorf("base %q: safe.directory is %q", base, got)
		}
	}
	for _, base := range brokenBases {
		if _, _, status := git.run(t, git.environ(parameters(base+" "+fragment)), "config", "--get", "safe.directory"); status != 128 {
			t.Errorf("git accepts %q with a fragment behind it: status %d", base, status)
		}
	}
}

// GIT-09: where git wants one value, the host's wins, since it comes last.
func TestFragmentWins(t *testing.T) {
	git := newGit(t)
	value, err := gitenv.Compose(ptr(`'a.b=base'`), nil, `'a.b=host'`)
	if err != nil {
		t.Fatal(err)
	}
	if got := git.must(t, git.environ(parameters(value)), "config", "a.b"); got != "host\n" {
		t.Errorf("a.b is %q", got)
	}
}

// GIT-03 GIT-05 GIT-07 GIT-08 GIT-09: for any base and fragment that are well formed, git sees the base's
// settings and then the fragment's.
func TestComposeProperty(t *testing.T) {
	git := newGit(t)
	pairs := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) gitenv.Pair {
		p := pair("s."+byteString(6, "\n").Draw(rt, "subsection")+".k", byteString(12, "").Draw(rt, "value"))
		if rapid.Bool().Draw(rt, "valueless") {
			p.Value, p.Valueless = "", true
		}
		return p
	}), 0, 5)
	rapid.Check(t, func(rt *rapid.T) {
		base, host := pairs.Draw(rt, "base"), pairs.Draw(rt, "host")
		baseText, hostText := mustFragment(t, base...), mustFragment(t, host...)
		inherited, explicit := &baseText, (*string)(nil)
		switch rapid.IntRange(0, 2).Draw(rt, "source") {
		case 1:
			inherited, explicit = ptr(`'other.key=1'`), &baseText
		case 2:
			explicit = ptr("")
			base = nil
		}
		value, err := gitenv.Compose(inherited, explicit, hostText)
		if err != nil {
			rt.Fatal(err)
		}
		want := append(append([]gitenv.Pair(nil), base...), host...)
		got, accepted := git.list(t, parameters(value))
		if !accepted || !samePairs(got, want) {
			rt.Fatalf("git sees %+v (accepted %v), want %+v", got, accepted, want)
		}
	})
}
