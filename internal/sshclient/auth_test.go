package sshclient

import (
	"context"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/workberth/workberth/internal/sshtest"
)

// write writes a key as an identity of the place.
func (p *place) write(name string, key sshtest.HostKey) string {
	p.t.Helper()
	path := p.file(name, "")
	key.WriteFile(p.t, path)
	return path
}

// encrypted is a key under a passphrase.
func encrypted(t *testing.T, key sshtest.HostKey, phrase string) string {
	t.Helper()
	private, err := ssh.ParseRawPrivateKey(key.PEM)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte(phrase))
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(block))
}

// The keys of files, by the kinds that there are, at their default places.
func TestIdentityFiles(t *testing.T) {
	sshtest.Available(t)
	t.Parallel()
	for _, kind := range []string{"ed25519", "ecdsa", "rsa"} {
		key := sshtest.NewKey(t, kind)
		s := sshtest.Start(t, sshtest.Options{NoIdentity: true, AuthorizedKeys: []ssh.PublicKey{key.Public()}})
		p := newPlace(t, strings.ReplaceAll(host("box", s), "IdentityFile", "#"))
		refused(t, p.connect("box", Options{}), ErrAuthentication)
		p.write(".ssh/id_"+kind, key)
		if err := p.connect("box", Options{}); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func TestPassphrase(t *testing.T) {
	sshtest.Available(t)
	t.Parallel()
	key := sshtest.NewKey(t, "ed25519")
	s := sshtest.Start(t, sshtest.Options{NoIdentity: true, AuthorizedKeys: []ssh.PublicKey{key.Public()}})
	p := newPlace(t, host("box", s, "IdentityFile ~/locked"))
	path := p.file("locked", encrypted(t, key, "open sesame"))
	asks := func(answer string, err error) Options {
		return Options{Passphrase: func(_ context.Context, asked string) ([]byte, error) {
			if asked != path {
				t.Errorf("asked for %s", asked)
			}
			return []byte(answer), err
		}}
	}
	if err := p.connect("box", asks("open sesame", nil)); err != nil {
		t.Error(err)
	}
	for name, opts := range map[string]Options{
		"nobody asks": {}, "wrong": asks("guess", nil), "no answer": asks("", errors.New("gone fishing")),
	} {
		err := p.connect("box", opts)
		refused(t, err, ErrAuthentication)
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v does not name the file", name, err)
		}
	}
	// The agent has it; the public half says which one.
	agent := sshtest.StartAgent(t, sshtest.NewKey(t, "ed25519"), key)
	p.file("locked.pub", string(ssh.MarshalAuthorizedKey(key.Public())))
	p.file(".ssh/config", host("box", s, "IdentityFile ~/locked", "IdentitiesOnly yes", "IdentityAgent "+agent.Socket))
	if err := p.connect("box", Options{}); err != nil {
		t.Errorf("through the agent: %v", err)
	}
}

// A passphrase is asked for once: further connections to a host know the key.
func TestPassphraseOnce(t *testing.T) {
	sshtest.Available(t)
	t.Parallel()
	key := sshtest.NewKey(t, "ed25519")
	s := sshtest.Start(t, sshtest.Options{NoIdentity: true, AuthorizedKeys: []ssh.PublicKey{key.Public()}, MaxSessions: 1})
	p := newPlace(t, host("box", s, "IdentityFile ~/locked"))
	p.file("locked", encrypted(t, key, "open sesame"))
	asked := 0
	g := NewGroup(p.read("box"), Options{Passphrase: func(context.Context, string) ([]byte, error) {
		asked++
		return []byte("open sesame"), nil
	}})
	defer g.Close()
	for range 3 { // each on a connection of its own
		session, err := g.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := session.Start(t.Context(), "sleep 60"); err != nil {
			t.Fatal(err)
		}
		defer session.Abort()
	}
	if asked != 1 || len(g.conns) != 3 {
		t.Errorf("asked %d times for %d connections", asked, len(g.conns))
	}
}

// The agent's keys count, but for IdentitiesOnly.
func TestAgentKeys(t *testing.T) {
	sshtest.Available(t)
	t.Parallel()
	key := sshtest.NewKey(t, "ecdsa")
	s := sshtest.Start(t, sshtest.Options{NoIdentity: true, AuthorizedKeys: []ssh.PublicKey{key.Public()}})
	agent := sshtest.StartAgent(t, key)
	p := newPlace(t, host("box", s))
	p.env.Getenv = func(name string) string { return map[string]string{"SSH_AUTH_SOCK": agent.Socket}[name] }
	if err := p.connect("box", Options{}); err != nil {
		t.Error(err)
	}
	p.file(".ssh/config", host("box", s, "IdentityAgent none"))
	refused(t, p.connect("box", Options{}), ErrAuthentication)
	p.file(".ssh/config", host("box", s, "IdentitiesOnly yes"))
	refused(t, p.connect("box", Options{}), ErrAuthentication)
	p.file(".ssh/config", host("box", s, "IdentityAgent ~/nobody"))
	err := p.connect("box", Options{})
	refused(t, err, ErrAuthentication)
	if err == nil || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("%v does not tell of the agent", err)
	}
}

