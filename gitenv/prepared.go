package gitenv

import (
	"errors"
	"log/slog"
)

// Facts are the identity and the place of an admitted attempt, captured when it was admitted. Empty means unknown or
// not applicable, except for Placement, which is required.
type Facts struct {
	// AgentID, SessionID and RunID name the agent, its session and this run.
	AgentID, SessionID, RunID string
	// RequesterID names whose message caused the turn; empty for a turn nobody asked for, such as a timer's.
	RequesterID string
	// WorkingDir is the absolute path of the attempt's working directory on the machine of its placement.
	WorkingDir string
	// Placement is where the attempt executes. A single child may be placed elsewhere; the child's own placement
	// decides about the fragment ([Child]).
	Placement Placement
}

// PreparedEnvironment is what the host capability of that name (preparedEnvironment) returns: the facts captured for
// the admitted attempt and, optionally, a fragment of git configuration. It is immutable: made by [Prepare], copied by
// value, sharing nothing with its maker. Safe for concurrent use. Keeps GIT-01.
//
// Its textual, logged and JSON forms never hold the fragment, which may contain credentials.
type PreparedEnvironment struct {
	facts      Facts
	parameters *string // never written after Prepare, never handed out
}

// Prepare captures the facts and the fragment, nil if the host has none. The fragment is copied.
//
// The placement must be valid ([ErrPlacement]). The fragment must be balanced and one that git accepts, a
// *[FragmentError] otherwise. That is stricter than [Compose]: this is where the host is told, before the turn starts,
// that every git below it would fail.
func Prepare(facts Facts, localGitConfigParameters *string) (PreparedEnvironment, error) {
	if err := facts.Placement.Validate(); err != nil {
		return PreparedEnvironment{}, err
	}
	e := PreparedEnvironment{facts: facts}
	if localGitConfigParameters == nil {
		return e, nil
	}
	fragment := *localGitConfigParameters
	if err := checkFragment(fragment); err != nil {
		return PreparedEnvironment{}, err
	}
	e.parameters = &fragment
	return e, nil
}

// checkFragment refuses what is not balanced and what git refuses.
func checkFragment(fragment string) error {
	if err := CheckBalance(fragment); err != nil {
		return err
	}
	_, err := Parse(fragment)
	if syntax := (*SyntaxError)(nil); errors.As(err, &syntax) {
		return &FragmentError{Offset: syntax.Offset, Err: err}
	}
	return err
}

// Facts returns a copy of the captured facts.
func (e PreparedEnvironment) Facts() Facts { return e.facts }

// LocalGitConfigParameters returns a copy of the fragment, or nil if there is none
// (localGitConfigParameters in the original).
func (e PreparedEnvironment) LocalGitConfigParameters() *string {
	if e.parameters == nil {
		return nil
	}
	fragment := *e.parameters
	return &fragment
}

// ChildEnviron returns the environment of a child of this attempt: [Apply] with the captured fragment. The child's
// placement decides whether it gets the fragment.
func (e PreparedEnvironment) ChildEnviron(c Child) ([]string, error) { return Apply(c, e.parameters) }

var _ slog.LogValuer = PreparedEnvironment{}

// LogValue returns the facts and whether there is a fragment.
func (e PreparedEnvironment) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("agent", e.facts.AgentID),
		slog.String("session", e.facts.SessionID),
		slog.String("run", e.facts.RunID),
		slog.String("requester", e.facts.RequesterID),
		slog.String("dir", e.facts.WorkingDir),
		slog.String("placement", string(e.facts.Placement)),
		slog.Bool("git_fragment", e.parameters != nil),
	)
}

// String returns the form of LogValue.
func (e PreparedEnvironment) String() string { return e.LogValue().String() }
