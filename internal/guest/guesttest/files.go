package guesttest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"io/fs"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/workberth/workberth/fsbridge"
)

// Files is a bridge to a flat set of files in memory, below /ws. It declares every
// capability unless Declared says otherwise. It is no model of a bridge: it shows
// what calls arrive and sends back what it is told.
type Files struct {
	// Hook, when set, runs before every call; its error is the call's.
	Hook func(ctx context.Context, op, path string) error
	// Declared limits the capabilities; nil means all.
	Declared []fsbridge.Capability
	// Walks, Matches, Links are what those calls find.
	Walks   []fsbridge.WalkEntry
	Matches []string
	Links   map[string]string
	// Changes are the events every watch tells, and keep it open.
	Changes chan fsbridge.Event

	mu    sync.Mutex
	data  map[string][]byte
	calls []string
}

// Then is the time of every change.
func Then() time.Time { return time.Unix(1_700_000_000, 123_456_789).UTC() }

// Put sets the content of a file.
func (f *Files) Put(p, content string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.putLocked(p, []byte(content))
}

func (f *Files) putLocked(p string, content []byte) {
	if f.data == nil {
		f.data = map[string][]byte{}
	}
	f.data[p] = content
}

// Get returns the content of a file.
func (f *Files) Get(p string) (string, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b, ok := f.data[p]
	return string(b), ok
}

// Calls returns what was called so far, "op path".
func (f *Files) Calls() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.calls...)
}

func (f *Files) begin(ctx context.Context, op, p string) error {
	f.mu.Lock()
	f.calls = append(f.calls, op+" "+p)
	f.mu.Unlock()
	if f.Hook != nil {
		if err := f.Hook(ctx, op, p); err != nil {
			return &fsbridge.PathError{Op: op, Path: p, Err: err}
		}
	}
	if err := ctx.Err(); err != nil {
		return &fsbridge.PathError{Op: op, Path: p, Err: err}
	}
	return nil
}

// look returns a file's content, or the error of a missing one.
func (f *Files) look(op, p string) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b, ok := f.data[p]
	if !ok {
		return nil, &fsbridge.PathError{Op: op, Path: p, Err: fs.ErrNotExist}
	}
	return b, nil
}

func info(p string, size int) fsbridge.FileInfo {
	return fsbridge.FileInfo{
		Name: path.Base(p), Type: fsbridge.TypeRegular, Mode: 0o644, Size: int64(size), ModTime: Then(),
		UID: 1000, GID: 1000, Nlink: 1, Dev: 42, Inode: 4711,
	}
}

// Declares implements fsbridge.Declarer.
func (f *Files) Declares(c fsbridge.Capability) bool {
	if f.Declared == nil {
		return true
	}
	return slices.Contains(f.Declared, c)
}

// Mounts implements fsbridge.Mounter.
func (f *Files) Mounts() fsbridge.MountTable {
	return fsbridge.MountTable{
		{Path: "/ws", Kind: fsbridge.MountWorkspace, HostPath: "/home/someone/secret-place"},
		{Path: "/", Kind: fsbridge.MountSystem, ReadOnly: true},
	}
}

// Stat implements fsbridge.Bridge.
func (f *Files) Stat(ctx context.Context, p string) (fsbridge.FileInfo, error) {
	return f.stat(ctx, "stat", p)
}

// Lstat implements fsbridge.Lstater.
func (f *Files) Lstat(ctx context.Context, p string) (fsbridge.FileInfo, error) {
	return f.stat(ctx, "lstat", p)
}

func (f *Files) stat(ctx context.Context, op, p string) (fsbridge.FileInfo, error) {
	if err := f.begin(ctx, op, p); err != nil {
		return fsbridge.FileInfo{}, err
	}
	b, err := f.look(op, p)
	if err != nil {
		return fsbridge.FileInfo{}, err
	}
	return info(p, len(b)), nil
}

// ReadFile implements fsbridge.Bridge.
func (f *Files) ReadFile(ctx context.Context, p string) ([]byte, error) {
	if err := f.begin(ctx, "read", p); err != nil {
		return nil, err
	}
	b, err := f.look("read", p)
	return bytes.Clone(b), err
}

// ReadFileWithSource implements fsbridge.SourceReader.
func (f *Files) ReadFileWithSource(ctx context.Context, p string) (fsbridge.SourcedFile, error) {
	b, err := f.ReadFile(ctx, p)
	if err != nil {
		return fsbridge.SourcedFile{}, err
	}
	return fsbridge.SourcedFile{Data: b, ResolvedPath: "/ws/" + p, WorkspaceRelativePath: p, Info: info(p, len(b))}, nil
}

// ReadRange implements fsbridge.RangeReader.
func (f *Files) ReadRange(ctx context.Context, p string, off, n int64) ([]byte, error) {
	b, err := f.ReadFile(ctx, p)
	if err != nil {
		return nil, err
	}
	b = b[min(off, int64(len(b))):]
	return b[:min(n, int64(len(b)))], nil
}

// OpenReader implements fsbridge.StreamReader.
func (f *Files) OpenReader(ctx context.Context, p string) (io.ReadCloser, fsbridge.FileInfo, error) {
	b, err := f.ReadFile(ctx, p)
	if err != nil {
		return nil, fsbridge.FileInfo{}, err
	}
	return io.NopCloser(bytes.NewReader(b)), info(p, len(b)), nil
}

// WriteFile implements fsbridge.Bridge.
func (f *Files) WriteFile(ctx context.Context, p string, data []byte) error {
	if err := f.begin(ctx, "write", p); err != nil {
		return err
	}
	f.Put(p, string(data))
	return nil
}

// WriteStream implements fsbridge.StreamWriter.
func (f *Files) WriteStream(ctx context.Context, p string, r io.Reader, opts fsbridge.WriteOptions) (fsbridge.WriteResult, error) {
	if err := f.begin(ctx, "write", p); err != nil {
		return fsbridge.WriteResult{}, err
	}
	data, err := io.ReadAll(r)
	if err == nil {
		err = ctx.Err()
	}
	if err == nil && opts.Size > 0 && opts.Size != int64(len(data)) {
		err = fsbridge.ErrInvalid
	}
	if err == nil && opts.If != (fsbridge.Precondition{}) {
		err = f.precondition(p, opts.If)
	}
	if err != nil {
		return fsbridge.WriteResult{}, &fsbridge.PathError{Op: "write", Path: p, Err: err}
	}
	_, existed := f.Get(p)
	f.Put(p, string(data))
	return fsbridge.WriteResult{FileHash: hash(data), Created: !existed}, nil
}

func (f *Files) precondition(p string, want fsbridge.Precondition) error {
	now, ok := f.Get(p)
	current := fsbridge.Digest("")
	if ok {
		current = hash([]byte(now)).Digest
	}
	if want.Absent && ok || !want.Absent && current != want.Hash {
		return &fsbridge.ConflictError{Current: current, Expected: want.Hash}
	}
	return nil
}

func hash(data []byte) fsbridge.FileHash {
	sum := sha256.Sum256(data)
	return fsbridge.FileHash{Digest: fsbridge.DigestOf(sum[:]), Size: int64(len(data))}
}
