package hostdir

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"github.com/workberth/workberth/sandbox"
)

// Names of the files.
const (
	configFile    = "config.yaml"
	hostKeyFile   = "host_ed25519"
	workspacesDir = "workspaces"
	workspaceFile = "workspace.yaml"
	keysFile      = "authorized_keys"
	caFile        = "user_ca"
	auditFile     = "audit.log"
	spoolDir      = "spool"
	lockFile      = ".lock"
)

// maxFile bounds every file that is read, in bytes.
const maxFile = 1 << 20

// Dir is the directory of an SSH host.
type Dir struct{ path string }

// Path is where it is.
func (d *Dir) Path() string { return d.path }

// AuditPath is where the audit log is kept.
func (d *Dir) AuditPath() string { return filepath.Join(d.path, auditFile) }

// SpoolPath is a directory for what has to lie on disk for a while.
func (d *Dir) SpoolPath() string { return filepath.Join(d.path, spoolDir) }

// defaultConfig is the config.yaml of a new directory.
const defaultConfig = `# Settings of "berth host serve". Every line that begins with # shows a default.
listen: 127.0.0.1:2222
# metrics: ""             # address for /metrics and /healthz, such as 127.0.0.1:9222
# drain: 30s              # how long running sessions may finish after SIGTERM
# limits:
#   connections: 256      # at once
#   perAddress: 32        # from one address
#   perWorkspace: 64      # in one workspace
#   unauthenticated: 64   # before the login
#   loginGrace: 30s       # for the login
#   authTries: 6          # failed attempts on a connection
#   sessions: 16          # at once on a connection
#   idle: 24h             # without a byte either way
#   keepalive: 7s         # between two questions; after keepaliveMisses a client is gone
#   keepaliveMisses: 3
#   warm: 10m             # how long an unused sandbox stays up
`

// Init makes a new directory with a host key, settings and no workspaces. One that is
// there already is refused.
func Init(path string) (*Dir, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	d := &Dir{path: abs}
	if err := os.MkdirAll(filepath.Dir(abs), 0o755); err != nil {
		return nil, fmt.Errorf("make %s: %w", filepath.Dir(abs), err)
	}
	if err := os.Mkdir(abs, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make %s: %w", abs, err)
	}
	if err := private(abs, true); err != nil {
		return nil, err
	}
	if _, err := os.Lstat(filepath.Join(abs, hostKeyFile)); err == nil {
		return nil, refused("host directory "+abs, "it has a host key already", "use it as it is, or name another directory")
	}
	for _, sub := range []string{workspacesDir, spoolDir} {
		if err := os.Mkdir(filepath.Join(abs, sub), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("make %s: %w", sub, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(abs, configFile)); errors.Is(err, fs.ErrNotExist) {
		if err := d.write(configFile, []byte(defaultConfig)); err != nil {
			return nil, err
		}
	}
	return d, d.newHostKey()
}

// newHostKey writes a fresh host key; the private part comes last and marks the directory
// as complete.
func (d *Dir) newHostKey() error {
	public, secret, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return fmt.Errorf("make a host key: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(secret, "berth host")
	if err != nil {
		return fmt.Errorf("make a host key: %w", err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		return fmt.Errorf("make a host key: %w", err)
	}
	if err := d.write(hostKeyFile+".pub", ssh.MarshalAuthorizedKey(key)); err != nil {
		return err
	}
	return d.write(hostKeyFile, pem.EncodeToMemory(block))
}

// Open opens a directory that Init has made.
func Open(path string) (*Dir, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if _, err := os.Lstat(filepath.Join(abs, hostKeyFile)); errors.Is(err, fs.ErrNotExist) {
		return nil, refused("host directory "+abs, "there is no host key in it", "make one with: berth host --dir "+abs+" init")
	}
	if err := private(abs, true); err != nil {
		return nil, err
	}
	return &Dir{path: abs}, nil
}

// HostKey is the key the server proves itself with.
func (d *Dir) HostKey() (ssh.Signer, error) {
	data, err := d.read(hostKeyFile)
	if err != nil {
		return nil, err
	}
	key, err := ssh.ParsePrivateKey(data)
	if err != nil {
		return nil, refused(filepath.Join(d.path, hostKeyFile), "it is not a private key without a passphrase", "restore it, or remove it and run init again; clients will have to accept the new one")
	}
	return key, nil
}

// read returns a file of the directory, checked.
func (d *Dir) read(name string) ([]byte, error) {
	p := filepath.Join(d.path, name)
	f, err := os.OpenFile(p, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", p, errnoOf(err))
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := checkOwner(p, info); err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, refused(p, "it is not a regular file", "replace it")
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", p, err)
	}
	if len(data) > maxFile {
		return nil, refused(p, fmt.Sprintf("it is larger than %d bytes", maxFile), "shorten it")
	}
	return data, nil
}

// write replaces a file of the directory atomically.
func (d *Dir) write(name string, data []byte) error {
	p := filepath.Join(d.path, name)
	tmp, err := os.CreateTemp(filepath.Dir(p), ".new-") // mode 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", p, err)
	}
	defer os.Remove(tmp.Name()) // gone when all went well
	_, err = tmp.Write(data)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), p)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", p, err)
	}
	return nil
}

// locked runs fn while no other program changes the directory.
func (d *Dir) locked(fn func() error) error {
	f, err := os.OpenFile(filepath.Join(d.path, lockFile), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return fmt.Errorf("lock %s: %w", d.path, err)
	}
	defer f.Close() // gives the lock back
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", d.path, err)
	}
	return fn()
}

// private refuses a directory or file that somebody else owns or can change; of the
// directory itself also one that others can read.
func private(p string, top bool) error {
	info, err := os.Stat(p)
	if err != nil {
		return err
	}
	if err := checkOwner(p, info); err != nil {
		return err
	}
	if top && info.Mode().Perm()&0o077 != 0 {
		return refused(p, fmt.Sprintf("others can look into it (mode %04o)", info.Mode().Perm()), "chmod 700 "+p)
	}
	return nil
}

func checkOwner(p string, info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if ok && int(st.Uid) != os.Geteuid() {
		return refused(p, fmt.Sprintf("it belongs to user %d, not to user %d", st.Uid, os.Geteuid()), "give it to the user of the server")
	}
	if info.Mode().Perm()&0o022 != 0 {
		return refused(p, fmt.Sprintf("others may change it (mode %04o)", info.Mode().Perm()), "look at what is in it, then: chmod go-w "+p)
	}
	if filepath.Base(p) == hostKeyFile && info.Mode().Perm()&0o077 != 0 {
		return refused(p, fmt.Sprintf("others can read the host key (mode %04o)", info.Mode().Perm()), "make a new one if they have: chmod 600 "+p)
	}
	return nil
}

// errnoOf drops the path that the message has already.
func errnoOf(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

func refused(what, rule, remedy string) error {
	return &sandbox.Problem{What: what, Rule: rule, Remedy: remedy, Err: sandbox.ErrRefused}
}
