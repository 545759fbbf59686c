// Package ssh runs commands and keeps workspaces on machines that are reached over SSH.
//
// Nothing has to be installed there. The guest helper is put into a private cache directory
// of the account, once per content and architecture, and its hash is verified before every
// start. It is started by the command "exec /bin/sh", which every login shell passes on
// unharmed, with a fixed function on standard input; what login shells and their start files
// print is skipped. From then on files and commands of the sandbox travel over that one
// session, as they do for every backend.
//
// The workspace is a directory of the host. A path that begins with "/~/" counts from the
// home directory of the account. With a seed, a local directory, a workspace that does not
// exist is filled from it, once; from then on the host's is the true one.
//
// # What it is not
//
// It is no wall: commands have the rights of the account, its files and its network.
// Settings that only walls can keep are refused.
//
// # Lost connections
//
// The end of the connection is the end of the generation: running commands are unknown to
// their callers, writes report fsbridge.ErrOutcomeUnknown, and nothing is replayed. The
// helper ends its commands when its input ends. Where that cannot be seen, because the host
// cannot be reached, the next connection looks for what is left, by the tag that every
// process of a generation carries, before it starts a new one.
package ssh
