package sshtest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"fmt"
	"os"
	"testing"

	"golang.org/x/crypto/ssh"
)

// HostKey is a private key in OpenSSH's format.
type HostKey struct {
	Type   string // ed25519, rsa or ecdsa
	PEM    []byte // unencrypted
	Signer ssh.Signer
}

// Public returns the public half.
func (k HostKey) Public() ssh.PublicKey { return k.Signer.PublicKey() }

// WriteFile writes the private key to path and the public key to path.pub, as ssh-keygen does.
func (k HostKey) WriteFile(t testing.TB, path string) {
	t.Helper()
	if err := os.WriteFile(path, k.PEM, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".pub", ssh.MarshalAuthorizedKey(k.Public()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// NewKey makes a key of a type: ed25519, rsa or ecdsa. It serves as a host key, as an identity or as a
// certificate authority.
func NewKey(t testing.TB, kind string) HostKey {
	t.Helper()
	private, err := generate(kind)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "sshtest")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return HostKey{Type: kind, PEM: pem.EncodeToMemory(block), Signer: signer}
}

func generate(kind string) (crypto.PrivateKey, error) {
	switch kind {
	case "ed25519":
		_, private, err := ed25519.GenerateKey(rand.Reader)
		return private, err
	case "rsa":
		return rsa.GenerateKey(rand.Reader, 2048)
	case "ecdsa":
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	return nil, fmt.Errorf("sshtest knows no keys of type %q, only ed25519, rsa and ecdsa", kind)
}
