package ssh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/sshtest"
	"github.com/workberth/workberth/sandbox"
)

// rig is a backend with a server to use it on.
type rig struct {
	*Backend
	t      *testing.T
	ctx    context.Context
	server *sshtest.Server
	config string
	log    *bytes.Buffer
}

func newRig(t *testing.T, opts sshtest.Options, lines ...string) *rig {
	t.Helper()
	opts = ownCache(t, opts)
	if opts.Account != nil { // its number may have been another account's before
		cache := fallbackCache(opts.Account.UID)
		_ = os.RemoveAll(cache)
		t.Cleanup(func() { _ = os.RemoveAll(cache) }) // after the sandboxes have ended
	}
	r := &rig{t: t, server: sshtest.Start(t, opts), log: &bytes.Buffer{}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	r.ctx = ctx
	r.config = sshConfig(t, r.server, lines...)
	r.Backend = open(t, filepath.Join(t.TempDir(), "state"), slog.New(slog.NewTextHandler(r.log, nil)))
	return r
}

// sharedDir is a directory that other users may enter.
func sharedDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "berth-sshsuite-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (r *rig) spec(workspace string, change ...func(*sandbox.Spec)) sandbox.Spec {
	s := sandbox.Spec{Scope: sandbox.ScopeSession, Session: "test", Workspace: workspace, Config: DefaultConfig()}
	s.Config.SSH, s.Config.SSHConfig = "host", r.config
	for _, c := range change {
		c(&s)
	}
	return s
}

func (r *rig) ensure(workspace string, change ...func(*sandbox.Spec)) sandbox.Sandbox {
	r.t.Helper()
	sb, err := r.Ensure(r.ctx, r.spec(workspace, change...))
	if err != nil {
		r.t.Fatalf("Ensure: %v\nserver: %s\nlog: %s", err, r.server.Log(), r.log)
	}
	r.t.Cleanup(func() {
		_ = sb.Close() // a test may have closed it
		<-sb.Done()
	})
	return sb
}

// run runs a command and returns its output.
func (r *rig) run(sb sandbox.Sandbox, argv ...string) string {
	r.t.Helper()
	var out bytes.Buffer
	res, err := sandbox.Run(r.ctx, sb, sandbox.Command{Argv: argv}, nil, sandbox.RunOptions{Stdout: &out})
	if err != nil || res.Status.Code != 0 {
		r.t.Fatalf("%q: %+v, %v", argv, res, err)
	}
	return out.String()
}

