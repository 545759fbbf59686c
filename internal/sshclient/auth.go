package sshclient

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// PassphraseFunc asks for the passphrase of an identity file. An error leaves the file
// out.
type PassphraseFunc func(ctx context.Context, path string) ([]byte, error)

// keyring collects the keys for one connection. What could not be used is kept for the
// error.
type keyring struct {
	s          Settings
	passphrase PassphraseFunc
	unlocked   unlocked
	agentConn  net.Conn
	notes      []string
}

// unlocked are the keys that a passphrase was given for, by the hash of their files: further
// connections to the same destination do not ask again. nil keeps none.
type unlocked map[[sha256.Size]byte]ssh.Signer

// close ends the conversation with the agent, after authentication.
func (k *keyring) close() {
	if k.agentConn != nil {
		_ = k.agentConn.Close()
	}
}

func (k *keyring) note(format string, args ...any) {
	k.notes = append(k.notes, fmt.Sprintf(format, args...))
}

// signers returns the keys in the order in which OpenSSH offers them: those that the
// configuration names, then the other ones of the agent; certificates before their keys.
func (k *keyring) signers(ctx context.Context) []ssh.Signer {
	held := k.fromAgent(ctx)
	var keys []ssh.Signer
	add := func(s ssh.Signer) {
		blob := s.PublicKey().Marshal()
		if !slices.ContainsFunc(keys, func(o ssh.Signer) bool { return bytes.Equal(o.PublicKey().Marshal(), blob) }) {
			keys = append(keys, s)
		}
	}
	for _, path := range k.s.Identities {
		if s := k.identity(ctx, path, held); s != nil {
			add(s)
		}
	}
	if !k.s.IdentitiesOnly {
		for _, s := range held {
			add(s)
		}
	}
	return append(k.certified(keys), keys...)
}

// fromAgent returns the agent's keys.
func (k *keyring) fromAgent(ctx context.Context) []ssh.Signer {
	if k.s.Agent == "" {
		return nil
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", k.s.Agent)
	if err != nil {
		k.note("the agent: %v", err)
		return nil
	}
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	k.agentConn = conn
	signers, err := agent.NewClient(conn).Signers()
	if err != nil {
		k.note("the agent: %v", err)
	}
	return signers
}

// identity returns the key of a file, from the agent where that holds it.
func (k *keyring) identity(ctx context.Context, path string, held []ssh.Signer) ssh.Signer {
	if pub := readPublic(path + ".pub"); pub != nil {
		if i := slices.IndexFunc(held, func(s ssh.Signer) bool { return bytes.Equal(s.PublicKey().Marshal(), pub.Marshal()) }); i >= 0 {
			return held[i]
		}
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		k.note("%v", err)
		return nil
	}
	file := sha256.Sum256(data)
	if signer := k.unlocked[file]; signer != nil {
		return signer
	}
	signer, err := ssh.ParsePrivateKey(data)
	var locked *ssh.PassphraseMissingError
	if errors.As(err, &locked) {
		if k.passphrase == nil {
			k.note("%s is encrypted and not in the agent (ssh-add %s)", path, path)
			return nil
		}
		var phrase []byte
		if phrase, err = k.passphrase(ctx, path); err == nil {
			signer, err = ssh.ParsePrivateKeyWithPassphrase(data, phrase)
			clear(phrase)
		}
		if err == nil && k.unlocked != nil {
			k.unlocked[file] = signer
		}
	}
	if err != nil {
		k.note("%s: %v", path, err)
		return nil
	}
	return signer
}

// certified returns a signer for every certificate that belongs to one of the keys.
func (k *keyring) certified(keys []ssh.Signer) []ssh.Signer {
	files := slices.Clone(k.s.Certificates)
	for _, path := range k.s.Identities {
		files = append(files, path+"-cert.pub")
	}
	var all []ssh.Signer
	for _, path := range files {
		cert, ok := readPublic(path).(*ssh.Certificate)
		if !ok {
			continue
		}
		for _, s := range keys {
			if !bytes.Equal(cert.Key.Marshal(), s.PublicKey().Marshal()) {
				continue
			}
			if signer, err := ssh.NewCertSigner(cert, s); err == nil {
				all = append(all, signer)
			}
		}
	}
	return all
}

// readPublic reads a public key or certificate; nil where there is none.
func readPublic(path string) ssh.PublicKey {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey(data)
	if err != nil {
		return nil
	}
	return key
}
