package sshtest

import "golang.org/x/crypto/ssh"

// Options says what a server is like. Its zero value is an OpenSSH server on 127.0.0.1 with an Ed25519
// host key, SFTP, and one login: the user the test runs as.
type Options struct {
	// Listen is the address to listen on, 127.0.0.1 or ::1. Empty means 127.0.0.1.
	Listen string
	// Account is who can log in. Nil means the user the test runs as, or with Dropbear a new account
	// with the shell /bin/sh: dropbear reads only ~/.ssh/authorized_keys, and that of a real user is
	// left alone.
	Account *Account
	// Dropbear runs dropbear in place of OpenSSH. Of the options below it knows HostKeyTypes, HostKeys,
	// AuthorizedKeys, NoIdentity, ForceWrapper, ForceCommand and Banner; any other fails the test.
	Dropbear bool

	// HostKeyTypes are the kinds of host keys to make: ed25519, rsa, ecdsa. Empty means ed25519.
	HostKeyTypes []string
	// HostKeys are used instead of making any, as a server does that has moved or come back.
	HostKeys []HostKey
	// AuthorizedKeys are admitted besides the server's own IdentityFile.
	AuthorizedKeys []ssh.PublicKey
	// NoIdentity refuses the IdentityFile: only AuthorizedKeys and certificates of UserCA get in.
	NoIdentity bool
	// UserCA is the key whose user certificates are admitted.
	UserCA ssh.PublicKey

	// MaxSessions is how many channels a connection may have open at once. 0 means OpenSSH's own 10.
	MaxSessions int
	// MaxStartups bounds connections that are not logged in yet, as sshd_config(5) writes it.
	MaxStartups string
	// NoSFTP leaves the subsystem out.
	NoSFTP bool
	// SFTPOnly serves SFTP whatever the client asks for: there is no way to run a command.
	SFTPOnly bool
	// ForceWrapper is the text of a shell script that the server runs in place of each command. It
	// finds the command in $SSH_ORIGINAL_COMMAND.
	ForceWrapper string
	// ForceCommand is a command the server runs in place of each command.
	ForceCommand string
	// Banner is shown to clients before they log in.
	Banner string
	// ExtraConfig are lines of sshd_config(5). They stand first, where they win.
	ExtraConfig []string
}

// listen returns the address to listen on.
func (o Options) listen() string {
	if o.Listen == "" {
		return "127.0.0.1"
	}
	return o.Listen
}

// notDropbears returns the first option that is set and that dropbear does not have, or "".
func (o Options) notDropbears() string {
	for name, set := range map[string]bool{
		"UserCA":      o.UserCA != nil,
		"MaxSessions": o.MaxSessions != 0,
		"MaxStartups": o.MaxStartups != "",
		"NoSFTP":      o.NoSFTP,
		"SFTPOnly":    o.SFTPOnly,
		"ExtraConfig": len(o.ExtraConfig) > 0,
	} {
		if set {
			return name
		}
	}
	return ""
}
