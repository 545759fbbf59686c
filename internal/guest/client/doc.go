// Package client is the host's side of the protocol: it greets a helper, makes
// calls, and runs commands.
//
// It knows the protocol. It does not know how the connection was made, and of
// files only that calls about them exist: fsbridge/guestfs gives those a meaning.
//
// # Trust
//
// The peer is hostile until proven otherwise, and nothing proves otherwise. One
// goroutine reads the connection; it never waits for a caller, allocates only what
// has arrived, and ends the connection at the first frame the protocol forbids. A
// value in an answer that cannot be true (a name with a separator, a negative
// size) ends it as well. No answer names a file on the host.
package client
