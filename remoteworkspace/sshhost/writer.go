package sshhost

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"sync"
	"time"

	"github.com/pkg/sftp"

	"github.com/workberth/workberth/fsbridge"
)

// writeAhead bounds how far parts of an upload may arrive before the one that comes next,
// in bytes. Requests that a client has under way are handled in any order.
const writeAhead = 4 << 20

// maxAhead bounds how many such parts wait for their turn.
const maxAhead = 256

// Filewrite opens a file for writing.
func (f *files) Filewrite(r *sftp.Request) (io.WriterAt, error) { return f.openWriter(r) }

// OpenFile opens a file for reading and writing.
func (f *files) OpenFile(r *sftp.Request) (sftp.WriterAtReaderAt, error) { return f.openWriter(r) }

// openWriter opens a writer. A file that does not exist is created at once, empty, so that
// a refusal is told before anything is sent and other names cannot be taken meanwhile.
func (f *files) openWriter(r *sftp.Request) (*writer, error) {
	if err := f.take(); err != nil {
		return nil, err
	}
	w, err := f.prepare(r)
	if err != nil {
		f.give()
		return nil, f.did("write", r.Filepath, 0, 0, err)
	}
	f.hang(w, w.path)
	return w, nil
}

func (f *files) prepare(r *sftp.Request) (*writer, error) {
	flags := r.Pflags()
	w := &writer{f: f, path: r.Filepath, appending: flags.Append}
	fail := func(err error) (*writer, error) {
		return nil, &fsbridge.PathError{Op: "open", Path: r.Filepath, Err: err}
	}
	info, err := f.b.Stat(f.ctx, r.Filepath)
	switch {
	case errors.Is(err, fs.ErrNotExist) && flags.Creat:
		opts := fsbridge.WriteOptions{If: fsbridge.Precondition{Absent: true}, NoParents: true, Mode: 0o666 &^ umask}
		// The library does not say which attributes came with an open request. Four bytes can
		// only be the permissions, and that is what clients send.
		if len(r.Attrs) == 4 {
			opts.Mode = fsbridge.Mode(binary.BigEndian.Uint32(r.Attrs)) & fsbridge.ModePerm &^ umask
		}
		if _, err := fsbridge.WriteStream(f.ctx, f.b, r.Filepath, bytes.NewReader(nil), opts); err != nil {
			return nil, err
		}
		w.created = true
	case err != nil:
		return nil, err
	case flags.Creat && flags.Excl:
		return fail(fs.ErrExist)
	case !info.IsRegular():
		return fail(fsbridge.ErrNotRegular)
	default:
		if m, _, ok := fsbridge.Mounts(f.b).Find(r.Filepath); ok && m.ReadOnly {
			return fail(fsbridge.ErrReadOnly)
		}
		w.size, w.keep = info.Size, !flags.Trunc
		if flags.Trunc {
			w.size, w.dirty = 0, true
		}
		if flags.Trunc && flags.Append { // what is appended is in the file at once, and so is this
			w.dirty = false
			_, err := fsbridge.WriteStream(f.ctx, f.b, r.Filepath, bytes.NewReader(nil), fsbridge.WriteOptions{NoParents: true})
			return w, err
		}
	}
	return w, nil
}

// writer is one file open for writing. It begins as a stream: parts in order go into the
// sandbox as they come, and the file appears with the last one. The first thing that is no
// stream (writing elsewhere, reading, cutting, or keeping what was there) turns it into a
// scratch file, which replaces the file when it is closed.
type writer struct {
	f         *files
	path      string
	created   bool // by this writer, empty
	keep      bool // the old content counts
	appending bool

	mu    sync.Mutex
	size  int64
	dirty bool // what is in the sandbox is not what it should be
	err   error
	cut   bool // the client vanished: nothing is to be published
	// removed: there is no name any more to publish it under.
	removed bool
	ahead   map[int64][]byte
	held    int64 // of the memory budget
	next    int64 // the offset that comes next in the stream
	pipe    *io.PipeWriter
	stream  chan error // the outcome of the stream
	copy    *scratch
	times   *time.Time // to be set at the end
	moved   int64
}

// present is the file as it is for this session.
func (w *writer) present(info fsbridge.FileInfo) fsbridge.FileInfo {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.appending {
		info.Size = w.size
	}
	if w.times != nil {
		info.ModTime = *w.times
	}
	return info
}

