// Package server serves a bridge, a runner of commands and an owner's control
// calls to one peer on one connection. The guest helper serves the files and
// commands of its environment with it; an owner process serves its sandbox to
// other processes on the same machine with the same code.
//
// It knows the protocol and the interfaces it serves. It does not know where it
// runs, how files are confined or how commands are run: that is the business of
// what it was given.
//
// # Trust
//
// The peer is bounded: the number of its calls, the bytes that wait for it and
// from it, the size of every value it sends. A malformed request fails that
// request, a malformed frame ends the connection. What a peer may do is decided
// before it gets the connection.
package server
