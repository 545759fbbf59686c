package bench

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// The hosts of SSHServer.Config: the server itself, the same behind a long line, and behind one
// without length, which only counts.
const (
	sshHost        = "bench"
	sshHostSlow    = "bench-slow"
	sshHostCounted = "bench-counted"
)

// halfWay is what the long line takes in one direction.
const halfWay = 25 * time.Millisecond

// SSHServer is an OpenSSH server of this run, on this machine and for its user.
type SSHServer struct {
	// Config is a configuration for clients, with the hosts above. Version tells the server.
	Config, Version string

	address string
	client  *ssh.ClientConfig
	cmd     *exec.Cmd
	lines   map[string]*relay // by host; a host without one is the server itself
}

// sshPrograms are the programs that it takes, by their usual places.
func sshPrograms() (sshd, sftp string, err error) {
	find := func(name string, places ...string) string {
		for _, p := range append([]string{name}, places...) {
			if path, lookErr := exec.LookPath(p); lookErr == nil {
				return path
			}
		}
		err = fmt.Errorf("no program %s here: %w", name, exec.ErrNotFound)
		return ""
	}
	sftp = find("sftp-server", "/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server", "/usr/lib/ssh/sftp-server")
	for _, client := range []string{"ssh", "scp", "rsync"} {
		find(client)
	}
	sshd = find("sshd", "/usr/sbin/sshd")
	return sshd, sftp, err
}

// StartSSH starts a server with everything it needs in dir, a private, existing directory. Where a
// program is missing the error matches exec.ErrNotFound.
func StartSSH(ctx context.Context, dir string) (_ *SSHServer, err error) {
	sshd, sftpServer, err := sshPrograms()
	if err != nil {
		return nil, err
	}
	if os.Geteuid() == 0 {
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // built into sshd
			return nil, err
		}
	}
	me, err := user.Current()
	if err != nil {
		return nil, err
	}
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	hostKey, err := newKey(filepath.Join(dir, "host_key"))
	if err != nil {
		return nil, err
	}
	identity, err := newKey(filepath.Join(dir, "identity"))
	if err != nil {
		return nil, err
	}
	s := &SSHServer{
		Config: filepath.Join(dir, "ssh_config"), address: address,
		lines: make(map[string]*relay),
		client: &ssh.ClientConfig{
			User: me.Username, Auth: []ssh.AuthMethod{ssh.PublicKeys(identity)}, HostKeyCallback: ssh.FixedHostKey(hostKey.PublicKey()),
		},
	}
	for host, delay := range map[string]time.Duration{sshHostSlow: halfWay, sshHostCounted: 0} {
		if s.lines[host], err = newRelay(ctx, s.address, delay); err != nil {
			return nil, errors.Join(err, s.closeLines())
		}
	}
	common := fmt.Sprintf(`  HostName 127.0.0.1
  User %s
  IdentityFile %s/identity
  IdentitiesOnly yes
  IdentityAgent none
  HostKeyAlias bench
  UserKnownHostsFile %s/known_hosts
  GlobalKnownHostsFile none
`, me.Username, dir, dir)
	config := ""
	for _, host := range []string{sshHost, sshHostSlow, sshHostCounted} {
		_, port, _ := net.SplitHostPort(s.at(host)) // an address of a listener
		config += fmt.Sprintf("Host %s\n  Port %s\n%s", host, port, common)
	}
	files := map[string]string{
		"known_hosts":     "bench " + string(ssh.MarshalAuthorizedKey(hostKey.PublicKey())),
		"authorized_keys": string(ssh.MarshalAuthorizedKey(identity.PublicKey())),
		"ssh_config":      config,
		"sshd_config": strings.Join([]string{
			"ListenAddress " + address, "HostKey " + dir + "/host_key", "AuthorizedKeysFile " + dir + "/authorized_keys",
			"PidFile none", "UsePAM no", "StrictModes no", "UseDNS no", "PrintMotd no", "MaxStartups 100", "PermitRootLogin prohibit-password",
			"PasswordAuthentication no", "KbdInteractiveAuthentication no", "SetEnv XDG_CACHE_HOME=" + dir + "/cache", "Subsystem sftp " + sftpServer,
		}, "\n") + "\n",
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return nil, errors.Join(err, s.closeLines())
		}
	}
	version, _ := exec.CommandContext(ctx, "ssh", "-V").CombinedOutput() // says it on standard error
	s.Version = strings.TrimSpace(string(version))
	var said bytes.Buffer
	s.cmd = exec.Command(sshd, "-D", "-e", "-f", filepath.Join(dir, "sshd_config")) // Close ends it
	s.cmd.Stderr = &said
	if err := s.cmd.Start(); err != nil {
		return nil, errors.Join(err, s.closeLines())
	}
	if err := s.greeted(ctx); err != nil {
		return nil, errors.Join(err, s.Close(), errors.New(tail(said.String())))
	}
	return s, nil
}

// greeted waits until the server answers.
func (s *SSHServer) greeted(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "tcp", s.address)
		if err == nil {
			line, err := bufio.NewReader(conn).ReadString('\n')
			_ = conn.Close()
			if err != nil || !strings.HasPrefix(line, "SSH-2.0") {
				return fmt.Errorf("the server begins with %q: %w", line, err)
			}
			return nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return err
		}
	}
}

// Close ends the server and the connections that it has accepted.
func (s *SSHServer) Close() error {
	err := s.closeLines()
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait() // that it was killed is no news
	return err
}

func (s *SSHServer) closeLines() error {
	var errs []error
	for _, line := range s.lines {
		if line != nil {
			errs = append(errs, line.close())
		}
	}
	return errors.Join(errs...)
}

// at is the address of a host.
func (s *SSHServer) at(host string) string {
	if line := s.lines[host]; line != nil {
		return line.l.Addr().String()
	}
	return s.address
}

// program is a call of the ssh program that runs a command of the host's shell.
func (s *SSHServer) program(ctx context.Context, command string) *exec.Cmd {
	return exec.CommandContext(ctx, "ssh", "-F", s.Config, sshHost, command)
}

// newKey makes a private key in a file.
func newKey(path string) (ssh.Signer, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
		return nil, err
	}
	return ssh.NewSignerFromKey(private)
}

// freeAddress is one that nobody listens on.
func freeAddress(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
