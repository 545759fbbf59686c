package sshclient

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/workberth/workberth/internal/sshtest"
)

// line is a line of known hosts for a server.
func line(s *sshtest.Server, key ssh.PublicKey) string {
	return knownhosts.Line([]string{s.Addr}, key) + "\n"
}

// A server with several keys shows the one that is known; another key of that kind is
// refused. C093
func TestKnownKeyIsAskedFor(t *testing.T) {
	sshtest.Available(t)
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{HostKeyTypes: []string{"rsa", "ecdsa", "ed25519"}})
	for i, kind := range []string{"rsa", "ecdsa", "ed25519"} {
		p := newPlace(t, host("box", s, "UserKnownHostsFile ~/known"))
		p.file("known", line(s, s.HostKeys[i].Public()))
		if err := p.connect("box", Options{}); err != nil {
			t.Errorf("only %s is known: %v", kind, err)
		}
		p.file("known", line(s, sshtest.NewKey(t, kind).Public()))
		refused(t, p.connect("box", Options{}), ErrHostKeyChanged)
	}
}

// Without a known key nobody connects. Q-03
func TestUnknownKey(t *testing.T) {
	sshtest.Available(t)
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{})
	for _, file := range []string{"none", "~/missing"} {
		p := newPlace(t, host("box", s, "UserKnownHostsFile "+file))
		err := p.connect("box", Options{})
		refused(t, err, ErrHostKeyUnknown)
		if shown := ssh.FingerprintSHA256(s.HostKeys[0].Public()); err == nil || !strings.Contains(err.Error(), shown) {
			t.Errorf("%v does not tell %s", err, shown)
		}
		if _, err := os.Stat(p.path("missing")); err == nil {
			t.Error("a file was written")
		}
	}
}

// On another port than the usual one a key counts that is known for the host without a port,
// and nothing else that is.
func TestKeyWithoutPort(t *testing.T) {
	sshtest.Available(t)
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{})
	plain := func(key ssh.PublicKey) string { return knownhosts.Line([]string{s.Host}, key) + "\n" }
	other := sshtest.NewKey(t, "ed25519").Public()
	p := newPlace(t, host("box", s, "UserKnownHostsFile ~/known"))
	for _, c := range []struct {
		known string
		want  error
	}{
		{plain(s.HostKeys[0].Public()), nil},
		{plain(other), ErrHostKeyUnknown},
		{line(s, other) + plain(s.HostKeys[0].Public()), ErrHostKeyChanged},
	} {
		p.file("known", c.known)
		err := p.connect("box", Options{})
		if c.want == nil && err != nil {
			t.Errorf("%q: %v", c.known, err)
		} else if c.want != nil {
			refused(t, err, c.want)
		}
	}
}

// What accept-new writes is read by us and by OpenSSH. C095
func TestAcceptNew(t *testing.T) {
	sshtest.Available(t)
	for _, address := range []string{"127.0.0.1", "::1"} {
		for _, hashed := range []string{"no", "yes"} {
			t.Run(address+" hashed "+hashed, func(t *testing.T) {
				t.Parallel()
				s := sshtest.Start(t, sshtest.Options{Listen: address})
				p := newPlace(t, host("box", s, "StrictHostKeyChecking accept-new", "UserKnownHostsFile ~/new/known", "HashKnownHosts "+hashed))
				for range 2 {
					if err := p.connect("box", Options{}); err != nil {
						t.Fatal(err)
					}
				}
				file := p.path("new/known")
				info, err := os.Stat(file)
				if err != nil || info.Mode().Perm() != 0o600 {
					t.Errorf("the file: %v, %v", info, err)
				}
				text, err := os.ReadFile(file)
				if err != nil || strings.Count(string(text), "\n") != 1 || strings.Contains(string(text), address) != (hashed == "no") {
					t.Errorf("the file is %q, %v", text, err)
				}
				ssh := append([]string{"-o", "UserKnownHostsFile=" + file}, s.Arguments()...)
				if out, err := exec.CommandContext(t.Context(), sshtest.Program(t, "ssh"), append(ssh, "true")...).CombinedOutput(); err != nil {
					t.Errorf("ssh: %v\n%s", err, out)
				}
				find := exec.CommandContext(t.Context(), sshtest.Program(t, "ssh-keygen"), "-f", file, "-F", "["+address+"]:"+strconv.Itoa(s.Port))
				if out, err := find.CombinedOutput(); err != nil || !strings.Contains(string(out), "found") {
					t.Errorf("ssh-keygen -F: %v\n%s", err, out)
				}
				s.Stop()
			})
		}
	}
}

