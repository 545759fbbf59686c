package mediastore

import (
	"errors"

	"github.com/workberth/workberth/fsbridge"
)

// Sentinels for errors.Is. fs.ErrNotExist and fs.ErrPermission keep their meaning.
var (
	// ErrTooLarge: the content is larger than the limit. Nothing was kept. The chain has
	// an *fsbridge.LimitError.
	ErrTooLarge = fsbridge.ErrTooLarge
	// ErrNotRegular: the source is no regular file.
	ErrNotRegular = fsbridge.ErrNotRegular
	// ErrInvalid: an argument is malformed.
	ErrInvalid = fsbridge.ErrInvalid
	// ErrSize: the content is not as large as was announced.
	ErrSize = errors.New("the content is not as large as announced")
	// ErrChanged: the source changed while it was read.
	ErrChanged = errors.New("the file changed while it was read")
	// ErrDamaged: what is stored does not have the hash it is stored under.
	ErrDamaged = errors.New("the stored content is damaged")
	// ErrNoReference: there is no such reference.
	ErrNoReference = errors.New("no such reference in the media store")
	// ErrNotPrivate: the directory is open to other users.
	ErrNotPrivate = errors.New("the directory is not private")
)

// StoreError reports a failed operation of a store: what was asked, of which file, the
// rule or reason, and what to do next.
type StoreError struct {
	Op string
	// Name is the file as the caller named it, or the reference.
	Name string
	Err  error
	// Hint says what to do next; it may be empty.
	Hint string
}

// Error gives one line: "ingest report.pdf: file size 9 is larger than the limit of 8".
func (e *StoreError) Error() string {
	s := e.Op
	if e.Name != "" {
		s += " " + fsbridge.DisplayPath(e.Name)
	}
	return s + ": " + e.Err.Error()
}

// Unwrap returns the reason.
func (e *StoreError) Unwrap() error { return e.Err }

// fail wraps err unless it is nil or wrapped already.
func fail(op, name string, err error) error {
	var known *StoreError
	if err == nil || errors.As(err, &known) {
		return err
	}
	return &StoreError{Op: op, Name: name, Err: err, Hint: hintFor(err)}
}

func hintFor(err error) string {
	switch {
	case errors.Is(err, ErrTooLarge):
		return "send a smaller file, or raise the limit of the media store"
	case errors.Is(err, ErrNotRegular):
		return "only regular files can be attached; pack a directory into an archive"
	case errors.Is(err, ErrChanged), errors.Is(err, ErrSize):
		return "send it again when nothing writes to it any more"
	case errors.Is(err, ErrDamaged):
		return "send the file again; that repairs what is stored"
	case errors.Is(err, ErrNoReference):
		return "it was released, or belongs to another store"
	case errors.Is(err, ErrNotPrivate):
		return "chmod 700 the directory, or choose another one"
	}
	return ""
}