// WriteAt writes at an offset. With append, wherever the end is.
func (w *writer) WriteAt(p []byte, off int64) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return 0, status(w.err)
	}
	if off < 0 || off > 1<<62 {
		return 0, status(fsbridge.ErrInvalid)
	}
	if err := w.writeAt(p, off); err != nil {
		w.err = err
		return 0, status(err)
	}
	w.moved += int64(len(p))
	return len(p), nil
}

func (w *writer) writeAt(p []byte, off int64) error {
	switch {
	case len(p) == 0:
		return nil
	case w.appending && w.removed:
		return nil
	case w.appending:
		return fsbridge.AppendFile(w.f.ctx, w.f.b, w.path, p)
	}
	if w.copy == nil && (w.keep || !w.inTurn(p, off)) {
		if err := w.unstream(); err != nil {
			return err
		}
	}
	w.dirty = true
	w.size = max(w.size, off+int64(len(p)))
	switch {
	case w.copy != nil:
		_, err := w.copy.WriteAt(p, off)
		return err
	case off > w.next:
		return w.put(p, off)
	}
	return w.send(p)
}

// inTurn reports whether a part can be sent now or wait: it is not behind what was sent,
// not too far ahead of it, and shares no byte with one that waits already.
func (w *writer) inTurn(p []byte, off int64) bool {
	if off < w.next || off > w.next+writeAhead || off > w.next && len(w.ahead) >= maxAhead {
		return false
	}
	for at, other := range w.ahead {
		if off < at+int64(len(other)) && at < off+int64(len(p)) {
			return false
		}
	}
	return true
}

// put keeps a part until its turn comes.
func (w *writer) put(p []byte, off int64) error {
	if !reserve(&w.f.s.conn.srv.spool.memory, w.f.s.conn.srv.spool.maxMemory, int64(len(p))) {
		return errSpoolFull
	}
	w.held += int64(len(p))
	if w.ahead == nil {
		w.ahead = map[int64][]byte{}
	}
	w.ahead[off] = bytes.Clone(p)
	return nil
}

// unput gives the memory of a part back.
func (w *writer) unput(off int64) []byte {
	p := w.ahead[off]
	delete(w.ahead, off)
	w.held -= int64(len(p))
	w.f.s.conn.srv.spool.memory.Add(-int64(len(p)))
	return p
}

// send passes the next part on, and those whose turn it is then.
func (w *writer) send(p []byte) error {
	if w.pipe == nil {
		r, pipe := io.Pipe()
		w.pipe, w.stream = pipe, make(chan error, 1)
		go func() {
			_, err := fsbridge.WriteStream(w.f.ctx, w.f.b, w.path, r, fsbridge.WriteOptions{NoParents: true})
			if err == nil {
				err = io.ErrClosedPipe
			}
			r.CloseWithError(err)
			if errors.Is(err, io.ErrClosedPipe) {
				err = nil
			}
			w.stream <- err
		}()
	}
	for {
		if _, err := w.pipe.Write(p); err != nil {
			return err
		}
		w.next += int64(len(p))
		if _, ok := w.ahead[w.next]; !ok {
			return nil
		}
		p = w.unput(w.next)
	}
}

// ReadAt reads what this session has written, or what was there.
func (w *writer) ReadAt(p []byte, off int64) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if off < 0 {
		return 0, status(fsbridge.ErrInvalid)
	}
	if w.err != nil {
		return 0, status(w.err)
	}
	if w.appending {
		data, err := fsbridge.ReadRange(w.f.ctx, w.f.b, w.path, off, int64(len(p)))
		if err == nil && len(data) == 0 {
			err = io.EOF
		}
		return copy(p, data), status(err)
	}
	if err := w.unstream(); err != nil {
		return 0, status(err)
	}
	n, err := w.copy.ReadAt(p, off)
	return n, status(err)
}

// truncate cuts or lengthens the file.
func (w *writer) truncate(size int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	if err := w.unstream(); err != nil {
		return err
	}
	w.dirty, w.size = true, size
	return w.copy.truncate(size)
}

// setTimes sets the time now or, of a file that is being written, when it is complete.
func (w *writer) setTimes(t time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dirty {
		w.times = &t
		return nil
	}
	return w.f.touch(w.path, t)
}

// pause makes what was streamed independent of the path: the file is about to be renamed.
func (w *writer) pause() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil || w.pipe == nil && len(w.ahead) == 0 {
		return nil
	}
	return w.unstream()
}

// setPath follows a rename.
func (w *writer) setPath(p string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.path = p
}

// forsake notes that the file was removed: what is written from now on has no name.
func (w *writer) forsake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.removed = true
}

// TransferError notes that the client vanished: half a file is not published.
func (w *writer) TransferError(error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = true
}
