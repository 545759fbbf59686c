// Package libpod drives Podman through its own REST API, called libpod, over the socket of a
// Podman service. A [Client] is a container.Engine.
//
// Versions 4.0 and later are spoken, of a service with the rights of root or of an ordinary user.
// The names of the request and answer types are those of Podman's Go bindings, with the fields that
// are used.
//
// Paths are the engine's: a mount's source, and the file of a seccomp profile, which is written to
// a directory that both sides must see and is removed once the engine has read it.
//
// # What a container never gets
//
// A terminal, an open standard input, a health check, a restart, systemd's mounts, the proxy
// variables of the engine, anonymous volumes for what an image declares, or writable file systems
// below a read-only root besides those asked for. Namespaces are named one by one, so that no
// configuration of the engine opens one to the machine. What is mounted below the source of a
// read-only mount stays outside, since it would not be read-only. Its output goes to a file of the
// engine that is begun anew every few MiB.
//
// # Trust
//
// The engine is trusted to do what it says, and nothing else of it: answers are bounded, and one
// that makes no sense is an error.
package libpod
