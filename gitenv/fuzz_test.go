package gitenv_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/workberth/workberth/gitenv"
)

// The seeds are in testdata/fuzz; FuzzParse starts from the table of TestParse too.

// maxEnv bounds what is handed to git in one variable; the operating system refuses more.
const maxEnv = 100_000

// C135: Parse and git accept the same values with the same meaning, and what Parse returns can be written again.
func FuzzParse(f *testing.F) {
	for _, tc := range parseCases {
		f.Add(tc.value)
	}
	git, noGit := findGit(f)
	f.Fuzz(func(t *testing.T, value string) {
		pairs, err := gitenv.Parse(value)
		if err != nil {
			var syntax *gitenv.SyntaxError
			if !errors.As(err, &syntax) || syntax.Offset < 0 || syntax.Offset >= len(value) || pairs != nil {
				t.Fatalf("%q: %+v, %v", value, pairs, err)
			}
		} else if again, err := gitenv.Parse(mustFragment(t, pairs...)); err != nil || !samePairs(again, pairs) {
			t.Fatalf("%q: read as %+v, written and read again as %+v, %v", value, pairs, again, err)
		}
		// Git also acts on one setting while it reads: it follows an include.
		includes := slices.ContainsFunc(pairs, func(p gitenv.Pair) bool { return strings.HasPrefix(p.Key, "include") })
		if noGit != nil || includes || len(value) > maxEnv || strings.Contains(value, "\x00") {
			return
		}
		seen, accepted := git.list(t, parameters(value))
		if accepted != (err == nil) || !samePairs(seen, pairs) {
			t.Fatalf("%q: git reads %+v (accepted %v), Parse %+v, %v", value, seen, accepted, pairs, err)
		}
	})
}

// C137: any value and any subsection go through quoting unchanged, for this package and for git.
func FuzzQuoteRoundTrip(f *testing.F) {
	git, noGit := findGit(f)
	f.Fuzz(func(t *testing.T, subsection, value string) {
		quoted, err := gitenv.Quote(value)
		if nul := strings.Contains(value, "\x00"); nul != errors.Is(err, gitenv.ErrNUL) || nul == (err == nil) {
			t.Fatalf("Quote(%q): %v", value, err)
		}
		want := []gitenv.Pair{pair("a."+subsection+".b", value), pair("c.d", value), flag("a." + subsection + ".e")}
		fragment, err := gitenv.Fragment(want...)
		if bad := strings.Contains(value, "\x00") || strings.ContainsAny(subsection, "\x00\n"); bad != (err != nil) {
			t.Fatalf("Fragment of %q, %q: %v", subsection, value, err)
		}
		if err != nil {
			return
		}
		if err := gitenv.CheckBalance(fragment); err != nil {
			t.Fatalf("%q: %v", fragment, err)
		}
		if got, err := gitenv.Parse("'c.d'=" + quoted); err != nil || !samePairs(got, want[1:2]) {
			t.Fatalf("%q is read as %+v, %v", quoted, got, err)
		}
		if got, err := gitenv.Parse(fragment); err != nil || !samePairs(got, want) {
			t.Fatalf("%q is read as %+v, %v", fragment, got, err)
		}
		if noGit != nil || len(fragment) > maxEnv {
			return
		}
		if got, accepted := git.list(t, parameters(fragment)); !accepted || !samePairs(got, want) {
			t.Fatalf("git reads %q as %+v, accepted %v", fragment, got, accepted)
		}
	})
}

// GIT-05 GIT-07 GIT-08 GIT-09 C139 Q-20: whatever comes in, the result is base, blank, fragment, or an error; and a
// fragment that git accepts never becomes part of a value that it refuses.
func FuzzCompose(f *testing.F) {
	f.Fuzz(func(t *testing.T, inherited string, isSet bool, explicit, fragment string) {
		base, set := inherited, (*string)(nil)
		if isSet {
			base, set = explicit, &explicit
		}
		basePairs, baseErr := gitenv.Parse(base)
		hostPairs, hostErr := gitenv.Parse(fragment)
		balanceErr := gitenv.CheckBalance(fragment)

		got, err := gitenv.Compose(&inherited, set, fragment)
		if (err != nil) != (baseErr != nil || balanceErr != nil) {
			t.Fatalf("error %v; base %v, balance %v", err, baseErr, balanceErr)
		}
		if err != nil {
			if got != "" {
				t.Fatalf("a value beside an error: %q", got)
			}
			return
		}
		want := base + " " + fragment
		if base == "" || fragment == "" {
			want = base + fragment
		}
		if got != want {
			t.Fatalf("%q, want %q", got, want)
		}
		if hostErr != nil {
			return
		}
		pairs, err := gitenv.Parse(got)
		if err != nil || !samePairs(pairs, slices.Concat(basePairs, hostPairs)) {
			t.Fatalf("%q means %+v, %v", got, pairs, err)
		}
	})
}
