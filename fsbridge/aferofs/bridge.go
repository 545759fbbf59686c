package aferofs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"github.com/spf13/afero"

	"github.com/workberth/workberth/fsbridge"
)

// Bridge presents an afero.Fs as a bridge. It is safe for concurrent use if the Fs is.
type Bridge struct {
	fs    afero.Fs
	opts  Options
	links bool // the Fs can tell and make symbolic links

	// mu is held while names are made, changed or removed: afero file systems check too little
	// to survive two such steps on one directory at once.
	mu sync.Mutex
}

var (
	_ fsbridge.Bridge           = (*Bridge)(nil)
	_ fsbridge.Declarer         = (*Bridge)(nil)
	_ fsbridge.Mounter          = (*Bridge)(nil)
	_ fsbridge.Lstater          = (*Bridge)(nil)
	_ fsbridge.RangeReader      = (*Bridge)(nil)
	_ fsbridge.StreamReader     = (*Bridge)(nil)
	_ fsbridge.StreamWriter     = (*Bridge)(nil)
	_ fsbridge.ExclusiveCreator = (*Bridge)(nil)
	_ fsbridge.Appender         = (*Bridge)(nil)
	_ fsbridge.Mkdirer          = (*Bridge)(nil)
	_ fsbridge.Remover          = (*Bridge)(nil)
	_ fsbridge.Renamer          = (*Bridge)(nil)
	_ fsbridge.Copier           = (*Bridge)(nil)
	_ fsbridge.LinkReader       = (*Bridge)(nil)
	_ fsbridge.Symlinker        = (*Bridge)(nil)
	_ fsbridge.Chmoder          = (*Bridge)(nil)
	_ fsbridge.DirReader        = (*Bridge)(nil)
	_ fsbridge.Walker           = (*Bridge)(nil)
	_ fsbridge.Hasher           = (*Bridge)(nil)
	_ fsbridge.Globber          = (*Bridge)(nil)
)

// NewBridge makes a bridge over fsys. See the package for what it declares and protects.
func NewBridge(fsys afero.Fs, opts Options) (*Bridge, error) {
	if fsys == nil {
		return nil, fmt.Errorf("afero bridge: %w", errNoFs)
	}
	opts, err := opts.complete()
	if err != nil {
		return nil, fmt.Errorf("afero bridge: %w", err)
	}
	b := &Bridge{fs: fsys, opts: opts}
	if r, ok := fsys.(afero.LinkReader); ok && len(opts.Mounts) > 0 {
		if _, ok := fsys.(afero.Linker); ok {
			// A file system that wraps another has the methods in any case; only the answer tells.
			_, err := r.ReadlinkIfPossible(opts.Mounts[0].Path)
			b.links = !errors.Is(err, afero.ErrNoReadlink)
		}
	}
	return b, nil
}

// Declares implements fsbridge.Declarer.
func (b *Bridge) Declares(c fsbridge.Capability) bool {
	switch c {
	case fsbridge.CapCreateFileExclusive, fsbridge.CapRename:
		return b.opts.Private
	case fsbridge.CapReadLink, fsbridge.CapSymlink:
		return b.links
	}
	return true
}

// Mounts returns the mount table.
func (b *Bridge) Mounts() fsbridge.MountTable {
	return append(fsbridge.MountTable(nil), b.opts.Mounts...)
}

// notCurrentError is the guard's refusal. It matches fsbridge.ErrNotCurrent and the guard's own
// error.
type notCurrentError struct{ err error }

func (e *notCurrentError) Error() string {
	return fsbridge.ErrNotCurrent.Error() + ": " + e.err.Error()
}
func (e *notCurrentError) Unwrap() []error { return []error{fsbridge.ErrNotCurrent, e.err} }

// step is called before each single request to the Fs that has an effect, and before each chunk.
// Keeps FSB-10.
func (b *Bridge) step(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if b.opts.Assert == nil {
		return nil
	}
	if err := b.opts.Assert(); err != nil {
		return &notCurrentError{err}
	}
	return nil
}

// begin is the start of every operation: the path is well formed and the authority holds.
func (b *Bridge) begin(ctx context.Context, p string) error {
	if err := fsbridge.ValidPath(p); err != nil {
		return err
	}
	return b.step(ctx)
}

// fail makes the error that callers see.
func fail(op, p string, err error) error {
	if err == nil {
		return nil
	}
	return &fsbridge.PathError{Op: op, Path: p, Err: reason(err), Hint: hint(err)}
}

// reason takes off the layers that name the path as the Fs knows it.
func reason(err error) error {
	for {
		switch e := err.(type) { //nolint:errorlint // layer by layer
		case *fs.PathError:
			err = e.Err
		case *os.LinkError:
			err = e.Err
		default:
			return err
		}
	}
}

// hint says what to do next.
func hint(err error) string {
	switch {
	case errors.Is(err, fsbridge.ErrOutsideRoot):
		return "use a path inside the mounts"
	case errors.Is(err, fsbridge.ErrReadOnly):
		return "choose a writable mount"
	case errors.Is(err, fsbridge.ErrTooLarge):
		return "read the file in parts, or raise the limit"
	}
	return ""
}
