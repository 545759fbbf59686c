//go:build linux

package local

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"math"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/rooted"
	"golang.org/x/sys/unix"
)

// chunk is how much is moved between two looks at the guard, in bytes.
const chunk = 1 << 20

// ReadFile implements fsbridge.Bridge.
func (b *Bridge) ReadFile(ctx context.Context, path string) ([]byte, error) {
	if err := b.begin(ctx, opRead, path); err != nil {
		return nil, err
	}
	defer b.end()
	f, err := b.tree.OpenFile(path, unix.O_RDONLY, nil)
	if err != nil {
		return nil, pathError(opRead, path, err)
	}
	defer f.Close()
	data, err := b.readAll(ctx, &f)
	return data, pathError(opRead, path, err)
}

// ReadFileWithSource implements fsbridge.SourceReader: the location is taken from the descriptor
// that the bytes are read from. A file that is replaced while it is being opened is opened again.
// ResolvedPath is spelled with the path of the mount as the mount table has it. Keeps FSB-03 to
// FSB-06.
func (b *Bridge) ReadFileWithSource(ctx context.Context, path string) (fsbridge.SourcedFile, error) {
	if err := b.begin(ctx, opRead, path); err != nil {
		return fsbridge.SourcedFile{}, err
	}
	defer b.end()
	if !b.tree.HasProc() {
		return fsbridge.SourcedFile{}, pathError(opRead, path,
			&fsbridge.UnsupportedError{Capability: fsbridge.CapReadFileWithSource})
	}
	for range rooted.Attempts {
		f, err := b.tree.OpenFile(path, unix.O_RDONLY, nil)
		if err != nil {
			return fsbridge.SourcedFile{}, pathError(opRead, path, err)
		}
		src, err := b.readPinned(ctx, &f, path)
		f.Close()
		if err != errReplaced {
			return src, pathError(opRead, path, err)
		}
	}
	return fsbridge.SourcedFile{}, pathError(opRead, path, rooted.ErrBusy)
}

// errReplaced means that an open file no longer has a location.
var errReplaced = errors.New("replaced while it was opened")

func (b *Bridge) readPinned(ctx context.Context, f *rooted.File, path string) (fsbridge.SourcedFile, error) {
	spot, err := b.tree.Where(f)
	if err == unix.ENOENT {
		return fsbridge.SourcedFile{}, errReplaced
	}
	if err != nil {
		return fsbridge.SourcedFile{}, err
	}
	data, err := b.readAll(ctx, f)
	if err != nil {
		return fsbridge.SourcedFile{}, err
	}
	src := fsbridge.SourcedFile{Data: data, ResolvedPath: spot.Path(), Info: info(&f.Stat, path)}
	if spot.Root == b.tree.Workspace() {
		src.WorkspaceRelativePath = spot.Below
	}
	return src, nil
}

// readAll reads a file to its end, within the limit.
func (b *Bridge) readAll(ctx context.Context, f *rooted.File) ([]byte, error) {
	size := f.Stat.Size
	if size > b.readLimit {
		return nil, b.tooLarge(size)
	}
	buf := make([]byte, 0, max(size+1, 512))
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := rooted.Read(f.FD, buf[len(buf):min(cap(buf), len(buf)+chunk)])
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return buf, nil
		}
		buf = buf[:len(buf)+n]
		if int64(len(buf)) > b.readLimit {
			return nil, b.tooLarge(0)
		}
		if len(buf) >= chunk {
			if err := b.check(ctx); err != nil {
				return nil, err
			}
		}
	}
}

func (b *Bridge) tooLarge(size int64) error {
	return hint(&fsbridge.LimitError{What: "file size", Limit: b.readLimit, Actual: size},
		"read it in ranges or as a stream, or raise the read limit")
}

// ReadRange implements fsbridge.RangeReader.
func (b *Bridge) ReadRange(ctx context.Context, path string, off, n int64) ([]byte, error) {
	if err := b.begin(ctx, opRead, path); err != nil {
		return nil, err
	}
	defer b.end()
	data, err := b.readRange(ctx, path, off, n)
	return data, pathError(opRead, path, err)
}

func (b *Bridge) readRange(ctx context.Context, path string, off, n int64) ([]byte, error) {
	if off < 0 || n < 0 {
		return nil, fmt.Errorf("range of %d bytes from %d: %w", n, off, fsbridge.ErrInvalid)
	}
	if n > b.readLimit {
		return nil, hint(&fsbridge.LimitError{What: "range", Limit: b.readLimit, Actual: n}, "read it in smaller ranges")
	}
	f, err := b.tree.OpenFile(path, unix.O_RDONLY, nil)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	n = min(n, math.MaxInt64-off)
	// Some system files have content and no size, so the size is a hint only.
	buf := make([]byte, 0, min(n, max(f.Stat.Size-off, 0)+512))
	for int64(len(buf)) < n {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		room := buf[len(buf):min(int64(cap(buf)), int64(len(buf)+chunk), n)]
		got, err := rooted.Pread(f.FD, room, off+int64(len(buf)))
		if err != nil {
			return nil, err
		}
		if got == 0 {
			break
		}
		buf = buf[:len(buf)+got]
		if len(buf) >= chunk {
			if err := b.check(ctx); err != nil {
				return nil, err
			}
		}
	}
	return buf, nil
}

// HashFile implements fsbridge.Hasher.
func (b *Bridge) HashFile(ctx context.Context, path string) (fsbridge.FileHash, error) {
	if err := b.begin(ctx, opHash, path); err != nil {
		return fsbridge.FileHash{}, err
	}
	defer b.end()
	f, err := b.tree.OpenFile(path, unix.O_RDONLY, nil)
	if err != nil {
		return fsbridge.FileHash{}, pathError(opHash, path, err)
	}
	defer f.Close()
	h, err := b.hash(ctx, f.FD)
	return h, pathError(opHash, path, err)
}

// hash reads an open file from its beginning to its end, in constant memory.
func (b *Bridge) hash(ctx context.Context, fd int) (fsbridge.FileHash, error) {
	buf := b.tree.Buffer()
	defer b.tree.Release(buf)
	sum := sha256.New()
	var size int64
	for {
		n, err := rooted.Pread(fd, *buf, size)
		if err != nil {
			return fsbridge.FileHash{}, err
		}
		if n == 0 {
			return fsbridge.FileHash{Digest: digest(sum), Size: size}, nil
		}
		sum.Write((*buf)[:n])
		size += int64(n)
		if err := b.check(ctx); err != nil {
			return fsbridge.FileHash{}, err
		}
	}
}

func digest(h hash.Hash) fsbridge.Digest {
	return fsbridge.DigestOf(h.Sum(nil))
}

// OpenReader implements fsbridge.StreamReader. The stream stays on the file that was opened, even
// when its name is given to another one. Each Read looks at the guard first.
func (b *Bridge) OpenReader(ctx context.Context, path string) (io.ReadCloser, fsbridge.FileInfo, error) {
	if err := b.begin(ctx, opRead, path); err != nil {
		return nil, fsbridge.FileInfo{}, err
	}
	defer b.end()
	f, err := b.tree.OpenFile(path, unix.O_RDONLY, nil)
	if err != nil {
		return nil, fsbridge.FileInfo{}, pathError(opRead, path, err)
	}
	return &reader{b: b, ctx: ctx, path: path, fd: f.FD}, info(&f.Stat, path), nil
}
