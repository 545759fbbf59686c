package sshhost

// How a connection gets its authority.
//
// A client may offer any number of public keys before it proves that it holds one. The
// SSH library asks PublicKeyCallback about each; its answer only says whether a signature
// by that key would be accepted. VerifiedPublicKeyCallback is called once, with the key
// whose signature was verified, and makes the grant anew from nothing but that key. What
// was offered before cannot have an influence, in whatever order. C175.

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/crypto/ssh"
)

// grantKey is where a connection's permissions hold its grant.
type grantKey struct{}

// grant is what a connection may do, and why.
type grant struct {
	workspace string
	// key is what was proven, a plain key or a certificate.
	key ssh.PublicKey
	// fingerprint names it; keyID and authority are those of a certificate.
	fingerprint, keyID, authority string
	pty, forward                  bool
}

// errNotAuthorized is all that a client learns of a refusal, whatever the reason.
var errNotAuthorized = errors.New("not authorized")

// authorize decides what key gives to who holds it.
func (p Policy) authorize(workspace string, key ssh.PublicKey, from netip.Addr, now time.Time) (*grant, error) {
	if len(workspace) > MaxName {
		return nil, errors.New("workspace name too long")
	}
	ws, ok := p.Workspaces[workspace]
	if !ok {
		return nil, errors.New("no such workspace")
	}
	if cert, ok := key.(*ssh.Certificate); ok {
		return ws.certificate(workspace, cert, from, now)
	}
	blob := key.Marshal()
	for _, k := range ws.Keys {
		if !bytes.Equal(k.Key.Marshal(), blob) {
			continue
		}
		switch {
		case !k.Expires.IsZero() && !now.Before(k.Expires):
			return nil, errors.New("the key has expired")
		case !k.From.Matches(from):
			return nil, errors.New("the key may not be used from this address")
		}
		return &grant{
			workspace: workspace, key: key, fingerprint: ssh.FingerprintSHA256(key),
			pty: !k.NoPTY, forward: ws.Forward && !k.NoForward,
		}, nil
	}
	return nil, errors.New("the key is not among those of the workspace")
}

// certificate is authorize for user certificates: signed by an authority of the
// workspace, naming it as a principal, within its time, from a permitted address, and
// without a critical option that is not kept.
func (ws Workspace) certificate(workspace string, cert *ssh.Certificate, from netip.Addr, now time.Time) (*grant, error) {
	known := slices.ContainsFunc(ws.Authorities, func(a ssh.PublicKey) bool {
		return bytes.Equal(a.Marshal(), cert.SignatureKey.Marshal())
	})
	switch {
	case cert.CertType != ssh.UserCert:
		return nil, errors.New("not a user certificate")
	case !known:
		return nil, errors.New("the certificate's authority is none of the workspace")
	case len(cert.ValidPrincipals) == 0:
		return nil, errors.New("the certificate names no principal")
	}
	if err := CheckKey(cert.Key); err != nil {
		return nil, err
	}
	checker := ssh.CertChecker{Clock: func() time.Time { return now }, SupportedCriticalOptions: []string{"source-address"}}
	if err := checker.CheckCert(workspace, cert); err != nil {
		return nil, err
	}
	if list, ok := cert.CriticalOptions["source-address"]; ok {
		l, err := ParseAddressList(list)
		if err != nil {
			return nil, fmt.Errorf("source-address: %w", err)
		}
		if !l.Matches(from) {
			return nil, errors.New("the certificate may not be used from this address")
		}
	}
	_, pty := cert.Extensions["permit-pty"]
	_, forward := cert.Extensions["permit-port-forwarding"]
	return &grant{
		workspace: workspace, key: cert, fingerprint: ssh.FingerprintSHA256(cert.Key),
		keyID: cert.KeyId, authority: ssh.FingerprintSHA256(cert.SignatureKey),
		pty: pty, forward: ws.Forward && forward,
	}, nil
}

// addrOf is the address of a peer, invalid where it has none.
func addrOf(a net.Addr) netip.Addr {
	if t, ok := a.(*net.TCPAddr); ok {
		if ip, ok := netip.AddrFromSlice(t.IP); ok {
			return ip.Unmap()
		}
	}
	return netip.Addr{}
}

// authConfig is the SSH library's configuration for one connection.
func (c *conn) authConfig() *ssh.ServerConfig {
	cfg := &ssh.ServerConfig{
		MaxAuthTries:  c.srv.limits.AuthTries,
		ServerVersion: "SSH-2.0-berth",
		PublicKeyCallback: func(m ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if _, err := c.authorize(m.User(), key); err != nil {
				c.authFailed(m.User(), key, err)
				return nil, errNotAuthorized
			}
			return &ssh.Permissions{}, nil
		},
		VerifiedPublicKeyCallback: func(m ssh.ConnMetadata, key ssh.PublicKey, _ *ssh.Permissions, _ string) (*ssh.Permissions, error) {
			g, err := c.authorize(m.User(), key)
			if err != nil {
				c.authFailed(m.User(), key, err)
				return nil, errNotAuthorized
			}
			return &ssh.Permissions{ExtraData: map[any]any{grantKey{}: g}}, nil
		},
	}
	for _, k := range c.srv.hostKeys {
		cfg.AddHostKey(k)
	}
	return cfg
}

// authorize asks the policy in force now.
func (c *conn) authorize(user string, key ssh.PublicKey) (*grant, error) {
	return c.srv.policy.Load().authorize(user, key, c.addr, c.srv.clock.Now())
}

// authFailed writes a refusal down. The text of the name is the client's.
func (c *conn) authFailed(user string, key ssh.PublicKey, err error) {
	c.srv.metrics.auth("refused")
	c.srv.record(Event{
		Event: "auth", Conn: c.id, Remote: c.remote, Workspace: clip(user, MaxName),
		Key: ssh.FingerprintSHA256(plainKey(key)), Outcome: "refused", Detail: clip(err.Error(), 200),
	})
}

// plainKey is the key itself, of a certificate the one it certifies.
func plainKey(key ssh.PublicKey) ssh.PublicKey {
	if cert, ok := key.(*ssh.Certificate); ok {
		return cert.Key
	}
	return key
}
