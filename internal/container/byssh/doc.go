// Package byssh connects to container engines on other machines through the ssh program, as the
// engines' own programs do: the user's configuration, keys, agent and known hosts are those of ssh.
//
// A [Host] is an address of the form ssh://[USER@]HOST[:PORT][/SOCKET]. [Host.Run] makes a connection
// of a command's input and output there, [Tunnel] a socket on this machine that leads to one there.
// Nothing is asked of a terminal: ssh fails where it would need to ask.
package byssh
