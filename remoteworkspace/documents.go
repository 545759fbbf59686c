package remoteworkspace

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/workberth/workberth/fsbridge"
)

// DefaultMaxDocument bounds a document where the options say nothing, in bytes.
const DefaultMaxDocument = 2 << 20

// DefaultDocuments is the allowlist where the configuration names none: the root
// documents of a workspace, in the order in which a session reads them.
func DefaultDocuments() []string {
	return []string{"AGENTS.md", "SOUL.md", "TOOLS.md", identityName, "USER.md", "HEARTBEAT.md", "BOOTSTRAP.md", memoryName}
}

// The documents that have a meaning of their own.
const (
	agentsName   = "AGENTS.md"
	identityName = "IDENTITY.md"
	memoryName   = "MEMORY.md"
)

// DocumentOptions direct Workspaces.Documents.
type DocumentOptions struct {
	// Allow lists the documents that may be named, by their path below the workspace.
	// Nil means DefaultDocuments; an empty list allows none.
	Allow []string
	// MaxBytes bounds a document, read or written; zero means DefaultMaxDocument. A
	// larger one is an error that matches fsbridge.ErrTooLarge, never a cut result.
	MaxBytes int64
}

// DocumentService is the document methods of the Gateway, for bound workspaces and
// local ones alike. It is safe for concurrent use. Every error is a *DocumentError.
//
// Saves of one document through one DocumentService wait for each other. Keeps RWS-01,
// RWS-02, RWS-06, RWS-07.
type DocumentService struct {
	w     *Workspaces
	allow []string
	max   int64
	saves queue
}

// Documents makes the document methods.
func (w *Workspaces) Documents(opts DocumentOptions) (*DocumentService, error) {
	s := &DocumentService{w: w, allow: slices.Clone(opts.Allow), max: opts.MaxBytes, saves: newQueue()}
	if opts.Allow == nil {
		s.allow = DefaultDocuments()
	}
	for _, name := range s.allow {
		if err := validName(name); err != nil {
			return nil, fmt.Errorf("documents: %w", err)
		}
	}
	switch {
	case s.max == 0:
		s.max = DefaultMaxDocument
	case s.max < 0:
		return nil, fmt.Errorf("documents: a limit of %d bytes: %w", s.max, ErrInvalid)
	}
	return s, nil
}

// validName refuses what is no name below a workspace.
func validName(name string) error {
	if err := fsbridge.ValidPath(name); err != nil {
		return err
	}
	if path.Clean(name) != name || path.IsAbs(name) || name == "." || name == ".." || strings.HasPrefix(name, "../") {
		return fmt.Errorf("%s: give a path below the workspace without superfluous elements: %w", fsbridge.DisplayPath(name), ErrInvalid)
	}
	return nil
}

// Document describes a document.
type Document struct {
	// Name is its path below the workspace, as the allowlist has it.
	Name string
	// Missing: there is no such file. The other fields are empty then.
	Missing bool
	// Size is in bytes.
	Size    int64
	ModTime time.Time
	// Hash is the SHA-256 of the content. List leaves it empty for a document that it
	// cannot hash; Problem says why.
	Hash fsbridge.Digest
	// Content is filled by Get.
	Content []byte
	// Problem says, in a list, why this document cannot be read: not a regular file, a
	// link that leaves the workspace, larger than the limit. It is a *fsbridge.PathError
	// or a *fsbridge.LimitError.
	Problem error
}

// GetRequest names a document.
type GetRequest struct {
	// Dir is the workspace directory.
	Dir  string
	Name string
}

// SetRequest is new content for a document.
type SetRequest struct {
	Dir     string
	Name    string
	Content []byte
	// ExpectedHash is the SHA-256, in lower-case hexadecimal, that the present content
	// must have; otherwise the save is ErrConflict and writes nothing. An empty string
	// demands that the document does not exist, nil demands nothing. The check is best
	// effort: programs on the machine may write between check and save. Keeps RWS-09,
	// RWS-10.
	ExpectedHash *string
}

// SetResult is what a save has made.
type SetResult struct {
	// Document describes the saved document, without content.
	Document
	// Created: it did not exist before, as far as that was seen.
	Created bool
}

// permitted asks the authorisation hook and the allowlist, in this order, before the
// bridge is touched. Keeps RWS-06, RWS-07.
func (s *DocumentService) permitted(ctx context.Context, op Operation) (fsbridge.AssertFunc, error) {
	guard, err := s.w.authorize(ctx, op)
	if err != nil {
		return nil, err
	}
	if op.Name != "" || op.Method != MethodList {
		if !slices.Contains(s.allow, op.Name) {
			return nil, fmt.Errorf("%w, which has %s", ErrNotAllowed, strings.Join(s.allow, ", "))
		}
	}
	return guard, nil
}

// begin permits an operation and opens the workspace for it.
func (s *DocumentService) begin(ctx context.Context, op Operation) (*opened, error) {
	guard, err := s.permitted(ctx, op)
	if err != nil {
		return nil, err
	}
	return s.w.open(ctx, op.Dir, guard)
}

