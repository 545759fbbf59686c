package sandboxtest

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/workberth/workberth/internal/helpertest"
	"github.com/workberth/workberth/internal/sshtest"
	"github.com/workberth/workberth/sandbox"
	"github.com/workberth/workberth/sandbox/bubblewrap"
	"github.com/workberth/workberth/sandbox/docker"
	"github.com/workberth/workberth/sandbox/podman"
	"github.com/workberth/workberth/sandbox/ssh"
)

// Kind is how a workspace is reached.
type Kind string

// The kinds.
const (
	Bubblewrap Kind = "bubblewrap"
	Docker     Kind = "docker"
	Podman     Kind = "podman"
	// OpenSSH is the ssh backend with OpenSSH's server.
	OpenSSH Kind = "openssh"
	// Host is the ssh backend with the server of "berth host", which has the workspace in bubblewrap.
	Host Kind = "host"
	// FilesOnly is the ssh backend with OpenSSH's server when that serves SFTP and runs no commands.
	FilesOnly Kind = "files-only"
)

// Kinds are those that run commands.
func Kinds() []Kind { return []Kind{Bubblewrap, Docker, Podman, OpenSSH, Host} }

// Overland reports whether there is a connection that can be cut.
func (k Kind) Overland() bool { return k == OpenSSH || k == Host || k == FilesOnly }

// Binds reports whether directories of this machine can be bound.
func (k Kind) Binds() bool { return !k.Overland() }

// inside is the workspace in a confined sandbox.
const inside = "/workspace"

// image is in every engine that scripts/engines.sh starts.
const image = "berth-busybox"

// Place is a workspace and what a sandbox for it is made of.
type Place struct {
	Kind Kind
	// Root is the workspace on this machine. For the kinds of SSH, the other machine is this one too.
	Root string
	// State is the directory of records. Address is that of the engine, SSHConfig the client's
	// configuration, with the host "far".
	State, Address, SSHConfig string
	// Env are variables of the sandbox's commands, Binds its binds. They can be set before it is opened.
	Env   map[string]string
	Binds []sandbox.Bind

	cut func()
}

// New prepares a workspace of a kind, empty, with the servers it needs. They end with the test.
func New(t testing.TB, kind Kind) *Place {
	t.Helper()
	top, err := os.MkdirTemp("", "st-") // short: a socket's path is bounded
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(top) })
	if top, err = filepath.EvalSymlinks(top); err != nil {
		t.Fatal(err)
	}
	p := &Place{Kind: kind, Root: filepath.Join(top, "ws"), State: filepath.Join(top, "state"), Env: map[string]string{}, cut: func() {}}
	if err := os.Mkdir(p.Root, 0o755); err != nil {
		t.Fatal(err)
	}
	switch kind {
	case Bubblewrap:
		needProgram(t, "bwrap")
	case Docker:
		p.Address = needEngine(t, "BERTH_TEST_DOCKER")
	case Podman:
		p.Address = needEngine(t, "BERTH_TEST_PODMAN")
	case OpenSSH:
		p.openSSH(t, sshtest.Options{})
	case FilesOnly:
		p.openSSH(t, sshtest.Options{SFTPOnly: true})
	case Host:
		needProgram(t, "bwrap")
		p.host(t)
	default:
		t.Fatalf("no kind %q", kind)
	}
	return p
}

// Inside is the root as commands of the sandbox see it.
func (p *Place) Inside() string {
	if p.Kind == OpenSSH || p.Kind == FilesOnly {
		return p.Root
	}
	return inside
}

// Write puts a file into the workspace, behind the back of the sandbox.
func (p *Place) Write(t testing.TB, name, text string, mode os.FileMode) {
	t.Helper()
	Write(t, p.Root, name, text, mode)
}

// Each runs a test with a workspace of each of the kinds, side by side.
func Each(t *testing.T, kinds []Kind, test func(t *testing.T, p *Place)) {
	for _, k := range kinds {
		t.Run(string(k), func(t *testing.T) {
			t.Parallel()
			test(t, New(t, k))
		})
	}
}

// Open makes the sandbox, or opens it again. The caller closes it, and what else is to be closed.
func (p *Place) Open(ctx context.Context) (sandbox.Sandbox, io.Closer, error) {
	b, c, err := p.backend()
	if err != nil {
		return nil, nil, err
	}
	maps.Copy(c.Env, p.Env)
	c.Binds = append(c.Binds, p.Binds...)
	ws := p.Root
	if p.Kind == Host {
		ws = inside
	}
	sb, err := b.Ensure(ctx, sandbox.Spec{Scope: sandbox.ScopeSession, Session: "test", Workspace: ws, Config: c})
	if err != nil {
		closeBackend(b)
		return nil, nil, err
	}
	return sb, closer{p, sb, b}, nil
}

// Sandbox opens the sandbox for the length of the test.
func (p *Place) Sandbox(t testing.TB) sandbox.Sandbox {
	t.Helper()
	sb, c, err := p.Open(t.Context())
	if err != nil && p.Kind == Bubblewrap {
		missing(t, "no sandbox: "+err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return sb
}

// backend opens the backend and gives its hardened configuration.
func (p *Place) backend() (b sandbox.Backend, c sandbox.Config, err error) {
	getenv := func(string) string { return "" }
	c = sandbox.DefaultConfig()
	switch p.Kind {
	case Bubblewrap:
		b, err = bubblewrap.New(bubblewrap.Options{StateDir: p.State, HelperPath: helpertest.Path()})
	case Docker:
		c.Image = image
		b, err = docker.New(docker.Options{Host: p.Address, StateDir: p.State, HelperPath: helpertest.Path(), Getenv: getenv})
	case Podman:
		c.Image = image
		b, err = podman.New(podman.Options{Host: p.Address, StateDir: p.State, HelperPath: helpertest.Path(), Getenv: getenv})
	case OpenSSH, Host, FilesOnly:
		c = ssh.DefaultConfig()
		c.SSH, c.SSHConfig = "far", p.SSHConfig
		b, err = ssh.New(ssh.Options{StateDir: p.State, Getenv: getenv, Helper: helpertest.ForArch})
	default:
		err = fmt.Errorf("no kind %q", p.Kind)
	}
	if c.Env == nil {
		c.Env = map[string]string{}
	}
	return b, c, err
}

// closer ends a sandbox for good.
type closer struct {
	p  *Place
	sb sandbox.Sandbox
	b  sandbox.Backend
}

// Close implements io.Closer.
func (c closer) Close() error {
	err := c.sb.Close()
	if c.p.Address != "" { // an engine keeps the container otherwise
		_ = c.b.Remove(context.Background(), c.sb.Info().ID)
	}
	closeBackend(c.b)
	return err
}

func closeBackend(b sandbox.Backend) {
	if c, ok := b.(io.Closer); ok {
		_ = c.Close()
	}
}

func needProgram(t testing.TB, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		missing(t, name+" is not installed")
	}
}

func needEngine(t testing.TB, name string) string {
	t.Helper()
	address := os.Getenv(name)
	if address == "" {
		missing(t, name+" names no engine")
	}
	return address
}

func missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("BERTH_REQUIRE_ENGINES") == "1" {
		t.Fatal(what)
	}
	t.Skip(what)
}
