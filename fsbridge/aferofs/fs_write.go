package aferofs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/spf13/afero"

	"github.com/workberth/workberth/fsbridge"
)

// keep is how much of an open file is kept for reads, writes and seeks in any order.
const keep = 8 << 20

// writer is a file open for writing. It is in one of three states:
//
//   - kept: buf is the whole content;
//   - streaming: more than keep was written from start to end; it flows into a write that is under
//     way, and only its end is reachable;
//   - appending: buf is what was not appended yet; the rest is not reachable.
type writer struct {
	handle
	flag int

	off  int64
	size int64
	buf  []byte
	// dirty is set when Sync has something to do.
	dirty     bool
	appending bool
	stream    *upload
	// lost is why content that is kept no longer could not be written; it is told ever after.
	lost error
}

var _ afero.File = (*writer)(nil)

// openWrite opens an existing regular file.
func (f *bridgeFs) openWrite(name string, flag int, info fsbridge.FileInfo) (afero.File, error) {
	w := &writer{handle: handle{fs: f, name: name, info: info}, flag: flag}
	switch {
	case flag&os.O_TRUNC != 0:
		w.dirty = info.Size > 0
	case flag&os.O_APPEND != 0 && flag&os.O_RDWR == 0 && fsbridge.Has(f.b, fsbridge.CapAppendFile):
		w.appending, w.size = true, info.Size
	case info.Size > 0:
		data, err := f.b.ReadFile(f.ctx, name)
		if err != nil {
			return nil, err
		}
		w.buf, w.size = data, int64(len(data))
	}
	return w, nil
}

// Write writes on, or at the end of a file opened with O_APPEND.
func (w *writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.flag&os.O_APPEND != 0 && len(p) > 0 {
		w.off = w.size
	}
	n, err := w.writeAt(p, w.off)
	w.off += int64(n)
	return n, w.fail("write", err)
}

// WriteString writes s.
func (w *writer) WriteString(s string) (int, error) { return w.Write([]byte(s)) }

// WriteAt writes at off.
func (w *writer) WriteAt(p []byte, off int64) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.flag&os.O_APPEND != 0 || off < 0 {
		return 0, w.fail("write", fsbridge.ErrInvalid)
	}
	n, err := w.writeAt(p, off)
	return n, w.fail("write", err)
}

// unreachable is the error for the parts of a large file.
func unreachable() error {
	return &fsbridge.LimitError{What: "file written in any other order than from start to end", Limit: keep}
}

func (w *writer) writeAt(p []byte, off int64) (int, error) {
	if err := w.open(); err != nil {
		return 0, err
	}
	if len(p) == 0 {
		return 0, nil
	}
	end := off + int64(len(p))
	if w.stream != nil || w.appending {
		if off != w.size {
			return 0, unreachable()
		}
		return w.writeOn(p)
	}
	if end > keep && off == int64(len(w.buf)) && fsbridge.Has(w.fs.b, fsbridge.CapWriteStream) {
		w.stream = w.fs.upload(w.name)
		if _, err := w.stream.Write(w.buf); err != nil {
			return 0, err
		}
		w.buf = nil
		return w.writeOn(p)
	}
	if end > fsbridge.DefaultReadLimit {
		return 0, &fsbridge.LimitError{What: "file size", Limit: fsbridge.DefaultReadLimit, Actual: end}
	}
	w.grow(end)
	w.dirty = true
	return copy(w.buf[off:], p), nil
}

// writeOn adds p at the end of a large file.
func (w *writer) writeOn(p []byte) (n int, err error) {
	w.dirty = true
	if w.stream != nil {
		n, err = w.stream.Write(p)
		w.size += int64(n)
		return n, err
	}
	w.buf = append(w.buf, p...)
	w.size += int64(len(p))
	if len(w.buf) > rangeStep {
		return len(p), w.flushAppend()
	}
	return len(p), nil
}

// grow makes the kept content at least n bytes long.
func (w *writer) grow(n int64) {
	if add := n - int64(len(w.buf)); add > 0 {
		w.buf = append(w.buf, make([]byte, add)...)
	}
	w.size = int64(len(w.buf))
}

// Truncate sets the size.
func (w *writer) Truncate(size int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fail("truncate", w.truncate(size))
}

func (w *writer) truncate(size int64) error {
	if err := w.open(); err != nil {
		return err
	}
	switch {
	case size < 0:
		return fsbridge.ErrInvalid
	case size == w.size:
		return nil
	case w.appending && size == 0:
		w.appending = false // nothing of the old content is needed
	case w.stream != nil || w.appending:
		return unreachable()
	case size > fsbridge.DefaultReadLimit:
		return &fsbridge.LimitError{What: "file size", Limit: fsbridge.DefaultReadLimit, Actual: size}
	}
	w.grow(size)
	w.buf, w.size, w.dirty = w.buf[:size], size, true
	return nil
}

