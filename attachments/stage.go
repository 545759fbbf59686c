package attachments

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"

	"github.com/workberth/workberth/fsbridge"
)

// maxNames is under how many names a file is tried.
const maxNames = 16

// maxTries is how often a place is looked at again because somebody else was faster.
const maxTries = 4

// staging is one file on its way.
type staging struct {
	*call
	item     *item
	progress Progress
}

// errTaken: something else has the name.
var errTaken = errors.New("another file has the name")

// stage finds a free name, or the file itself, and sends it.
func (s *staging) stage(ctx context.Context) (PreparedFile, error) {
	var last error
	for n := 1; n <= maxNames; n++ {
		at := inbound(s.item.ref.Digest, s.item.name, n)
		outcome, err := s.place(ctx, at)
		if errors.Is(err, errTaken) {
			last = err
			continue
		}
		if err != nil {
			return PreparedFile{}, &BlockedError{Name: s.item.result.Fact.Name, Path: at, Err: overtime(ctx, s.p.opts.Timeout, err), Hint: hintFor(err)}
		}
		return PreparedFile{Outcome: outcome, Path: workspacePath(s.bridge, at), WorkspacePath: at}, nil
	}
	return PreparedFile{}, &BlockedError{
		Name: s.item.result.Fact.Name, Path: inbound(s.item.ref.Digest, s.item.name, 1),
		Err: fmt.Errorf("%w: %w", ErrTaken, last), Hint: hintFor(ErrTaken),
	}
}

// place puts the file at one path, unless it is there.
func (s *staging) place(ctx context.Context, at string) (Outcome, error) {
	var err error
	for range maxTries {
		var there bool
		if there, err = s.there(ctx, at); err != nil {
			return "", err
		}
		if there {
			return Present, nil
		}
		if err = s.send(ctx, at); err == nil {
			return Staged, nil
		}
		if !errors.Is(err, fs.ErrExist) && !errors.Is(err, fsbridge.ErrConflict) {
			return s.settle(ctx, at, err)
		}
		// Somebody else has made it meanwhile: see what it is.
	}
	return "", err
}

// there reports whether the very content is at a path already, proved by its hash.
// Something else there is errTaken. Keeps ATT-21.
func (s *staging) there(ctx context.Context, at string) (bool, error) {
	info, err := s.describe(ctx, at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case isInTheWay(err):
		return false, fmt.Errorf("%w: %w", errTaken, err)
	case err != nil:
		return false, err
	case !info.IsRegular():
		return false, fmt.Errorf("%w: it is a %s", errTaken, info.Type)
	case info.Size != s.item.ref.Size:
		return false, errTaken
	}
	d, err := s.hash(ctx, at, info.Size)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case isInTheWay(err):
		return false, fmt.Errorf("%w: %w", errTaken, err)
	case err != nil:
		return false, err
	case d != s.item.ref.Digest:
		return false, errTaken
	}
	return true, nil
}

// isInTheWay reports errors that say what is at a name, and not that asking failed.
func isInTheWay(err error) bool {
	return errors.Is(err, fsbridge.ErrOutsideRoot) || errors.Is(err, fsbridge.ErrNotRegular) || errors.Is(err, syscall.ELOOP) ||
		errors.Is(err, fsbridge.ErrTooLarge)
}

// describe looks at a path, at a link itself where the bridge can.
func (s *staging) describe(ctx context.Context, at string) (fsbridge.FileInfo, error) {
	if err := current(ctx, s.guard); err != nil {
		return fsbridge.FileInfo{}, err
	}
	if fsbridge.Has(s.bridge, fsbridge.CapLstat) {
		return fsbridge.Lstat(ctx, s.bridge, at)
	}
	return s.bridge.Stat(ctx, at)
}

// hash hashes the file at a path: there, or here where the bridge cannot.
func (s *staging) hash(ctx context.Context, at string, size int64) (fsbridge.Digest, error) {
	if err := current(ctx, s.guard); err != nil {
		return "", err
	}
	switch {
	case fsbridge.Has(s.bridge, fsbridge.CapHashFile):
		h, err := fsbridge.HashFile(ctx, s.bridge, at)
		return h.Digest, err
	case fsbridge.Has(s.bridge, fsbridge.CapOpenReader):
		r, _, err := fsbridge.OpenReader(ctx, s.bridge, at)
		if err != nil {
			return "", err
		}
		defer r.Close()
		return digest(io.LimitReader(r, size+1))
	}
	data, err := s.bridge.ReadFile(ctx, at)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return fsbridge.DigestOf(sum[:]), nil
}

// digest hashes what a reader yields.
func digest(r io.Reader) (fsbridge.Digest, error) {
	sum := sha256.New()
	_, err := io.CopyBuffer(struct{ io.Writer }{sum}, r, make([]byte, 64<<10))
	return fsbridge.DigestOf(sum.Sum(nil)), err
}

// send creates the file. The media store compares the hash before the last byte is given
// away, so that damaged content is never completed.
func (s *staging) send(ctx context.Context, at string) error {
	if err := current(ctx, s.guard); err != nil {
		return err
	}
	o, err := s.p.opts.Store.Open(ctx, s.item.ref)
	if err != nil {
		return err
	}
	defer o.Close()
	src := &source{ctx: ctx, s: s, r: o}
	s.report(0)
	if !fsbridge.Has(s.bridge, fsbridge.CapWriteStream) {
		data := make([]byte, s.item.ref.Size)
		if _, err := io.ReadFull(src, data); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if _, err := src.Read(make([]byte, 1)); err != io.EOF { //nolint:errorlint // the end itself, where the hash is compared
			return err
		}
		return fsbridge.CreateFileExclusive(ctx, s.bridge, at, data)
	}
	res, err := fsbridge.WriteStream(ctx, s.bridge, at, src, fsbridge.WriteOptions{
		If: fsbridge.Precondition{Absent: true}, Size: s.item.ref.Size,
	})
	if err != nil {
		return err
	}
	if res.Digest != s.item.ref.Digest {
		return fmt.Errorf("it arrived as %s and should be %s", res.Digest, s.item.ref.Digest)
	}
	return nil
}

func (s *staging) report(sent int64) {
	s.progress.Sent = sent
	if s.p.opts.Progress != nil {
		s.p.opts.Progress(s.progress)
	}
}

// source is content on its way. It ends when the turn does. Keeps ATT-24.
type source struct {
	ctx  context.Context
	s    *staging
	r    io.Reader
	sent int64
}

// Read implements io.Reader.
func (r *source) Read(p []byte) (int, error) {
	if err := current(r.ctx, r.s.guard); err != nil {
		return 0, err
	}
	n, err := r.r.Read(p)
	if n > 0 {
		r.sent += int64(n)
		r.s.report(r.sent)
	}
	return n, err
}
