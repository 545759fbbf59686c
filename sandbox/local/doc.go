// Package local runs commands on this machine without any confinement: with the
// rights of the user, in the workspace itself. It must be named; nothing falls back
// to it.
//
// What it shares with the other backends is everything but the walls: exact streams
// and exit codes, the end of whole process trees, cleanup custody, revocation,
// background commands, and a file bridge that stays inside the workspace.
//
// A setting that only walls can keep (a network, a read-only root, a system call
// filter, binds, limits on the sandbox as a whole) is refused rather than ignored.
package local
