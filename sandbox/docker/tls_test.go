package docker_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/workberth/workberth/internal/container/containertest"
	"github.com/workberth/workberth/sandbox"
	"github.com/workberth/workberth/sandbox/docker"
)

// authority signs certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	a.cert, a.key = a.sign(&x509.Certificate{Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

// sign completes and signs a certificate; the first one signs itself.
func (a *authority) sign(c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c.SerialNumber, c.NotBefore, c.NotAfter = big.NewInt(time.Now().UnixNano()), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, by := a.cert, a.key
	if parent == nil {
		parent, by = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, by)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key
}

// client writes what a client of the authority needs into a directory.
func (a *authority) client(dir string) string {
	a.t.Helper()
	cert, key := a.sign(&x509.Certificate{Subject: pkix.Name{CommonName: "client"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	raw, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	err = os.MkdirAll(dir, 0o700)
	for name, block := range map[string]*pem.Block{
		"ca.pem": {Type: "CERTIFICATE", Bytes: a.cert.Raw}, "cert.pem": {Type: "CERTIFICATE", Bytes: cert.Raw}, "key.pem": {Type: "EC PRIVATE KEY", Bytes: raw},
	} {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600))
	}
	if err != nil {
		a.t.Fatal(err)
	}
	return dir
}

// listen makes the engine answer at an address, for clients of the authority alone.
func (a *authority) listen(ip net.IP, socket string) string {
	a.t.Helper()
	cert, key := a.sign(&x509.Certificate{Subject: pkix.Name{CommonName: "engine"}, IPAddresses: []net.IP{ip}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	clients := x509.NewCertPool()
	clients.AddCert(a.cert)
	ln, err := tls.Listen("tcp", net.JoinHostPort(ip.String(), "0"), &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{cert.Raw}, PrivateKey: key}}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients,
		MinVersion: tls.VersionTLS12,
	})
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			near, err := ln.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("unix", socket) //nolint:noctx // it ends with the connection
			if err != nil {
				_ = near.Close()
				continue
			}
			go func() {
				_, _ = io.Copy(far, near)
				_ = far.(*net.UnixConn).CloseWrite()
			}()
			go func() {
				_, _ = io.Copy(near, far)
				_ = near.Close()
			}()
		}
	}()
	return "tcp://" + ln.Addr().String()
}

// ownAddress is an address of this machine that is not loopback; nil when it has none.
func ownAddress() net.IP {
	addresses, _ := net.InterfaceAddrs()
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() {
			return n.IP.To4()
		}
	}
	return nil
}

// An engine over TCP with certificates on both sides: on loopback it is found to be this machine's, at
// another address it is another machine's. Without the right certificates nothing is said. C051
func TestTLS(t *testing.T) {
	socket := strings.TrimPrefix(subject().Address(t), "unix://")
	a, ws := newAuthority(t), t.TempDir()
	certs, foreign := a.client(t.TempDir()), newAuthority(t).client(t.TempDir())
	run := func(t *testing.T, host string, env map[string]string) (string, sandbox.Info, error) {
		t.Helper()
		b, err := docker.New(docker.Options{Host: host, StateDir: filepath.Join(t.TempDir(), "state"), Getenv: func(name string) string {
			if v, ok := env[name]; ok {
				return v
			}
			return os.Getenv(name)
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		spec := sandbox.Spec{Scope: sandbox.ScopeSession, Session: "s", Workspace: ws, Config: docker.DefaultConfig()}
		spec.Config.Image = containertest.Image
		sb, err := b.Ensure(t.Context(), spec)
		if err != nil {
			return "", sandbox.Info{}, err
		}
		res, err := sandbox.Run(t.Context(), sb, sandbox.Command{Argv: []string{"/bin/cat", "f"}}, nil, sandbox.RunOptions{})
		info := sb.Info()
		if err := errors.Join(err, sb.Close(), b.Remove(t.Context(), info.ID)); err != nil {
			t.Error(err)
		}
		return string(res.Stdout.Bytes()), info, nil
	}
	if err := os.WriteFile(filepath.Join(ws, "f"), []byte("here"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Run("loopback", func(t *testing.T) {
		host := a.listen(net.IPv4(127, 0, 0, 1), socket)
		out, info, err := run(t, host, map[string]string{"DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": certs})
		if err != nil || out != "here" || info.Runtime["volume"] != "" {
			t.Errorf("%q, %+v, %v", out, info.Runtime, err)
		}
		for name, env := range map[string]map[string]string{
			"no certificates": {"DOCKER_TLS_VERIFY": "", "DOCKER_CERT_PATH": ""}, "those of others": {"DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": foreign},
		} {
			if out, _, err := run(t, host, env); !errors.Is(err, sandbox.ErrUnavailable) {
				t.Errorf("%s: %q, %v", name, out, err)
			}
		}
	})
	t.Run("context", func(t *testing.T) {
		ip := ownAddress()
		if ip == nil {
			t.Skip("this machine has no address beside loopback")
		}
		home, id := t.TempDir(), fmt.Sprintf("%x", sha256.Sum256([]byte("far")))
		contexts := filepath.Join(home, ".docker", "contexts")
		meta := fmt.Sprintf(`{"Name": "far", "Endpoints": {"docker": {"Host": %q}}}`, a.listen(ip, socket))
		if err := errors.Join(os.MkdirAll(filepath.Join(contexts, "meta", id), 0o700), os.WriteFile(filepath.Join(contexts, "meta", id, "meta.json"), []byte(meta), 0o600)); err != nil {
			t.Fatal(err)
		}
		a.client(filepath.Join(contexts, "tls", id, "docker"))
		out, info, err := run(t, "", map[string]string{"HOME": home, "DOCKER_CONTEXT": "far", "DOCKER_HOST": "", "DOCKER_CONFIG": "", "DOCKER_TLS_VERIFY": ""})
		if err != nil || out != "here" || info.Runtime["volume"] == "" {
			t.Errorf("%q, %+v, %v", out, info.Runtime, err)
		}
	})
}
