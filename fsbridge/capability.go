package fsbridge

import (
	"context"
	"io"
	"iter"
)

// Capability names an optional operation of a bridge.
type Capability string

// The capabilities, one per optional interface.
const (
	CapLstat               Capability = "lstat"            // Lstater
	CapReadFileWithSource  Capability = "read-with-source" // SourceReader
	CapReadRange           Capability = "read-range"       // RangeReader
	CapOpenReader          Capability = "open-reader"      // StreamReader
	CapWriteStream         Capability = "write-stream"     // StreamWriter
	CapCreateFileExclusive Capability = "create-exclusive" // ExclusiveCreator
	CapAppendFile          Capability = "append"           // Appender
	CapMkdir               Capability = "mkdir"            // Mkdirer
	CapRemove              Capability = "remove"           // Remover
	CapRename              Capability = "rename"           // Renamer
	CapCopy                Capability = "copy"             // Copier
	CapReadLink            Capability = "readlink"         // LinkReader
	CapSymlink             Capability = "symlink"          // Symlinker
	CapChmod               Capability = "chmod"            // Chmoder
	CapReadDirectory       Capability = "list"             // DirReader
	CapStreamDirectory     Capability = "list-stream"      // DirStreamer
	CapWalk                Capability = "walk"             // Walker
	CapHashFile            Capability = "hash"             // Hasher
	CapGlob                Capability = "glob"             // Globber
	CapWatch               Capability = "watch"            // Watcher
	CapMounts              Capability = "mounts"           // Mounter
)

// AllCapabilities lists every capability in a fixed order.
func AllCapabilities() []Capability {
	return []Capability{
		CapLstat,
		CapReadFileWithSource,
		CapReadRange,
		CapOpenReader,
		CapWriteStream,
		CapCreateFileExclusive,
		CapAppendFile,
		CapMkdir,
		CapRemove,
		CapRename,
		CapCopy,
		CapReadLink,
		CapSymlink,
		CapChmod,
		CapReadDirectory,
		CapStreamDirectory,
		CapWalk,
		CapHashFile,
		CapGlob,
		CapWatch,
		CapMounts,
	}
}

// Has reports whether b declares capability c. A wrapper whose method set is
// larger than what it can do implements [Declarer] to say so.
func Has(b Bridge, c Capability) bool {
	if d, ok := b.(Declarer); ok && !d.Declares(c) {
		return false
	}
	var ok bool
	switch c {
	case CapLstat:
		_, ok = b.(Lstater)
	case CapReadFileWithSource:
		_, ok = b.(SourceReader)
	case CapReadRange:
		_, ok = b.(RangeReader)
	case CapOpenReader:
		_, ok = b.(StreamReader)
	case CapWriteStream:
		_, ok = b.(StreamWriter)
	case CapCreateFileExclusive:
		_, ok = b.(ExclusiveCreator)
	case CapAppendFile:
		_, ok = b.(Appender)
	case CapMkdir:
		_, ok = b.(Mkdirer)
	case CapRemove:
		_, ok = b.(Remover)
	case CapRename:
		_, ok = b.(Renamer)
	case CapCopy:
		_, ok = b.(Copier)
	case CapReadLink:
		_, ok = b.(LinkReader)
	case CapSymlink:
		_, ok = b.(Symlinker)
	case CapChmod:
		_, ok = b.(Chmoder)
	case CapReadDirectory:
		_, ok = b.(DirReader)
	case CapStreamDirectory:
		_, ok = b.(DirStreamer)
	case CapWalk:
		_, ok = b.(Walker)
	case CapHashFile:
		_, ok = b.(Hasher)
	case CapGlob:
		_, ok = b.(Globber)
	case CapWatch:
		_, ok = b.(Watcher)
	case CapMounts:
		_, ok = b.(Mounter)
	}
	return ok
}

// Declarer narrows what a bridge's method set promises: a capability it does not
// declare is treated as missing.
type Declarer interface {
	Declares(c Capability) bool
}