// exact proves files and commands of a sandbox: names, bytes and words as they were given.
func (r *rig) exact(sb sandbox.Sandbox) {
	r.t.Helper()
	bridge, err := sb.Bridge(r.ctx, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	data := bytes.Repeat([]byte{0, 1, '\r', '\n', 0xff, '~', '.'}, 150_000) // 1 MiB
	const name = "it's a \"name\" $HOME `x` \\ back"
	if err := bridge.WriteFile(r.ctx, name, data); err != nil {
		r.t.Fatal(err)
	}
	back, err := bridge.ReadFile(r.ctx, name)
	if err != nil || !bytes.Equal(back, data) {
		r.t.Fatalf("%d bytes came back of %d, %v", len(back), len(data), err)
	}
	words := []string{"a b", `back\\slash`, "it's", "$(x)", "", "\n", "-n", "#", "*", "!!", `\`, "{a,b}"}
	got := r.run(sb, append([]string{"/bin/sh", "-c", `printf '%s\0' "$@"`, "sh"}, words...)...)
	if want := strings.Join(words, "\x00") + "\x00"; got != want {
		r.t.Errorf("words %q, want %q", got, want)
	}
	if got := r.run(sb, "/bin/sh", "-c", "wc -c < \"$1\"", "sh", name); strings.TrimSpace(got) != fmt.Sprint(len(data)) {
		r.t.Errorf("a command sees %q bytes", got)
	}
}

// C103: whatever the login shell is.
func TestLoginShells(t *testing.T) {
	for _, shell := range []string{"/bin/sh", "/bin/bash", "/usr/bin/fish", "/bin/tcsh", "/usr/bin/zsh", "/bin/busybox"} {
		t.Run(filepath.Base(shell), func(t *testing.T) {
			t.Parallel()
			if shell == "/bin/busybox" {
				// Its login shell is a link with the applet's name.
				link := filepath.Join(sharedDir(t), "ash")
				if err := os.Symlink(shell, link); err != nil {
					t.Fatal(err)
				}
				shell = link
			}
			account := sshtest.NewAccount(t, shell, sshtest.AccountOptions{})
			r := newRig(t, sshtest.Options{Account: account})
			sb := r.ensure(DefaultWorkspace) // the default workspace, made on demand
			r.exact(sb)
			if got := strings.TrimSpace(r.run(sb, "/bin/sh", "-c", "pwd; echo $HOME")); got != account.Home+"/workberth\n"+account.Home {
				t.Errorf("directories %q", got)
			}
		})
	}
}

// C105: notices before the first byte of ours, at a line's end and without one.
func TestNoisyLogin(t *testing.T) {
	for name, wrapper := range map[string]string{
		"lines":    "#!/bin/sh\necho Welcome to the box\nfor i in 1 2 3 4 5; do echo \"line $i berth:\"; done\nexec /bin/sh -c \"$SSH_ORIGINAL_COMMAND\"\n",
		"unended":  "#!/bin/sh\nprintf 'notice without an end: '\nexec /bin/sh -c \"$SSH_ORIGINAL_COMMAND\"\n",
		"100 KiB":  "#!/bin/sh\nhead -c 102400 /dev/zero | tr '\\0' x\nexec /bin/sh -c \"$SSH_ORIGINAL_COMMAND\"\n",
		"messages": "#!/bin/sh\necho to stderr >&2\nexec /bin/sh -c \"$SSH_ORIGINAL_COMMAND\"\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, sshtest.Options{ForceWrapper: wrapper, Banner: "a banner\n"})
			r.exact(r.ensure(t.TempDir()))
		})
	}
}

// A login that never answers is told with what it said.
func TestSilentLogin(t *testing.T) {
	t.Parallel()
	r := newRig(t, sshtest.Options{NoSFTP: true, ForceWrapper: "#!/bin/sh\necho This account is currently not available.\nexit 1\n"})
	_, err := r.Ensure(r.ctx, r.spec(t.TempDir()))
	if !errors.Is(err, sandbox.ErrUnavailable) || !strings.Contains(fmt.Sprint(err), "not available") {
		t.Errorf("Ensure: %v", err)
	}
}

// The helper goes where it can: not into a home that cannot be written to.
func TestHomeWithoutRights(t *testing.T) {
	t.Parallel()
	account := sshtest.NewAccount(t, "/bin/sh", sshtest.AccountOptions{NoWriteHome: true})
	r := newRig(t, sshtest.Options{Account: account})
	ws := filepath.Join(sharedDir(t), "ws")
	if err := errors.Join(os.Mkdir(ws, 0o700), os.Chown(ws, account.UID, account.GID)); err != nil {
		t.Fatal(err)
	}
	cache := fallbackCache(account.UID)
	r.exact(r.ensure(ws))
	info, err := os.Stat(cache)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("cache: %v, %v", info, err)
	}
}

// fallbackCache is where the helper goes for an account without a home.
func fallbackCache(uid int) string { return fmt.Sprintf("/var/tmp/workberth-%d", uid) }

// A helper that was changed on the host is not started; it is replaced.
func TestHelperVerified(t *testing.T) {
	t.Parallel()
	account := sshtest.NewAccount(t, "/bin/sh", sshtest.AccountOptions{})
	r := newRig(t, sshtest.Options{Account: account})
	sb := r.ensure(DefaultWorkspace)
	if err := sb.Close(); err != nil {
		t.Fatal(err)
	}
	<-sb.Done()
	placed, err := filepath.Glob(filepath.Join(account.Home, ".cache/workberth/berth-guest-*"))
	if err != nil || len(placed) != 1 {
		t.Fatalf("helpers %q, %v", placed, err)
	}
	f, err := os.OpenFile(placed[0], os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("x"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	r.exact(r.ensure(DefaultWorkspace))
	h, err := helperFor("amd64")
	if err != nil {
		t.Skip(err)
	}
	now, err := os.ReadFile(placed[0])
	want, werr := os.ReadFile(h.Path)
	if err != nil || werr != nil || !bytes.Equal(now, want) {
		t.Errorf("the changed helper was not replaced: %v, %v", err, werr)
	}
}

// C117: dropbear, and OpenSSH without SFTP, are hosts like others.
func TestOtherServers(t *testing.T) {
	t.Run("dropbear", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, sshtest.Options{Dropbear: true})
		r.exact(r.ensure(DefaultWorkspace))
	})
	t.Run("no sftp", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, sshtest.Options{NoSFTP: true})
		r.exact(r.ensure(t.TempDir()))
	})
}

// C117 Q-02: a host with SFTP and nothing else serves files and refuses the rest.
func TestFilesOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t, sshtest.Options{SFTPOnly: true})
	dir := t.TempDir()
	sb := r.ensure(dir)
	bridge, err := sb.Bridge(r.ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // C113: an overwrite as well
		if err := bridge.WriteFile(r.ctx, "a/b", []byte("content")); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(filepath.Join(dir, "a/b")); err != nil || string(got) != "content" {
		t.Errorf("%q, %v", got, err)
	}
	if err := os.Symlink("/etc", filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	if _, err := bridge.ReadFile(r.ctx, "out/hostname"); !errors.Is(err, fsbridge.ErrOutsideRoot) {
		t.Errorf("through a link that leaves: %v", err)
	}
	if _, err := fsbridge.ReadFileWithSource(r.ctx, bridge, "a/b"); !errors.Is(err, fsbridge.ErrUnsupported) {
		t.Errorf("pinned read: %v", err)
	}
	_, err = sandbox.Run(r.ctx, sb, sandbox.Command{Argv: []string{"true"}}, nil, sandbox.RunOptions{})
	if err == nil || !strings.Contains(err.Error(), "SFTP only") {
		t.Errorf("a command: %v", err)
	}
	r.server.CutConnections()
	<-sb.Done()
	again := r.ensure(dir)
	if bridge, err = again.Bridge(r.ctx, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := bridge.Stat(r.ctx, "a/b"); err != nil {
		t.Errorf("after the connection was cut: %v", err)
	}
}

// C101: a directory counts where it is, not here.
func TestWorkspaceIsRemote(t *testing.T) {
	t.Parallel()
	account := sshtest.NewAccount(t, "/bin/sh", sshtest.AccountOptions{})
	r := newRig(t, sshtest.Options{Account: account})
	_, err := r.Ensure(r.ctx, r.spec("/no/such/directory"))
	var p *sandbox.Problem
	if !errors.As(err, &p) || p.Field != "workspace" || !errors.Is(err, sandbox.ErrRefused) {
		t.Errorf("missing there: %v", err)
	}
	closed := t.TempDir() // of another user
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Ensure(r.ctx, r.spec(closed)); !errors.Is(err, sandbox.ErrRefused) {
		t.Errorf("closed to the account: %v", err)
	}
	if err := os.MkdirAll(filepath.Join(account.Home, "only", "there"), 0o755); err != nil {
		t.Fatal(err)
	}
	sb := r.ensure("~/only/there")
	if got := strings.TrimSpace(r.run(sb, "pwd")); got != account.Home+"/only/there" {
		t.Errorf("pwd %q", got)
	}
	if _, err := sandbox.Run(r.ctx, sb, sandbox.Command{Argv: []string{"pwd"}, Dir: "missing"}, nil, sandbox.RunOptions{}); err == nil {
		t.Error("a directory that is missing there was accepted")
	}
}

// C111: the environment that a command is given stays; no login shell comes between.
func TestEnvironmentStays(t *testing.T) {
	t.Parallel()
	account := sshtest.NewAccount(t, "/bin/bash", sshtest.AccountOptions{Files: map[string]string{
		".bashrc": "PATH=/rc\nexport PATH\necho noise\n", ".profile": "PATH=/profile\n",
	}})
	r := newRig(t, sshtest.Options{Account: account})
	sb := r.ensure(DefaultWorkspace, func(s *sandbox.Spec) { s.Config.Env = map[string]string{"PATH": "/opt/t/bin:/bin", "EXTRA": "a b"} })
	if got := r.run(sb, "/bin/sh", "-c", "echo $PATH $EXTRA"); got != "/opt/t/bin:/bin a b\n" {
		t.Errorf("environment %q", got)
	}
}

// What only walls can keep is refused before anybody connects.
func TestRefusals(t *testing.T) {
	t.Parallel()
	b := open(t, filepath.Join(t.TempDir(), "state"), slog.New(slog.DiscardHandler))
	for name, change := range map[string]func(*sandbox.Spec){
		"no host":   func(s *sandbox.Spec) { s.Config.SSH = "" },
		"network":   func(s *sandbox.Spec) { s.Config.Network = "none" },
		"access":    func(s *sandbox.Spec) { s.Config.Access = sandbox.AccessReadOnly },
		"root":      func(s *sandbox.Spec) { s.Config.ReadOnlyRoot = true },
		"image":     func(s *sandbox.Spec) { s.Config.Image = "debian" },
		"limits":    func(s *sandbox.Spec) { s.Config.Limits.Pids = 10 },
		"keys":      func(s *sandbox.Spec) { s.Workspace = "~/.ssh" },
		"home":      func(s *sandbox.Spec) { s.Workspace = "~" },
		"line":      func(s *sandbox.Spec) { s.Workspace = "/tmp/a\nb" },
		"option":    func(s *sandbox.Spec) { s.Config.SSH = "-oProxyCommand=id" },
		"seed":      func(s *sandbox.Spec) { s.Config.Seed = "relative" },
		"malformed": func(s *sandbox.Spec) { s.Config.SSH = "user@" },
	} {
		spec := sandbox.Spec{Scope: sandbox.ScopeSession, Session: "x", Workspace: "/srv/ws", Config: DefaultConfig()}
		spec.Config.SSH, spec.Config.SSHConfig = "nowhere.invalid", "none"
		change(&spec)
		if _, err := b.Ensure(t.Context(), spec); !errors.Is(err, sandbox.ErrRefused) || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// C099: a server that has gone, or is silent, keeps nobody from closing.
func TestCloseWithoutServer(t *testing.T) {
	for name, take := range map[string]func(*sshtest.Server){
		"gone":   (*sshtest.Server).Stop,
		"silent": (*sshtest.Server).Pause,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, sshtest.Options{}, "ServerAliveInterval 1", "ServerAliveCountMax 2", "ConnectTimeout 2")
			sb := r.ensure(t.TempDir())
			bridge, err := sb.Bridge(r.ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := bridge.WriteFile(r.ctx, "f", make([]byte, 1<<20)); err != nil {
				t.Fatal(err)
			}
			take(r.server)
			t.Cleanup(r.server.Resume)
			_ = sb.Close() // that what runs there is unknown is told by Err
			select {
			case <-sb.Done():
			case <-r.ctx.Done():
				t.Fatal("it does not end")
			}
			if err := sb.Err(); !errors.Is(err, sandbox.ErrGone) {
				t.Errorf("Err: %v", err)
			}
		})
	}
}
