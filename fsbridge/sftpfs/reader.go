package sftpfs

import (
	"io"
	"io/fs"

	"github.com/pkg/sftp"

	"github.com/workberth/workberth/fsbridge"
)

const (
	// chunk is how much one request reads or writes, in bytes: what every server takes.
	chunk = 32 << 10
	// window is how many such requests may be under way for one file.
	window = 64
)

// open opens a regular file, which info has described, for reading, and describes what was opened.
func (c *call) open(abs string, info fsbridge.FileInfo) (*sftp.File, fsbridge.FileInfo, error) {
	if err := regular(info); err != nil {
		return nil, info, err
	}
	f, err := askLate(c, func() (*sftp.File, error) { return something(c.b.client.Open(abs)) }, func(f *sftp.File) { _ = f.Close() })
	if err != nil {
		return nil, info, err
	}
	// The open file is the truth; the name may have been given to another one.
	i, err := ask(c, f.Stat)
	if err == nil {
		if info, err = infoOf(info.Name, i); err == nil {
			err = regular(info)
		}
	}
	if err != nil {
		_ = c.takeBack(f.Close)
		return nil, info, err
	}
	return f, info, nil
}

// reader reads an open file in order, with several requests under way.
type reader struct {
	c *call
	f *sftp.File
	// next is the offset that is asked for next. Up to size, requests are sent ahead; behind it one
	// at a time, which finds the end. exact means that nothing behind size is wanted.
	next, size int64
	exact      bool
	behind     bool // the request behind size is pending
	pending    []*request[piece]
	ahead      int // how many requests may be pending; it grows while the caller goes on reading

	have []byte
	err  error // what comes after have
}

// piece is what one request has read. The end of the file comes after less than was asked for.
type piece struct {
	data []byte
	end  bool
}

func (c *call) read(f *sftp.File, off, size int64) *reader {
	return &reader{c: c, f: f, next: off, size: size, ahead: 4}
}

// fetch asks for n bytes at off.
func (r *reader) fetch(off int64, n int) (*request[piece], error) {
	f := r.f
	return send(r.c, func() (piece, error) {
		buf := make([]byte, n)
		n, err := f.ReadAt(buf, off)
		if n < 0 || n > len(buf) {
			return piece{}, &protocolError{"a read of impossible length"}
		}
		// Exactly io.EOF is the server's answer; a connection that ends wraps it.
		if err == io.EOF { //nolint:errorlint // see above
			return piece{buf[:n], true}, nil
		}
		return piece{buf[:n], false}, err
	}, nil)
}

// fill sends requests ahead. The first error is kept for when all before it is read.
func (r *reader) fill() error {
	for len(r.pending) < r.ahead {
		n := min(int64(chunk), r.size-r.next)
		if n <= 0 {
			if r.exact || r.behind {
				return nil
			}
			n, r.behind = chunk, true
		}
		req, err := r.fetch(r.next, int(n))
		if err != nil {
			return err
		}
		r.pending = append(r.pending, req)
		r.next += n
	}
	return nil
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for len(r.have) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		if r.err = r.more(); r.err != nil {
			r.drop()
		}
	}
	n := copy(p, r.have)
	r.have = r.have[n:]
	return n, nil
}

// more waits for the next piece.
func (r *reader) more() error {
	if err := r.c.step(); err != nil {
		return err
	}
	if err := r.fill(); err != nil {
		return err
	}
	if len(r.pending) == 0 {
		return io.EOF
	}
	req := r.pending[0]
	r.behind = r.behind && len(r.pending) > 1
	r.pending = r.pending[1:]
	got, err := req.wait()
	r.have = got.data
	switch {
	case err != nil:
		r.have = nil
		return err
	case got.end:
		return io.EOF
	}
	r.ahead = min(2*r.ahead, window)
	return nil
}

// drop leaves the pending requests to themselves.
func (r *reader) drop() {
	for _, req := range r.pending {
		req.giveUp()
	}
	r.pending = nil
}

// close ends the reading.
func (r *reader) close() error {
	early := len(r.pending) > 0
	r.drop()
	if r.err == nil {
		r.err = fs.ErrClosed
	}
	r.have = nil
	if !early {
		return r.c.takeBack(r.f.Close)
	}
	// The handle can be closed only when all is answered, for which the caller need not wait.
	req, err := sendUnasked(r.c, func() (struct{}, error) { return struct{}{}, r.f.Close() }, nil)
	if err == nil {
		req.giveUp()
	}
	return err
}
