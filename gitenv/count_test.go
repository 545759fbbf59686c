package gitenv_test

import (
	"errors"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/workberth/workberth/gitenv"
)

// countCases are values of GIT_CONFIG_COUNT; want is -1 where git refuses them.
var countCases = []struct {
	value string
	want  int
}{
	{"", 0}, {"+1", 1}, {" 1", 1}, {"01", 1}, {"0", 0}, {"1", 1}, {"2", 2}, {"\v1", 1}, {"\f\n\r\t 1", 1}, {"+01", 1},
	{"-0", 0}, {"+0", 0}, {"00000000000000000000000000000001", 1}, {"-18446744073709551615", 1},
	{"1x", -1}, {"-1", -1}, {"2147483648", -1}, {"18446744073709551616", -1}, {"18446744073709551617", -1},
	{"-18446744073709551617", -1}, {"184467440737095516160", -1}, {"99999999999999999999999999", -1}, {" ", -1}, {"+", -1}, {"-", -1}, {"1 ", -1}, {"+ 1", -1}, {"+-1", -1},
	{"0x1", -1}, {"1.0", -1}, {"1_0", -1}, {"١", -1}, {"\u00a01", -1}, {"x", -1}, {"1\n", -1},
}

// C141: the same values are accepted and refused as by git, with the same meaning.
func TestParseCount(t *testing.T) {
	git := newGit(t)
	for _, tc := range countCases {
		got, err := gitenv.ParseCount(tc.value)
		var syntax *gitenv.SyntaxError
		switch {
		case tc.want >= 0 && (err != nil || got != tc.want):
			t.Errorf("ParseCount(%q) = %d, %v; want %d", tc.value, got, err, tc.want)
		case tc.want < 0 && (!errors.As(err, &syntax) || syntax.Var != gitenv.CountVar || !errors.Is(err, gitenv.ErrMalformed)):
			t.Errorf("ParseCount(%q) = %d, %v; want a SyntaxError", tc.value, got, err)
		}
		pairs, accepted := git.list(t, "GIT_CONFIG_COUNT="+tc.value,
			"GIT_CONFIG_KEY_0=a.b", "GIT_CONFIG_VALUE_0=0", "GIT_CONFIG_KEY_1=a.b", "GIT_CONFIG_VALUE_1=1")
		if accepted != (tc.want >= 0) || len(pairs) != max(tc.want, 0) {
			t.Errorf("git with count %q: accepted %v, pairs %v; want %d", tc.value, accepted, pairs, tc.want)
		}
	}
	if got, err := gitenv.ParseCount("2147483647"); err != nil || got != 1<<31-1 {
		t.Errorf("the largest count: %d, %v", got, err)
	}
}

// C141: every number in range is read as what it is, whatever may stand before it.
func TestParseCountOfNumbers(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(0, 1<<31-1).Draw(rt, "n")
		s := rapid.SampledFrom([]string{"", "+", " ", "\t +", "0", "+00"}).Draw(rt, "prefix") + strconv.Itoa(n)
		if got, err := gitenv.ParseCount(s); err != nil || got != n {
			rt.Fatalf("ParseCount(%q) = %d, %v", s, got, err)
		}
	})
}

