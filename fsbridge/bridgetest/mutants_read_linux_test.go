package bridgetest_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/local"
)

// base is what mutants build on.
type base struct {
	*local.Bridge
	ws string
}

// host joins a path to the workspace as someone would who thinks in strings.
func (b base) host(p string) string {
	if filepath.IsAbs(p) {
		return p
	}
	return b.ws + "/" + p
}

// naive reads by name, without containment.
type naive struct{ base }

func (b naive) ReadFile(_ context.Context, p string) ([]byte, error) {
	data, err := os.ReadFile(b.host(p))
	if err != nil {
		return nil, &fsbridge.PathError{Op: "read", Path: p, Err: err}
	}
	return data, nil
}

// lexical cleans the path and compares prefixes, without the boundary and without links.
type lexical struct{ naive }

func (b lexical) ReadFile(ctx context.Context, p string) ([]byte, error) {
	if !strings.HasPrefix(filepath.Clean(b.host(p)), b.ws) {
		return nil, &fsbridge.PathError{Op: "read", Path: p, Err: fsbridge.ErrOutsideRoot}
	}
	return b.naive.ReadFile(ctx, p)
}

// checked resolves links first and reads afterwards.
type checked struct{ naive }

func (b checked) ReadFile(ctx context.Context, p string) ([]byte, error) {
	real, err := filepath.EvalSymlinks(b.host(p))
	if err != nil {
		return nil, &fsbridge.PathError{Op: "read", Path: p, Err: err}
	}
	if !strings.HasPrefix(real, b.ws+"/") {
		return nil, &fsbridge.PathError{Op: "read", Path: p, Err: fsbridge.ErrOutsideRoot}
	}
	return b.naive.ReadFile(ctx, p)
}

// cuts gives the first bytes of a file that is too large.
type cuts struct{ base }

func (b cuts) ReadFile(ctx context.Context, p string) ([]byte, error) {
	data, err := b.Bridge.ReadFile(ctx, p)
	if errors.Is(err, fsbridge.ErrTooLarge) {
		return b.ReadRange(ctx, p, 0, 1000)
	}
	return data, err
}

// caches remembers what it has read.
type caches struct {
	base
	mu    *sync.Mutex
	files map[string][]byte
}

func (b caches) ReadFile(ctx context.Context, p string) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if data, ok := b.files[p]; ok {
		return data, nil
	}
	data, err := b.Bridge.ReadFile(ctx, p)
	if err == nil {
		b.files[p] = data
	}
	return data, err
}

// textual reads as text.
type textual struct{ base }

func (b textual) ReadFile(ctx context.Context, p string) ([]byte, error) {
	data, err := b.Bridge.ReadFile(ctx, p)
	return []byte(strings.ReplaceAll(string(data), "\r\n", "\n")), err
}

// bare gives errors without operation and path.
type bare struct{ base }

func (b bare) Stat(ctx context.Context, p string) (fsbridge.FileInfo, error) {
	i, err := b.Bridge.Stat(ctx, p)
	var pe *fsbridge.PathError
	if errors.As(err, &pe) {
		return i, pe.Err
	}
	return i, err
}

// missing calls everything that is refused missing.
type missing struct{ base }

func (b missing) Stat(ctx context.Context, p string) (fsbridge.FileInfo, error) {
	i, err := b.Bridge.Stat(ctx, p)
	if errors.Is(err, fsbridge.ErrOutsideRoot) {
		err = &fsbridge.PathError{Op: "stat", Path: p, Err: fs.ErrNotExist}
	}
	return i, err
}

// deaf ignores contexts.
type deaf struct{ base }

func (b deaf) ReadFile(ctx context.Context, p string) ([]byte, error) {
	return b.Bridge.ReadFile(context.WithoutCancel(ctx), p)
}

// twoSteps reads first and resolves afterwards.
type twoSteps struct{ base }

func (b twoSteps) ReadFileWithSource(ctx context.Context, p string) (fsbridge.SourcedFile, error) {
	data, err := b.ReadFile(ctx, p)
	if err != nil {
		return fsbridge.SourcedFile{}, err
	}
	f, err := b.Bridge.ReadFileWithSource(ctx, p)
	f.Data = data
	f.Info.Size = int64(len(data))
	return f, err
}

// asked reports the path that was asked for.
type asked struct{ base }

func (b asked) ReadFileWithSource(ctx context.Context, p string) (fsbridge.SourcedFile, error) {
	f, err := b.Bridge.ReadFileWithSource(ctx, p)
	f.ResolvedPath = filepath.Clean(b.host(p))
	return f, err
}

// guesses makes up a relative path for files outside the workspace.
type guesses struct{ base }

func (b guesses) ReadFileWithSource(ctx context.Context, p string) (fsbridge.SourcedFile, error) {
	f, err := b.Bridge.ReadFileWithSource(ctx, p)
	if err == nil && f.WorkspaceRelativePath == "" {
		f.WorkspaceRelativePath, _ = filepath.Rel(b.ws, f.ResolvedPath)
	}
	return f, err
}

// remarks takes the kernel's remark for a part of every path.
type remarks struct{ base }

