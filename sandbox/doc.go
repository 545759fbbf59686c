// Package sandbox runs commands and serves files in a confined place.
//
// A [Backend] makes sandboxes of one kind (bubblewrap, docker, ...). A [Sandbox]
// is a live handle on one of them. The rules that are the same everywhere live
// here: identity, validation of dangerous settings, the launch of a command with
// its process-cleanup custody, background commands, bounded output, the registry
// on disk.
//
// # Launching a command
//
// The child owner ([Start], and [Run] on top of it) does, in this order:
//
//  1. [PrepareProcessCleanup]: a fresh marker in the environment and callbacks
//     pinned to this very runtime (SBX-01, SBX-07);
//  2. [Sandbox.BuildExecSpec] with the environment of step 1 (SBX-02);
//  3. [ExecSpec.AssertCurrent], the last act before the launch (SBX-04);
//  4. [ExecSpec.Spawn];
//  5. [Sandbox.FinalizeExec] on every way out (SBX-05).
//
// Ending a command ends everything it started, and says what is known: gone,
// survivors or unknown.
//
// # Revocation
//
// After [Sandbox.Revoke] nothing new may start and nothing may be written;
// what runs can still be terminated (SBX-08, SBX-09, SBX-13).
//
// # For backends
//
// A backend's Ensure begins with [Resolve] (defaults, validation, identity), takes
// the sandbox with [Registry.Claim], ends what a dead owner left with [Claim.Reap],
// and keeps what it has to know in the [Record]. Package backendtest is the suite it
// has to pass.
//
// # Secrets
//
// Values of environment variables are in no record, no log and no error; [Env] and
// [Config] print the names only. The hash of a configuration covers them.
//
// This package knows no engine, no wire protocol and no command line.
package sandbox
