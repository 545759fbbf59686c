package sftpfs

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/pkg/sftp"

	"github.com/workberth/workberth/fsbridge"
)

// Stat describes the file at p, following links.
func (b *Bridge) Stat(ctx context.Context, p string) (fsbridge.FileInfo, error) {
	return b.stat(ctx, "stat", p, true)
}

// Lstat describes the file at p; a final link is described itself.
func (b *Bridge) Lstat(ctx context.Context, p string) (fsbridge.FileInfo, error) {
	return b.stat(ctx, "lstat", p, false)
}

func (b *Bridge) stat(ctx context.Context, op, p string, follow bool) (fsbridge.FileInfo, error) {
	c := b.call(ctx)
	if err := c.begin(p); err != nil {
		return fsbridge.FileInfo{}, c.fail(op, p, err)
	}
	pl, err := c.existing(p, follow)
	if err != nil {
		return fsbridge.FileInfo{}, c.fail(op, p, err)
	}
	pl.info.Name = baseName(p)
	return pl.info, nil
}

// ReadLink returns the text of the link at p.
func (b *Bridge) ReadLink(ctx context.Context, p string) (string, error) {
	c := b.call(ctx)
	text, err := func() (string, error) {
		if err := c.begin(p); err != nil {
			return "", err
		}
		pl, err := c.existing(p, false)
		if err != nil {
			return "", err
		}
		if !pl.isLink() {
			return "", fmt.Errorf("not a symbolic link: %w", fsbridge.ErrInvalid)
		}
		return c.readlink(pl.abs)
	}()
	return text, c.fail("readlink", p, err)
}

// openPath opens the regular file at p for reading.
func (c *call) openPath(p string) (*sftp.File, fsbridge.FileInfo, error) {
	if err := c.begin(p); err != nil {
		return nil, fsbridge.FileInfo{}, err
	}
	pl, err := c.existing(p, true)
	if err != nil {
		return nil, fsbridge.FileInfo{}, err
	}
	pl.info.Name = baseName(p)
	return c.open(pl.abs, pl.info)
}

// regular refuses everything but regular files.
func regular(i fsbridge.FileInfo) error {
	if i.Type != fsbridge.TypeRegular {
		return fmt.Errorf("is a %s, %w", i.Type, fsbridge.ErrNotRegular)
	}
	return nil
}

// ReadFile returns the whole content of the regular file at p.
func (b *Bridge) ReadFile(ctx context.Context, p string) ([]byte, error) {
	c := b.call(ctx)
	data, err := c.readFile(p)
	return data, c.fail("read", p, err)
}

func (c *call) readFile(p string) ([]byte, error) {
	f, info, err := c.openPath(p)
	if err != nil {
		return nil, err
	}
	r, limit := c.read(f, 0, info.Size), c.b.opts.ReadLimit
	defer func() { _ = r.close() }()
	if info.Size > limit {
		return nil, &fsbridge.LimitError{What: "file size", Limit: limit, Actual: info.Size}
	}
	// No more room is made than the server sends: it may lie about the size.
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit { // it grew
		return nil, &fsbridge.LimitError{What: "file size", Limit: limit}
	}
	return data, nil
}

// ReadRange reads at most n bytes from offset off.
func (b *Bridge) ReadRange(ctx context.Context, p string, off, n int64) ([]byte, error) {
	c := b.call(ctx)
	data, err := c.readRange(p, off, n)
	return data, c.fail("read", p, err)
}

func (c *call) readRange(p string, off, n int64) ([]byte, error) {
	if off < 0 || n < 0 {
		return nil, fmt.Errorf("range of %d bytes at %d: %w", n, off, fsbridge.ErrInvalid)
	}
	f, info, err := c.openPath(p)
	if err != nil {
		return nil, err
	}
	n = min(n, max(0, info.Size-off))
	r := c.read(f, off, off+n)
	r.exact = true
	defer func() { _ = r.close() }()
	if limit := c.b.opts.ReadLimit; n > limit {
		return nil, &fsbridge.LimitError{What: "range", Limit: limit, Actual: n}
	}
	if n == 0 {
		return nil, nil
	}
	return io.ReadAll(r)
}

// OpenReader opens the regular file at p for streaming.
func (b *Bridge) OpenReader(ctx context.Context, p string) (io.ReadCloser, fsbridge.FileInfo, error) {
	c := b.call(ctx)
	f, info, err := c.openPath(p)
	if err != nil {
		return nil, fsbridge.FileInfo{}, c.fail("read", p, err)
	}
	return &stream{r: c.read(f, 0, info.Size), p: p}, info, nil
}

// stream is an open file in the caller's hands.
type stream struct {
	mu     sync.Mutex
	r      *reader
	p      string
	closed bool
}

func (s *stream) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, &fsbridge.PathError{Op: "read", Path: s.p, Err: errClosed}
	}
	n, err := s.r.Read(p)
	if err != nil && !ended(err) {
		err = s.r.c.fail("read", s.p, err)
	}
	return n, err
}

// errClosed is the answer to a read after Close.
var errClosed = errors.New("the stream is closed")

// ended tells the end of a file from everything that merely wraps it.
func ended(err error) bool { return err == io.EOF } //nolint:errorlint // a cut connection wraps io.EOF

// Close gives the file back. Nothing can be lost by a reader that fails to close.
func (s *stream) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		_ = s.r.close()
	}
	return nil
}

// HashFile hashes the regular file at p. The content crosses the connection.
func (b *Bridge) HashFile(ctx context.Context, p string) (fsbridge.FileHash, error) {
	c := b.call(ctx)
	h, err := func() (fsbridge.FileHash, error) {
		f, info, err := c.openPath(p)
		if err != nil {
			return fsbridge.FileHash{}, err
		}
		return c.hash(f, info)
	}()
	return h, c.fail("hash", p, err)
}

// hash hashes an open file and closes it.
func (c *call) hash(f *sftp.File, info fsbridge.FileInfo) (fsbridge.FileHash, error) {
	r := c.read(f, 0, info.Size)
	defer func() { _ = r.close() }()
	sum := sha256.New()
	n, err := copyAll(sum, r)
	if err != nil {
		return fsbridge.FileHash{}, err
	}
	return fsbridge.FileHash{Digest: fsbridge.DigestOf(sum.Sum(nil)), Size: n}, nil
}

// copyAll is io.Copy that takes only the file's own end for its end.
func copyAll(w io.Writer, r *reader) (int64, error) {
	buf, total := make([]byte, chunk), int64(0)
	for {
		n, err := r.Read(buf)
		total += int64(n)
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return total, err
			}
		}
		if ended(err) {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}
