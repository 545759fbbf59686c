//go:build linux

package local

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/rooted"
	"golang.org/x/sys/unix"
)

// content is what a new file is to hold.
type content interface {
	// fill writes the content to an empty file, looking at the guard before each chunk.
	fill(ctx context.Context, b *Bridge, fd int) (fsbridge.FileHash, error)
}

// bytesContent is content in memory. It is not hashed.
type bytesContent []byte

func (c bytesContent) fill(ctx context.Context, b *Bridge, fd int) (fsbridge.FileHash, error) {
	for rest := []byte(c); len(rest) > 0; {
		n := min(len(rest), chunk)
		if len(rest) < len(c) { // the guard was asked just before the first chunk
			if err := b.check(ctx); err != nil {
				return fsbridge.FileHash{}, err
			}
		}
		if err := rooted.WriteAll(fd, rest[:n]); err != nil {
			return fsbridge.FileHash{}, err
		}
		rest = rest[n:]
	}
	return fsbridge.FileHash{Size: int64(len(c))}, nil
}

// readerContent is content from a stream; size is what it must yield, when positive.
type readerContent struct {
	r    io.Reader
	size int64
}

// readerError is the failure of the caller's reader, not of the file system.
type readerError struct{ err error }

func (e *readerError) Error() string { return "read the new content: " + e.err.Error() }
func (e *readerError) Unwrap() error { return e.err }

func (c readerContent) fill(ctx context.Context, b *Bridge, fd int) (fsbridge.FileHash, error) {
	if c.size > 0 {
		if err := reserve(fd, c.size); err != nil {
			return fsbridge.FileHash{}, err
		}
	}
	buf := b.tree.Buffer()
	defer b.tree.Release(buf)
	sum := sha256.New()
	var size int64
	for idle := 0; ; {
		n, rerr := c.r.Read(*buf)
		if n > 0 {
			idle = 0
			size += int64(n)
			if c.size > 0 && size > c.size {
				return fsbridge.FileHash{}, fmt.Errorf("the content has more than the %d bytes that were announced: %w",
					c.size, fsbridge.ErrInvalid)
			}
			if err := b.check(ctx); err != nil {
				return fsbridge.FileHash{}, err
			}
			if err := rooted.WriteAll(fd, (*buf)[:n]); err != nil {
				return fsbridge.FileHash{}, err
			}
			sum.Write((*buf)[:n])
		}
		switch {
		case errors.Is(rerr, io.EOF):
			if c.size > 0 && size != c.size {
				return fsbridge.FileHash{}, &readerError{fmt.Errorf("the content ended after %d of %d bytes: %w",
					size, c.size, io.ErrUnexpectedEOF)}
			}
			return fsbridge.FileHash{Digest: digest(sum), Size: size}, nil
		case rerr != nil:
			return fsbridge.FileHash{}, &readerError{rerr}
		case n == 0:
			if idle++; idle == 100 {
				return fsbridge.FileHash{}, &readerError{io.ErrNoProgress}
			}
		}
	}
}

// reserve asks for the space of a file. A file system that cannot promise it is not an error.
func reserve(fd int, size int64) error {
	switch err := unix.Fallocate(fd, unix.FALLOC_FL_KEEP_SIZE, 0, size); err {
	case unix.ENOSPC, unix.EDQUOT, unix.EFBIG:
		return err
	default:
		return nil
	}
}
