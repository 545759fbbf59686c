package sshtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// patience is how long a server may take to start, to end, or to see that a client has gone.
const patience = 20 * time.Second

// Server is a running SSH server. Its fields do not change.
type Server struct {
	Addr string // host and port, as net.Dial takes them
	Host string
	Port int
	User string // who can log in

	HostKeys       []HostKey
	HostKeyLine    string // lines for a known_hosts file, one per host key
	KnownHostsFile string // a file with these lines

	IdentityFile string     // the private key that is admitted: Ed25519, without a passphrase
	Signer       ssh.Signer // the same key

	Dir string // the server's own directory

	log  *logBuffer
	cmd  *exec.Cmd
	done chan struct{} // closed when the server's first process has ended
	stop sync.Once
}

// Start runs a server until the end of the test. When it returns, the server answers.
func Start(t testing.TB, opts Options) *Server {
	t.Helper()
	s := prepare(t, &opts)
	var command func(port int) (*exec.Cmd, string)
	if opts.Dropbear {
		command = s.dropbear(t, opts)
	} else {
		command = s.openSSH(t, opts)
	}
	t.Cleanup(s.Stop)
	// The port is free when it is chosen and may be taken when the server asks for it.
	for attempt := 1; ; attempt++ {
		port := freePort(t, s.Host)
		cmd, ready := command(port)
		err := s.start(t.Context(), cmd, ready)
		if err == nil {
			s.at(t, port)
			break
		}
		if attempt == 5 {
			t.Fatalf("the server does not start: %v\n%s", err, s.Log())
		}
	}
	if err := s.probe(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, s.Log())
	}
	return s
}

// prepare makes what every kind of server needs.
func prepare(t testing.TB, opts *Options) *Server {
	t.Helper()
	// Not t.TempDir: another user must be able to read its authorized keys there.
	dir, err := os.MkdirTemp("", "sshtest-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	s := &Server{Host: opts.listen(), Dir: dir, log: newLogBuffer(), done: make(chan struct{})}
	close(s.done) // nothing runs yet

	identity := NewKey(t, "ed25519")
	s.IdentityFile, s.Signer = filepath.Join(dir, "identity"), identity.Signer
	identity.WriteFile(t, s.IdentityFile)

	if opts.Dropbear && opts.Account == nil {
		opts.Account = NewAccount(t, "/bin/sh", AccountOptions{})
	}
	if opts.Account != nil {
		s.User = opts.Account.Name
	} else {
		me, err := user.Current()
		if err != nil {
			t.Fatal(err)
		}
		s.User = me.Username
	}

	s.HostKeys = opts.HostKeys
	if len(s.HostKeys) == 0 {
		kinds := opts.HostKeyTypes
		if len(kinds) == 0 {
			kinds = []string{"ed25519"}
		}
		for _, kind := range kinds {
			s.HostKeys = append(s.HostKeys, NewKey(t, kind))
		}
	}
	return s
}

// authorizedKeys returns the text of an authorized_keys file.
func (s *Server) authorizedKeys(opts Options) string {
	var text strings.Builder
	if !opts.NoIdentity {
		text.Write(ssh.MarshalAuthorizedKey(s.Signer.PublicKey()))
	}
	for _, key := range opts.AuthorizedKeys {
		text.Write(ssh.MarshalAuthorizedKey(key))
	}
	return text.String()
}

// at fills in what depends on the port.
func (s *Server) at(t testing.TB, port int) {
	t.Helper()
	s.Port = port
	s.Addr = net.JoinHostPort(s.Host, strconv.Itoa(port))
	var lines strings.Builder
	for _, key := range s.HostKeys {
		lines.WriteString(knownhosts.Line([]string{s.Addr}, key.Public()) + "\n")
	}
	s.HostKeyLine = lines.String()
	s.KnownHostsFile = s.write(t, "known_hosts", s.HostKeyLine, 0o600)
}

// write writes a file to the server's directory.
func (s *Server) write(t testing.TB, name, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(s.Dir, name)
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // whatever the umask
		t.Fatal(err)
	}
	return path
}

// start runs the server and waits until its log says that it listens, by the text ready.
func (s *Server) start(ctx context.Context, cmd *exec.Cmd, ready string) error {
	s.log = newLogBuffer()
	cmd.Stdout, cmd.Stderr = s.log, s.log
	// A test program that is killed takes the server along: the kernel watches the thread that has
	// started it, which therefore stays.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = time.Second // a command that outlives its session may hold the log open
	done, started := make(chan struct{}), make(chan error, 1)
	ctx, cancel := context.WithTimeout(ctx, patience)
	go func() {
		defer cancel()
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
			close(done)
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	s.cmd, s.done = cmd, done
	if s.log.waitFor(ctx, ready) {
		return nil
	}
	select {
	case <-done:
		return fmt.Errorf("%s ended: %v", cmd.Path, cmd.ProcessState)
	default:
		s.halt()
		return fmt.Errorf("%s does not say %q", cmd.Path, ready)
	}
}

// probe connects, reads the server's first line, and waits until the server has seen the end of the
// connection.
func (s *Server) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.Addr)
	if err != nil {
		return err
	}
	deadline, _ := ctx.Deadline()
	err1 := conn.SetReadDeadline(deadline)
	line, err2 := bufio.NewReader(conn).ReadString('\n')
	conn.Close()
	if err := errors.Join(err1, err2); err != nil || !strings.HasPrefix(line, "SSH-2.0") {
		return fmt.Errorf("the server begins with %q: %w", line, err)
	}
	return s.idle(ctx)
}

// idle waits until no connection is left.
func (s *Server) idle(ctx context.Context) error {
	again := time.NewTicker(2 * time.Millisecond)
	defer again.Stop()
	for len(s.Connections()) > 0 {
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("connections %v do not end: %w", s.Connections(), ctx.Err())
		}
	}
	return nil
}

// freePort returns a port nobody listens on.
func freePort(t testing.TB, host string) int {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
