package sshtest

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

// privsepDir is where sshd, started by root, confines what has not logged in yet. It is built into
// sshd, and a machine that never ran its own may lack it.
const privsepDir = "/run/sshd"

// openSSH writes the configuration. The result makes the command for a port, and names the line of the
// log that says that the server listens.
func (s *Server) openSSH(t testing.TB, opts Options) func(port int) (*exec.Cmd, string) {
	t.Helper()
	sshd := Program(t, "sshd")
	if os.Geteuid() == 0 {
		if err := os.MkdirAll(privsepDir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	lines := append([]string{}, opts.ExtraConfig...)
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	add("ListenAddress %s", s.Host)
	for i, key := range s.HostKeys {
		path := fmt.Sprintf("%s/host_key_%d", s.Dir, i)
		key.WriteFile(t, path)
		add("HostKey %s", path)
	}
	add("AuthorizedKeysFile %s", s.write(t, "authorized_keys", s.authorizedKeys(opts), 0o644))
	for _, line := range []string{
		"PidFile none", "UsePAM no", "StrictModes no", "UseDNS no", "PrintMotd no", "PrintLastLog no", "LogLevel VERBOSE",
		"PermitRootLogin prohibit-password", "PasswordAuthentication no", "KbdInteractiveAuthentication no",
	} {
		add("%s", line)
	}
	s.openSSHOptions(t, opts, add)
	config := s.write(t, "sshd_config", strings.Join(lines, "\n")+"\n", 0o600)
	return func(port int) (*exec.Cmd, string) {
		number := strconv.Itoa(port)
		cmd := exec.Command(sshd, "-D", "-e", "-f", config, "-p", number) //nolint:noctx // ended by Stop
		return cmd, "Server listening on " + s.Host + " port " + number + "."
	}
}

// openSSHOptions adds the lines that only some servers have.
func (s *Server) openSSHOptions(t testing.TB, opts Options, add func(format string, args ...any)) {
	t.Helper()
	if opts.UserCA != nil {
		add("TrustedUserCAKeys %s", s.write(t, "user_ca", string(ssh.MarshalAuthorizedKey(opts.UserCA)), 0o644))
	}
	if opts.MaxSessions != 0 {
		add("MaxSessions %d", opts.MaxSessions)
	}
	if opts.MaxStartups != "" {
		add("MaxStartups %s", opts.MaxStartups)
	}
	if !opts.NoSFTP {
		add("Subsystem sftp %s", Program(t, "sftp-server"))
	}
	if opts.SFTPOnly {
		add("ForceCommand internal-sftp")
	}
	if command := s.forced(t, opts); command != "" {
		add("ForceCommand %s", command)
	}
	if opts.Banner != "" {
		add("Banner %s", s.write(t, "banner", opts.Banner, 0o644))
	}
}

// forced returns what the server runs in place of a client's command, or "".
func (s *Server) forced(t testing.TB, opts Options) string {
	t.Helper()
	if opts.ForceWrapper == "" {
		return opts.ForceCommand
	}
	text := opts.ForceWrapper
	if !strings.HasPrefix(text, "#!") {
		text = "#!/bin/sh\n" + text
	}
	return s.write(t, "wrapper", text, 0o755)
}
