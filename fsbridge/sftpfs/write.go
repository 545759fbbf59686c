package sftpfs

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"syscall"

	"github.com/pkg/sftp"

	"github.com/workberth/workberth/fsbridge"
)

// tempPrefix marks temporary files; listings leave them out.
const tempPrefix = ".berth-sftp-"

// tempName is a fresh name for a temporary file.
func tempName() string { return tempPrefix + rand.Text() }

// WriteFile atomically replaces the content of p, or creates it.
func (b *Bridge) WriteFile(ctx context.Context, p string, data []byte) error {
	_, err := b.WriteStream(ctx, p, bytes.NewReader(data), fsbridge.WriteOptions{})
	return err
}

// WriteStream atomically writes from r. See fsbridge.StreamWriter.
func (b *Bridge) WriteStream(ctx context.Context, p string, r io.Reader, opts fsbridge.WriteOptions) (fsbridge.WriteResult, error) {
	c := b.call(ctx)
	res, err := c.write(p, r, opts)
	return res, c.fail("write", p, err)
}

// CreateFileExclusive writes a new file. Its name is given by a hard link, which the server refuses when
// the name is taken. Keeps FSB-08.
func (b *Bridge) CreateFileExclusive(ctx context.Context, p string, data []byte) error {
	c := b.call(ctx)
	return c.fail("create", p, func() error {
		if !b.has(extHardlink) {
			return &fsbridge.UnsupportedError{Capability: fsbridge.CapCreateFileExclusive}
		}
		if err := c.begin(p); err != nil {
			return err
		}
		pl, err := c.resolve(p, false, true)
		if err != nil {
			return err
		}
		if err := pl.changeable(); err != nil {
			return err
		}
		if pl.exists {
			return os.ErrExist
		}
		if err := writable(pl); err != nil {
			return err
		}
		t, err := c.upload(pl, bytes.NewReader(data), fsbridge.WriteOptions{})
		if err != nil {
			return err
		}
		if err := c.link(t, pl.abs); err != nil {
			return also(err, c.discard(t))
		}
		return nil
	}())
}

func (c *call) write(p string, r io.Reader, opts fsbridge.WriteOptions) (fsbridge.WriteResult, error) {
	if err := opts.Check(); err != nil {
		return fsbridge.WriteResult{}, err
	}
	if opts.Sync && !c.b.has(extFsync) {
		return fsbridge.WriteResult{}, lacks(extFsync, "flush a file")
	}
	if err := c.begin(p); err != nil {
		return fsbridge.WriteResult{}, err
	}
	pl, err := c.resolve(p, true, !opts.NoParents)
	if err != nil {
		return fsbridge.WriteResult{}, err
	}
	if err := writable(pl); err != nil {
		return fsbridge.WriteResult{}, err
	}
	// Looked at early, so that nothing is made for a write that cannot happen, and again at the end.
	if err := c.holds(pl.abs, opts.If); err != nil {
		return fsbridge.WriteResult{}, err
	}
	if pl.exists && !c.b.has(extPosixRename) {
		return fsbridge.WriteResult{}, lacks(extPosixRename, "replace a file atomically")
	}
	t, err := c.upload(pl, r, opts)
	if err != nil {
		return fsbridge.WriteResult{}, err
	}
	created, err := c.commit(pl.abs, t, opts)
	if err != nil {
		return fsbridge.WriteResult{}, also(err, c.discard(t))
	}
	return fsbridge.WriteResult{FileHash: t.hash, Created: created}, nil
}

// lacks is the refusal of what the server cannot do.
func lacks(extension, what string) error {
	return fmt.Errorf("the server lacks %s and so cannot %s: %w", extension, what, fsbridge.ErrUnsupported)
}

// writable tells whether a regular file may be put at the place.
func writable(pl place) error {
	if !pl.exists && pl.dirOnly {
		return fmt.Errorf("a path that ends in a slash names a directory: %w", syscall.EISDIR)
	}
	if pl.exists {
		if err := regular(pl.info); err != nil {
			return err
		}
	}
	return pl.changeable()
}

// holds checks a precondition against the file at abs.
func (c *call) holds(abs string, p fsbridge.Precondition) error {
	if p == (fsbridge.Precondition{}) {
		return nil
	}
	current, exists, err := c.current(abs)
	if err != nil {
		return err
	}
	if p.Absent && !exists || !p.Absent && current == p.Hash {
		return nil
	}
	return &fsbridge.ConflictError{Current: current, Expected: p.Hash}
}

// current hashes the file at abs. The digest is empty when there is no regular file.
func (c *call) current(abs string) (digest fsbridge.Digest, exists bool, err error) {
	info, err := c.lstat(abs)
	if errors.Is(err, os.ErrNotExist) {
		return "", false, nil
	}
	if err != nil || info.Type != fsbridge.TypeRegular {
		return "", true, err
	}
	f, info, err := c.open(abs, info)
	if err != nil {
		return "", true, err
	}
	h, err := c.hash(f, info)
	return h.Digest, true, err
}

// temporary is a complete file that does not have its name yet.
type temporary struct {
	abs  string
	hash fsbridge.FileHash
}

// discard removes a temporary file.
func (c *call) discard(t temporary) error {
	return left(t, c.takeBack(func() error { return c.b.client.Remove(t.abs) }))
}

// left says what an unsuccessful removal of a temporary file means.
func left(t temporary, err error) error {
	if err == nil || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("the temporary file %s may be left", fsbridge.DisplayPath(t.abs))
}

// also adds to an error what tidying up met, in one line.
func also(err, tidying error) error {
	if tidying == nil {
		return err
	}
	return fmt.Errorf("%w; %s", err, tidying.Error())
}

// upload writes the content to a temporary file beside the place, whose missing parents are made. When
// it fails, nothing is left of the file.
func (c *call) upload(pl place, r io.Reader, opts fsbridge.WriteOptions) (temporary, error) {
	t := temporary{abs: path.Join(path.Dir(pl.abs), tempName())}
	if err := c.makeParents(pl); err != nil {
		return t, err
	}
	c.changed.Store(true)
	f, err := askLate(c, func() (*sftp.File, error) {
		return something(c.b.client.OpenFile(t.abs, os.O_WRONLY|os.O_CREATE|os.O_EXCL))
	}, func(f *sftp.File) {
		_ = f.Close()
		_ = c.b.client.Remove(t.abs)
	})
	if err != nil {
		return t, c.full(path.Dir(t.abs), err)
	}
	t.hash, err = c.fill(f, pl, r, opts)
	if err != nil {
		err = c.full(path.Dir(t.abs), err) // while the file still takes the space
		return t, also(err, left(t, c.takeBack(func() error {
			_ = f.Close()
			return c.b.client.Remove(t.abs)
		})))
	}
	return t, nil
}
