// Package podman makes sandboxes in containers of Podman, from version 4.0 on, with root's rights or
// without.
//
// It speaks Podman's own interface. The service is found as the podman program finds it: an explicit
// address, CONTAINER_HOST, this user's socket, the system's for root. Where none listens, one is
// started for as long as the backend is open. It has to run on this machine: a container sees the
// workspace itself, not a copy of it.
//
// # What is not protected
//
// A container shares the kernel with the machine. Without root's rights, limits need control groups
// that were delegated to this user; without them the engine cannot keep any, and a configuration that
// asks for one is refused. An image is trusted as far as its programs are run.
package podman