// CapabilitiesOf lists what b declares, in the order of AllCapabilities.
func CapabilitiesOf(b Bridge) []Capability {
	var out []Capability
	for _, c := range AllCapabilities() {
		if Has(b, c) {
			out = append(out, c)
		}
	}
	return out
}

// capable returns b as T when b declares c, and the error of FSB-09 otherwise.
func capable[T any](b Bridge, c Capability, path string) (T, error) {
	if t, ok := b.(T); ok && Has(b, c) {
		return t, nil
	}
	var zero T
	return zero, &PathError{
		Op: string(c), Path: path, Err: &UnsupportedError{Capability: c},
		Hint: "choose a backend whose bridge declares it, see docs/capabilities.md",
	}
}

// Mounts returns the mount table of b, nil where b does not tell.
func Mounts(b Bridge) MountTable {
	if m, ok := b.(Mounter); ok && Has(b, CapMounts) {
		return m.Mounts()
	}
	return nil
}

// Lstat calls [Lstater] on b, or fails with an error that names it. Keeps FSB-09.
func Lstat(ctx context.Context, b Bridge, path string) (FileInfo, error) {
	c, err := capable[Lstater](b, CapLstat, path)
	if err != nil {
		return FileInfo{}, err
	}
	return c.Lstat(ctx, path)
}

// ReadFileWithSource calls [SourceReader] on b, or fails with an error that names it. Keeps FSB-09.
func ReadFileWithSource(ctx context.Context, b Bridge, path string) (SourcedFile, error) {
	c, err := capable[SourceReader](b, CapReadFileWithSource, path)
	if err != nil {
		return SourcedFile{}, err
	}
	return c.ReadFileWithSource(ctx, path)
}

// ReadRange calls [RangeReader] on b, or fails with an error that names it. Keeps FSB-09.
func ReadRange(ctx context.Context, b Bridge, path string, off, n int64) ([]byte, error) {
	c, err := capable[RangeReader](b, CapReadRange, path)
	if err != nil {
		return nil, err
	}
	return c.ReadRange(ctx, path, off, n)
}

// OpenReader calls [StreamReader] on b, or fails with an error that names it. Keeps FSB-09.
func OpenReader(ctx context.Context, b Bridge, path string) (io.ReadCloser, FileInfo, error) {
	c, err := capable[StreamReader](b, CapOpenReader, path)
	if err != nil {
		return nil, FileInfo{}, err
	}
	return c.OpenReader(ctx, path)
}

// WriteStream calls [StreamWriter] on b, or fails with an error that names it. Keeps FSB-09.
func WriteStream(ctx context.Context, b Bridge, path string, r io.Reader, opts WriteOptions) (WriteResult, error) {
	c, err := capable[StreamWriter](b, CapWriteStream, path)
	if err != nil {
		return WriteResult{}, err
	}
	return c.WriteStream(ctx, path, r, opts)
}

// CreateFileExclusive calls [ExclusiveCreator] on b, or fails with an error that names it. Keeps FSB-09.
func CreateFileExclusive(ctx context.Context, b Bridge, path string, data []byte) error {
	c, err := capable[ExclusiveCreator](b, CapCreateFileExclusive, path)
	if err != nil {
		return err
	}
	return c.CreateFileExclusive(ctx, path, data)
}

// AppendFile calls [Appender] on b, or fails with an error that names it. Keeps FSB-09.
func AppendFile(ctx context.Context, b Bridge, path string, data []byte) error {
	c, err := capable[Appender](b, CapAppendFile, path)
	if err != nil {
		return err
	}
	return c.AppendFile(ctx, path, data)
}

// Mkdir calls [Mkdirer] on b, or fails with an error that names it. Keeps FSB-09.
func Mkdir(ctx context.Context, b Bridge, path string, opts MkdirOptions) error {
	c, err := capable[Mkdirer](b, CapMkdir, path)
	if err != nil {
		return err
	}
	return c.Mkdir(ctx, path, opts)
}

// Remove calls [Remover] on b, or fails with an error that names it. Keeps FSB-09.
func Remove(ctx context.Context, b Bridge, path string, opts RemoveOptions) error {
	c, err := capable[Remover](b, CapRemove, path)
	if err != nil {
		return err
	}
	return c.Remove(ctx, path, opts)
}

