// Package container is what sandboxes in containers have in common, whichever engine runs them:
// the container that a configuration asks for, the labels that prove whose it is, how a generation
// of it comes to life and ends, and what is cleared away after a crash.
//
// An [Engine] is Docker or Podman; package internal/container/moby and internal/container/libpod
// are the clients. A container's only program is the guest helper, with an init as process 1 above
// it. On start it finds, in a directory of this machine that it sees read-only, where to call back
// and with which token, so that the engine carries nothing of what follows. When the connection
// ends so does the helper, and with it the container: nothing runs in a container that nobody
// holds, also after a crash. The container itself stays, with its files, until it is removed.
//
// The package knows no engine's protocol and no command line.
package container