// The standard port stands in no entry. C095
func TestAcceptOnStandardPort(t *testing.T) {
	t.Parallel()
	key := sshtest.NewKey(t, "ed25519").Public()
	for _, s := range []Settings{
		{Host: "::1", Port: 22}, {Host: "10.1.2.3", Port: 22}, {Host: "box.example", Port: 22},
		{Host: "10.0.0.1", Port: 99, HostKeyAlias: "box.example"},
	} {
		p := newPlace(t)
		file := p.file("known", "# no end of line")
		s.KnownHosts, s.HostKeys = []string{file}, HostKeyAcceptNew
		for range 2 {
			h, err := openHostKeys(s)
			if err != nil {
				t.Fatal(err)
			}
			if err := h.check("", commandAddr(s.Address()), key); err != nil {
				t.Errorf("%s: %v", s.Address(), err)
			}
		}
		name := firstOf(s.HostKeyAlias, s.Host)
		out, err := exec.CommandContext(t.Context(), sshtest.Program(t, "ssh-keygen"), "-f", file, "-F", name).CombinedOutput()
		if text, _ := os.ReadFile(file); err != nil || strings.Count(string(text), "\n") != 2 {
			t.Errorf("%s: ssh-keygen -F: %v\n%s\nfile:\n%s", name, err, out, text)
		}
		s.HostKeys = HostKeyStrict
		h, err := openHostKeys(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.check("", commandAddr(s.Address()), sshtest.NewKey(t, "ed25519").Public()); !errors.Is(err, ErrHostKeyChanged) {
			t.Errorf("%s: another key: %v", name, err)
		}
	}
}

// First connections at the same time write one whole line. C095
func TestAcceptNewTogether(t *testing.T) {
	sshtest.Available(t)
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{MaxStartups: "100"})
	p := newPlace(t, host("box", s, "StrictHostKeyChecking accept-new", "UserKnownHostsFile ~/known"))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := p.connect("box", Options{}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if text, err := os.ReadFile(p.path("known")); err != nil || string(text) != line(s, s.HostKeys[0].Public()) {
		t.Errorf("the file is %q, %v", text, err)
	}
}

// A key that is marked as revoked is refused, whatever else is said of it.
func TestRevokedKey(t *testing.T) {
	sshtest.Available(t)
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{})
	good := line(s, s.HostKeys[0].Public())
	for _, policy := range []string{"yes", "accept-new"} {
		p := newPlace(t, host("box", s, "StrictHostKeyChecking "+policy, "UserKnownHostsFile ~/known"))
		p.file("known", good+"@revoked * "+string(ssh.MarshalAuthorizedKey(s.HostKeys[0].Public())))
		refused(t, p.connect("box", Options{}), ErrHostKeyRevoked)
	}
}

// A host that an authority vouches for is known, and only for its names.
func TestHostCertificate(t *testing.T) {
	sshtest.Available(t)
	t.Parallel()
	ca, key := sshtest.NewKey(t, "ed25519"), sshtest.NewKey(t, "ed25519")
	for name, c := range map[string]struct {
		known     string // empty for the address and the port
		principal string
		signer    sshtest.HostKey
		want      error
	}{
		"good":              {"", "127.0.0.1", ca, nil},
		"any host":          {"*", "127.0.0.1", ca, nil},
		"another host":      {"other", "127.0.0.1", ca, ErrHostKeyUnknown},
		"other name":        {"", "other", ca, ErrHostKeyUnknown},
		"another authority": {"", "127.0.0.1", sshtest.NewKey(t, "ed25519"), ErrHostKeyUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cert := &ssh.Certificate{Key: key.Public(), CertType: ssh.HostCert, ValidPrincipals: []string{c.principal}, ValidBefore: ssh.CertTimeInfinity}
			if err := cert.SignCert(rand.Reader, c.signer.Signer); err != nil {
				t.Fatal(err)
			}
			p := newPlace(t)
			file := p.file("cert.pub", string(ssh.MarshalAuthorizedKey(cert)))
			s := sshtest.Start(t, sshtest.Options{HostKeys: []sshtest.HostKey{key}, ExtraConfig: []string{"HostCertificate " + file}})
			known := firstOf(c.known, fmt.Sprintf("[127.0.0.1]:%d", s.Port))
			p.file("known", "@cert-authority "+known+" "+string(ssh.MarshalAuthorizedKey(ca.Public())))
			p.file(".ssh/config", host("box", s, "UserKnownHostsFile ~/known"))
			err := p.connect("box", Options{})
			if c.want != nil {
				if err == nil {
					t.Fatal("accepted")
				}
				refused(t, err, c.want)
			} else if err != nil {
				t.Errorf("%v\n%s", err, s.Log())
			}
			if name == "another host" { // the key itself may be accepted, the certificate is none of it
				p.file(".ssh/config", host("box", s, "UserKnownHostsFile ~/new", "StrictHostKeyChecking accept-new"))
				err := p.connect("box", Options{})
				if text, _ := os.ReadFile(p.path("new")); err != nil || string(text) != line(s, key.Public()) {
					t.Errorf("accepted is %q, %v", text, err)
				}
			}
		})
	}
}

// A server that gets a new key besides the known one is reached as before; one that has
// only the new key is not. A name of its own is what is looked up.
func TestRotation(t *testing.T) {
	sshtest.Available(t)
	t.Parallel()
	before, after := sshtest.NewKey(t, "ed25519"), sshtest.NewKey(t, "ecdsa")
	for name, keys := range map[string][]sshtest.HostKey{"both": {after, before}, "only the new": {after}} {
		s := sshtest.Start(t, sshtest.Options{HostKeys: keys})
		p := newPlace(t, host("box", s, "HostKeyAlias the-box", "UserKnownHostsFile ~/known", "StrictHostKeyChecking accept-new"))
		p.file("known", "the-box "+string(ssh.MarshalAuthorizedKey(before.Public())))
		err := p.connect("box", Options{})
		if name == "both" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		refused(t, err, ErrHostKeyChanged)
	}
}
