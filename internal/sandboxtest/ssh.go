package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/pkg/sftp"
	gossh "golang.org/x/crypto/ssh"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/sftpfs"
	"github.com/workberth/workberth/internal/helpertest"
	"github.com/workberth/workberth/internal/sshtest"
	"github.com/workberth/workberth/remoteworkspace/sshhost"
	"github.com/workberth/workberth/sandbox"
	"github.com/workberth/workberth/sandbox/bubblewrap"
)

// openSSH starts a server for the user that runs the test.
func (p *Place) openSSH(t testing.TB, opts sshtest.Options) {
	t.Helper()
	sshtest.Available(t)
	opts.ExtraConfig = []string{"SetEnv XDG_CACHE_HOME=" + filepath.Join(filepath.Dir(p.Root), "cache")}
	s := sshtest.Start(t, opts)
	p.configure(t, s)
	p.cut = s.CutConnections
}

// configure writes the client's configuration.
func (p *Place) configure(t testing.TB, far *sshtest.Server) {
	t.Helper()
	p.SSHConfig = filepath.Join(filepath.Dir(p.Root), "config")
	if err := os.WriteFile(p.SSHConfig, []byte(far.ConfigText("far")), 0o600); err != nil {
		t.Fatal(err)
	}
}

// host starts the server of "berth host" with one workspace, the root.
func (p *Place) host(t testing.TB) {
	t.Helper()
	top := filepath.Dir(p.Root)
	b, err := bubblewrap.New(bubblewrap.Options{StateDir: filepath.Join(top, "hs"), HelperPath: helpertest.Path()})
	if err != nil {
		t.Fatal(err)
	}
	hostKey, userKey := sshtest.NewKey(t, "ed25519"), sshtest.NewKey(t, "ed25519")
	identity, known := filepath.Join(top, "id"), filepath.Join(top, "known_hosts")
	userKey.WriteFile(t, identity)
	server, err := sshhost.New(sshhost.Options{
		HostKeys: []gossh.Signer{hostKey.Signer}, Opener: opener{b, p.Root}, SpoolDir: top,
		Policy: sshhost.Policy{Workspaces: map[string]sshhost.Workspace{"demo": {Keys: []sshhost.AuthorizedKey{{Key: userKey.Public()}}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conns := &cutter{Listener: l}
	p.cut = conns.cut
	served := make(chan error, 1)
	go func() { served <- server.Serve(conns) }()
	t.Cleanup(func() {
		at, cancel := context.WithCancel(context.Background())
		cancel() // at once
		if err := errors.Join(server.Shutdown(at), <-served); err != nil {
			t.Errorf("the host did not end well: %v", err)
		}
	})
	port := l.Addr().(*net.TCPAddr).Port
	line := fmt.Sprintf("[127.0.0.1]:%d %s", port, gossh.MarshalAuthorizedKey(hostKey.Public()))
	if err := os.WriteFile(known, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	p.configure(t, &sshtest.Server{Host: "127.0.0.1", Port: port, User: "demo", IdentityFile: identity, KnownHostsFile: known})
}

// opener makes the sandbox of the hosted workspace.
type opener struct {
	b    sandbox.Backend
	root string
}

// Open implements sshhost.Opener.
func (o opener) Open(ctx context.Context, _ string) (sandbox.Sandbox, error) {
	return o.b.Ensure(ctx, sandbox.Spec{Scope: sandbox.ScopeSession, Session: "hosted", Workspace: o.root, Config: sandbox.DefaultConfig()})
}

// cutter is a listener that can cut what it has accepted.
type cutter struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
}

// Accept implements net.Listener.
func (c *cutter) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.conns = append(c.conns, conn)
	}
	return conn, err
}

func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		_ = conn.Close()
	}
	c.conns = nil
}

// SFTP serves a new directory by OpenSSH's SFTP server alone, which runs no commands. cut ends its
// connection for good.
func SFTP(t testing.TB) (root string, open fsbridge.Factory, cut func()) {
	t.Helper()
	sshtest.Available(t)
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(sshtest.Program(t, "sftp-server"), "-e", "-u", "022") //nolint:noctx // ends with its input
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() })
	c, err := sftp.NewClientPipe(out, in)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return root, func(_ context.Context, assert fsbridge.AssertFunc) (fsbridge.Bridge, error) {
		return sftpfs.New(c, sftpfs.Options{Mounts: fsbridge.MountTable{{Path: root, Kind: fsbridge.MountWorkspace}}, Assert: assert})
	}, func() { _ = c.Close() }
}
