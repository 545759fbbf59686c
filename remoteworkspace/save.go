package remoteworkspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/workberth/workberth/fsbridge"
)

// Set saves a document as a whole. The old content is whole when the save fails; when
// the connection fails while the save is under way the error matches
// ErrOutcomeUnknown, and nothing is repeated. Keeps RWS-09, RWS-10, RWS-11.
func (s *DocumentService) Set(ctx context.Context, r SetRequest) (SetResult, error) {
	op := Operation{Method: MethodSet, Dir: r.Dir, Name: r.Name}
	guard, err := s.permitted(ctx, op)
	if err != nil {
		return SetResult{}, op.fail(err)
	}
	want, err := expectation(r.ExpectedHash)
	if err != nil {
		return SetResult{}, op.fail(err)
	}
	if int64(len(r.Content)) > s.max {
		return SetResult{}, op.fail(s.tooLarge(int64(len(r.Content))))
	}
	o, err := s.w.open(ctx, r.Dir, guard)
	if err != nil {
		return SetResult{}, op.fail(err)
	}
	defer o.close()
	leave, err := s.saves.enter(ctx, o.key+"\x00"+r.Name)
	if err != nil {
		return SetResult{}, op.fail(err)
	}
	defer leave()
	res, err := s.save(ctx, o, r.Name, r.Content, want)
	return res, op.fail(err)
}

// expectation turns an expected hash into a precondition.
func expectation(hash *string) (fsbridge.Precondition, error) {
	switch {
	case hash == nil:
		return fsbridge.Precondition{}, nil
	case *hash == "":
		return fsbridge.Precondition{Absent: true}, nil
	case !isDigest(*hash):
		return fsbridge.Precondition{}, fmt.Errorf("expected hash %q is no SHA-256 in lower-case hexadecimal: %w", *hash, ErrInvalid)
	}
	return fsbridge.Precondition{Hash: fsbridge.Digest(*hash)}, nil
}

// isDigest reports 64 digits of lower-case hexadecimal.
func isDigest(s string) bool {
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return len(s) == 64
}

// save writes a document under a precondition, by the closest means that the bridge
// has: a write that checks where the file is, or a check followed by a write.
func (s *DocumentService) save(ctx context.Context, o *opened, name string, data []byte, want fsbridge.Precondition) (SetResult, error) {
	if err := ctx.Err(); err != nil {
		return SetResult{}, err
	}
	res := SetResult{Document: Document{Name: name, Size: int64(len(data)), Hash: hashOf(data)}}
	var err error
	if fsbridge.Has(o.Bridge, fsbridge.CapWriteStream) {
		var w fsbridge.WriteResult
		w, err = fsbridge.WriteStream(ctx, o.Bridge, name, bytes.NewReader(data), fsbridge.WriteOptions{If: want, Size: int64(len(data))})
		res.Created, err = w.Created, written(err)
	} else {
		res.Created, err = s.checkAndWrite(ctx, o, name, data, want)
	}
	if errors.Is(err, ErrOutcomeUnknown) {
		s.w.log.Debug("nobody knows whether a document was saved", "dir", o.dir, "document", name, "error", err)
	}
	if err != nil {
		return SetResult{}, o.explain(ctx, saveError(err, want), false)
	}
	// The time of the file is a courtesy: the save is done, whatever becomes of this.
	if info, err := o.Stat(ctx, name); err == nil {
		res.ModTime = info.ModTime
	}
	return res, nil
}

// checkAndWrite is the best that the core of a bridge can do.
func (s *DocumentService) checkAndWrite(ctx context.Context, o *opened, name string, data []byte, want fsbridge.Precondition) (created bool, err error) {
	if want == (fsbridge.Precondition{}) {
		_, err := o.Stat(ctx, name)
		if err != nil && wholesale(err) {
			return false, err
		}
		return errors.Is(err, fs.ErrNotExist), written(o.WriteFile(ctx, name, data))
	}
	now, err := o.ReadFile(ctx, name)
	absent := errors.Is(err, fs.ErrNotExist)
	if err != nil && !absent {
		return false, err
	}
	switch {
	case want.Hash != "" && absent:
		return false, &ConflictError{Expected: want.Hash}
	case want.Hash != "" && hashOf(now) != want.Hash:
		return false, &ConflictError{Expected: want.Hash, Current: hashOf(now)}
	case want.Absent && !absent:
		return false, &ConflictError{Current: hashOf(now)}
	case want.Absent && fsbridge.Has(o.Bridge, fsbridge.CapCreateFileExclusive):
		err = fsbridge.CreateFileExclusive(ctx, o.Bridge, name, data)
		if errors.Is(err, fs.ErrExist) {
			return false, s.taken(ctx, o, name)
		}
		return true, written(err)
	}
	return absent, written(o.WriteFile(ctx, name, data))
}

// taken is the conflict with a document that has just appeared.
func (s *DocumentService) taken(ctx context.Context, o *opened, name string) error {
	now, err := o.ReadFile(ctx, name)
	if err != nil {
		return &ConflictError{}
	}
	return &ConflictError{Current: hashOf(now)}
}

// written marks the failure of a write that may have been sent already: the caller
// gave up waiting for its answer, so that nobody knows. Keeps RWS-11.
func written(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		if !errors.Is(err, ErrOutcomeUnknown) {
			return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
		}
	}
	return err
}

// saveError gives the failure of a save the words of this package.
func saveError(err error, want fsbridge.Precondition) error {
	var conflict *fsbridge.ConflictError
	if errors.As(err, &conflict) {
		return &ConflictError{Expected: want.Hash, Current: conflict.Current}
	}
	return err
}
