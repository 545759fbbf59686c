package sandbox

import (
	"errors"
	"fmt"
	"strings"

	"github.com/workberth/workberth/internal/guest/proc"
)

// Sentinels for errors.Is.
var (
	// ErrRevoked: execution was revoked for this sandbox.
	ErrRevoked = errors.New("execution was revoked")
	// ErrHostOnly: the harness can only run unconfined.
	ErrHostOnly = errors.New("host-only harness in a confined context")
	// ErrGone: this generation of the sandbox has ended.
	ErrGone = errors.New("the sandbox has ended")
	// ErrUnavailable: the backend does not work on this machine now.
	ErrUnavailable = errors.New("backend is unavailable")
	// ErrRefused: a setting or request is against the rules; nothing was done.
	ErrRefused = errors.New("refused")
	// ErrUnknownBackend: no backend has that name.
	ErrUnknownBackend = errors.New("unknown backend")
	// ErrInUse: another live process holds the sandbox.
	ErrInUse = errors.New("in use by another process")
	// ErrNotFound: there is no such sandbox or command.
	ErrNotFound = errors.New("not found")
)

// StartError says why a command could not be started; nothing was run. Its Reason is
// one of the constants StartNoCommand to StartInternal.
type StartError = proc.StartError

// Problem is an error for people: what was refused or failed, by which rule, and
// what to do next. It wraps one of the sentinels or another cause.
type Problem struct {
	// What failed: "bind /etc", "network host".
	What string
	// Rule or reason, one line.
	Rule string
	// Remedy is what to do next, one line.
	Remedy string
	// Field is the configuration field concerned, where there is one.
	Field string
	// Err is the sentinel or cause.
	Err error
}

// Error gives one line; the remedy is shown separately.
func (p *Problem) Error() string {
	var b strings.Builder
	if p.Field != "" {
		fmt.Fprintf(&b, "%s: ", p.Field)
	}
	b.WriteString(p.What)
	if p.Rule != "" {
		fmt.Fprintf(&b, ": %s", p.Rule)
	}
	return b.String()
}

// Unwrap returns the cause.
func (p *Problem) Unwrap() error { return p.Err }

// RevokedError carries the reason of a revocation. It matches ErrRevoked and, for
// bridges, fsbridge.ErrNotCurrent where it is wrapped by one.
type RevokedError struct{ Reason string }

// Error gives one line.
func (e *RevokedError) Error() string {
	if e.Reason == "" {
		return ErrRevoked.Error()
	}
	return ErrRevoked.Error() + ": " + e.Reason
}

// Is matches ErrRevoked.
func (e *RevokedError) Is(target error) bool { return target == ErrRevoked }
