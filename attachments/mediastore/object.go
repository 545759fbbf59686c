package mediastore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"

	"github.com/workberth/workberth/fsbridge"
)

// Object is an open content. Read reports io.EOF only after the hash of everything has
// been compared: whoever reads to the end has the true bytes. It is not safe for
// concurrent use.
type Object struct {
	file *os.File
	sum  hash.Hash
	want fsbridge.Digest
	left int64
}

// Open opens the content of a reference for reading in constant memory. ctx is looked at
// once.
func (s *Store) Open(ctx context.Context, ref Reference) (*Object, error) {
	o, err := s.open(ctx, ref)
	if err != nil {
		return nil, fail("open attachment", string(ref.ID), err)
	}
	return o, nil
}

func (s *Store) open(ctx context.Context, ref Reference) (*Object, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !validDigest(ref.Digest) {
		return nil, fmt.Errorf("%w: its hash is malformed", ErrNoReference)
	}
	f, err := s.openRegular(objectName(ref.Digest), ref.Size)
	if err != nil {
		return nil, err
	}
	return &Object{file: f, sum: sha256.New(), want: ref.Digest, left: ref.Size}, nil
}

// openRegular opens a file of the store that must be regular and of a known size.
func (s *Store) openRegular(name string, size int64) (*os.File, error) {
	info, err := s.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: it is missing", ErrDamaged)
	}
	if err != nil {
		return nil, plain(err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: it is a %s", ErrDamaged, kindOf(info.Mode()))
	}
	f, err := s.root.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, plain(err)
	}
	open, err := f.Stat()
	if err == nil && (!open.Mode().IsRegular() || open.Size() != size) {
		err = fmt.Errorf("%w: it has %d bytes and should have %d", ErrDamaged, open.Size(), size)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Read implements io.Reader.
func (o *Object) Read(p []byte) (int, error) {
	n, err := o.file.Read(p)
	o.left -= int64(n)
	o.sum.Write(p[:n])
	switch {
	case o.left < 0, err == io.EOF && o.left > 0:
		return 0, fmt.Errorf("%w: its size has changed", ErrDamaged)
	case err == io.EOF && hex.EncodeToString(o.sum.Sum(nil)) != string(o.want):
		return n, fmt.Errorf("%w: its hash is not %s", ErrDamaged, o.want)
	}
	return n, err
}

// Close implements io.Closer.
func (o *Object) Close() error { return o.file.Close() }

var _ io.ReadCloser = (*Object)(nil)

// LocalPath gives the content of a reference a path on this machine that ends in the
// cleaned name of its arrival, and proves that it can be read: the store itself has opened
// the regular file there. The path lasts until the reference is released.
func (s *Store) LocalPath(ctx context.Context, id RefID) (path string, ref Reference, err error) {
	path, ref, err = s.localPath(ctx, id)
	return path, ref, fail("find a path for attachment", string(id), err)
}

func (s *Store) localPath(ctx context.Context, id RefID) (string, Reference, error) {
	done, err := s.hold(ctx, false)
	if err != nil {
		return "", Reference{}, err
	}
	defer done()
	ref, err := s.reference(ctx, id)
	if err != nil {
		return "", Reference{}, err
	}
	dir := viewsDir + "/" + string(id)
	if err := s.root.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", Reference{}, err
	}
	name := dir + "/" + CleanName(ref.Name)
	if err := s.view(ctx, ref, name); err != nil {
		return "", Reference{}, err
	}
	f, err := s.openRegular(name, ref.Size)
	if err != nil {
		return "", Reference{}, err
	}
	f.Close()
	return s.dir + "/" + name, ref, nil
}

// view makes name stand for the content: by a hard link, or a copy where there are none.
func (s *Store) view(ctx context.Context, ref Reference, name string) error {
	object, err := s.root.Lstat(objectName(ref.Digest))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: it is missing", ErrDamaged)
	}
	if err != nil {
		return plain(err)
	}
	if old, err := s.root.Lstat(name); err == nil && os.SameFile(old, object) {
		return nil
	}
	tmp := tempDir + "/" + newName()
	if err := s.root.Link(objectName(ref.Digest), tmp); err != nil {
		if err := s.copyTo(ctx, ref, tmp); err != nil {
			_ = s.root.Remove(tmp)
			return err
		}
	}
	if err := s.root.Rename(tmp, name); err != nil {
		_ = s.root.Remove(tmp)
		return plain(err)
	}
	return nil
}

func (s *Store) copyTo(ctx context.Context, ref Reference, name string) error {
	from, err := s.open(ctx, ref)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := s.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o400)
	if err != nil {
		return plain(err)
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{to}, from, make([]byte, copySize))
	return errors.Join(err, to.Close())
}
