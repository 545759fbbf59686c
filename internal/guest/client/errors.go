package client

import (
	"errors"
	"fmt"

	"github.com/workberth/workberth/internal/guest/wire"
)

// ErrClosed is why a connection is over after Close.
var ErrClosed = errors.New("the connection to the helper was closed")

// VersionError says that the helper is of another version; it names both.
type VersionError = wire.VersionError

// HandshakeError says that no helper answered.
type HandshakeError struct {
	// Said is what came instead of a greeting, printable and cut to
	// wire.MaxQuote bytes; empty when nothing came.
	Said string
	// Err is the reason.
	Err error
}

// Error quotes what the peer said.
func (e *HandshakeError) Error() string {
	if e.Said == "" {
		return fmt.Sprintf("no greeting from the helper: %v", e.Err)
	}
	return fmt.Sprintf("no greeting from the helper: %v; it said %q", e.Err, e.Said)
}

// Unwrap returns the reason.
func (e *HandshakeError) Unwrap() error { return e.Err }

// LostError says that a call was not answered: the connection failed, or the
// caller's ctx ended and the server did not say in time what became of the call.
type LostError struct {
	// Sent is true when the request may have reached the server. Then nobody
	// knows whether the call had its effect.
	Sent bool
	// Err is the reason; the ctx's error where ctx ended.
	Err error
}

// Error tells whether the request was sent.
func (e *LostError) Error() string {
	if e.Sent {
		return fmt.Sprintf("no answer from the helper: %v", e.Err)
	}
	return fmt.Sprintf("the helper is not available: %v", e.Err)
}

// Unwrap returns the reason.
func (e *LostError) Unwrap() error { return e.Err }
