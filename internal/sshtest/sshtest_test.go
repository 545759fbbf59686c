package sshtest

import (
	"context"
	"crypto/rand"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
)

// output runs a command in a session of its own.
func output(t *testing.T, client *ssh.Client, command string) string {
	t.Helper()
	session, err := client.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	out, err := session.CombinedOutput(command)
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return string(out)
}

func TestLogIn(t *testing.T) {
	Available(t)
	for name, opts := range map[string]Options{
		"openssh":  {},
		"all keys": {HostKeyTypes: []string{"ed25519", "rsa", "ecdsa"}},
		"ipv6":     {Listen: "::1"},
		"dropbear": {Dropbear: true, HostKeyTypes: []string{"ed25519", "ecdsa"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := Start(t, opts)
			if got := output(t, s.Dial(t), "echo $((6*7))"); got != "42\n" {
				t.Errorf("the command says %q", got)
			}
			if n := strings.Count(s.HostKeyLine, "\n"); n != max(1, len(opts.HostKeyTypes)) {
				t.Errorf("%d known_hosts lines:\n%s", n, s.HostKeyLine)
			}
			out, err := exec.CommandContext(t.Context(), Program(t, "ssh"), append(s.Arguments(), "id", "-un")...).CombinedOutput()
			if err != nil || !strings.HasSuffix(string(out), s.User+"\n") {
				t.Errorf("ssh: %v\n%s", err, out)
			}
		})
	}
}

func TestAccount(t *testing.T) {
	Available(t)
	for _, shell := range []string{"sh", "fish", "tcsh", "zsh"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			path := Program(t, shell)
			account := NewAccount(t, path, AccountOptions{NoWriteHome: shell == "tcsh"})
			client := Start(t, Options{Account: account}).Dial(t)
			want := account.Name + "\n" + account.Home + "\n" + path + "\n"
			if got := output(t, client, "id -un; pwd; echo $SHELL"); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			_, err := os.Stat(account.Home + "/made")
			session, _ := client.NewSession()
			refused := session.Run("mkdir made") != nil
			if err == nil || refused != (shell == "tcsh") {
				t.Errorf("mkdir in the home directory refused: %t", refused)
			}
		})
	}
}

func TestCertificate(t *testing.T) {
	Available(t)
	ca, mine := NewKey(t, "ed25519"), NewKey(t, "ecdsa")
	s := Start(t, Options{UserCA: ca.Public(), NoIdentity: true})
	if client, err := ssh.Dial("tcp", s.Addr, s.ClientConfig(t)); err == nil {
		client.Close()
		t.Error("the identity is admitted in spite of NoIdentity")
	}
	cert := &ssh.Certificate{
		Key: mine.Public(), CertType: ssh.UserCert, KeyId: "test", ValidPrincipals: []string{s.User}, ValidBefore: ssh.CertTimeInfinity,
	}
	cert.Permissions.Extensions = map[string]string{"permit-pty": ""}
	if err := cert.SignCert(rand.Reader, ca.Signer); err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewCertSigner(cert, mine.Signer)
	if err != nil {
		t.Fatal(err)
	}
	config := s.ClientConfig(t)
	config.Auth = []ssh.AuthMethod{ssh.PublicKeys(signer)}
	client, err := ssh.Dial("tcp", s.Addr, config)
	if err != nil {
		t.Fatalf("%v\n%s", err, s.Log())
	}
	client.Close()
}

func TestSFTP(t *testing.T) {
	Available(t)
	for name, opts := range map[string]Options{"only": {SFTPOnly: true}, "too": {}, "none": {NoSFTP: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := Start(t, opts).Dial(t)
			files, err := sftp.NewClient(client)
			if (err != nil) != opts.NoSFTP {
				t.Fatalf("NewClient: %v", err)
			}
			if err == nil {
				defer files.Close()
				if _, err := files.Getwd(); err != nil {
					t.Error(err)
				}
			}
			session, err := client.NewSession()
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			if out, _ := session.Output("echo ran"); (string(out) != "ran\n") != opts.SFTPOnly {
				t.Errorf("a command says %q", out)
			}
		})
	}
}

func TestWrapperAndBanner(t *testing.T) {
	Available(t)
	for _, dropbear := range []bool{false, true} {
		s := Start(t, Options{Dropbear: dropbear, Banner: "keep out\n", ForceWrapper: `echo noise; exec sh -c "$SSH_ORIGINAL_COMMAND"`})
		config, banner := s.ClientConfig(t), ""
		config.BannerCallback = func(message string) error {
			banner = message
			return nil
		}
		client, err := ssh.Dial("tcp", s.Addr, config)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		if got := output(t, client, "echo real"); got != "noise\nreal\n" || strings.TrimSpace(banner) != "keep out" {
			t.Errorf("banner %q, output %q", banner, got)
		}
	}
}

func TestKeysAreReused(t *testing.T) {
	Available(t)
	first := Start(t, Options{})
	first.Stop()
	second := Start(t, Options{HostKeys: first.HostKeys})
	if a, b := strings.Fields(first.HostKeyLine), strings.Fields(second.HostKeyLine); !slices.Equal(a[1:], b[1:]) {
		t.Errorf("keys %v and %v", a, b)
	}
	if third := Start(t, Options{}); third.HostKeyLine == second.HostKeyLine {
		t.Error("two servers with one key")
	}
}

func TestPauseAndCut(t *testing.T) {
	Available(t)
	for name, opts := range map[string]Options{"openssh": {}, "dropbear": {Dropbear: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := Start(t, opts)
			client := s.Dial(t)
			if got := s.Connections(); len(got) != 1 {
				t.Fatalf("connections %v with one client", got)
			}
			s.Pause()
			answer := make(chan error, 1)
			go func() {
				_, _, err := client.SendRequest("keepalive@openssh.com", true, nil)
				answer <- err
			}()
			select {
			case err := <-answer:
				t.Errorf("a paused server answers: %v", err)
			case <-time.After(100 * time.Millisecond):
			}
			s.Resume()
			if err := <-answer; err != nil {
				t.Errorf("after Resume: %v", err)
			}
			s.CutConnections()
			if err := client.Wait(); err == nil {
				t.Error("a cut connection ended well")
			}
			s.Dial(t)
			s.Stop()
			if got := below(s.PID()); len(got) != 0 {
				t.Errorf("after Stop there are %v", got)
			}
		})
	}
}

func TestAgent(t *testing.T) {
	Available(t)
	key := NewKey(t, "ed25519")
	keys := StartAgent(t, key)
	s := Start(t, Options{AuthorizedKeys: []ssh.PublicKey{key.Public()}, NoIdentity: true})
	config := s.ClientConfig(t)
	config.Auth = []ssh.AuthMethod{ssh.PublicKeysCallback(keys.Client.Signers)}
	client, err := ssh.Dial("tcp", s.Addr, config)
	if err != nil {
		t.Fatal(err)
	}
	client.Close()
}

func TestLogBuffer(t *testing.T) {
	l := newLogBuffer()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if l.waitFor(ended, "x") {
		t.Error("found what is not there")
	}
	go func() {
		for _, text := range []string{"a", "b", "c"} {
			_, _ = l.Write([]byte(text))
		}
	}()
	if !l.waitFor(t.Context(), "abc") {
		t.Error("missed what came in pieces")
	}
}