// Read reads on from what was written.
func (w *writer) Read(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := w.readAt(p, w.off)
	w.off += int64(n)
	return n, w.fail("read", err)
}

// ReadAt reads at off.
func (w *writer) ReadAt(p []byte, off int64) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := w.readAt(p, off)
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, w.fail("read", err)
}

func (w *writer) readAt(p []byte, off int64) (int, error) {
	if err := w.open(); err != nil {
		return 0, err
	}
	switch {
	case off < 0:
		return 0, fsbridge.ErrInvalid
	case len(p) == 0:
		return 0, nil
	case w.flag&os.O_RDWR == 0:
		return 0, syscall.EBADF
	case off >= w.size:
		return 0, io.EOF
	case w.stream != nil || w.appending:
		return 0, unreachable()
	}
	return copy(p, w.buf[off:]), nil
}

// Seek sets where the next Read or Write begins.
func (w *writer) Seek(offset int64, whence int) (int64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.open(); err != nil {
		return 0, w.fail("seek", err)
	}
	off, err := seekTo(w.off, w.size, offset, whence)
	if err != nil {
		return 0, w.fail("seek", err)
	}
	w.off = off
	return off, nil
}

// Stat describes the file with the size it has now.
func (w *writer) Stat() (os.FileInfo, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.open(); err != nil {
		return nil, w.fail("stat", err)
	}
	i := w.info
	i.Size = w.size
	if w.dirty {
		i.ModTime = time.Now()
	}
	return fileInfo{i}, nil
}

// Sync makes what was written the content of the file, in one atomic step, and flushes it to
// stable storage where the bridge can.
func (w *writer) Sync() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.open(); err != nil {
		return w.fail("sync", err)
	}
	return w.fail("sync", w.flush(true))
}

// Close makes what was written the content of the file.
func (w *writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.open(); err != nil {
		return w.fail("close", err)
	}
	err := w.flush(false)
	w.closed, w.buf = true, nil
	return w.fail("close", err)
}

func (w *writer) flush(sync bool) (err error) {
	if w.lost != nil || !w.dirty {
		return w.lost
	}
	switch {
	case w.stream != nil:
		// What comes after can only be appended.
		err = w.stream.finish()
		w.stream, w.appending, w.lost = nil, true, err
	case w.appending:
		err = w.flushAppend()
	case fsbridge.Has(w.fs.b, fsbridge.CapWriteStream):
		_, err = fsbridge.WriteStream(w.fs.ctx, w.fs.b, w.name, bytes.NewReader(w.buf), fsbridge.WriteOptions{Sync: sync})
	default:
		err = w.fs.b.WriteFile(w.fs.ctx, w.name, w.buf)
	}
	if err == nil {
		w.dirty = false
	}
	return err
}

// flushAppend appends what was collected.
func (w *writer) flushAppend() error {
	err := fsbridge.AppendFile(w.fs.ctx, w.fs.b, w.name, w.buf)
	if err == nil {
		w.buf = nil
	}
	return err
}

// Readdir and its kin need a directory.
func (w *writer) Readdir(int) ([]os.FileInfo, error) { return nil, w.fail("readdir", syscall.ENOTDIR) }
func (w *writer) Readdirnames(int) ([]string, error) { return nil, w.fail("readdir", syscall.ENOTDIR) }
func (w *writer) ReadDir(int) ([]fs.DirEntry, error) { return nil, w.fail("readdir", syscall.ENOTDIR) }

// upload is a write that is under way.
type upload struct {
	pipe *io.PipeWriter
	stop func() bool
	done chan struct{}
	err  error // valid when done is closed
}

// upload begins to write a file. It ends by finish, or by the end of the context.
func (f *bridgeFs) upload(name string) *upload {
	r, w := io.Pipe()
	u := &upload{pipe: w, done: make(chan struct{})}
	u.stop = context.AfterFunc(f.ctx, func() { w.CloseWithError(context.Cause(f.ctx)) })
	go func() {
		defer close(u.done)
		_, u.err = fsbridge.WriteStream(f.ctx, f.b, name, r, fsbridge.WriteOptions{})
		if u.err != nil {
			r.CloseWithError(u.err)
		} else {
			r.CloseWithError(io.ErrClosedPipe)
		}
	}()
	return u
}

// Write hands p over.
func (u *upload) Write(p []byte) (int, error) {
	n, err := u.pipe.Write(p)
	if errors.Is(err, io.ErrClosedPipe) { // the context ended; the write says why
		<-u.done
		err = errors.Join(u.err, err)
	}
	return n, err
}

// finish ends the content and waits for the outcome.
func (u *upload) finish() error {
	u.stop()
	err := u.pipe.Close()
	<-u.done
	return errors.Join(u.err, err)
}