func (b remarks) ReadFileWithSource(ctx context.Context, p string) (fsbridge.SourcedFile, error) {
	f, err := b.Bridge.ReadFileWithSource(ctx, p)
	f.ResolvedPath = strings.TrimSuffix(f.ResolvedPath, " (deleted)")
	return f, err
}

// blocks opens what it is asked for, whatever it is.
type blocks struct{ base }

func (b blocks) OpenReader(ctx context.Context, p string) (io.ReadCloser, fsbridge.FileInfo, error) {
	if i, err := b.Stat(ctx, p); err != nil || i.Type != fsbridge.TypeFIFO {
		return b.Bridge.OpenReader(ctx, p)
	}
	f, err := os.Open(b.host(p))
	return f, fsbridge.FileInfo{}, err
}

// silent ends a cancelled stream as if the file had ended.
type silent struct{ base }

type silentReader struct{ io.ReadCloser }

func (r silentReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if err != nil {
		err = io.EOF
	}
	return n, err
}

func (b silent) OpenReader(ctx context.Context, p string) (io.ReadCloser, fsbridge.FileInfo, error) {
	r, i, err := b.Bridge.OpenReader(ctx, p)
	if err != nil {
		return nil, i, err
	}
	return silentReader{r}, i, nil
}

// shifted is off by one at the end of a range.
type shifted struct{ base }

func (b shifted) ReadRange(ctx context.Context, p string, off, n int64) ([]byte, error) {
	data, err := b.Bridge.ReadRange(ctx, p, off, n)
	if len(data) > 1 && int64(len(data)) < n {
		data = data[:len(data)-1]
	}
	return data, err
}

// splits takes a line feed in a name for the end of the name.
type splits struct{ base }

func (b splits) ReadDirectory(ctx context.Context, p string) ([]fsbridge.DirEntry, error) {
	l, err := b.Bridge.ReadDirectory(ctx, p)
	var out []fsbridge.DirEntry
	for _, e := range l {
		for part := range strings.SplitSeq(e.Name, "\n") {
			e.Name, e.Info.Name = part, part
			out = append(out, e)
		}
	}
	return out, err
}

// utf8Only replaces what is not UTF-8.
type utf8Only struct{ base }

func (b utf8Only) ReadDirectory(ctx context.Context, p string) ([]fsbridge.DirEntry, error) {
	l, err := b.Bridge.ReadDirectory(ctx, p)
	for i := range l {
		l[i].Name = strings.ToValidUTF8(l[i].Name, "\ufffd")
		l[i].Info.Name = l[i].Name
	}
	return l, err
}

// unsorted lists in another order.
type unsorted struct{ base }

func (b unsorted) ReadDirectory(ctx context.Context, p string) ([]fsbridge.DirEntry, error) {
	l, err := b.Bridge.ReadDirectory(ctx, p)
	slices.Reverse(l)
	return l, err
}

// partial loses the end of a long listing.
type partial struct{ base }

func (b partial) ReadDirectory(ctx context.Context, p string) ([]fsbridge.DirEntry, error) {
	l, err := b.Bridge.ReadDirectory(ctx, p)
	return l[:min(len(l), 4096)], err
}

// wanders follows links to directories.
type wanders struct{ base }

func (b wanders) Walk(ctx context.Context, p string, o fsbridge.WalkOptions, fn func(fsbridge.WalkEntry) error) error {
	return b.Bridge.Walk(ctx, p, o, func(e fsbridge.WalkEntry) error {
		if e.Info.Type == fsbridge.TypeSymlink {
			if i, err := b.Stat(ctx, p+"/"+e.Path); err == nil {
				name := e.Info.Name
				e.Info = i
				e.Info.Name = name
			}
		}
		return fn(e)
	})
}

// shouts gives digests in upper case.
type shouts struct{ base }

func (b shouts) HashFile(ctx context.Context, p string) (fsbridge.FileHash, error) {
	h, err := b.Bridge.HashFile(ctx, p)
	h.Digest = fsbridge.Digest(strings.ToUpper(string(h.Digest)))
	return h, err
}

// descends expands patterns through links.
type descends struct{ base }

func (b descends) Glob(ctx context.Context, pattern string, o fsbridge.GlobOptions) ([]string, error) {
	if strings.HasPrefix(pattern, "outdir/") {
		l, err := filepath.Glob(b.host(pattern))
		for i := range l {
			l[i], _ = filepath.Rel(b.ws, l[i])
		}
		return l, err
	}
	return b.Bridge.Glob(ctx, pattern, o)
}

// fails reports the end of a closed watch as an error.
type fails struct{ base }

type failedWatch struct{ fsbridge.Watch }

func (failedWatch) Err() error { return errors.New("closed") }

func (b fails) Watch(ctx context.Context, p string, o fsbridge.WatchOptions) (fsbridge.Watch, error) {
	w, err := b.Bridge.Watch(ctx, p, o)
	if err != nil {
		return nil, err
	}
	return failedWatch{w}, nil
}

// fewer declares less than it should.
type fewer struct{ base }

func (fewer) Declares(c fsbridge.Capability) bool { return c != fsbridge.CapWatch }

// exposes lets callers change its mount table.
type exposes struct {
	base
	table fsbridge.MountTable
}

func (b exposes) Mounts() fsbridge.MountTable { return b.table }
