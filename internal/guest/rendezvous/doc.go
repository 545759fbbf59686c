// Package rendezvous is how a helper on this machine calls back: a Unix socket in
// a private directory that admits exactly one peer, the one that presents a token,
// and is then closed and unlinked.
//
// A container engine's exec stream is slow; a socket in a bind-mounted directory
// passes the engine by. The host listens, starts the helper through the engine as
// ever, and sends it the socket's path and the token over that stream. The
// directory is best mounted read-only: connecting needs no more, and nothing inside
// can then put another socket in its place.
//
// It knows sockets and tokens, neither frames nor engines.
//
// # What is not protected
//
// Whoever learns the token in time can be the peer. It is told to the helper only,
// over a stream of its own, and a peer has no more power over the host than any
// helper has. A process inside the environment can connect and stay silent; it is
// dropped after a while, and sooner when others want in.
package rendezvous
