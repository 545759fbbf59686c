//go:build linux

package local

import (
	"context"
	"fmt"
	"io"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/rooted"
	"golang.org/x/sys/unix"
)

// WriteFile implements fsbridge.Bridge.
func (b *Bridge) WriteFile(ctx context.Context, path string, data []byte) error {
	_, err := b.write(ctx, opWrite, path, &writing{content: bytesContent(data)})
	return err
}

// WriteStream implements fsbridge.StreamWriter.
func (b *Bridge) WriteStream(ctx context.Context, path string, r io.Reader, opts fsbridge.WriteOptions) (fsbridge.WriteResult, error) {
	return b.write(ctx, opWrite, path, &writing{content: readerContent{r: r, size: opts.Size}, opts: opts})
}

// CreateFileExclusive implements fsbridge.ExclusiveCreator. A link at path counts as existing,
// wherever it points. Keeps FSB-08.
func (b *Bridge) CreateFileExclusive(ctx context.Context, path string, data []byte) error {
	_, err := b.write(ctx, opCreate, path, &writing{content: bytesContent(data), exclusive: true})
	return err
}

// writing is one atomic write.
type writing struct {
	content content
	opts    fsbridge.WriteOptions
	// exclusive refuses an existing name with fs.ErrExist and does not follow a link there.
	exclusive bool
	// like gives a new file its mode, less the umask; nil means 0666.
	like *rooted.Stat

	tmp    *rooted.Temp
	result fsbridge.WriteResult
}

func (b *Bridge) write(ctx context.Context, op, path string, w *writing) (fsbridge.WriteResult, error) {
	if err := b.begin(ctx, op, path); err != nil {
		return fsbridge.WriteResult{}, err
	}
	defer b.end()
	if err := b.writeAt(ctx, path, w); err != nil {
		return fsbridge.WriteResult{}, pathError(op, path, err)
	}
	return w.result, nil
}

// writeAt prepares the complete file first and makes missing directories last, so that a failure
// leaves nothing behind.
func (b *Bridge) writeAt(ctx context.Context, path string, w *writing) error {
	if err := validWrite(w.opts); err != nil {
		return err
	}
	parents := !w.opts.NoParents && w.opts.If.Hash == ""
	place, err := b.aim(path, w, b.prepareAbove(ctx, w, parents))
	defer func() {
		if w.tmp != nil {
			w.tmp.Discard()
		}
	}()
	missing := err == errPrepared
	switch {
	case missing:
	case err == unix.ENOENT && w.opts.If.Hash != "":
		return &fsbridge.ConflictError{Expected: w.opts.If.Hash}
	case err != nil:
		return err
	default:
		defer place.Close()
		if err := b.admit(ctx, &place, w); err != nil {
			return err
		}
		if err := b.prepare(ctx, &place.Dir, &place.Child, place.Exists, w); err != nil {
			return err
		}
	}
	if w.result.FileHash, err = w.content.fill(ctx, b, w.tmp.FD); err != nil {
		return err
	}
	if missing {
		if place, err = b.aim(path, w, b.maker(ctx, 0, w.opts.Sync)); err != nil {
			return err
		}
		defer place.Close()
		if err := b.admit(ctx, &place, w); err != nil {
			return err
		}
	}
	return b.commit(ctx, &place, w)
}

// errPrepared ends the first resolution of a path with missing directories.
var errPrepared = fmt.Errorf("prepared")

// aim finds the place to write to.
func (b *Bridge) aim(path string, w *writing, mk rooted.Maker) (rooted.Place, error) {
	if w.exclusive {
		return b.tree.Parent(path, mk)
	}
	return b.tree.Target(path, mk)
}

// prepareAbove makes the temporary file in the deepest existing directory of a path instead of
// making the missing ones.
func (b *Bridge) prepareAbove(ctx context.Context, w *writing, parents bool) rooted.Maker {
	if !parents {
		return nil
	}
	return func(dir *rooted.Handle, _ string) error {
		if err := writable(dir.Root); err != nil {
			return err
		}
		if err := b.prepare(ctx, dir, nil, false, w); err != nil {
			return err
		}
		return errPrepared
	}
}

// admit refuses places that cannot be written to, before any effect.
func (b *Bridge) admit(ctx context.Context, place *rooted.Place, w *writing) error {
	switch {
	case place.Name == "" && w.exclusive:
		return unix.EEXIST
	case place.Name == "":
		return &rooted.NotRegularError{Type: fsbridge.TypeDir}
	case place.Exists && !place.Child.IsRegular():
		return &rooted.NotRegularError{Type: place.Child.Type}
	case place.MustDir && place.Exists:
		return unix.ENOTDIR
	case place.MustDir:
		return fmt.Errorf("a path that ends in a slash names a directory: %w", unix.EISDIR)
	}
	if err := writable(place.Dir.Root); err != nil {
		return err
	}
	switch {
	case w.opts.If.Hash != "" && !place.Exists:
		return &fsbridge.ConflictError{Expected: w.opts.If.Hash}
	case w.opts.If.Absent && place.Exists:
		return b.conflict(ctx, &place.Dir, place.Name, "")
	}
	return nil
}

// prepare makes the temporary file with the mode it is to have.
func (b *Bridge) prepare(ctx context.Context, dir *rooted.Handle, old *rooted.Stat, exists bool, w *writing) error {
	if err := b.check(ctx); err != nil {
		return err
	}
	mode := uint32(0o666)
	switch {
	case w.opts.Mode != 0:
		mode = uint32(w.opts.Mode & fsbridge.ModePerm)
	case exists:
		mode = uint32(old.Mode & fsbridge.ModePerm)
	case w.like != nil:
		mode = uint32(w.like.Mode & fsbridge.ModePerm)
	}
	var err error
	w.tmp, err = b.tree.NewTemp(dir, mode, b.names)
	return err
}

// validWrite refuses malformed options.
func validWrite(o fsbridge.WriteOptions) error {
	if o.Mode&^fsbridge.ModeAll != 0 {
		return fmt.Errorf("mode %#o has bits that are no permissions: %w", uint32(o.Mode), fsbridge.ErrInvalid)
	}
	if o.Mode&^fsbridge.ModePerm != 0 && !o.AllowSetID {
		return hint(fmt.Errorf("mode %#o has set-id or sticky bits: %w", uint32(o.Mode), fsbridge.ErrInvalid),
			"set AllowSetID if that is meant")
	}
	if o.Size < 0 {
		return fmt.Errorf("size %d is negative: %w", o.Size, fsbridge.ErrInvalid)
	}
	return validPrecondition(o.If)
}

func validPrecondition(p fsbridge.Precondition) error {
	if p.Hash == "" {
		return nil
	}
	if p.Absent {
		return fmt.Errorf("a precondition demands both a hash and that the file is absent: %w", fsbridge.ErrInvalid)
	}
	ok := len(p.Hash) == 64
	for _, c := range []byte(p.Hash) {
		ok = ok && (c >= '0' && c <= '9' || c >= 'a' && c <= 'f')
	}
	if !ok {
		return fmt.Errorf("%q is not a SHA-256 in lower-case hexadecimal: %w", p.Hash, fsbridge.ErrInvalid)
	}
	return nil
}
