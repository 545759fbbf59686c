package aferofs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"
	"syscall"

	"github.com/spf13/afero"

	"github.com/workberth/workberth/fsbridge"
)

// rangeStep is the most that one read asks for where the file is not streamed.
const rangeStep = 1 << 20

// openRead opens a file or directory for reading. A file's stream is opened at once, so that what
// forbids it is told now and the file stays the one that was opened.
func (f *bridgeFs) openRead(name string) (afero.File, error) {
	if fsbridge.Has(f.b, fsbridge.CapOpenReader) {
		r, info, err := fsbridge.OpenReader(f.ctx, f.b, name)
		if err == nil {
			return &reader{handle: handle{fs: f, name: name, info: info}, r: r}, nil
		}
		if !errors.Is(err, fsbridge.ErrNotRegular) {
			return nil, err
		}
	}
	info, err := f.b.Stat(f.ctx, name)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return &directory{handle: handle{fs: f, name: name, info: info}}, nil
	case !info.IsRegular():
		return nil, fsbridge.ErrNotRegular
	}
	return &reader{handle: handle{fs: f, name: name, info: info}}, nil
}

// handle is what all open files have.
type handle struct {
	fs   *bridgeFs
	name string
	info fsbridge.FileInfo

	mu     sync.Mutex
	closed bool
}

// Name returns the name as it was given to Open.
func (h *handle) Name() string { return h.name }

// fail makes an error of this file.
func (h *handle) fail(op string, err error) error {
	if err == nil || err == io.EOF { //nolint:errorlint // io.EOF is never wrapped here
		return err
	}
	return osError(op, h.name, err)
}

// open fails when the file was closed. h.mu is held.
func (h *handle) open() error {
	if h.closed {
		return fs.ErrClosed
	}
	return nil
}

// reader is a file open for reading.
type reader struct {
	handle
	off int64
	// r is a stream that stands at rOff; nil when there is none.
	r    io.ReadCloser
	rOff int64
	// content is the whole file, where the bridge can do nothing but read whole files.
	content []byte
	loaded  bool
}

var _ afero.File = (*reader)(nil)

// Read reads on.
func (r *reader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.open(); err != nil {
		return 0, r.fail("read", err)
	}
	if len(p) == 0 {
		return 0, nil
	}
	n, err := r.readAt(p, r.off)
	r.off += int64(n)
	return n, r.fail("read", err)
}

// ReadAt reads len(p) bytes at off.
func (r *reader) ReadAt(p []byte, off int64) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.open(); err != nil {
		return 0, r.fail("read", err)
	}
	if off < 0 {
		return 0, r.fail("read", fsbridge.ErrInvalid)
	}
	total := 0
	for total < len(p) {
		n, err := r.readAt(p[total:], off+int64(total))
		total += n
		if err != nil {
			return total, r.fail("read", err)
		}
	}
	return total, nil
}

// readAt reads something at off: from the stream where it stands there, otherwise by what the
// bridge can do.
func (r *reader) readAt(p []byte, off int64) (int, error) {
	ctx, b := r.fs.ctx, r.fs.b
	switch {
	case r.r != nil && r.rOff == off:
	case fsbridge.Has(b, fsbridge.CapReadRange):
		data, err := fsbridge.ReadRange(ctx, b, r.name, off, min(int64(len(p)), rangeStep))
		if err == nil && len(data) == 0 {
			err = io.EOF
		}
		return copy(p, data), err
	case fsbridge.Has(b, fsbridge.CapOpenReader):
		if err := r.reopen(off); err != nil {
			return 0, err
		}
	default:
		return r.whole(p, off)
	}
	n, err := r.r.Read(p)
	r.rOff += int64(n)
	return n, err
}

// reopen makes a stream that stands at off.
func (r *reader) reopen(off int64) error {
	r.drop()
	s, _, err := fsbridge.OpenReader(r.fs.ctx, r.fs.b, r.name)
	if err != nil {
		return err
	}
	r.r = s
	r.rOff, err = io.CopyN(io.Discard, s, off)
	return err // io.EOF when the file is shorter
}

// drop gives the stream up.
func (r *reader) drop() {
	if r.r != nil {
		_ = r.r.Close()
		r.r = nil
	}
}

// whole reads from the whole content.
func (r *reader) whole(p []byte, off int64) (int, error) {
	if !r.loaded {
		data, err := r.fs.b.ReadFile(r.fs.ctx, r.name)
		if err != nil {
			return 0, err
		}
		r.content, r.loaded = data, true
	}
	if off >= int64(len(r.content)) {
		return 0, io.EOF
	}
	return copy(p, r.content[off:]), nil
}

// Seek sets where the next Read begins.
func (r *reader) Seek(offset int64, whence int) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.open(); err != nil {
		return 0, r.fail("seek", err)
	}
	off, err := seekTo(r.off, r.info.Size, offset, whence)
	if err != nil {
		return 0, r.fail("seek", err)
	}
	r.off = off
	return off, nil
}

// seekTo computes an offset.
func seekTo(now, size, offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		offset += now
	case io.SeekEnd:
		offset += size
	default:
		return 0, fsbridge.ErrInvalid
	}
	if offset < 0 {
		return 0, fsbridge.ErrInvalid
	}
	return offset, nil
}

// Stat describes the file as it was opened.
func (r *reader) Stat() (os.FileInfo, error) { return fileInfo{r.info}, nil }

// Close ends reading.
func (r *reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.open(); err != nil {
		return r.fail("close", err)
	}
	r.closed = true
	r.drop()
	return nil
}

// Sync has nothing to do.
func (r *reader) Sync() error { return nil }

// Write and its kin need a file open for writing.
func (r *reader) Write([]byte) (int, error)          { return 0, r.fail("write", syscall.EBADF) }
func (r *reader) WriteAt([]byte, int64) (int, error) { return 0, r.fail("write", syscall.EBADF) }
func (r *reader) WriteString(string) (int, error)    { return 0, r.fail("write", syscall.EBADF) }
func (r *reader) Truncate(int64) error               { return r.fail("truncate", syscall.EBADF) }
func (r *reader) Readdir(int) ([]os.FileInfo, error) { return nil, r.fail("readdir", syscall.ENOTDIR) }
func (r *reader) Readdirnames(int) ([]string, error) { return nil, r.fail("readdir", syscall.ENOTDIR) }
func (r *reader) ReadDir(int) ([]fs.DirEntry, error) { return nil, r.fail("readdir", syscall.ENOTDIR) }
