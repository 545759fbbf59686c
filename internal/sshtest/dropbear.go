package sshtest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"testing"
)

// dropbear writes what the server reads. The result makes the command for a port, and names the line of
// the log that says that the server listens.
func (s *Server) dropbear(t testing.TB, opts Options) func(port int) (*exec.Cmd, string) {
	t.Helper()
	if option := opts.notDropbears(); option != "" {
		t.Fatalf("dropbear has nothing like the option %s", option)
	}
	program, convert := Program(t, "dropbear"), Program(t, "dropbearconvert")
	args := []string{"-F", "-E", "-s", "-P", s.Dir + "/pid"}
	for i, key := range s.HostKeys {
		path := fmt.Sprintf("%s/host_key_%d", s.Dir, i)
		key.WriteFile(t, path)
		if err := run(convert, "openssh", "dropbear", path, path+".dropbear"); err != nil {
			t.Fatal(err)
		}
		args = append(args, "-r", path+".dropbear")
	}
	if command := s.forced(t, opts); command != "" {
		args = append(args, "-c", command)
	}
	if opts.Banner != "" {
		args = append(args, "-b", s.write(t, "banner", opts.Banner, 0o644))
	}
	if err := os.MkdirAll(opts.Account.Home+"/.ssh", 0o700); err != nil {
		t.Fatal(err)
	}
	opts.Account.WriteFile(t, ".ssh/authorized_keys", s.authorizedKeys(opts), 0o600)
	return func(port int) (*exec.Cmd, string) {
		address := net.JoinHostPort(s.Host, strconv.Itoa(port))
		return exec.Command(program, append(args, "-p", address)...), "Not backgrounding" //nolint:noctx // ended by Stop
	}
}
