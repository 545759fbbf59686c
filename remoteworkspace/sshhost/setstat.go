package sshhost

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/pkg/sftp"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/sandbox"
)

// touchTimeout bounds the command that sets a file's times.
const touchTimeout = 10 * time.Second

// emptyHash is the digest of an empty file.
const emptyHash fsbridge.Digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// setstat changes attributes: the size, the permissions, the times. Another owner cannot
// be given; the present one is no change.
func (f *files) setstat(r *sftp.Request) error {
	flags, attrs := r.AttrFlags(), r.Attributes()
	if attrs == nil { // shorter than it says
		return status(&fsbridge.PathError{Op: "setstat", Path: r.Filepath, Err: fsbridge.ErrInvalid})
	}
	w := f.writer(r.Filepath)
	var err error
	if flags.UidGid {
		err = f.sameOwner(r.Filepath, attrs)
	}
	if flags.Size && err == nil {
		err = f.truncate(w, r.Filepath, attrs.Size)
	}
	if flags.Permissions && err == nil {
		err = fsbridge.Chmod(f.ctx, f.b, r.Filepath, fsbridge.Mode(attrs.Mode)&fsbridge.ModeAll)
	}
	if flags.Acmodtime && err == nil {
		t := time.Unix(int64(attrs.Mtime), 0)
		if w != nil {
			err = w.setTimes(t)
		} else {
			err = f.touch(r.Filepath, t)
		}
	}
	return f.did("setstat", r.Filepath, 0, 0, err)
}

// sameOwner refuses another owner.
func (f *files) sameOwner(p string, a *sftp.FileStat) error {
	info, err := f.b.Stat(f.ctx, p)
	if err != nil || (info.UID == a.UID && info.GID == a.GID) {
		return err
	}
	return &fsbridge.PathError{Op: "chown", Path: p, Err: fmt.Errorf("the owner of files is the workspace's: %w", fsbridge.ErrUnsupported)}
}

// truncate sets a file's size, of one that this session writes through its writer. What is
// appended is in the file already.
func (f *files) truncate(w *writer, p string, size uint64) error {
	if size > 1<<62 {
		return &fsbridge.PathError{Op: "truncate", Path: p, Err: fsbridge.ErrInvalid}
	}
	if w != nil && !w.appending {
		return w.truncate(int64(size))
	}
	info, err := f.b.Stat(f.ctx, p)
	if err != nil || info.Size == int64(size) {
		return err
	}
	content, done, err := f.cutContent(p, int64(size))
	if err != nil {
		return err
	}
	defer done()
	_, err = fsbridge.WriteStream(f.ctx, f.b, p, content, fsbridge.WriteOptions{NoParents: true, Size: int64(size)})
	return err
}

// cutContent is the content a file will have at another size.
func (f *files) cutContent(p string, size int64) (io.Reader, func(), error) {
	if size == 0 {
		return bytes.NewReader(nil), func() {}, nil
	}
	c, err := f.s.conn.srv.spool.create()
	if err != nil {
		return nil, nil, err
	}
	old, _, err := fsbridge.OpenReader(f.ctx, f.b, p)
	if err == nil {
		err = c.fill(io.LimitReader(old, size))
		old.Close()
	}
	if err == nil {
		err = c.truncate(size)
	}
	if err != nil {
		c.close()
		return nil, nil, err
	}
	return c.content(), c.close, nil
}

// touch sets the time of a file by the sandbox's own touch: the bridge has no such
// operation. The path is an argument and never read by a shell.
func (f *files) touch(p string, t time.Time) error {
	if _, err := f.b.Stat(f.ctx, p); err != nil {
		return err
	}
	argv := []string{"touch", "-c", "-d", fmt.Sprintf("@%d", t.Unix()), "--", p}
	res, err := sandbox.Run(f.ctx, f.sb, sandbox.Command{Argv: argv}, nil, sandbox.RunOptions{Timeout: touchTimeout, OutputLimit: 4 << 10})
	fail := func(err error) error { return &fsbridge.PathError{Op: "set times", Path: p, Err: err} }
	switch start := (*sandbox.StartError)(nil); {
	case errors.As(err, &start) && start.Reason == sandbox.StartNoCommand:
		return fail(fmt.Errorf("the sandbox has no touch program: %w", fsbridge.ErrUnsupported))
	case err != nil:
		return fail(errors.New("the sandbox cannot run touch"))
	case res.Status.Code != 0:
		return fail(errors.New("the sandbox's touch program refused"))
	}
	return nil
}

// undo removes the empty file that a writer made and nobody has filled.
func (w *writer) undo() {
	_ = fsbridge.Remove(w.f.ctx, w.f.b, w.path, fsbridge.RemoveOptions{If: fsbridge.Precondition{Hash: emptyHash}, IgnoreMissing: true}) // it may have been filled by others
}
