package aferofs

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"

	"github.com/spf13/afero"

	"github.com/workberth/workberth/fsbridge"
)

// WriteFile atomically replaces the content of p, or creates it.
func (b *Bridge) WriteFile(ctx context.Context, p string, data []byte) error {
	_, err := b.write(ctx, p, bytes.NewReader(data), fsbridge.WriteOptions{})
	return fail("write", p, err)
}

// WriteStream atomically writes from r. See fsbridge.StreamWriter.
func (b *Bridge) WriteStream(ctx context.Context, p string, r io.Reader, opts fsbridge.WriteOptions) (fsbridge.WriteResult, error) {
	res, err := b.write(ctx, p, r, opts)
	return res, fail("write", p, err)
}

func (b *Bridge) write(ctx context.Context, p string, r io.Reader, opts fsbridge.WriteOptions) (fsbridge.WriteResult, error) {
	if err := opts.Check(); err != nil {
		return fsbridge.WriteResult{}, err
	}
	if err := b.begin(ctx, p); err != nil {
		return fsbridge.WriteResult{}, err
	}
	pl, err := b.resolve(p, true, !opts.NoParents)
	if err != nil {
		return fsbridge.WriteResult{}, err
	}
	if err := writable(pl); err != nil {
		return fsbridge.WriteResult{}, err
	}
	// Looked at early, so that nothing is made for a write that cannot happen, and again at the end.
	if err := b.holds(ctx, pl.abs, opts.If); err != nil {
		return fsbridge.WriteResult{}, err
	}
	t, err := b.prepare(ctx, pl, r, opts)
	if err != nil {
		return fsbridge.WriteResult{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	created, err := b.commit(ctx, pl.abs, t, opts)
	if err != nil {
		return fsbridge.WriteResult{}, errors.Join(err, b.fs.Remove(t.abs))
	}
	return fsbridge.WriteResult{FileHash: t.hash, Created: created}, nil
}

// writable tells whether a regular file may be put at the place.
func writable(pl place) error {
	if pl.info == nil && pl.dirOnly {
		return fmt.Errorf("a path that ends in a slash names a directory: %w", syscall.EISDIR)
	}
	if pl.info != nil {
		if err := regular(pl.info); err != nil {
			return err
		}
	}
	return pl.changeable()
}

// temporary is a complete file that does not have its name yet.
type temporary struct {
	abs  string
	hash fsbridge.FileHash
}

// prepare writes the content to a temporary file beside the place, whose missing parents are made.
// When it fails, nothing is left of the file.
func (b *Bridge) prepare(ctx context.Context, pl place, r io.Reader, opts fsbridge.WriteOptions) (temporary, error) {
	t := temporary{abs: path.Join(path.Dir(pl.abs), b.tempName())}
	f, err := b.openTemp(ctx, pl, t.abs)
	if err != nil {
		return t, err
	}
	t.hash, err = b.fill(ctx, f, r, opts)
	err = errors.Join(err, f.Close())
	if err != nil {
		return t, errors.Join(err, b.fs.Remove(t.abs))
	}
	return t, nil
}

// tempName is a fresh name for a temporary file.
func (b *Bridge) tempName() string { return tempPrefix + rand.Text() }

// tempPrefix marks temporary files; listings leave them out.
const tempPrefix = ".berth-afero-"

// openTemp makes the parents and the temporary file.
func (b *Bridge) openTemp(ctx context.Context, pl place, name string) (afero.File, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.makeParents(ctx, pl); err != nil {
		return nil, err
	}
	if err := b.step(ctx); err != nil {
		return nil, err
	}
	return b.fs.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// fill copies the content.
func (b *Bridge) fill(ctx context.Context, f afero.File, r io.Reader, opts fsbridge.WriteOptions) (fsbridge.FileHash, error) {
	var src io.Reader = &checked{ctx, b, r}
	if opts.Size > 0 {
		src = io.LimitReader(src, opts.Size+1)
	}
	sum := sha256.New()
	n, err := io.CopyBuffer(io.MultiWriter(f, sum), src, make([]byte, chunk))
	if err == nil && opts.Size > 0 && n != opts.Size {
		err = fmt.Errorf("the content has another size than the announced %d bytes: %w", opts.Size, fsbridge.ErrInvalid)
	}
	if err == nil && opts.Sync {
		err = f.Sync()
	}
	return fsbridge.FileHash{Digest: fsbridge.DigestOf(sum.Sum(nil)), Size: n}, err
}

// commit gives the temporary file its name. b.mu is held.
func (b *Bridge) commit(ctx context.Context, abs string, t temporary, opts fsbridge.WriteOptions) (created bool, err error) {
	if err := b.holds(ctx, abs, opts.If); err != nil {
		return false, err
	}
	old, err := b.lstat(abs)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		created = true
		if err := b.isDir(path.Dir(abs)); err != nil {
			return false, err
		}
	case err != nil:
		return false, err
	default:
		if err := regular(old); err != nil {
			return false, err
		}
	}
	mode := opts.Mode
	if mode == 0 && created {
		mode = 0o666 &^ *b.opts.Umask
	} else if mode == 0 {
		mode = modeOf(old.Mode())
		b.keepOwner(t.abs, old)
	}
	if err := b.step(ctx); err != nil {
		return false, err
	}
	if err := b.fs.Chmod(t.abs, fileMode(mode)); err != nil {
		return false, err
	}
	return created, b.fs.Rename(t.abs, abs)
}

// keepOwner gives the file at p the owner of old, where the process may.
func (b *Bridge) keepOwner(p string, old fs.FileInfo) {
	var is fsbridge.FileInfo
	systemInfo(&is, old.Sys())
	if is.Nlink > 0 { // the Fs knows owners
		_ = b.fs.Chown(p, int(is.UID), int(is.GID))
	}
}

// isDir demands a directory at p.
func (b *Bridge) isDir(p string) error {
	i, err := b.lstat(p)
	if err == nil && !i.IsDir() {
		err = syscall.ENOTDIR
	}
	return err
}

// holds checks a precondition against the file at abs.
func (b *Bridge) holds(ctx context.Context, abs string, c fsbridge.Precondition) error {
	if c == (fsbridge.Precondition{}) {
		return nil
	}
	current := fsbridge.Digest("")
	info, err := b.lstat(abs)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if c.Absent {
			return nil
		}
	case err != nil:
		return err
	case typeOf(info) == fsbridge.TypeRegular:
		f, _, err := b.openAt(abs, info)
		if err != nil {
			return err
		}
		h, err := b.hashOpen(ctx, f)
		if err != nil {
			return err
		}
		current = h.Digest
	}
	if c.Absent || current != c.Hash {
		return &fsbridge.ConflictError{Current: current, Expected: c.Hash}
	}
	return nil
}

// CreateFileExclusive writes a new file. Keeps FSB-08 where Options.Private holds.
func (b *Bridge) CreateFileExclusive(ctx context.Context, p string, data []byte) error {
	return fail("create", p, func() error {
		if !b.opts.Private {
			return &fsbridge.UnsupportedError{Capability: fsbridge.CapCreateFileExclusive}
		}
		if err := b.begin(ctx, p); err != nil {
			return err
		}
		pl, err := b.resolve(p, false, true)
		if err != nil {
			return err
		}
		if err := pl.changeable(); err != nil {
			return err
		}
		if pl.info != nil {
			return fs.ErrExist
		}
		if err := writable(pl); err != nil {
			return err
		}
		t, err := b.prepare(ctx, pl, bytes.NewReader(data), fsbridge.WriteOptions{})
		if err != nil {
			return err
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if _, err = b.lstat(pl.abs); err == nil {
			err = fs.ErrExist
		} else if errors.Is(err, fs.ErrNotExist) {
			_, err = b.commit(ctx, pl.abs, t, fsbridge.WriteOptions{})
		}
		if err != nil {
			return errors.Join(err, b.fs.Remove(t.abs))
		}
		return nil
	}())
}

// AppendFile adds data at the end of a regular file.
func (b *Bridge) AppendFile(ctx context.Context, p string, data []byte) error {
	return fail("append", p, func() error {
		if err := b.begin(ctx, p); err != nil {
			return err
		}
		pl, err := b.resolve(p, true, true)
		if err != nil {
			return err
		}
		if err := writable(pl); err != nil {
			return err
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if err := b.makeParents(ctx, pl); err != nil {
			return err
		}
		return b.appendLocked(ctx, pl.abs, data)
	}())
}

func (b *Bridge) appendLocked(ctx context.Context, abs string, data []byte) (err error) {
	info, err := b.lstat(abs)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil {
		if err := regular(info); err != nil {
			return err
		}
	}
	if err := b.step(ctx); err != nil {
		return err
	}
	mode := fileMode(0o666 &^ *b.opts.Umask)
	f, err := b.fs.OpenFile(abs, os.O_WRONLY|os.O_CREATE|os.O_APPEND, mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if info == nil {
		if err := b.fs.Chmod(abs, mode); err != nil {
			return err
		}
	}
	for len(data) > 0 {
		if err := b.step(ctx); err != nil {
			return err
		}
		n, err := f.Write(data[:min(len(data), chunk)])
		if err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}
