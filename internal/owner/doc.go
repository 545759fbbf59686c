// Package owner is the small process that keeps one sandbox warm between calls
// of the command line, as ssh's ControlPersist does for a connection.
//
// The first call that needs a sandbox starts its owner: the same executable in a
// private role, in a session of its own, told what to do on its standard input.
// The owner holds the sandbox handle and with it the guest helper's connection,
// the background commands and the idle timer. It listens on a Unix socket in a
// private directory, admits only peers of its own user id (checked with the
// kernel's peer credentials), and serves every connection with the guest
// protocol: files through the sandbox's bridge, commands through the launch of
// package sandbox, and a few calls of its own for background commands.
//
// It ends by itself: when idle for long enough, when the sandbox ends, on
// SIGTERM, or when asked to. A command started in the foreground ends with the
// connection that started it; a background command ends with the owner at the
// latest.
//
// The package knows package sandbox and no particular backend: the command line
// passes in how a backend is opened.
package owner
