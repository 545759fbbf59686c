package sshtest

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// ClientConfig is how to log in with the server's own identity. It accepts the server's host keys and no
// others.
func (s *Server) ClientConfig(t testing.TB) *ssh.ClientConfig {
	t.Helper()
	known, err := knownhosts.New(s.KnownHostsFile)
	if err != nil {
		t.Fatal(err)
	}
	return &ssh.ClientConfig{
		User:            s.User,
		Auth:            []ssh.AuthMethod{ssh.PublicKeys(s.Signer)},
		HostKeyCallback: known,
		// What is known is asked for, as OpenSSH does. Dropbear offers RSA without having such a key.
		HostKeyAlgorithms: s.hostKeyAlgorithms(),
		Timeout:           patience,
	}
}

// hostKeyAlgorithms are the signature algorithms of the server's host keys.
func (s *Server) hostKeyAlgorithms() []string {
	var algorithms []string
	for _, key := range s.HostKeys {
		if kind := key.Public().Type(); kind == ssh.KeyAlgoRSA {
			algorithms = append(algorithms, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
		} else {
			algorithms = append(algorithms, kind)
		}
	}
	return algorithms
}

// Dial logs in. The connection ends with the test.
func (s *Server) Dial(t testing.TB) *ssh.Client {
	t.Helper()
	client, err := ssh.Dial("tcp", s.Addr, s.ClientConfig(t))
	if err != nil {
		t.Fatalf("log in at %s as %s: %v\n%s", s.Addr, s.User, err, s.Log())
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// Arguments are the arguments with which OpenSSH's own ssh logs in, up to and with the host: a remote
// command may follow.
func (s *Server) Arguments() []string {
	return []string{
		"-F", "none", "-i", s.IdentityFile, "-p", strconv.Itoa(s.Port), "-l", s.User,
		"-o", "UserKnownHostsFile=" + s.KnownHostsFile, "-o", "GlobalKnownHostsFile=none", "-o", "StrictHostKeyChecking=yes",
		"-o", "IdentitiesOnly=yes", "-o", "IdentityAgent=none", "-o", "BatchMode=yes", s.Host,
	}
}

// ConfigText is an SSH configuration with the server as a Host of that name, and further lines
// for it. No key, agent or known host of the user counts.
func (s *Server) ConfigText(name string, lines ...string) string {
	return fmt.Sprintf("Host %s\n  HostName %s\n  Port %d\n  User %s\n  IdentityFile %s\n  IdentitiesOnly yes\n  IdentityAgent none\n  UserKnownHostsFile %s\n  GlobalKnownHostsFile none\n  %s\n",
		name, s.Host, s.Port, s.User, s.IdentityFile, s.KnownHostsFile, strings.Join(lines, "\n  "))
}
