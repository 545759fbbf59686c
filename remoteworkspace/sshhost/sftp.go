package sshhost

// The sftp subsystem works through the sandbox's bridge, so that files obey the
// containment everything else does, and a path names the same file as in a command. The
// directory it starts in is that of commands.
//
// The bridge writes files as a whole, atomically. An upload is therefore visible at its
// end; until then the old content stays, and a client that vanishes changes nothing.
// Programs that write in order (sftp, scp, rclone, editors) are passed through as they
// write; others (sshfs in the middle of a file) get a private copy on disk that is
// written back when they close it. See writer.go.

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"sync"

	"github.com/pkg/sftp"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/sandbox"
)

// sftp serves the subsystem.
func (s *session) sftp() {
	begun := s.conn.srv.clock.Now()
	elapsed := func() int64 { return s.conn.srv.clock.Now().Sub(begun).Milliseconds() }
	sb, release, err := s.conn.srv.sandboxOf(s.ctx, s.conn.grant.Load())
	if err != nil {
		s.fail(kindSFTP, "", err, elapsed())
		return
	}
	defer release()
	ctx, cancel := s.lasting()
	defer cancel()
	bridge, err := sb.Bridge(ctx, s.conn.assertCurrent)
	if err != nil {
		s.fail(kindSFTP, "", err, elapsed())
		return
	}
	stop := s.closeWith(sb)
	defer stop()
	f := &files{s: s, ctx: ctx, b: bridge, sb: sb, writers: map[string]*writer{}}
	handlers := sftp.Handlers{FileGet: f, FilePut: f, FileCmd: f, FileList: f}
	stream := &subsystem{s: s}
	server := sftp.NewRequestServer(stream, handlers, sftp.WithStartDirectory(sb.Info().Workdir))
	err = server.Serve()
	stream.end()
	outcome, detail := "exit 0", ""
	code := 0
	if err != nil && !errors.Is(err, io.EOF) {
		outcome, detail, code = "cut", clip(err.Error(), 200), 1
	}
	s.finished(kindSFTP, "", outcome, detail, elapsed())
	s.leave(sandbox.ExitStatus{Code: code})
}

// lasting is a context for what a client has asked for in full: it may have left right
// after, as sshfs does, and its last file must not be lost. It ends a while after.
func (s *session) lasting() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.ctx))
	go func() {
		select {
		case <-s.ctx.Done():
		case <-ctx.Done():
			return
		}
		select {
		case <-s.conn.srv.clock.After(endBound):
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// closeWith closes the channel when the sandbox ends.
func (s *session) closeWith(sb sandbox.Sandbox) (stop func()) {
	over := make(chan struct{})
	go func() {
		select {
		case <-sb.Done():
			_ = s.ch.Close() // ends the server's loop
		case <-over:
		}
	}()
	return func() { close(over) }
}

// subsystem is the server's stream. It counts what moves. Closing it ends the reading, too.
type subsystem struct {
	s *session

	mu   sync.Mutex
	over bool
}

func (c *subsystem) Read(p []byte) (int, error) {
	n, err := c.s.ch.Read(p)
	c.s.moved(n, 0)
	return n, err
}

// Write sends an answer. The library may still hold one when it has returned.
func (c *subsystem) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return 0, io.ErrClosedPipe
	}
	n, err := c.s.ch.Write(p)
	c.s.moved(0, n)
	return n, err
}

// Close ends the session.
func (c *subsystem) Close() error { return c.s.ch.Close() }

// end waits for an answer under way and lets no other follow.
func (c *subsystem) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
}

// files answers the requests of one sftp session.
type files struct {
	s   *session
	ctx context.Context
	b   fsbridge.Bridge
	sb  sandbox.Sandbox

	mu      sync.Mutex
	open    int
	writers map[string]*writer // by path: what is open for writing, the newest
}

var (
	_ sftp.FileReader           = (*files)(nil)
	_ sftp.OpenFileWriter       = (*files)(nil)
	_ sftp.PosixRenameFileCmder = (*files)(nil)
	_ sftp.LstatFileLister      = (*files)(nil)
	_ sftp.ReadlinkFileLister   = (*files)(nil)
	_ sftp.StatVFSFileCmder     = (*files)(nil)
)

// errTooMany refuses another handle.
var errTooMany = errors.New("too many open files in this session")

// take counts a handle.
func (f *files) take() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open >= f.s.conn.srv.limits.OpenFiles {
		f.s.conn.srv.metrics.refuse("openFiles")
		return &statusError{code: sftp.ErrSSHFxFailure, err: errTooMany}
	}
	f.open++
	return nil
}

func (f *files) give() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open--
}

// statusError is an error with the code the client gets.
type statusError struct {
	code error
	err  error
}

func (e *statusError) Error() string { return e.err.Error() }

// Unwrap returns the code: the SSH library looks for it.
func (e *statusError) Unwrap() error { return e.code }

// status maps an error of the bridge to the few codes that sftp has. The text is the
// bridge's: the asked path and the rule.
func status(err error) error {
	switch {
	case err == nil, errors.Is(err, io.EOF):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return &statusError{sftp.ErrSSHFxNoSuchFile, err}
	case errors.Is(err, fsbridge.ErrOutsideRoot), errors.Is(err, fsbridge.ErrReadOnly), errors.Is(err, fs.ErrPermission),
		errors.Is(err, fsbridge.ErrNotCurrent):
		return &statusError{sftp.ErrSSHFxPermissionDenied, err}
	case errors.Is(err, fsbridge.ErrUnsupported):
		return &statusError{sftp.ErrSSHFxOpUnsupported, err}
	}
	return &statusError{sftp.ErrSSHFxFailure, err}
}