// effectiveCases are environments; bad names the variable git complains about.
var effectiveCases = []struct {
	explanation string
	env         []string
	want        []gitenv.Pair
	bad         string
}{
	{"nothing set", nil, nil, ""},
	{
		"both families: COUNT first, PARAMETERS later, so PARAMETERS wins",
		[]string{parameters(`'a.b=p'`), "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=a.b", "GIT_CONFIG_VALUE_0=c"},
		[]gitenv.Pair{pair("a.b", "c"), pair("a.b", "p")},
		"",
	},
	{
		"keys in canonical form, values as they are",
		[]string{"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=A.Sub.B", "GIT_CONFIG_VALUE_0= 'x'=\n", "GIT_CONFIG_KEY_1=c.d", "GIT_CONFIG_VALUE_1="},
		[]gitenv.Pair{pair("a.Sub.b", " 'x'=\n"), pair("c.d", "")},
		"",
	},
	{
		"entries beyond the count are not looked at",
		[]string{"GIT_CONFIG_COUNT=0", "GIT_CONFIG_KEY_0=bad", parameters("")}, nil, "",
	},
	{"no count, no entries", []string{"GIT_CONFIG_KEY_0=a.b", "GIT_CONFIG_VALUE_0=c"}, nil, ""},
	{"missing key", []string{"GIT_CONFIG_COUNT=1", "GIT_CONFIG_VALUE_0=c"}, nil, "GIT_CONFIG_KEY_0"},
	{"missing value", []string{"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=a.b"}, nil, "GIT_CONFIG_VALUE_0"},
	{
		"missing second key",
		[]string{"GIT_CONFIG_COUNT=2147483647", "GIT_CONFIG_KEY_0=a.b", "GIT_CONFIG_VALUE_0=c"}, nil, "GIT_CONFIG_KEY_1",
	},
	{"empty key", []string{"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=", "GIT_CONFIG_VALUE_0=c"}, nil, "GIT_CONFIG_KEY_0"},
	{"the key is not trimmed", []string{"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0= a.b", "GIT_CONFIG_VALUE_0=c"}, nil, "GIT_CONFIG_KEY_0"},
	{"bad count", []string{"GIT_CONFIG_COUNT=1x", parameters(`'a.b=c'`)}, nil, "GIT_CONFIG_COUNT"},
	{
		"bad parameters behind good entries",
		[]string{"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=a.b", "GIT_CONFIG_VALUE_0=c", parameters("broken")}, nil, "GIT_CONFIG_PARAMETERS",
	},
}

// C141: what git will see, from both families in its order.
func TestEffective(t *testing.T) {
	git := newGit(t)
	for _, tc := range effectiveCases {
		t.Run(tc.explanation, func(t *testing.T) {
			got, err := gitenv.Effective(gitenv.LookupIn(tc.env))
			var syntax *gitenv.SyntaxError
			if tc.bad == "" && (err != nil || !samePairs(got, tc.want)) {
				t.Errorf("Effective = %+v, %v; want %+v", got, err, tc.want)
			}
			if tc.bad != "" && (!errors.As(err, &syntax) || syntax.Var != tc.bad || got != nil) {
				t.Errorf("Effective = %+v, %v; want an error about %s", got, err, tc.bad)
			}
			seen, accepted := git.list(t, tc.env...)
			if accepted != (tc.bad == "") || !samePairs(seen, tc.want) {
				t.Errorf("git sees %+v, accepted %v; want %+v", seen, accepted, tc.want)
			}
		})
	}
}

// A NUL cannot come from an environment, but from a caller's own lookup function.
func TestEffectiveRefusesNUL(t *testing.T) {
	_, err := gitenv.Effective(gitenv.LookupIn([]string{"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=a.b", "GIT_CONFIG_VALUE_0=x\x00"}))
	if !errors.Is(err, gitenv.ErrNUL) {
		t.Errorf("error %v, want ErrNUL", err)
	}
}

func TestVariableNames(t *testing.T) {
	if got := gitenv.KeyVar(12) + " " + gitenv.ValueVar(0); got != "GIT_CONFIG_KEY_12 GIT_CONFIG_VALUE_0" {
		t.Error(got)
	}
	lookup := gitenv.LookupIn([]string{"A=1", "odd", "=C:=x", "B=", "A=2=3"})
	for name, want := range map[string]string{"A": "2=3", "B": ""} {
		if got, ok := lookup(name); !ok || got != want {
			t.Errorf("%s: %q, %v; want %q", name, got, ok, want)
		}
	}
	for _, name := range []string{"odd", "", "C"} {
		if got, ok := lookup(name); ok {
			t.Errorf("%q found: %q", name, got)
		}
	}
}
