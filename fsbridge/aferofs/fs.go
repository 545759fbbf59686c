package aferofs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"syscall"
	"time"

	"github.com/spf13/afero"

	"github.com/workberth/workberth/fsbridge"
)

// bridgeFs presents a bridge as an afero.Fs.
type bridgeFs struct {
	ctx context.Context //nolint:containedctx // afero's calls have none; this one is documented
	b   fsbridge.Bridge
}

var (
	_ afero.Fs        = (*bridgeFs)(nil)
	_ afero.Symlinker = (*bridgeFs)(nil)
)

// NewFs presents b as an afero.Fs. Since afero's methods take no context, ctx governs all of them:
// when it is done, every call fails with its error, and what is being written is given up.
//
// Names are paths of the bridge: a relative one starts at the workspace. Errors are *os.PathError;
// os.IsNotExist and its kin work on them, and so do errors.Is and the sentinels of fsbridge.
//
// A file opened for writing is there at once, empty if it is new. What is written to it is
// collected and replaces the content in one atomic step by Sync and by Close; always look at
// Close's error. Up to 8 MiB any order of reads, writes and seeks works; beyond, only writing on at
// the end, in constant memory. Opened with O_APPEND and O_WRONLY, data is appended instead.
//
// A permission of 0666 (for directories 0777) means the environment's default; another one is given
// exactly, without a umask. Chown and Chtimes are not supported.
func NewFs(ctx context.Context, b fsbridge.Bridge) afero.Fs { return &bridgeFs{ctx: ctx, b: b} }

// Name returns "fsbridge".
func (f *bridgeFs) Name() string { return "fsbridge" }

// Stat describes a file.
func (f *bridgeFs) Stat(name string) (os.FileInfo, error) {
	i, err := f.b.Stat(f.ctx, name)
	if err != nil {
		return nil, osError("stat", name, err)
	}
	return fileInfo{i}, nil
}

// LstatIfPossible describes a file itself where the bridge can; the bool says whether it could.
func (f *bridgeFs) LstatIfPossible(name string) (os.FileInfo, bool, error) {
	if !fsbridge.Has(f.b, fsbridge.CapLstat) {
		i, err := f.Stat(name)
		return i, false, err
	}
	i, err := fsbridge.Lstat(f.ctx, f.b, name)
	if err != nil {
		return nil, true, osError("lstat", name, err)
	}
	return fileInfo{i}, true, nil
}

// ReadlinkIfPossible returns the text of a link.
func (f *bridgeFs) ReadlinkIfPossible(name string) (string, error) {
	if !fsbridge.Has(f.b, fsbridge.CapReadLink) {
		return "", &os.PathError{Op: "readlink", Path: name, Err: afero.ErrNoReadlink}
	}
	text, err := fsbridge.ReadLink(f.ctx, f.b, name)
	return text, osError("readlink", name, err)
}

// SymlinkIfPossible makes a link.
func (f *bridgeFs) SymlinkIfPossible(target, name string) error {
	if !fsbridge.Has(f.b, fsbridge.CapSymlink) {
		return &os.LinkError{Op: "symlink", Old: target, New: name, Err: afero.ErrNoSymlink}
	}
	return osError("symlink", name, fsbridge.Symlink(f.ctx, f.b, target, name, fsbridge.SymlinkOptions{}))
}

// Mkdir makes a directory.
func (f *bridgeFs) Mkdir(name string, perm os.FileMode) error { return f.mkdir(name, perm, false) }

// MkdirAll makes a directory and its missing parents.
func (f *bridgeFs) MkdirAll(name string, perm os.FileMode) error { return f.mkdir(name, perm, true) }

func (f *bridgeFs) mkdir(name string, perm os.FileMode, parents bool) error {
	mode := fsbridge.Mode(perm.Perm())
	if mode == 0o777 {
		mode = 0
	}
	return osError("mkdir", name, fsbridge.Mkdir(f.ctx, f.b, name, fsbridge.MkdirOptions{Parents: parents, Mode: mode}))
}

// Remove removes a file, a link or an empty directory.
func (f *bridgeFs) Remove(name string) error {
	return osError("remove", name, fsbridge.Remove(f.ctx, f.b, name, fsbridge.RemoveOptions{}))
}

// RemoveAll removes what there is, with everything below.
func (f *bridgeFs) RemoveAll(name string) error {
	return osError("remove", name, fsbridge.Remove(f.ctx, f.b, name, fsbridge.RemoveOptions{Recursive: true, IgnoreMissing: true}))
}

// Rename renames a file.
func (f *bridgeFs) Rename(oldname, newname string) error {
	return osError("rename", oldname, fsbridge.Rename(f.ctx, f.b, oldname, newname, fsbridge.RenameOptions{}))
}

// Chmod sets permission bits.
func (f *bridgeFs) Chmod(name string, mode os.FileMode) error {
	return osError("chmod", name, fsbridge.Chmod(f.ctx, f.b, name, modeOf(mode)))
}

