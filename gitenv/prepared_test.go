package gitenv_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/workberth/workberth/gitenv"
)

var someFacts = gitenv.Facts{
	AgentID: "agent-1", SessionID: "session-2", RunID: "run-3", RequesterID: "person-4",
	WorkingDir: "/ws", Placement: gitenv.LocalHost,
}

// GIT-01, Q-20: the facts are those of the moment of admission; nothing the host or a reader does later changes them.
func TestPreparedEnvironmentIsImmutable(t *testing.T) {
	facts, fragment := someFacts, hostFragment
	e, err := gitenv.Prepare(facts, &fragment)
	if err != nil {
		t.Fatal(err)
	}
	facts.RunID, fragment = "changed", "changed"
	got := e.Facts()
	got.RunID = "changed"
	*e.LocalGitConfigParameters() = "changed"
	if e.Facts() != someFacts {
		t.Errorf("facts are now %+v", e.Facts())
	}
	if p := e.LocalGitConfigParameters(); p == nil || *p != hostFragment {
		t.Errorf("the fragment is now %v", p)
	}
}

// GIT-02: the fragment is optional, and absent differs from empty only in what is reported.
func TestPreparedEnvironmentWithoutFragment(t *testing.T) {
	inherited := []string{"A=1", parameters("broken")}
	for _, fragment := range []*string{nil, ptr("")} {
		e, err := gitenv.Prepare(someFacts, fragment)
		if err != nil {
			t.Fatal(err)
		}
		if p := e.LocalGitConfigParameters(); (p == nil) != (fragment == nil) {
			t.Errorf("the fragment is %v", p)
		}
		env, err := e.ChildEnviron(gitenv.Child{Placement: gitenv.LocalHost, Inherited: inherited})
		if err != nil || !slices.Equal(env, inherited) {
			t.Errorf("%q, %v; want %q", env, err, inherited)
		}
	}
}

// GIT-04 GIT-12: the child's placement decides, whatever the attempt's is.
func TestChildPlacementDecides(t *testing.T) {
	for _, attempt := range []gitenv.Placement{gitenv.LocalHost, gitenv.Sandboxed, gitenv.Remote, gitenv.External} {
		facts := someFacts
		facts.Placement = attempt
		e, err := gitenv.Prepare(facts, ptr(hostFragment))
		if err != nil {
			t.Fatal(err)
		}
		for _, child := range []gitenv.Placement{gitenv.LocalHost, gitenv.Sandboxed, gitenv.Remote, gitenv.External} {
			env, err := e.ChildEnviron(gitenv.Child{Placement: child})
			_, has := gitenv.LookupIn(env)(gitenv.ParametersVar)
			if err != nil || has != (child == gitenv.LocalHost) {
				t.Errorf("attempt %s, child %s: %q, %v", attempt, child, env, err)
			}
		}
	}
}

// C139 Q-20: a fragment that would break every git is refused before the turn starts, and says where.
func TestPrepareRefuses(t *testing.T) {
	for fragment, want := range map[string]struct {
		offset int
		err    error
	}{
		`'a.b=c`:             {0, gitenv.ErrUnbalanced},
		`'a.b=c' 'd.e=`:      {8, gitenv.ErrUnbalanced},
		`a.b=c`:              {0, gitenv.ErrMalformed},
		` 'a.b=c'`:           {0, gitenv.ErrMalformed},
		`'a.b=c' 'nodot=x'`:  {8, gitenv.ErrKey},
		"'a.b=\x00'":         {5, gitenv.ErrNUL},
		`'a.b'='c'  'd.e'=f`: {17, gitenv.ErrMalformed},
	} {
		_, err := gitenv.Prepare(someFacts, &fragment)
		var at *gitenv.FragmentError
		if !errors.As(err, &at) || at.Offset != want.offset || !errors.Is(err, want.err) {
			t.Errorf("%q: %v; want %v at byte %d", fragment, err, want.err, want.offset)
		}
	}
	if _, err := gitenv.Prepare(gitenv.Facts{}, nil); !errors.Is(err, gitenv.ErrPlacement) {
		t.Errorf("no placement: %v", err)
	}
}

// GIT-10 GIT-11: no textual form holds the fragment.
func TestPreparedEnvironmentHidesFragment(t *testing.T) {
	const secret = "hunter2"
	e, err := gitenv.Prepare(someFacts, ptr(`'http.extraHeader=Authorization: Bearer `+secret+`'`))
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("prepared", "env", e)
	encoded, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	forms := []string{
		log.String(), string(encoded), e.String(),
		fmt.Sprintf("%v", e), fmt.Sprintf("%+v", e), fmt.Sprintf("%#v", e), fmt.Sprintf("%q", e), fmt.Sprintf("%v", []any{e}),
	}
	for _, form := range forms {
		if strings.Contains(form, secret) {
			t.Errorf("the fragment shows in %s", form)
		}
	}
	for _, want := range []string{"agent-1", "session-2", "run-3", "person-4", "/ws", "local-host", `"git_fragment":true`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%s is missing in %s", want, log.String())
		}
	}
}
