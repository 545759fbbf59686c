// Package docker makes sandboxes in containers of a Docker engine, from version 20.10 on.
//
// The engine is found as the docker program finds it: an explicit address, DOCKER_HOST, the context
// in use, and the usual socket. It has to run on this machine: a container sees the workspace itself,
// not a copy of it.
//
// # What is not protected
//
// Whoever can use the engine's socket is root on this machine; a sandbox never sees it. A container
// shares the kernel with the machine. An image is trusted as far as its programs are run.
package docker