// Chown is not supported: a bridge does not change owners.
func (f *bridgeFs) Chown(name string, _, _ int) error {
	return osError("chown", name, fmt.Errorf("a bridge does not change owners: %w", errors.ErrUnsupported))
}

// Chtimes is not supported: a bridge does not set times.
func (f *bridgeFs) Chtimes(name string, _, _ time.Time) error {
	return osError("chtimes", name, fmt.Errorf("a bridge does not set times: %w", errors.ErrUnsupported))
}

// Create makes a file, or empties an existing one, for reading and writing.
func (f *bridgeFs) Create(name string) (afero.File, error) {
	return f.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o666)
}

// Open opens a file for reading, or a directory.
func (f *bridgeFs) Open(name string) (afero.File, error) { return f.OpenFile(name, os.O_RDONLY, 0) }

// OpenFile opens a file with the flags of package os.
func (f *bridgeFs) OpenFile(name string, flag int, perm os.FileMode) (afero.File, error) {
	file, err := f.openFile(name, flag, perm)
	if err != nil {
		return nil, osError("open", name, err)
	}
	return file, nil
}

func (f *bridgeFs) openFile(name string, flag int, perm os.FileMode) (afero.File, error) {
	write := flag&(os.O_WRONLY|os.O_RDWR) != 0
	if !write && flag&os.O_CREATE == 0 {
		return f.openRead(name)
	}
	info, err := f.b.Stat(f.ctx, name)
	switch {
	case err == nil && flag&(os.O_CREATE|os.O_EXCL) == os.O_CREATE|os.O_EXCL:
		return nil, fs.ErrExist
	case errors.Is(err, fs.ErrNotExist) && flag&os.O_CREATE != 0:
		if err := f.create(name, flag&os.O_EXCL != 0, perm); err != nil {
			return nil, err
		}
		if info, err = f.b.Stat(f.ctx, name); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, err
	}
	if !write {
		return f.openRead(name)
	}
	if info.IsDir() {
		return nil, syscall.EISDIR
	}
	if !info.IsRegular() {
		return nil, fsbridge.ErrNotRegular
	}
	return f.openWrite(name, flag, info)
}

// create makes an empty file whose directory exists.
func (f *bridgeFs) create(name string, exclusive bool, perm os.FileMode) error {
	if _, err := f.b.Stat(f.ctx, path.Dir(name)); err != nil {
		return err
	}
	mode := fsbridge.Mode(perm.Perm())
	if mode == 0o666 {
		mode = 0
	}
	switch {
	case exclusive:
		if err := fsbridge.CreateFileExclusive(f.ctx, f.b, name, nil); err != nil {
			return err
		}
	case fsbridge.Has(f.b, fsbridge.CapWriteStream):
		_, err := fsbridge.WriteStream(f.ctx, f.b, name, bytes.NewReader(nil), fsbridge.WriteOptions{
			Mode: mode, NoParents: true, If: fsbridge.Precondition{Absent: true},
		})
		if errors.Is(err, fsbridge.ErrConflict) || errors.Is(err, fs.ErrExist) {
			return nil // someone else was faster, which is as good
		}
		return err
	default:
		if err := f.b.WriteFile(f.ctx, name, nil); err != nil {
			return err
		}
	}
	if mode != 0 && fsbridge.Has(f.b, fsbridge.CapChmod) {
		return fsbridge.Chmod(f.ctx, f.b, name, mode)
	}
	return nil
}

// fileInfo presents a bridge's FileInfo as the standard library's. Sys returns the original.
type fileInfo struct{ i fsbridge.FileInfo }

func (i fileInfo) Name() string       { return i.i.Name }
func (i fileInfo) Size() int64        { return i.i.Size }
func (i fileInfo) Mode() fs.FileMode  { return i.i.FSMode() }
func (i fileInfo) ModTime() time.Time { return i.i.ModTime }
func (i fileInfo) IsDir() bool        { return i.i.IsDir() }
func (i fileInfo) Sys() any           { return i.i }

// ownSentinels say more than the errors of package fs, whatever else their chain matches.
func ownSentinels() []error {
	return []error{
		fsbridge.ErrOutsideRoot, fsbridge.ErrReadOnly, fsbridge.ErrNotCurrent, fsbridge.ErrOutcomeUnknown,
		fsbridge.ErrUnavailable, fsbridge.ErrConflict, fsbridge.ErrUnsupported,
	}
}

// osError makes the error that users of afero expect. os.IsNotExist and its kin do not look below
// the first layer, so for them the reason is reduced to the errno or the bare sentinel.
func osError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	var pe *fsbridge.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return &os.PathError{Op: op, Path: name, Err: reduce(err)}
}

func reduce(err error) error {
	for _, s := range ownSentinels() {
		if errors.Is(err, s) {
			return err
		}
	}
	for _, s := range []error{fs.ErrNotExist, fs.ErrExist, fs.ErrPermission, fs.ErrClosed} {
		if !errors.Is(err, s) {
			continue
		}
		var errno syscall.Errno
		if errors.As(err, &errno) && errno.Is(s) {
			return errno
		}
		return s
	}
	return err
}
