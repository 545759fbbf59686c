package rendezvous

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// inviteFile is the file that tells a helper where to call back. It lies in a directory that the
// host writes and the helper's environment sees read-only.
const inviteFile = "call"

// maxInvite bounds the file, in bytes.
const maxInvite = 4 << 10

// Invitation tells a helper that cannot be given arguments, because those of its container were
// fixed when that was made, where to call back this time.
type Invitation struct {
	// Socket is the path of the socket below the directory.
	Socket string `json:"socket"`
	// Token is what the helper presents.
	Token string `json:"token"`
	// Tag names the helper's life.
	Tag string `json:"tag"`
	// Umask is that of the files and commands that the helper makes.
	Umask int `json:"umask"`
}

// Invite writes the invitation to this listener into dir, which is an ancestor of the listener's
// directory. Only the user of the listener's options can read it. The caller removes it with
// [Uninvite] when the helper has called back, or has failed to.
func (l *Listener) Invite(dir, tag string, umask int) error {
	socket, err := filepath.Rel(dir, l.Path())
	if err != nil || !filepath.IsLocal(socket) {
		return fmt.Errorf("rendezvous: %s is not below %s", l.Path(), dir)
	}
	data, err := json.Marshal(Invitation{Socket: socket, Token: l.token, Tag: tag, Umask: umask})
	if err != nil {
		return err
	}
	path := filepath.Join(dir, inviteFile)
	temporary := path + ".new"
	if err := os.WriteFile(temporary, data, 0o600); err != nil {
		return err
	}
	if l.opts.UID != 0 || l.opts.GID != 0 {
		if err := os.Chown(temporary, l.opts.UID, l.opts.GID); err != nil {
			return err
		}
	}
	return os.Rename(temporary, path)
}

// Uninvite removes the invitation in dir, if there is one.
func Uninvite(dir string) error {
	err := os.Remove(filepath.Join(dir, inviteFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// ReadInvitation reads the invitation in dir. Its Socket is an absolute path then.
func ReadInvitation(dir string) (Invitation, error) {
	data, err := os.ReadFile(filepath.Join(dir, inviteFile))
	if err != nil {
		return Invitation{}, fmt.Errorf("rendezvous: no invitation: %w", err)
	}
	var inv Invitation
	switch {
	case len(data) > maxInvite:
		err = errors.New("it is too long")
	default:
		err = json.Unmarshal(data, &inv)
	}
	if err == nil && (!filepath.IsLocal(inv.Socket) || len(inv.Token) != tokenLen || strings.Trim(inv.Tag, "0123456789abcdef") != "" || inv.Umask&^0o777 != 0) {
		err = errors.New("it is malformed")
	}
	if err != nil {
		return Invitation{}, fmt.Errorf("rendezvous: the invitation: %w", err)
	}
	inv.Socket = filepath.Join(dir, inv.Socket)
	return inv, nil
}