// fail makes the error of an operation.
func (op Operation) fail(err error) error {
	if err == nil {
		return nil
	}
	return &DocumentError{Method: op.Method, Dir: op.Dir, Name: op.Name, Err: err, Hint: hintFor(err)}
}

// List describes every document of the allowlist, in its order. A missing one is
// listed as missing. One that cannot be read is listed with its problem; only what
// concerns the whole workspace fails the call.
func (s *DocumentService) List(ctx context.Context, dir string) ([]Document, error) {
	op := Operation{Method: MethodList, Dir: dir}
	o, err := s.begin(ctx, op)
	if err != nil {
		return nil, op.fail(err)
	}
	defer o.close()
	list := make([]Document, 0, len(s.allow))
	for _, name := range s.allow {
		d, err := s.describe(ctx, o, name)
		if err != nil {
			return nil, op.fail(o.explain(ctx, err, false))
		}
		list = append(list, d)
	}
	return list, nil
}

// describe looks at one document; the error concerns the whole workspace.
func (s *DocumentService) describe(ctx context.Context, o *opened, name string) (Document, error) {
	d := Document{Name: name}
	info, err := o.Stat(ctx, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.Missing = true
		return d, nil
	case err != nil:
		return blame(d, err)
	}
	d.Size, d.ModTime = info.Size, info.ModTime
	switch {
	case !info.IsRegular():
		return blame(d, &fsbridge.PathError{Op: "read", Path: name, Err: fsbridge.ErrNotRegular})
	case info.Size > s.max:
		return blame(d, s.tooLarge(info.Size))
	case fsbridge.Has(o.Bridge, fsbridge.CapHashFile):
		h, err := fsbridge.HashFile(ctx, o.Bridge, name)
		if err != nil {
			return blame(d, err)
		}
		d.Hash, d.Size = h.Digest, h.Size
	default:
		data, err := o.ReadFile(ctx, name)
		if err != nil {
			return blame(d, err)
		}
		d.Hash, d.Size = hashOf(data), int64(len(data))
	}
	return d, nil
}

// blame puts an error that concerns one document into its description, and returns
// one that concerns the workspace.
func blame(d Document, err error) (Document, error) {
	if wholesale(err) {
		return Document{}, err
	}
	if errors.Is(err, fs.ErrNotExist) {
		return Document{Name: d.Name, Missing: true}, nil // removed while it was looked at
	}
	d.Problem = err
	return d, nil
}

// wholesale tells errors that end a call about several files: the connection, the
// authority, the caller's patience.
func wholesale(err error) bool {
	for _, is := range []error{
		fsbridge.ErrUnavailable, fsbridge.ErrNotCurrent, fsbridge.ErrUnsupported, fsbridge.ErrOutcomeUnknown,
		ErrUnavailable, context.Canceled, context.DeadlineExceeded, fs.ErrClosed,
	} {
		if errors.Is(err, is) {
			return true
		}
	}
	return !local(err)
}

// local reports whether an error is one of a file, as every bridge makes them.
func local(err error) bool {
	var path *fsbridge.PathError
	var limit *fsbridge.LimitError
	return errors.As(err, &path) || errors.As(err, &limit)
}

func (s *DocumentService) tooLarge(size int64) error {
	return &fsbridge.LimitError{What: "document size", Limit: s.max, Actual: size}
}

// Get returns a document with its content and hash. A missing one is no error:
// Document.Missing tells.
func (s *DocumentService) Get(ctx context.Context, r GetRequest) (Document, error) {
	op := Operation{Method: MethodGet, Dir: r.Dir, Name: r.Name}
	o, err := s.begin(ctx, op)
	if err != nil {
		return Document{}, op.fail(err)
	}
	defer o.close()
	d, err := s.read(ctx, o, r.Name)
	if err != nil {
		return Document{}, op.fail(o.explain(ctx, err, false))
	}
	return d, nil
}

// read reads a document with nothing but the core of a bridge.
func (s *DocumentService) read(ctx context.Context, o *opened, name string) (Document, error) {
	info, err := o.Stat(ctx, name)
	if err == nil && info.IsRegular() && info.Size > s.max {
		return Document{}, s.tooLarge(info.Size)
	}
	var data []byte
	if err == nil {
		data, err = o.ReadFile(ctx, name)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Document{Name: name, Missing: true}, nil
	case err != nil:
		return Document{}, err
	case int64(len(data)) > s.max:
		return Document{}, s.tooLarge(int64(len(data)))
	}
	return Document{Name: name, Size: int64(len(data)), ModTime: info.ModTime, Hash: hashOf(data), Content: data}, nil
}

// hashOf is the digest of content.
func hashOf(data []byte) fsbridge.Digest {
	sum := sha256.Sum256(data)
	return fsbridge.DigestOf(sum[:])
}
