package owner

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/workberth/workberth/internal/guest/proc"
	"github.com/workberth/workberth/sandbox"
)

// failure is an error on its way between two processes of this program.
type failure struct {
	Kind   string `json:"kind,omitempty"`
	What   string `json:"what"`
	Rule   string `json:"rule,omitempty"`
	Remedy string `json:"remedy,omitempty"`
	Field  string `json:"field,omitempty"`
	// Start is the reason of a start error, then What is its subject.
	Start proc.StartReason `json:"start,omitempty"`
}

// kind names a sentinel that survives the way.
type kind struct {
	word string
	err  error
}

// kinds lists the sentinels, the more specific first.
func kinds() []kind {
	return []kind{
		{"revoked", sandbox.ErrRevoked}, {"gone", sandbox.ErrGone}, {"in-use", sandbox.ErrInUse},
		{"not-found", sandbox.ErrNotFound}, {"unknown-backend", sandbox.ErrUnknownBackend},
		{"refused", sandbox.ErrRefused}, {"unavailable", sandbox.ErrUnavailable}, {"timeout", context.DeadlineExceeded},
	}
}

// newFailure describes err.
func newFailure(err error) *failure {
	var start *proc.StartError
	if errors.As(err, &start) {
		f := &failure{Start: start.Reason, What: start.What}
		if start.Err != nil {
			f.Rule = start.Err.Error()
		}
		return f
	}
	f := &failure{What: err.Error()}
	var p *sandbox.Problem
	if errors.As(err, &p) {
		f.What, f.Rule, f.Remedy, f.Field = p.What, p.Rule, p.Remedy, p.Field
	}
	for _, k := range kinds() {
		if errors.Is(err, k.err) {
			f.Kind = k.word
			break
		}
	}
	return f
}

// err is the failure as an error that matches the sentinel it came from.
func (f *failure) err() error {
	if f.Start != "" {
		e := &proc.StartError{Reason: f.Start, What: f.What}
		if f.Rule != "" {
			e.Err = errors.New(f.Rule)
		}
		return e
	}
	cause := sandbox.ErrUnavailable
	for _, k := range kinds() {
		if k.word == f.Kind {
			cause = k.err
		}
	}
	return &sandbox.Problem{What: f.What, Rule: f.Rule, Remedy: f.Remedy, Field: f.Field, Err: cause}
}

// answer is the body of every control reply: a result or a failure.
type answer struct {
	Result json.RawMessage `json:"result,omitempty"`
	Error  *failure        `json:"error,omitempty"`
}
