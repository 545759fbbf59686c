// Package guesttest has the fakes that tests of the protocol share: connections, a
// bridge in memory whose every call can be held up or failed, a runner of commands
// that are functions, and a peer that follows a script.
//
// It is used by tests only.
package guesttest
