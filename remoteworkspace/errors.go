package remoteworkspace

import (
	"errors"
	"fmt"

	"github.com/workberth/workberth/fsbridge"
)

// CodeUnavailable is the code of [ErrUnavailable] in answers to other programs.
const CodeUnavailable = "WORKSPACE_ACCESS_UNAVAILABLE"

// Sentinels for errors.Is. Errors of the bridge stay in the chain:
// fsbridge.ErrTooLarge, fsbridge.ErrOutsideRoot, fsbridge.ErrUnsupported and so on.
var (
	// ErrUnavailable: the workspace is bound and cannot be reached now. Nothing was
	// read from anywhere else.
	ErrUnavailable = errors.New("workspace access is unavailable")
	// ErrConflict: the document is not what the caller expected; nothing was written.
	ErrConflict = errors.New("the document has changed")
	// ErrOutcomeUnknown: the connection failed during a save; the document may have
	// the old content or the new. It is fsbridge.ErrOutcomeUnknown.
	ErrOutcomeUnknown = fsbridge.ErrOutcomeUnknown
	// ErrNotAllowed: the name is not on the allowlist of documents.
	ErrNotAllowed = errors.New("not on the list of documents")
	// ErrUnauthorized: the authorisation hook refused.
	ErrUnauthorized = errors.New("not authorised")
	// ErrNotDeclared: the directory must be declared before it is registered.
	ErrNotDeclared = errors.New("the workspace directory was not declared")
	// ErrRegistered: the directory has a registration in force already.
	ErrRegistered = errors.New("the workspace directory is registered already")
	// ErrInvalid: an argument is malformed.
	ErrInvalid = fsbridge.ErrInvalid
)

// UnavailableError tells why a bound workspace cannot be reached. It matches
// ErrUnavailable.
type UnavailableError struct {
	Dir string
	// State is the state of the binding at that time.
	State State
	// Err is the failure of the connection, nil where the state says it all.
	Err error
}

// Error gives one line.
func (e *UnavailableError) Error() string {
	s := fmt.Sprintf("workspace %s is bound and cannot be reached", fsbridge.DisplayPath(e.Dir))
	switch {
	case e.Err != nil:
		return s + ": " + e.Err.Error()
	case e.State == StateDeclared:
		return s + ": its access is declared and not registered yet"
	case e.State == StateStopped:
		return s + ": its access was stopped"
	}
	return s
}

// Code is CodeUnavailable.
func (e *UnavailableError) Code() string { return CodeUnavailable }

// Unwrap gives ErrUnavailable and the cause.
func (e *UnavailableError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrUnavailable}
	}
	return []error{ErrUnavailable, e.Err}
}

// ConflictError carries the hash of the present content. It matches ErrConflict.
type ConflictError struct {
	// Expected is what the caller demanded; empty for "must not exist".
	Expected fsbridge.Digest
	// Current is the hash of the present content; empty when there is no document.
	Current fsbridge.Digest
}

// Error tells both hashes.
func (e *ConflictError) Error() string {
	return (&fsbridge.ConflictError{Expected: e.Expected, Current: e.Current}).Error()
}

// Is matches ErrConflict and fsbridge.ErrConflict.
func (e *ConflictError) Is(target error) bool {
	return target == ErrConflict || target == fsbridge.ErrConflict
}

// DocumentError reports a failed call: which method, of which document, the rule
// or reason, and what to do next.
type DocumentError struct {
	Method Method
	Dir    string
	// Name is the document; empty for calls about the whole workspace.
	Name string
	Err  error
	// Hint says what to do next; it may be empty.
	Hint string
}

// Error gives one line: "agents.files.set AGENTS.md: the document has changed".
func (e *DocumentError) Error() string {
	s := string(e.Method)
	if e.Name != "" {
		s += " " + fsbridge.DisplayPath(e.Name)
	}
	return s + ": " + e.Err.Error()
}

// Unwrap returns the reason.
func (e *DocumentError) Unwrap() error { return e.Err }

// hintFor is what to do about err.
func hintFor(err error) string {
	var path *fsbridge.PathError
	switch {
	case errors.Is(err, ErrOutcomeUnknown):
		return "read the document again and compare its hash before you repeat the change"
	case errors.Is(err, ErrUnavailable):
		return "register the access again when the machine can be reached; no local copy is used instead"
	case errors.Is(err, ErrConflict):
		return "read the document again and decide; its present hash is in the message"
	case errors.Is(err, ErrNotAllowed):
		return "choose a document of the list, or add the name to the configured documents"
	case errors.As(err, &path):
		return path.Hint
	}
	return ""
}
