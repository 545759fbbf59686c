// Package sshclient connects to SSH servers as OpenSSH's own client would: the same
// configuration files, host keys, agent, identity files, certificates and jump hosts.
//
// A [Settings] is what the configuration says about one destination. A [Group] holds the
// connections to it: usually one that carries every session, and further ones where the
// server admits no more sessions on the first. Connections are kept alive by requests, so
// that a dead peer is noticed; a call that needs one later dials anew, and nothing is
// replayed.
//
// Host keys are strict: an unknown key is refused unless the configuration says
// "StrictHostKeyChecking accept-new" (or no), and a changed or revoked key always is.
//
// The package knows no sandbox and no helper.
package sshclient
