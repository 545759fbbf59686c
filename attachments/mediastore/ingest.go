package mediastore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gabriel-vasile/mimetype"

	"github.com/workberth/workberth/fsbridge"
)

const (
	// headSize is how much of a content its media type is found from, in bytes.
	headSize = 3072
	// copySize is how much of a content is in memory at a time, in bytes.
	copySize = 256 << 10
)

// IngestFile takes in a regular file of this machine, whose base name is its name where
// facts have none. Links are followed. The size is checked before anything is read and
// again while it is; a file that changes meanwhile is ErrChanged.
func (s *Store) IngestFile(ctx context.Context, path string, facts Facts) (Reference, error) {
	if facts.Name == "" {
		facts.Name = filepath.Base(path)
	}
	r, err := s.ingestFile(ctx, path, facts)
	return r, fail("ingest", path, err)
}

func (s *Store) ingestFile(ctx context.Context, path string, facts Facts) (Reference, error) {
	// Looked at first: to open a device can have an effect.
	before, err := os.Stat(path)
	if err != nil {
		return Reference{}, plain(err)
	}
	if !before.Mode().IsRegular() {
		return Reference{}, fmt.Errorf("%w: it is a %s", ErrNotRegular, kindOf(before.Mode()))
	}
	f, err := os.OpenFile(path, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return Reference{}, plain(err)
	}
	defer f.Close()
	before, err = f.Stat()
	if err != nil {
		return Reference{}, plain(err)
	}
	if !before.Mode().IsRegular() {
		return Reference{}, fmt.Errorf("%w: it is a %s", ErrNotRegular, kindOf(before.Mode()))
	}
	unchanged := func() error {
		after, err := f.Stat()
		if err == nil && (after.Size() != before.Size() || !after.ModTime().Equal(before.ModTime())) {
			err = ErrChanged
		}
		return err
	}
	return s.ingest(ctx, f, before.Size(), facts, unchanged)
}

// plain takes the path out of an error whose path is told already.
func plain(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

func kindOf(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "directory"
	case m&fs.ModeNamedPipe != 0:
		return "FIFO"
	case m&fs.ModeSocket != 0:
		return "socket"
	case m&fs.ModeDevice != 0:
		return "device"
	}
	return "special file"
}

// IngestBytes takes in content that is in memory.
func (s *Store) IngestBytes(ctx context.Context, data []byte, facts Facts) (Reference, error) {
	r, err := s.ingest(ctx, bytes.NewReader(data), int64(len(data)), facts, nil)
	return r, fail("ingest", facts.Name, err)
}

// IngestReader takes in what a reader yields, in constant memory. size is what was
// announced, in bytes, or negative when nothing was: content of another size is ErrSize.
func (s *Store) IngestReader(ctx context.Context, r io.Reader, size int64, facts Facts) (Reference, error) {
	ref, err := s.ingest(ctx, r, size, facts, nil)
	return ref, fail("ingest", facts.Name, err)
}

// ingest copies, flushes, and names. check, which may be nil, is asked when the content is
// complete and before it is named.
func (s *Store) ingest(ctx context.Context, r io.Reader, size int64, facts Facts, check func() error) (Reference, error) {
	if size > s.limit {
		return Reference{}, &fsbridge.LimitError{What: "file size", Limit: s.limit, Actual: size}
	}
	t, err := s.newTemp(ctx)
	if err != nil {
		return Reference{}, err
	}
	defer t.discard()
	ref := Reference{Facts: facts}
	if err := s.fill(ctx, t, r, size, &ref); err != nil {
		return Reference{}, err
	}
	if check != nil {
		if err := check(); err != nil {
			return Reference{}, err
		}
	}
	if err := t.file.Chmod(0o400); err != nil {
		return Reference{}, err
	}
	if err := t.file.Sync(); err != nil {
		return Reference{}, err
	}
	return ref, s.commit(ctx, t, &ref)
}

// fill copies the content to the temporary file and finds its facts.
func (s *Store) fill(ctx context.Context, t *temporary, r io.Reader, size int64, ref *Reference) error {
	sum := sha256.New()
	var head []byte
	buf := make([]byte, copySize)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := r.Read(buf)
		if n > 0 {
			ref.Size += int64(n)
			switch {
			case ref.Size > s.limit:
				return &fsbridge.LimitError{What: "file size", Limit: s.limit}
			case size >= 0 && ref.Size > size:
				return fmt.Errorf("%w: more than %d bytes came", ErrSize, size)
			}
			head = append(head, buf[:min(n, headSize-len(head))]...)
			sum.Write(buf[:n])
			if _, err := t.file.Write(buf[:n]); err != nil {
				return plain(err)
			}
		}
		if err == io.EOF { // itself: a wrapped io.EOF is no end of input
			break
		}
		if err != nil {
			return err
		}
	}
	if size >= 0 && ref.Size != size {
		return fmt.Errorf("%w: %d bytes came of %d", ErrSize, ref.Size, size)
	}
	ref.Digest = fsbridge.DigestOf(sum.Sum(nil))
	ref.Type = mimetype.Detect(head).String()
	return nil
}

// commit gives object and reference their names, in this order.
func (s *Store) commit(ctx context.Context, t *temporary, ref *Reference) error {
	done, err := s.hold(ctx, false)
	if err != nil {
		return err
	}
	defer done()
	dir := objectsDir + "/" + string(ref.Digest[:2])
	switch err := s.root.Mkdir(dir, 0o700); {
	case err == nil:
		if err := s.syncDir(objectsDir); err != nil {
			return err
		}
	case !errors.Is(err, fs.ErrExist):
		return err
	}
	// An object that is there already has the same content: the new file takes its place,
	// which repairs one that was damaged. Who reads the old one goes on reading it.
	if err := s.root.Rename(t.name, objectName(ref.Digest)); err != nil {
		return err
	}
	t.named = true
	if err := s.syncDir(dir); err != nil {
		return err
	}
	ref.ID, ref.Created = newReference(ref.Digest), s.now().UTC()
	data, err := ref.encode()
	if err != nil {
		return err
	}
	if err := s.writeDurably(refsDir+"/"+string(ref.ID), data); err != nil {
		return err
	}
	return s.syncDir(refsDir)
}

// objectName is where a content lies.
func objectName(d fsbridge.Digest) string { return objectsDir + "/" + string(d[:2]) + "/" + string(d) }

// temporary is a content that is not complete. Its own lock says that its owner lives.
type temporary struct {
	root  *os.Root
	name  string
	file  *os.File
	named bool // it has become an object
}

// newTemp makes one. The store's lock keeps a collection away until it has its own.
func (s *Store) newTemp(ctx context.Context) (*temporary, error) {
	done, err := s.hold(ctx, false)
	if err != nil {
		return nil, err
	}
	defer done()
	t := &temporary{root: s.root, name: tempDir + "/" + newName()}
	t.file, err = s.root.OpenFile(t.name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, plain(err)
	}
	if err := lock(ctx, t.file, true); err != nil {
		t.discard()
		return nil, err
	}
	return t, nil
}

// discard closes the file and, unless it has been named, removes it.
func (t *temporary) discard() {
	if !t.named {
		_ = t.root.Remove(t.name) // a collection removes what is left
	}
	t.file.Close()
}
