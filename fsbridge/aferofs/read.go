package aferofs

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/spf13/afero"

	"github.com/workberth/workberth/fsbridge"
)

// chunk is how much is moved between two looks at the context and the guard.
const chunk = 256 << 10

// Stat describes the file at p, following links.
func (b *Bridge) Stat(ctx context.Context, p string) (fsbridge.FileInfo, error) {
	return b.stat(ctx, "stat", p, true)
}

// Lstat describes the file at p; a final link is described itself.
func (b *Bridge) Lstat(ctx context.Context, p string) (fsbridge.FileInfo, error) {
	return b.stat(ctx, "lstat", p, false)
}

func (b *Bridge) stat(ctx context.Context, op, p string, follow bool) (fsbridge.FileInfo, error) {
	if err := b.begin(ctx, p); err != nil {
		return fsbridge.FileInfo{}, fail(op, p, err)
	}
	pl, err := b.existing(p, follow)
	if err != nil {
		return fsbridge.FileInfo{}, fail(op, p, err)
	}
	return infoOf(baseName(p), pl.info), nil
}

// ReadLink returns the text of the link at p.
func (b *Bridge) ReadLink(ctx context.Context, p string) (string, error) {
	text, err := func() (string, error) {
		if err := b.begin(ctx, p); err != nil {
			return "", err
		}
		pl, err := b.existing(p, false)
		if err != nil {
			return "", err
		}
		if !pl.isLink() {
			return "", fmt.Errorf("not a symbolic link: %w", fsbridge.ErrInvalid)
		}
		return b.readlink(pl.abs)
	}()
	return text, fail("readlink", p, err)
}

// open opens a regular file for reading.
func (b *Bridge) open(ctx context.Context, p string) (afero.File, fs.FileInfo, error) {
	if err := b.begin(ctx, p); err != nil {
		return nil, nil, err
	}
	pl, err := b.existing(p, true)
	if err != nil {
		return nil, nil, err
	}
	return b.openAt(pl.abs, pl.info)
}

// openAt opens what info describes, which must be a regular file.
func (b *Bridge) openAt(abs string, info fs.FileInfo) (afero.File, fs.FileInfo, error) {
	if err := regular(info); err != nil {
		return nil, nil, err
	}
	f, err := b.fs.Open(abs)
	if err != nil {
		return nil, nil, err
	}
	// The open file is the truth; the name may have been given to another one.
	if info, err = f.Stat(); err == nil {
		err = regular(info)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

// regular refuses everything but regular files.
func regular(i fs.FileInfo) error {
	if t := typeOf(i); t != fsbridge.TypeRegular {
		return fmt.Errorf("is a %s, %w", t, fsbridge.ErrNotRegular)
	}
	return nil
}

// ReadFile returns the whole content of the regular file at p.
func (b *Bridge) ReadFile(ctx context.Context, p string) ([]byte, error) {
	data, err := b.readFile(ctx, p)
	return data, fail("read", p, err)
}

func (b *Bridge) readFile(ctx context.Context, p string) (data []byte, err error) {
	f, info, err := b.open(ctx, p)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	limit := b.opts.ReadLimit
	if size := info.Size(); size > limit {
		return nil, &fsbridge.LimitError{What: "file size", Limit: limit, Actual: size}
	}
	data, err = io.ReadAll(io.LimitReader(&checked{ctx, b, f}, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit { // it grew
		return nil, &fsbridge.LimitError{What: "file size", Limit: limit}
	}
	return data, nil
}

// checked looks at the context and the guard before each chunk.
type checked struct {
	ctx context.Context
	b   *Bridge
	r   io.Reader
}

func (c *checked) Read(p []byte) (int, error) {
	if err := c.b.step(c.ctx); err != nil {
		return 0, err
	}
	return c.r.Read(p[:min(len(p), chunk)])
}

// ReadRange reads at most n bytes from offset off.
func (b *Bridge) ReadRange(ctx context.Context, p string, off, n int64) ([]byte, error) {
	data, err := b.readRange(ctx, p, off, n)
	return data, fail("read", p, err)
}

func (b *Bridge) readRange(ctx context.Context, p string, off, n int64) (data []byte, err error) {
	if off < 0 || n < 0 {
		return nil, fmt.Errorf("range of %d bytes at %d: %w", n, off, fsbridge.ErrInvalid)
	}
	f, info, err := b.open(ctx, p)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	n = min(n, max(0, info.Size()-off))
	if n > b.opts.ReadLimit {
		return nil, &fsbridge.LimitError{What: "range", Limit: b.opts.ReadLimit, Actual: n}
	}
	if n == 0 {
		return nil, nil
	}
	if _, err := f.Seek(off, io.SeekStart); err != nil {
		return nil, err
	}
	data = make([]byte, n)
	got, err := io.ReadFull(&checked{ctx, b, f}, data)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) { // it shrank
		err = nil
	}
	return data[:got], err
}

// OpenReader opens the regular file at p for streaming.
func (b *Bridge) OpenReader(ctx context.Context, p string) (io.ReadCloser, fsbridge.FileInfo, error) {
	f, info, err := b.open(ctx, p)
	if err != nil {
		return nil, fsbridge.FileInfo{}, fail("read", p, err)
	}
	return &stream{checked: checked{ctx, b, f}, f: f, p: p}, infoOf(baseName(p), info), nil
}

// stream is an open file.
type stream struct {
	checked
	f afero.File
	p string
}

func (s *stream) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err := s.checked.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fail("read", s.p, err)
	}
	return n, err
}

func (s *stream) Close() error { return fail("close", s.p, s.f.Close()) }

// HashFile hashes the regular file at p.
func (b *Bridge) HashFile(ctx context.Context, p string) (fsbridge.FileHash, error) {
	h, err := func() (fsbridge.FileHash, error) {
		f, _, err := b.open(ctx, p)
		if err != nil {
			return fsbridge.FileHash{}, err
		}
		return b.hashOpen(ctx, f)
	}()
	return h, fail("hash", p, err)
}

// hashOpen hashes f and closes it.
func (b *Bridge) hashOpen(ctx context.Context, f afero.File) (fsbridge.FileHash, error) {
	sum := sha256.New()
	n, err := io.CopyBuffer(sum, &checked{ctx, b, f}, make([]byte, chunk))
	if err := errors.Join(err, f.Close()); err != nil {
		return fsbridge.FileHash{}, err
	}
	return fsbridge.FileHash{Digest: fsbridge.DigestOf(sum.Sum(nil)), Size: n}, nil
}
