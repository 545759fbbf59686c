// Package sshhost tests "berth host" through the clients people have: OpenSSH, rsync, git, sshfs and
// paramiko, against the program as it is built.
package sshhost
