package hostdir

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/workberth/workberth/remoteworkspace/sshhost"
)

// Entry is one line of a workspace's keys or authorities.
type Entry struct {
	// Authority is true for a key that signs certificates.
	Authority bool
	Key       sshhost.AuthorizedKey
	// Line is the text, File and Number where it stands.
	Line   string
	File   string
	Number int
}

// Fingerprint names the key.
func (e Entry) Fingerprint() string { return ssh.FingerprintSHA256(e.Key.Key) }

// Keys lists a workspace's keys, then its authorities.
func (d *Dir) Keys(name string) ([]Entry, error) {
	if err := d.known(name); err != nil {
		return nil, err
	}
	keys, err := d.entries(name, keysFile)
	if err != nil {
		return nil, err
	}
	authorities, err := d.entries(name, caFile)
	return append(keys, authorities...), err
}

// entries reads one of the two files; a missing one is empty.
func (d *Dir) entries(name, file string) ([]Entry, error) {
	data, err := d.read(in(name, file))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return parse(filepath.Join(d.path, in(name, file)), data, file == caFile)
}

// parse reads lines in the form of authorized_keys; empty ones and comments are skipped.
func parse(path string, data []byte, authority bool) ([]Entry, error) {
	var all []Entry
	for i, line := range strings.Split(string(data), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, err := sshhost.ParseAuthorizedKey(line)
		if err == nil && authority && (key.From != nil || key.NoPTY || key.NoForward || !key.Expires.IsZero()) {
			err = errors.New("an authority has no options; the certificates it signs have them")
		}
		if err != nil {
			return nil, refused(fmt.Sprintf("%s:%d", path, i+1), err.Error(), "correct or remove the line")
		}
		all = append(all, Entry{Authority: authority, Key: key, Line: line, File: path, Number: i + 1})
	}
	return all, nil
}

// AddKeys adds the public keys of a file (or the authorities, whose certificates are then
// admitted). Those that are there already are not added again. It returns what was added.
func (d *Dir) AddKeys(name, file string, authority bool) ([]Entry, error) {
	if err := d.known(name); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, errnoOf(err))
	}
	if bytes.Contains(data, []byte("PRIVATE KEY-----")) {
		return nil, refused(file, "it is a private key", "give the public one: "+file+".pub")
	}
	offered, err := parse(file, data, authority)
	if err != nil {
		return nil, err
	}
	if len(offered) == 0 {
		return nil, refused(file, "there is no public key in it", "make one with: ssh-keygen -t ed25519")
	}
	var added []Entry
	err = d.locked(func() error {
		target := keysFile
		if authority {
			target = caFile
		}
		present, err := d.entries(name, target)
		if err != nil {
			return err
		}
		have := map[string]bool{}
		for _, e := range present {
			have[e.Fingerprint()] = true
		}
		lines := linesOf(present)
		for _, e := range offered {
			if !have[e.Fingerprint()] {
				have[e.Fingerprint()] = true
				added = append(added, e)
				lines = append(lines, e.Line)
			}
		}
		if len(added) == 0 {
			return nil
		}
		return d.write(in(name, target), []byte(strings.Join(lines, "\n")+"\n"))
	})
	return added, err
}

func linesOf(entries []Entry) []string {
	var lines []string
	for _, e := range entries {
		lines = append(lines, e.Line)
	}
	return lines
}

// RemoveKey removes the keys and authorities with a fingerprint.
func (d *Dir) RemoveKey(name, fingerprint string) error {
	if err := d.known(name); err != nil {
		return err
	}
	return d.locked(func() error {
		found := false
		for _, file := range []string{keysFile, caFile} {
			present, err := d.entries(name, file)
			if err != nil {
				return err
			}
			var kept []string
			for _, e := range present {
				if e.Fingerprint() != fingerprint {
					kept = append(kept, e.Line)
				}
			}
			if len(kept) == len(present) {
				continue
			}
			found = true
			if err := d.write(in(name, file), []byte(strings.Join(append(kept, ""), "\n"))); err != nil {
				return err
			}
		}
		if !found {
			return refused("key "+fingerprint, "workspace "+name+" has none with this fingerprint", "see: berth host --dir "+d.path+" key ls "+name)
		}
		return nil
	})
}
