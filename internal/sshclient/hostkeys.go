package sshclient

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
	xknownhosts "golang.org/x/crypto/ssh/knownhosts"
	"golang.org/x/sys/unix"
)

// hostKeys checks the keys of one host.
type hostKeys struct {
	s  Settings
	db *knownhosts.HostKeyDB // nil when no file exists
}

// openHostKeys reads the files of known hosts. Those that do not exist count as empty.
func openHostKeys(s Settings) (*hostKeys, error) {
	h := &hostKeys{s: s}
	var files []string
	for _, f := range s.KnownHosts {
		if info, err := os.Stat(f); err == nil && info.Mode().IsRegular() {
			files = append(files, f)
		}
	}
	if len(files) == 0 {
		return h, nil
	}
	db, err := knownhosts.NewDB(files...)
	if errors.Is(err, bufio.ErrTooLong) { // all others name file and line
		err = fmt.Errorf("a line in one of %s: %w", strings.Join(files, ", "), err)
	}
	if err != nil {
		return nil, &ConfigError{Host: s.Name, Setting: "UserKnownHostsFile", Err: err}
	}
	h.db = db
	return h, nil
}

// name is what is looked up, as HOST:PORT. An alias counts without the port, as it does
// for OpenSSH.
func (h *hostKeys) name() string {
	if h.s.HostKeyAlias != "" {
		return net.JoinHostPort(h.s.HostKeyAlias, "22")
	}
	return h.s.Address()
}

// names are all under which a key may be known: on another port than the usual one, a key
// that is known for the host without a port counts as well.
func (h *hostKeys) names() []string {
	names := []string{h.name()}
	if h.s.HostKeyAlias == "" && h.s.Port != 22 {
		names = append(names, net.JoinHostPort(h.s.Host, "22"))
	}
	return names
}

// algorithms are those of the keys that are known, then all others: a server that has
// several keys shows the known one. Certificates are asked for only where an authority is
// known that could have signed them.
func (h *hostKeys) algorithms() []string {
	supported := ssh.SupportedAlgorithms().HostKeys
	var known []string
	if h.db != nil {
		for _, name := range h.names() {
			known = append(known, h.db.HostKeyAlgorithms(name)...)
		}
		known = slices.DeleteFunc(known, func(a string) bool { return !slices.Contains(supported, a) })
	}
	for _, a := range supported {
		if !slices.Contains(known, a) && !strings.Contains(a, "-cert-") {
			known = append(known, a)
		}
	}
	return known
}

// check is the ssh.HostKeyCallback.
func (h *hostKeys) check(_ string, remote net.Addr, key ssh.PublicKey) error {
	err := h.look(remote, key)
	var revoked *xknownhosts.RevokedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &revoked):
		return fmt.Errorf("%w: %s, by %s:%d", ErrHostKeyRevoked, ssh.FingerprintSHA256(key), revoked.Revoked.Filename, revoked.Revoked.Line)
	case knownhosts.IsHostKeyChanged(err):
		return fmt.Errorf("%w: it shows %s %s, %s", ErrHostKeyChanged, key.Type(), ssh.FingerprintSHA256(key), where(err))
	case knownhosts.IsHostUnknown(err):
		if h.s.HostKeys == HostKeyAcceptNew {
			return h.accept(key)
		}
		return fmt.Errorf("%w: it shows %s %s", ErrHostKeyUnknown, key.Type(), ssh.FingerprintSHA256(key))
	}
	if cert, ok := key.(*ssh.Certificate); ok {
		return fmt.Errorf("%w: it shows a certificate for %s by %s: %w", ErrHostKeyUnknown, ssh.FingerprintSHA256(cert.Key), ssh.FingerprintSHA256(cert.SignatureKey), err)
	}
	return err
}

// look looks the key up.
func (h *hostKeys) look(remote net.Addr, key ssh.PublicKey) error {
	if h.db == nil {
		return &xknownhosts.KeyError{}
	}
	var first error
	for _, name := range h.names() {
		err := h.db.HostKeyCallback()(name, remote, key)
		var revoked *xknownhosts.RevokedError
		if err == nil || errors.As(err, &revoked) {
			return err
		}
		if first == nil {
			first = err
		}
		if knownhosts.IsHostKeyChanged(err) {
			break // what is known for the port decides
		}
	}
	return first
}

// where tells where the keys stand that were expected.
func where(err error) string {
	var keyErr *xknownhosts.KeyError
	if !errors.As(err, &keyErr) || len(keyErr.Want) == 0 {
		return "which is not the known one"
	}
	w := keyErr.Want[0]
	return fmt.Sprintf("expected is %s %s (%s:%s)", w.Key.Type(), ssh.FingerprintSHA256(w.Key), w.Filename, strconv.Itoa(w.Line))
}

// accept writes a new key down, under a lock and only if nobody else has meanwhile
// written another one.
func (h *hostKeys) accept(key ssh.PublicKey) error {
	if len(h.s.KnownHosts) == 0 {
		return nil // the configuration wants none kept
	}
	path := h.s.KnownHosts[0]
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return &os.PathError{Op: "flock", Path: path, Err: err}
	}
	again := h.s
	again.HostKeys = HostKeyStrict
	now, err := openHostKeys(again)
	if err != nil {
		return err
	}
	if err := now.check("", &net.TCPAddr{}, key); !errors.Is(err, ErrHostKeyUnknown) {
		return err // known by now, or another one is
	}
	name := knownhosts.Normalize(h.name())
	if h.s.HashKnownHosts {
		name = xknownhosts.HashHostname(name)
	}
	line := name + " " + string(ssh.MarshalAuthorizedKey(key))
	if size, err := f.Seek(0, 2); err == nil && size > 0 {
		var last [1]byte
		if _, err := f.ReadAt(last[:], size-1); err == nil && last[0] != '\n' {
			line = "\n" + line
		}
	}
	_, err = f.WriteString(line)
	return err
}