// More keys than a server wants to see are a failure of the keys, not of the network.
func TestTooManyKeys(t *testing.T) {
	sshtest.Available(t)
	t.Parallel()
	keys := make([]sshtest.HostKey, 10)
	for i := range keys {
		keys[i] = sshtest.NewKey(t, "ed25519")
	}
	agent := sshtest.StartAgent(t, keys...)
	s := sshtest.Start(t, sshtest.Options{NoIdentity: true, AuthorizedKeys: []ssh.PublicKey{keys[9].Public()}})
	p := newPlace(t, host("box", s, "IdentityAgent "+agent.Socket))
	refused(t, p.connect("box", Options{}), ErrAuthentication)
	// A public half alone picks one of the agent's.
	p.file("ninth.pub", string(ssh.MarshalAuthorizedKey(keys[9].Public())))
	p.file(".ssh/config", host("box", s, "IdentityAgent "+agent.Socket, "IdentityFile ~/ninth", "IdentitiesOnly yes"))
	if err := p.connect("box", Options{}); err != nil {
		t.Error(err)
	}
}

// User certificates, beside the key and by name, of a file and of the agent's key.
func TestUserCertificate(t *testing.T) {
	sshtest.Available(t)
	t.Parallel()
	ca := sshtest.NewKey(t, "ed25519")
	s := sshtest.Start(t, sshtest.Options{UserCA: ca.Public(), NoIdentity: true})
	for _, kind := range []string{"ed25519", "rsa"} {
		key := sshtest.NewKey(t, kind)
		cert := &ssh.Certificate{Key: key.Public(), CertType: ssh.UserCert, ValidPrincipals: []string{s.User}, ValidBefore: ssh.CertTimeInfinity}
		if err := cert.SignCert(rand.Reader, ca.Signer); err != nil {
			t.Fatal(err)
		}
		text := string(ssh.MarshalAuthorizedKey(cert))
		p := newPlace(t, host("box", s, "IdentityFile ~/key"))
		p.write("key", key)
		refused(t, p.connect("box", Options{}), ErrAuthentication)
		p.file("key-cert.pub", text)
		if err := p.connect("box", Options{}); err != nil {
			t.Errorf("%s, beside the key: %v\n%s", kind, err, s.Log())
		}
		p = newPlace(t, host("box", s, "CertificateFile ~/cert", "IdentityAgent "+sshtest.StartAgent(t, key).Socket))
		p.file("cert", text)
		if err := p.connect("box", Options{}); err != nil {
			t.Errorf("%s, of the agent: %v", kind, err)
		}
	}
}

// The order is OpenSSH's: certificates first, then what files name, then the agent's others.
func TestOrderOfKeys(t *testing.T) {
	named, other := sshtest.NewKey(t, "ed25519"), sshtest.NewKey(t, "ecdsa")
	agent := sshtest.StartAgent(t, other, named)
	p := newPlace(t, "Host box", " IdentityFile ~/named", " IdentityAgent "+agent.Socket)
	p.write("named", named)
	ring := &keyring{s: p.read("box")}
	defer ring.close()
	var got []string
	for _, s := range ring.signers(t.Context()) {
		got = append(got, ssh.FingerprintSHA256(s.PublicKey()))
	}
	if want := []string{ssh.FingerprintSHA256(named.Public()), ssh.FingerprintSHA256(other.Public())}; !slices.Equal(got, want) {
		t.Errorf("keys %q, want %q", got, want)
	}
}