// Rename calls [Renamer] on b, or fails with an error that names it. Keeps FSB-09.
func Rename(ctx context.Context, b Bridge, oldPath, newPath string, opts RenameOptions) error {
	c, err := capable[Renamer](b, CapRename, oldPath)
	if err != nil {
		return err
	}
	return c.Rename(ctx, oldPath, newPath, opts)
}

// Copy calls [Copier] on b, or fails with an error that names it. Keeps FSB-09.
func Copy(ctx context.Context, b Bridge, src, dst string, opts CopyOptions) error {
	c, err := capable[Copier](b, CapCopy, src)
	if err != nil {
		return err
	}
	return c.Copy(ctx, src, dst, opts)
}

// ReadLink calls [LinkReader] on b, or fails with an error that names it. Keeps FSB-09.
func ReadLink(ctx context.Context, b Bridge, path string) (string, error) {
	c, err := capable[LinkReader](b, CapReadLink, path)
	if err != nil {
		return "", err
	}
	return c.ReadLink(ctx, path)
}

// Symlink calls [Symlinker] on b, or fails with an error that names it. Keeps FSB-09.
func Symlink(ctx context.Context, b Bridge, target, path string, opts SymlinkOptions) error {
	c, err := capable[Symlinker](b, CapSymlink, path)
	if err != nil {
		return err
	}
	return c.Symlink(ctx, target, path, opts)
}

// Chmod calls [Chmoder] on b, or fails with an error that names it. Keeps FSB-09.
func Chmod(ctx context.Context, b Bridge, path string, mode Mode) error {
	c, err := capable[Chmoder](b, CapChmod, path)
	if err != nil {
		return err
	}
	return c.Chmod(ctx, path, mode)
}

// ReadDirectory calls [DirReader] on b, or fails with an error that names it. Keeps FSB-09.
func ReadDirectory(ctx context.Context, b Bridge, path string) ([]DirEntry, error) {
	c, err := capable[DirReader](b, CapReadDirectory, path)
	if err != nil {
		return nil, err
	}
	return c.ReadDirectory(ctx, path)
}

// StreamDirectory calls [DirStreamer] on b, or fails with an error that names it. Keeps FSB-09.
func StreamDirectory(ctx context.Context, b Bridge, path string) iter.Seq2[DirEntry, error] {
	c, err := capable[DirStreamer](b, CapStreamDirectory, path)
	if err != nil {
		return func(yield func(DirEntry, error) bool) { yield(DirEntry{}, err) }
	}
	return c.StreamDirectory(ctx, path)
}

// Walk calls [Walker] on b, or fails with an error that names it. Keeps FSB-09.
func Walk(ctx context.Context, b Bridge, path string, opts WalkOptions, fn func(WalkEntry) error) error {
	c, err := capable[Walker](b, CapWalk, path)
	if err != nil {
		return err
	}
	return c.Walk(ctx, path, opts, fn)
}

// HashFile calls [Hasher] on b, or fails with an error that names it. Keeps FSB-09.
func HashFile(ctx context.Context, b Bridge, path string) (FileHash, error) {
	c, err := capable[Hasher](b, CapHashFile, path)
	if err != nil {
		return FileHash{}, err
	}
	return c.HashFile(ctx, path)
}

// Glob calls [Globber] on b, or fails with an error that names it. Keeps FSB-09.
func Glob(ctx context.Context, b Bridge, pattern string, opts GlobOptions) ([]string, error) {
	c, err := capable[Globber](b, CapGlob, pattern)
	if err != nil {
		return nil, err
	}
	return c.Glob(ctx, pattern, opts)
}

// WatchDirectory calls [Watcher] on b, or fails with an error that names it. Keeps
// FSB-09.
func WatchDirectory(ctx context.Context, b Bridge, path string, opts WatchOptions) (Watch, error) {
	c, err := capable[Watcher](b, CapWatch, path)
	if err != nil {
		return nil, err
	}
	return c.Watch(ctx, path, opts)
}
