package gitenv_test

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/workberth/workberth/gitenv"
)

const hostFragment = `'f.f=1'`

// without is a filter that removes one variable.
func without(name string) gitenv.Filter {
	return gitenv.KeepNames(func(n string) bool { return n != name })
}

// GIT-02 to GIT-09, GIT-12: which child gets what.
func TestApply(t *testing.T) {
	inherited := []string{"PATH=/bin", parameters(`'a.b=c'`), "odd", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=x.y", "GIT_CONFIG_VALUE_0=z", "=C:=C:\\"}
	plain := []string{"PATH=/bin", "HOME=/h"}
	swap := func(value string) []string {
		env := slices.Clone(inherited)
		env[1] = parameters(value)
		return env
	}
	for _, tc := range []struct {
		explanation string
		child       gitenv.Child
		fragment    *string
		want        []string
	}{
		{"GIT-02: no fragment, nothing changes", gitenv.Child{Placement: gitenv.LocalHost, Inherited: inherited}, nil, inherited},
		{"GIT-02: an empty fragment is none", gitenv.Child{Placement: gitenv.LocalHost, Inherited: plain}, ptr(""), plain},
		{
			"GIT-02: even a broken value stays as it is",
			gitenv.Child{Placement: gitenv.LocalHost, Inherited: []string{parameters("broken")}}, nil, []string{parameters("broken")},
		},
		{
			"GIT-03 GIT-05 GIT-09: appended in place, all else and the COUNT family untouched",
			gitenv.Child{Placement: gitenv.LocalHost, Inherited: inherited}, ptr(hostFragment), swap(`'a.b=c' ` + hostFragment),
		},
		{
			"GIT-03: nothing inherited gives the fragment alone",
			gitenv.Child{Placement: gitenv.LocalHost, Inherited: plain}, ptr(hostFragment), append(slices.Clone(plain), parameters(hostFragment)),
		},
		{
			"GIT-07: an explicit value is the base",
			gitenv.Child{Placement: gitenv.LocalHost, Inherited: inherited[:2], Explicit: []string{parameters(`'d.e=f'`), "PATH=/usr/bin"}},
			ptr(hostFragment),
			[]string{parameters(`'d.e=f' ` + hostFragment), "PATH=/usr/bin"},
		},
		{
			"GIT-08: an explicit empty value drops the inherited one",
			gitenv.Child{Placement: gitenv.LocalHost, Inherited: inherited[:2], Explicit: []string{parameters("")}},
			ptr(hostFragment),
			[]string{"PATH=/bin", parameters(hostFragment)},
		},
		{
			"GIT-08 without a fragment: the explicit empty value stays",
			gitenv.Child{Placement: gitenv.LocalHost, Inherited: inherited[:2], Explicit: []string{parameters("")}},
			nil,
			[]string{"PATH=/bin", parameters("")},
		},
		{
			"GIT-06: a filter that removes the variable removes the fragment",
			gitenv.Child{Placement: gitenv.LocalHost, Inherited: inherited[:2], Filter: without(gitenv.ParametersVar)},
			ptr(hostFragment),
			[]string{"PATH=/bin"},
		},
		{
			"GIT-06: also an explicit value",
			gitenv.Child{Placement: gitenv.LocalHost, Inherited: plain, Explicit: []string{parameters(`'a.b=c'`)}, Filter: without(gitenv.ParametersVar)},
			ptr(hostFragment),
			plain,
		},
		{
			"GIT-06: and where nothing was inherited",
			gitenv.Child{Placement: gitenv.LocalHost, Inherited: plain, Filter: without(gitenv.ParametersVar)},
			ptr(hostFragment),
			plain,
		},
		{
			"GIT-06: what a filter removes besides stays removed",
			gitenv.Child{Placement: gitenv.LocalHost, Inherited: inherited[:2], Filter: without("PATH")},
			ptr(hostFragment),
			[]string{parameters(`'a.b=c' ` + hostFragment)},
		},
		{
			"Q-20: the filter sees the composed value and has the last word",
			gitenv.Child{Placement: gitenv.LocalHost, Inherited: plain, Filter: func(env []string) []string {
				if v, _ := gitenv.LookupIn(env)(gitenv.ParametersVar); v != hostFragment {
					return []string{"composed value missing"}
				}
				return []string{parameters(`'only.this=1'`)}
			}},
			ptr(hostFragment),
			[]string{parameters(`'only.this=1'`)},
		},
		{
			"C139 GIT-06: a broken base the filter removes is no error",
			gitenv.Child{Placement: gitenv.LocalHost, Inherited: []string{"A=1", parameters("broken")}, Filter: without(gitenv.ParametersVar)},
			ptr(hostFragment),
			[]string{"A=1"},
		},
		{
			"of several inherited values the last counts, and one is left",
			gitenv.Child{Placement: gitenv.LocalHost, Inherited: []string{parameters(`'a.b=1'`), "A=1", parameters(`'a.b=2'`), "B=1"}},
			ptr(hostFragment),
			[]string{"A=1", parameters(`'a.b=2' ` + hostFragment), "B=1"},
		},
		{
			"of several explicit values too",
			gitenv.Child{Placement: gitenv.LocalHost, Explicit: []string{parameters(`'a.b=1'`), parameters(``)}},
			ptr(hostFragment),
			[]string{parameters(hostFragment)},
		},
		{"GIT-12: a sandboxed peer keeps its environment", gitenv.Child{Placement: gitenv.Sandboxed, Inherited: inherited}, ptr(hostFragment), inherited},
		{"GIT-12: a remote peer keeps its environment", gitenv.Child{Placement: gitenv.Remote, Inherited: inherited}, ptr(hostFragment), inherited},
		{"GIT-12: someone else's peer keeps its environment", gitenv.Child{Placement: gitenv.External, Inherited: inherited}, ptr(hostFragment), inherited},
		{
			"GIT-12: also with settings and filters of its owner",
			gitenv.Child{Placement: gitenv.Sandboxed, Inherited: inherited[:2], Explicit: []string{parameters("x")}, Filter: without("PATH")},
			ptr(hostFragment),
			[]string{parameters("x")},
		},
		{"GIT-12: a fragment not meant for it is not looked at", gitenv.Child{Placement: gitenv.Remote, Inherited: plain}, ptr("'"), plain},
	} {
		before := slices.Clone(tc.child.Inherited)
		got, err := gitenv.Apply(tc.child, tc.fragment)
		if err != nil || !slices.Equal(got, tc.want) {
			t.Errorf("%s:\n got %q, %v\nwant %q", tc.explanation, got, err, tc.want)
		}
		if !slices.Equal(tc.child.Inherited, before) {
			t.Errorf("%s: the inherited list was changed to %q", tc.explanation, tc.child.Inherited)
		}
	}
}

// C139, Q-20, GIT-04: errors come without an environment.
func TestApplyErrors(t *testing.T) {
	for _, tc := range []struct {
		explanation string
		child       gitenv.Child
		fragment    string
		want        error
	}{
		{"GIT-04: no placement is not local", gitenv.Child{}, hostFragment, gitenv.ErrPlacement},
		{"GIT-04: nor is an unknown one", gitenv.Child{Placement: "local"}, hostFragment, gitenv.ErrPlacement},
		{"unbalanced fragment", gitenv.Child{Placement: gitenv.LocalHost}, `'f.f=1`, gitenv.ErrUnbalanced},
		{"unbalanced fragment, even if the filter removes it", gitenv.Child{Placement: gitenv.LocalHost, Filter: without(gitenv.ParametersVar)}, `'f.f=1`, gitenv.ErrUnbalanced},
		{"broken inherited value", gitenv.Child{Placement: gitenv.LocalHost, Inherited: []string{parameters("broken")}}, hostFragment, gitenv.ErrMalformed},
		{"broken explicit value", gitenv.Child{Placement: gitenv.LocalHost, Explicit: []string{parameters("broken")}}, hostFragment, gitenv.ErrMalformed},
		{
			"broken value that the filter keeps",
			gitenv.Child{Placement: gitenv.LocalHost, Inherited: []string{parameters("broken")}, Filter: without("PATH")}, hostFragment, gitenv.ErrMalformed,
		},
	} {
		env, err := gitenv.Apply(tc.child, &tc.fragment)
		if env != nil || !errors.Is(err, tc.want) {
			t.Errorf("%s: %q, %v; want %v", tc.explanation, env, err, tc.want)
		}
	}
}

// An empty result is a list, not nil: os/exec would take nil for "inherit everything", filtered credentials included.
func TestApplyNeverReturnsNil(t *testing.T) {
	nothing := func([]string) []string { return nil }
	for _, child := range []gitenv.Child{
		{Placement: gitenv.LocalHost},
		{Placement: gitenv.Remote},
		{Placement: gitenv.LocalHost, Inherited: []string{"SECRET=x"}, Filter: nothing},
		{Placement: gitenv.LocalHost, Inherited: []string{parameters("broken")}, Filter: nothing},
	} {
		for _, fragment := range []*string{nil, ptr("")} {
			if env, err := gitenv.Apply(child, fragment); err != nil || env == nil || len(env) != 0 {
				t.Errorf("%+v: %#v, %v; want an empty list", child, env, err)
			}
		}
	}
	if env, err := gitenv.Apply(gitenv.Child{Placement: gitenv.LocalHost, Filter: nothing}, ptr(hostFragment)); err != nil || env == nil {
		t.Errorf("%#v, %v; want an empty list", env, err)
	}
}

// The result shares no memory with what the caller keeps.
func TestApplyCopies(t *testing.T) {
	inherited := make([]string, 1, 8)
	inherited[0] = "A=1"
	env, err := gitenv.Apply(gitenv.Child{Placement: gitenv.Remote, Inherited: inherited}, nil)
	if err != nil {
		t.Fatal(err)
	}
	env[0] = "A=2"
	if inherited[0] != "A=1" || inherited[:2][1] != "" {
		t.Errorf("the inherited list was written to: %q", inherited[:2])
	}
}

// GIT-03 GIT-10 C139: a real child sees the inherited header and the host's setting; the first of doubled entries, which C
// programs look at, is not left behind.
func TestApplyRealChild(t *testing.T) {
	git := newGit(t)
	base := git.environ(
		parameters(`'stale.value=1'`), parameters(`'http.extraHeader=Authorization: Basic c2VjcmV0'`),
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=count.key", "GIT_CONFIG_VALUE_0=kept",
	)
	env, err := gitenv.Apply(gitenv.Child{Placement: gitenv.LocalHost, Inherited: base}, ptr(`'safe.directory=/ws'`))
	if err != nil {
		t.Fatal(err)
	}
	want := "count.key=kept\nhttp.extraheader=Authorization: Basic c2VjcmV0\nsafe.directory=/ws\n"
	if got := git.must(t, env, "config", "--list"); got != want {
		t.Errorf("the child sees %q, want %q", got, want)
	}
	var named []string
	for _, entry := range env {
		if strings.HasPrefix(entry, gitenv.ParametersVar+"=") {
			named = append(named, entry)
		}
	}
	if len(named) != 1 {
		t.Errorf("%d entries for %s", len(named), gitenv.ParametersVar)
	}
}

// GIT-04: composing does not touch the environment of the own process.
func TestApplyLeavesOwnEnvironment(t *testing.T) {
	t.Setenv(gitenv.ParametersVar, `'own.value=1'`)
	env, err := gitenv.Apply(gitenv.Child{Placement: gitenv.LocalHost, Inherited: os.Environ()}, ptr(hostFragment))
	if err != nil {
		t.Fatal(err)
	}
	if got := os.Getenv(gitenv.ParametersVar); got != `'own.value=1'` {
		t.Errorf("own value is now %q", got)
	}
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", `printf %s "$GIT_CONFIG_PARAMETERS"`)
	cmd.Env = env
	if out, err := cmd.Output(); err != nil || string(out) != `'own.value=1' `+hostFragment {
		t.Errorf("the child has %q, %v", out, err)
	}
}

func TestPlacement(t *testing.T) {
	for p, receives := range map[gitenv.Placement]bool{
		gitenv.LocalHost: true, gitenv.Sandboxed: false, gitenv.Remote: false, gitenv.External: false,
	} {
		if err := p.Validate(); err != nil || p.ReceivesFragment() != receives {
			t.Errorf("%q: %v, receives %v", p, err, p.ReceivesFragment())
		}
	}
	for _, p := range []gitenv.Placement{"", "local", "LOCAL-HOST"} {
		if err := p.Validate(); !errors.Is(err, gitenv.ErrPlacement) || p.ReceivesFragment() {
			t.Errorf("%q: %v, receives %v", p, err, p.ReceivesFragment())
		}
	}
}