// did writes a change or a transfer down and gives its error a code.
func (f *files) did(kind, path string, in, out int64, err error) error {
	outcome, detail := "ok", ""
	if err != nil {
		outcome, detail = "failed", clip(err.Error(), 200)
	}
	f.s.conn.event(Event{Event: "file", Session: f.s.id, Kind: kind, What: path, Outcome: outcome, Detail: detail, In: in, Out: out})
	return status(err)
}

// Filecmd makes a change that is one request.
func (f *files) Filecmd(r *sftp.Request) error {
	switch r.Method {
	case "Setstat":
		return f.setstat(r)
	case "Rename": // of protocol version 3: an existing name is not replaced
		return f.rename(r, fsbridge.RenameOptions{NoReplace: true})
	case "Rmdir":
		return f.did("rmdir", r.Filepath, 0, 0, f.remove(r.Filepath, true))
	case "Remove":
		return f.did("remove", r.Filepath, 0, 0, f.remove(r.Filepath, false))
	case "Mkdir":
		return f.did("mkdir", r.Filepath, 0, 0, fsbridge.Mkdir(f.ctx, f.b, r.Filepath, fsbridge.MkdirOptions{Mode: 0o777 &^ umask}))
	case "Symlink":
		return f.did("symlink", r.Target, 0, 0, fsbridge.Symlink(f.ctx, f.b, r.Filepath, r.Target, fsbridge.SymlinkOptions{}))
	}
	return &statusError{sftp.ErrSSHFxOpUnsupported, errors.New("not supported here")} // hard links among them
}

// umask is taken off the permissions clients ask for, as OpenSSH's server does.
const umask fsbridge.Mode = 0o022

// PosixRename replaces an existing name, atomically.
func (f *files) PosixRename(r *sftp.Request) error { return f.rename(r, fsbridge.RenameOptions{}) }

func (f *files) rename(r *sftp.Request, opts fsbridge.RenameOptions) error {
	w := f.writer(r.Filepath)
	var err error
	if w != nil {
		err = w.pause()
	}
	if err == nil {
		err = fsbridge.Rename(f.ctx, f.b, r.Filepath, r.Target, opts)
	}
	if over := f.writer(r.Target); over != nil && over != w && err == nil {
		f.forsake(over)
	}
	if w != nil && err == nil {
		f.rehang(w, r.Target)
	}
	return f.did("rename", r.Filepath+" -> "+r.Target, 0, 0, err)
}

// writer is what this session has open for writing at a path.
func (f *files) writer(p string) *writer {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writers[path.Clean(p)]
}

// hang lists a writer by its path.
func (f *files) hang(w *writer, p string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writers[path.Clean(p)] = w
}

// unhang takes it off again.
func (f *files) unhang(w *writer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for p, other := range f.writers {
		if other == w {
			delete(f.writers, p)
		}
	}
}

// rehang follows a file that was renamed while it is written.
func (f *files) rehang(w *writer, to string) {
	f.unhang(w)
	f.hang(w, to)
	w.setPath(to)
}

// remove removes a directory, or something that is none.
func (f *files) remove(p string, dir bool) error {
	info, err := fsbridge.Lstat(f.ctx, f.b, p)
	if err != nil {
		return err
	}
	switch {
	case dir && !info.IsDir():
		return &fsbridge.PathError{Op: "rmdir", Path: p, Err: errors.New("not a directory")}
	case !dir && info.IsDir():
		return &fsbridge.PathError{Op: "remove", Path: p, Err: errors.New("is a directory")}
	}
	w := f.writer(p)
	err = fsbridge.Remove(f.ctx, f.b, p, fsbridge.RemoveOptions{})
	if err == nil && w != nil {
		f.forsake(w)
	}
	return err
}

// forsake takes the name off a file that was removed or replaced while it is written.
func (f *files) forsake(w *writer) {
	f.unhang(w)
	w.forsake()
}

// Filelist answers listings and stat.
func (f *files) Filelist(r *sftp.Request) (sftp.ListerAt, error) {
	if r.Method == "List" {
		return f.list(r.Filepath)
	}
	info, err := f.b.Stat(f.ctx, r.Filepath)
	if err != nil {
		return nil, status(err)
	}
	return one{f.present(r.Filepath, info)}, nil
}

// Lstat answers lstat.
func (f *files) Lstat(r *sftp.Request) (sftp.ListerAt, error) {
	info, err := fsbridge.Lstat(f.ctx, f.b, r.Filepath)
	if err != nil {
		return nil, status(err)
	}
	return one{f.present(r.Filepath, info)}, nil
}

// present is a file as this session sees it: what it is writing counts.
func (f *files) present(p string, info fsbridge.FileInfo) fileInfo {
	if w := f.writer(p); w != nil && info.IsRegular() {
		info = w.present(info)
	}
	return fileInfo{info}
}

// Readlink returns the text of a link.
func (f *files) Readlink(p string) (string, error) {
	text, err := fsbridge.ReadLink(f.ctx, f.b, p)
	return text, status(err)
}

// one is a listing of one file.
type one struct{ info fileInfo }

func (o one) ListAt(to []os.FileInfo, off int64) (int, error) {
	if off > 0 || len(to) == 0 {
		return 0, io.EOF
	}
	to[0] = o.info
	return 1, io.EOF
}
