package hostmount

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/workberth/workberth/internal/osthread"
	"github.com/workberth/workberth/sandbox"
)

// Reach checks that the account can come to a path of this machine, which matters
// when sources are opened by somebody else than this process: it opens sources with that
// user's rights.
func (a Account) Reach(field, what, path string) error {
	if !a.Other {
		return nil
	}
	var blocked string
	var cause error
	if err := osthread.AsUser(a.UID, a.GID, func() { blocked, cause = firstBlocked(path) }); err != nil {
		return fmt.Errorf("look at %s as user %d: %w", path, a.UID, err)
	}
	if cause == nil {
		return nil
	}
	p := &sandbox.Problem{
		Field: field, What: what,
		Rule:   fmt.Sprintf("the sandbox runs as user %d, the owner of the workspace, who has no access to it: %v", a.UID, cause),
		Remedy: "give that user access, or give the workspace another owner",
		Err:    fmt.Errorf("%w: %w", sandbox.ErrRefused, cause),
	}
	if blocked != path {
		p.Rule = fmt.Sprintf("the sandbox runs as user %d, the owner of the workspace, who cannot pass through %s%s",
			a.UID, blocked, modeOf(blocked))
		p.Remedy = fmt.Sprintf("let others pass (chmod o+x %s), or move the directory elsewhere", blocked)
	}
	return p
}

// firstBlocked finds the first element of an absolute path that the calling thread
// cannot pass, and why.
func firstBlocked(path string) (string, error) {
	var chain []string
	for p := path; ; p = filepath.Dir(p) {
		chain = append(chain, p)
		if p == "/" {
			break
		}
	}
	for i := len(chain) - 1; i >= 0; i-- {
		fd, err := unix.Open(chain[i], unix.O_PATH|unix.O_CLOEXEC, 0)
		if err == nil {
			_ = unix.Close(fd)
			continue
		}
		if errors.Is(err, fs.ErrPermission) && i+1 < len(chain) {
			return chain[i+1], err // the directory above did not let us pass
		}
		return chain[i], err
	}
	return "", nil
}

// Runnable reports whether the account can come to a program and execute it.
func (a Account) Runnable(path string) bool {
	if !a.Other {
		return true
	}
	ok := false
	err := osthread.AsUser(a.UID, a.GID, func() {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		if err != nil {
			return
		}
		defer unix.Close(fd)
		var st unix.Stat_t
		if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
			return
		}
		switch {
		case int(st.Uid) == a.UID:
			ok = st.Mode&0o100 != 0
		case int(st.Gid) == a.GID:
			ok = st.Mode&0o010 != 0
		default:
			ok = st.Mode&0o001 != 0
		}
	})
	return err == nil && ok
}

// modeOf gives " (mode 0700, user 0)" for a text.
func modeOf(path string) string {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return ""
	}
	return fmt.Sprintf(" (mode %04o, user %d)", st.Mode&0o7777, st.Uid)
}
