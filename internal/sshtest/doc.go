// Package sshtest runs a real SSH server on loopback for the tests of what speaks to one: OpenSSH's
// sshd, or dropbear. It is for tests only.
//
// [Start] gives every server its own directory, configuration, host keys, port and client identity, and
// changes nothing of the machine's own SSH server. A server's processes can be paused, and its
// connections cut, so that a test can see what a dead network does to a client. [NewAccount] makes a
// throwaway user of the machine with a login shell of the test's choice, and [StartAgent] a key agent.
//
// A test that needs a program that is not there skips and says so. Where BERTH_REQUIRE_ENGINES=1 is
// set it fails instead.
package sshtest
