package sshhost

import (
	"errors"
	"io"
	"sync"

	"github.com/pkg/sftp"

	"github.com/workberth/workberth/fsbridge"
)

// readAhead bounds how far a reader keeps and looks ahead of what it streams, in bytes.
// Clients have about 2 MiB of requests under way.
const readAhead = 256 << 10

// Fileread opens a file for reading.
func (f *files) Fileread(r *sftp.Request) (io.ReaderAt, error) {
	if err := f.take(); err != nil {
		return nil, err
	}
	stream, info, err := fsbridge.OpenReader(f.ctx, f.b, r.Filepath)
	if err != nil {
		f.give()
		return nil, f.did("read", r.Filepath, 0, 0, err)
	}
	rd := &reader{f: f, path: r.Filepath, stream: stream, info: info}
	sp := f.s.conn.srv.spool
	if rd.held = 2 * readAhead; !reserve(&sp.memory, sp.maxMemory, rd.held) {
		rd.held = 0
		rd.leaveStream() // slower, and without memory
	}
	return rd, nil
}

// reader serves one open file. What is read in order, give or take the order in which
// requests are handled, comes from one open file in the sandbox. Anything else is read by
// range, and refused when the path has become another file meanwhile: a reader never gets
// parts of two.
type reader struct {
	f    *files
	path string
	info fsbridge.FileInfo

	mu     sync.Mutex
	stream io.ReadCloser // nil once it is used up or was left
	recent []byte        // the last bytes of the stream, which end at pos
	pos    int64
	sent   int64
	held   int64 // of the memory budget, for recent
}

// leaveStream ends the reading in order; what was read last stays at hand.
func (r *reader) leaveStream() {
	if r.stream != nil {
		r.stream.Close()
		r.stream = nil
	}
}

// ReadAt reads at an offset.
func (r *reader) ReadAt(p []byte, off int64) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if off < 0 {
		return 0, status(fsbridge.ErrInvalid)
	}
	n, err := r.readAt(p, off)
	r.sent += int64(n)
	return n, err
}

func (r *reader) readAt(p []byte, off int64) (int, error) {
	end := off + int64(len(p))
	for r.stream != nil && r.pos < end && off <= r.pos+readAhead {
		if err := r.pull(end); err != nil {
			return 0, status(err)
		}
	}
	start := r.pos - int64(len(r.recent))
	if off >= start && off < r.pos {
		return copy(p, r.recent[off-start:]), nil
	}
	return r.byRange(p, off)
}

// pull takes the next part of the stream, up to an end.
func (r *reader) pull(end int64) error {
	want := min(end-r.pos, 64<<10)
	buf := make([]byte, want)
	n, err := io.ReadFull(r.stream, buf)
	r.pos += int64(n)
	if keep := 2*readAhead - n; len(r.recent) > keep {
		r.recent = append(r.recent[:0], r.recent[len(r.recent)-keep:]...)
	}
	r.recent = append(r.recent, buf[:n]...)
	if err == nil {
		return nil
	}
	r.leaveStream()
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// errReplaced: the path is not the file that was opened any more.
var errReplaced = errors.New("the file was replaced while it was read; open it again")

// byRange reads a part of the file by its path, provided it is still the same file.
func (r *reader) byRange(p []byte, off int64) (int, error) {
	data, err := fsbridge.ReadRange(r.f.ctx, r.f.b, r.path, off, int64(len(p)))
	if err != nil {
		return 0, status(err)
	}
	now, err := r.f.b.Stat(r.f.ctx, r.path)
	if err != nil {
		return 0, status(err)
	}
	if now.Dev != r.info.Dev || now.Inode != r.info.Inode {
		return 0, status(errReplaced)
	}
	if len(data) == 0 {
		return 0, io.EOF
	}
	return copy(p, data), nil
}

// Close ends the reading.
func (r *reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leaveStream()
	r.recent = nil
	r.f.s.conn.srv.spool.memory.Add(-r.held)
	r.f.give()
	_ = r.f.did("read", r.path, 0, r.sent, nil)
	return nil
}
