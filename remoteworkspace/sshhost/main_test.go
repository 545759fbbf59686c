package sshhost

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"

	"github.com/workberth/workberth/internal/helperbin"
	"github.com/workberth/workberth/internal/tail"
	"github.com/workberth/workberth/sandbox"
	"github.com/workberth/workberth/sandbox/bubblewrap"
)

// helperDir holds the guest helper, built once for all tests.
var helperDir string //nolint:gochecknoglobals // set once by TestMain

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "sshhost-helper-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	helperDir = dir
	if err := buildHelper(filepath.Join(dir, helperbin.Name)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// buildHelper puts the guest helper at a path that everybody may execute.
func buildHelper(path string) error {
	if given := os.Getenv(helperbin.EnvPath); given != "" {
		data, err := os.ReadFile(given)
		return errors.Join(err, os.WriteFile(path, data, 0o755))
	}
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", path, "github.com/workberth/workberth/cmd/berth-guest")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the helper: %w\n%s", err, out)
	}
	return nil
}

// rig is a server on a port of its own, with workspaces "one" and "two".
type rig struct {
	*Server
	addr   string
	ws     string // the directory of workspace one
	audit  *tail.Buffer
	opener *bwrapOpener
	host   ssh.Signer
	// key may log in to one, other to two.
	key, other ssh.Signer
}

// newRig starts one; the options can be changed.
func newRig(t testing.TB, change ...func(*Options)) *rig {
	t.Helper()
	if _, err := exec.LookPath("bwrap"); err != nil {
		if os.Getenv("BERTH_REQUIRE_ENGINES") == "1" {
			t.Fatal(err)
		}
		t.Skip("bubblewrap is not installed")
	}
	dir, err := os.MkdirTemp("", "sshhost-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	r := &rig{ws: filepath.Join(dir, "one"), audit: &tail.Buffer{}, host: newKey(t), key: newKey(t), other: newKey(t)}
	for _, name := range []string{"one", "two"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	backend, err := bubblewrap.New(bubblewrap.Options{StateDir: filepath.Join(dir, "state"), HelperPath: filepath.Join(helperDir, helperbin.Name)})
	if err != nil {
		t.Fatal(err)
	}
	r.opener = &bwrapOpener{backend: backend, dir: dir}
	opts := Options{
		HostKeys: []ssh.Signer{r.host}, Opener: r.opener, Audit: r.audit, SpoolDir: dir,
		Policy: Policy{Workspaces: map[string]Workspace{
			"one": {Keys: []AuthorizedKey{{Key: r.key.PublicKey()}}},
			"two": {Keys: []AuthorizedKey{{Key: r.other.PublicKey()}}},
		}},
	}
	for _, c := range change {
		c(&opts)
	}
	if r.Server, err = New(opts); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.addr = l.Addr().String()
	served := make(chan error, 1)
	go func() { served <- r.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := r.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return r
}

// bwrapOpener makes bubblewrap sandboxes.
type bwrapOpener struct {
	backend *bubblewrap.Backend
	dir     string

	mu    sync.Mutex
	opens int
	last  sandbox.Sandbox
	fail  error
}

func (o *bwrapOpener) Open(ctx context.Context, name string) (sandbox.Sandbox, error) {
	o.mu.Lock()
	o.opens++
	err := o.fail
	o.mu.Unlock()
	if err != nil {
		return nil, err
	}
	sb, err := o.backend.Ensure(ctx, sandbox.Spec{
		Scope: sandbox.ScopeSession, Session: name, Workspace: filepath.Join(o.dir, name), Config: sandbox.DefaultConfig(),
	})
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last = sb
	return sb, err
}

func (o *bwrapOpener) opened() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.opens
}

func newKey(t testing.TB) ssh.Signer {
	t.Helper()
	_, secret, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewSignerFromKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// try connects as a client that offers these keys, in this order.
func (r *rig) try(user string, keys ...ssh.Signer) (*ssh.Client, error) {
	return ssh.Dial("tcp", r.addr, &ssh.ClientConfig{
		User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(keys...)}, HostKeyCallback: ssh.FixedHostKey(r.host.PublicKey()), Timeout: 20 * time.Second,
	})
}

// dial connects to workspace one.
func (r *rig) dial(t testing.TB) *ssh.Client {
	t.Helper()
	c, err := r.try("one", r.key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// run runs a command and returns its output and exit code, or the signal's name.
func run(t testing.TB, c *ssh.Client, command string, stdin io.Reader) (stdout, stderr, exit string) {
	t.Helper()
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var o, e bytes.Buffer
	s.Stdin, s.Stdout, s.Stderr = stdin, &o, &e
	err = s.Run(command)
	var status *ssh.ExitError
	switch {
	case err == nil:
		exit = "0"
	case errors.As(err, &status) && status.Signal() != "":
		exit = status.Signal()
	case errors.As(err, &status):
		exit = fmt.Sprint(status.ExitStatus())
	default:
		t.Fatalf("%q: %v", command, err)
	}
	return o.String(), e.String(), exit
}

// eventually polls something that comes without an event.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(2 * time.Millisecond) //sleep: polls what gives no event
	}
}

// fakeClock stands still until it is told otherwise.
type fakeClock struct {
	mu     sync.Mutex
	now    time.Time
	timers []fakeTimer
	waits  map[time.Duration]int
}

type fakeTimer struct {
	at time.Time
	c  chan time.Time
}

func newFakeClock() *fakeClock {
	return &fakeClock{now: time.Unix(1_800_000_000, 0), waits: map[time.Duration]int{}}
}

func (f *fakeClock) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

func (f *fakeClock) After(d time.Duration) <-chan time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := make(chan time.Time, 1)
	f.waits[d]++
	f.timers = append(f.timers, fakeTimer{f.now.Add(d), c})
	return c
}

// advance lets time pass.
func (f *fakeClock) advance(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = f.now.Add(d)
	left := f.timers[:0]
	for _, t := range f.timers {
		if t.at.After(f.now) {
			left = append(left, t)
		} else {
			t.c <- f.now
		}
	}
	f.timers = left
}

// asked counts how often somebody began to wait for so long.
func (f *fakeClock) asked(d time.Duration) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.waits[d]
}

// procsWith counts processes of this machine whose command line holds a text.
func procsWith(t testing.TB, text string) int {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, d := range dirs {
		cmdline, _ := os.ReadFile(d + "/cmdline")
		if strings.Contains(string(cmdline), text) {
			n++
		}
	}
	return n
}
