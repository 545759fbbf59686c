//go:build linux

package local

import (
	"context"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/rooted"
	"golang.org/x/sys/unix"
)

// fileContent is the content of an open file. It is copied by the kernel where that is possible,
// which shares blocks on file systems that can.
type fileContent struct{ fd int }

// copyChunk is how much the kernel is asked to copy between two looks at the guard, in bytes.
const copyChunk = 8 << 20

func (c fileContent) fill(ctx context.Context, b *Bridge, fd int) (fsbridge.FileHash, error) {
	var off int64
	for {
		if err := b.check(ctx); err != nil {
			return fsbridge.FileHash{}, err
		}
		from := off
		n, err := unix.CopyFileRange(c.fd, &from, fd, nil, copyChunk, 0)
		switch {
		case err == unix.EINTR:
		case err == nil && n > 0:
			off += int64(n)
		case err == nil || off == 0 && cannotCopy(err):
			// The end; or a file without a size, or file systems that cannot do it: read and write.
			return c.copy(ctx, b, fd, off)
		default:
			return fsbridge.FileHash{}, err
		}
	}
}

func cannotCopy(err error) bool {
	switch err {
	case unix.EXDEV, unix.EINVAL, unix.ENOSYS, unix.EOPNOTSUPP, unix.EPERM, unix.EBADF, unix.EIO, unix.ETXTBSY:
		return true
	}
	return false
}

// copy goes on by reading and writing.
func (c fileContent) copy(ctx context.Context, b *Bridge, fd int, off int64) (fsbridge.FileHash, error) {
	buf := b.tree.Buffer()
	defer b.tree.Release(buf)
	for {
		n, err := rooted.Pread(c.fd, *buf, off)
		if err != nil {
			return fsbridge.FileHash{}, err
		}
		if n == 0 {
			return fsbridge.FileHash{Size: off}, nil
		}
		if err := b.check(ctx); err != nil {
			return fsbridge.FileHash{}, err
		}
		if err := rooted.WriteAll(fd, (*buf)[:n]); err != nil {
			return fsbridge.FileHash{}, err
		}
		off += int64(n)
	}
}
