// Package keeper keeps the sandboxes of one backend whose owners are processes of
// this machine: at most one live generation of a sandbox per machine, several handles
// on it in this process, a record for other processes and for whoever comes after a
// crash.
//
// A backend says how a generation is born ([Birth]) and how what a dead one left is
// cleared away; everything else is here, once: taking turns, claims, records, the
// sweep of tags, the setup command, stopping and removing, from this process or from
// another one.
//
// The package knows no engine and no way to start a helper.
package keeper
