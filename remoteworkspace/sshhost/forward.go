package sshhost

import "golang.org/x/crypto/ssh"

func (c *conn) forward(nch ssh.NewChannel) {
	_ = nch.Reject(ssh.Prohibited, "forwarding is not permitted")
}
