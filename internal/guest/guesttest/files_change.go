package guesttest

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"iter"
	"sort"
	"strings"
	"syscall"

	"github.com/workberth/workberth/fsbridge"
)

// CreateFileExclusive implements fsbridge.ExclusiveCreator.
func (f *Files) CreateFileExclusive(ctx context.Context, p string, data []byte) error {
	if err := f.begin(ctx, "create", p); err != nil {
		return err
	}
	if _, ok := f.Get(p); ok {
		return &fsbridge.PathError{Op: "create", Path: p, Err: fs.ErrExist}
	}
	f.Put(p, string(data))
	return nil
}

// AppendFile implements fsbridge.Appender.
func (f *Files) AppendFile(ctx context.Context, p string, data []byte) error {
	if err := f.begin(ctx, "append", p); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.putLocked(p, append(bytes.Clone(f.data[p]), data...))
	return nil
}

// ReadDirectory implements fsbridge.DirReader: every file, whatever the path.
func (f *Files) ReadDirectory(ctx context.Context, p string) ([]fsbridge.DirEntry, error) {
	if err := f.begin(ctx, "list", p); err != nil {
		return nil, err
	}
	return f.entries(), nil
}

func (f *Files) entries() []fsbridge.DirEntry {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []fsbridge.DirEntry
	for name, b := range f.data {
		list = append(list, fsbridge.DirEntry{Name: name, Info: info(name, len(b)), LinkTarget: f.Links[name]})
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Name < list[j].Name })
	return list
}

// StreamDirectory implements fsbridge.DirStreamer.
func (f *Files) StreamDirectory(ctx context.Context, p string) iter.Seq2[fsbridge.DirEntry, error] {
	return func(yield func(fsbridge.DirEntry, error) bool) {
		if err := f.begin(ctx, "list", p); err != nil {
			yield(fsbridge.DirEntry{}, err)
			return
		}
		for _, e := range f.entries() {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// Walk implements fsbridge.Walker.
func (f *Files) Walk(ctx context.Context, p string, _ fsbridge.WalkOptions, fn func(fsbridge.WalkEntry) error) error {
	if err := f.begin(ctx, "walk", p); err != nil {
		return err
	}
	for _, e := range f.Walks {
		if err := fn(e); err != nil {
			return err
		}
	}
	return nil
}

// HashFile implements fsbridge.Hasher.
func (f *Files) HashFile(ctx context.Context, p string) (fsbridge.FileHash, error) {
	b, err := f.ReadFile(ctx, p)
	if err != nil {
		return fsbridge.FileHash{}, err
	}
	return hash(b), nil
}

// Glob implements fsbridge.Globber.
func (f *Files) Glob(ctx context.Context, pattern string, _ fsbridge.GlobOptions) ([]string, error) {
	return f.Matches, f.begin(ctx, "glob", pattern)
}

// Watch implements fsbridge.Watcher.
func (f *Files) Watch(ctx context.Context, p string, _ fsbridge.WatchOptions) (fsbridge.Watch, error) {
	if err := f.begin(ctx, "watch", p); err != nil {
		return nil, err
	}
	return &watch{f.Changes}, nil
}

type watch struct{ events chan fsbridge.Event }

func (w *watch) Events() <-chan fsbridge.Event { return w.events }
func (w *watch) Err() error                    { return nil }
func (w *watch) Close() error                  { return nil }

// Mkdir implements fsbridge.Mkdirer.
func (f *Files) Mkdir(ctx context.Context, p string, _ fsbridge.MkdirOptions) error {
	return f.begin(ctx, "mkdir", p)
}

// Remove implements fsbridge.Remover.
func (f *Files) Remove(ctx context.Context, p string, opts fsbridge.RemoveOptions) error {
	if err := f.begin(ctx, "remove", p); err != nil {
		return err
	}
	if opts.If != (fsbridge.Precondition{}) {
		if err := f.precondition(p, opts.If); err != nil {
			return &fsbridge.PathError{Op: "remove", Path: p, Err: err}
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.data[p]; !ok && !opts.IgnoreMissing {
		return &fsbridge.PathError{Op: "remove", Path: p, Err: fs.ErrNotExist}
	}
	delete(f.data, p)
	return nil
}

// Rename implements fsbridge.Renamer.
func (f *Files) Rename(ctx context.Context, oldPath, newPath string, _ fsbridge.RenameOptions) error {
	if err := f.begin(ctx, "rename", oldPath); err != nil {
		return err
	}
	if strings.HasPrefix(newPath, "/") {
		return &fsbridge.PathError{Op: "rename", Path: newPath, Err: syscall.EROFS, Hint: "it is a system mount"}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.putLocked(newPath, f.data[oldPath])
	delete(f.data, oldPath)
	return nil
}

// Copy implements fsbridge.Copier.
func (f *Files) Copy(ctx context.Context, src, dst string, _ fsbridge.CopyOptions) error {
	if err := f.begin(ctx, "copy", src); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.putLocked(dst, f.data[src])
	return nil
}

// ReadLink implements fsbridge.LinkReader.
func (f *Files) ReadLink(ctx context.Context, p string) (string, error) {
	if err := f.begin(ctx, "readlink", p); err != nil {
		return "", err
	}
	target, ok := f.Links[p]
	if !ok {
		return "", &fsbridge.PathError{Op: "readlink", Path: p, Err: fsbridge.ErrInvalid}
	}
	return target, nil
}

// Symlink implements fsbridge.Symlinker.
func (f *Files) Symlink(ctx context.Context, target, p string, _ fsbridge.SymlinkOptions) error {
	if err := f.begin(ctx, "symlink", p); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.Links == nil {
		f.Links = map[string]string{}
	}
	f.Links[p] = target
	return nil
}

// Chmod implements fsbridge.Chmoder.
func (f *Files) Chmod(ctx context.Context, p string, mode fsbridge.Mode) error {
	if mode&^fsbridge.ModePerm != 0 {
		return &fsbridge.PathError{Op: "chmod", Path: p, Err: fmt.Errorf("mode %o: %w", mode, fsbridge.ErrInvalid)}
	}
	return f.begin(ctx, "chmod", p)
}
