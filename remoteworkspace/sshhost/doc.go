// Package sshhost serves workspaces to people and agents over SSH: the user name is the
// workspace, and every session runs in that workspace's sandbox.
//
// A [Server] knows who may come in ([Policy]) and gets sandboxes from an [Opener]; it
// knows no backend, no configuration file and no command line. What an SSH client can
// reach is what a command in the sandbox can reach: commands run there, the sftp
// subsystem works through the sandbox's bridge, and forwarded connections are made by a
// process inside. No answer names a path of the host or its user.
//
// # Who comes in
//
// Public keys and user certificates, never passwords. Authority is decided by the key
// that signed, once more after its signature was verified: keys that were only offered
// leave no trace (see auth.go). A reloaded policy ends connections it no longer permits.
//
// # How things end
//
// A session's processes end with it: SIGHUP, then the whole tree by the sandbox's own
// custody. A client that vanishes without a word is found by keepalives. [Server.Shutdown]
// lets running sessions finish for a while, then ends them, then closes the sandboxes.
//
// # What is not protected
//
// Everybody admitted to a workspace has the same rights in it, and can end the processes
// of the others. Terminal modes of the client are not applied. A client that reads slowly
// slows its own command down.
package sshhost
