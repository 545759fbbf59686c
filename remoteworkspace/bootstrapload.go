package remoteworkspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"unicode/utf8"

	"github.com/workberth/workberth/fsbridge"
)

// loader reads the files of one bootstrap.
type loader struct {
	o   *opened
	cfg BootstrapConfig
	// guarded are the protected memory files as they are now; nil when the session may
	// have them.
	guarded *protected
	// seen are the names under which a file was taken already, by its true location.
	seen  map[string]string
	left  int64 // of the total budget; negative means no bound
	extra int   // matches so far
	out   Bootstrap
}

func (w *Workspaces) loadBootstrap(ctx context.Context, op Operation, cfg BootstrapConfig) (Bootstrap, error) {
	cfg, err := cfg.prepare()
	if err != nil {
		return Bootstrap{}, err
	}
	guard, err := w.authorize(ctx, op)
	if err != nil {
		return Bootstrap{}, err
	}
	o, err := w.open(ctx, op.Dir, guard)
	if err != nil {
		return Bootstrap{}, err
	}
	defer o.close()
	l := &loader{o: o, cfg: cfg, seen: make(map[string]string), left: cfg.TotalBudget, out: Bootstrap{Dir: op.Dir, Bound: o.bound}}
	if err := l.load(ctx); err != nil {
		return Bootstrap{}, o.explain(ctx, err, false)
	}
	return l.out, nil
}

// load reads everything. What the bridge must be able to do is asked first, so that
// nothing is loaded halfway.
func (l *loader) load(ctx context.Context) error {
	if err := l.capable(); err != nil {
		return err
	}
	if !l.cfg.IncludeProtected {
		g, err := findProtected(ctx, l.o, l.cfg)
		if err != nil {
			return err
		}
		l.guarded = g
	}
	for _, name := range l.cfg.Documents {
		if err := l.take(ctx, name, ""); err != nil {
			return err
		}
	}
	for _, pattern := range l.cfg.Patterns {
		names, err := l.matches(ctx, pattern)
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := l.take(ctx, name, pattern); err != nil {
				return err
			}
		}
	}
	return nil
}

// matches are the names that a pattern finds, at most as many as are still permitted.
func (l *loader) matches(ctx context.Context, pattern string) ([]string, error) {
	most := l.cfg.MaxExtraFiles - l.extra
	names := []string{pattern}
	if hasWildcard(pattern) {
		var err error
		if names, err = expand(ctx, l.o.Bridge, pattern, max(most, 1)); err != nil {
			return nil, err
		}
	}
	if l.extra += len(names); l.extra > l.cfg.MaxExtraFiles {
		return nil, &fsbridge.LimitError{What: "number of extra files", Limit: int64(l.cfg.MaxExtraFiles)}
	}
	return names, nil
}

// capable refuses a bridge that lacks what this configuration needs. Keeps RWS-12,
// RWS-14.
func (l *loader) capable() error {
	need := []fsbridge.Capability{fsbridge.CapReadFileWithSource}
	for _, p := range l.cfg.Patterns {
		if hasWildcard(p) {
			need = append(need, fsbridge.CapReadDirectory)
		}
	}
	for _, c := range need {
		if !fsbridge.Has(l.o.Bridge, c) {
			return &fsbridge.PathError{
				Op: string(c), Path: l.out.Dir, Err: &fsbridge.UnsupportedError{Capability: c},
				Hint: "bind the workspace with a bridge that declares it, see docs/capabilities.md; nothing was loaded",
			}
		}
	}
	return nil
}

// take reads one file and decides about it. The error concerns the whole workspace.
func (l *loader) take(ctx context.Context, name, pattern string) error {
	f := BootstrapFile{Name: name, Pattern: pattern}
	if l.guarded.named(name) {
		f.Status, f.Reason = FileExcluded, protectedReason
		l.out.Files = append(l.out.Files, f)
		return nil
	}
	src, data, err := l.read(ctx, name)
	switch {
	case err == nil:
		f.Source = &src
		l.judge(&f, data)
	case wholesale(err):
		return err
	case errors.Is(err, fs.ErrNotExist):
		f.Status = FileMissing
	case pattern != "" && hasWildcard(pattern) && l.isDir(ctx, name):
		return nil // patterns mean files
	default:
		f.Status, f.Err = FileRefused, err
	}
	l.out.Files = append(l.out.Files, f)
	return nil
}

// isDir reports whether a name that cannot be read is a directory.
func (l *loader) isDir(ctx context.Context, name string) bool {
	info, err := l.o.Stat(ctx, name)
	return err == nil && info.IsDir()
}

// read is the pinned read within the limit. Keeps RWS-12, RWS-21.
func (l *loader) read(ctx context.Context, name string) (ReadSource, []byte, error) {
	info, err := l.o.Stat(ctx, name)
	if err != nil {
		return ReadSource{}, nil, err
	}
	if info.IsRegular() && info.Size > l.cfg.MaxFile {
		return ReadSource{}, nil, &fsbridge.LimitError{What: "file size", Limit: l.cfg.MaxFile, Actual: info.Size}
	}
	f, err := fsbridge.ReadFileWithSource(ctx, l.o.Bridge, name)
	if err != nil {
		return ReadSource{}, nil, err
	}
	if f.ResolvedPath == "" {
		return ReadSource{}, nil, fmt.Errorf("read %s: the bridge did not tell where the file lies: %w", fsbridge.DisplayPath(name), ErrInvalid)
	}
	if size := int64(len(f.Data)); size > l.cfg.MaxFile {
		return ReadSource{}, nil, &fsbridge.LimitError{What: "file size", Limit: l.cfg.MaxFile, Actual: size}
	}
	return ReadSource{
		Name: name, ResolvedPath: f.ResolvedPath, WorkspaceRelativePath: f.WorkspaceRelativePath,
		Hash: hashOf(f.Data), Size: int64(len(f.Data)), Info: f.Info,
	}, f.Data, nil
}

// judge applies protection, filters and budgets to a file that was read.
func (l *loader) judge(f *BootstrapFile, data []byte) {
	f.Status = FileExcluded
	if l.guarded.covers(*f.Source) {
		f.Reason = protectedReason
		return
	}
	for _, filter := range l.cfg.Filters {
		if f.Reason = filter(Candidate{Name: f.Name, Source: *f.Source, Extra: f.Pattern != ""}); f.Reason != "" {
			return
		}
	}
	if first, twice := l.seen[f.Source.ResolvedPath]; twice {
		f.Reason = "it is the same file as " + fsbridge.DisplayPath(first)
		return
	}
	l.seen[f.Source.ResolvedPath] = f.Name
	f.Status = FileLoaded
	f.Content, f.Cut = l.cut(data)
	l.out.Bytes += int64(len(f.Content))
}

// cut keeps what the budgets allow.
func (l *loader) cut(data []byte) ([]byte, *Cut) {
	keep, by := int64(len(data)), ""
	if l.cfg.FileBudget >= 0 && keep > l.cfg.FileBudget {
		keep, by = l.cfg.FileBudget, "file"
	}
	if l.left >= 0 && keep > l.left {
		keep, by = l.left, "total"
	}
	kept := data
	if by != "" {
		kept = wholeCharacters(data, keep)
	}
	if l.left >= 0 {
		l.left -= int64(len(kept))
	}
	if by == "" {
		return kept, nil
	}
	return kept, &Cut{Size: int64(len(data)), Kept: int64(len(kept)), By: by}
}

// wholeCharacters is the beginning of data, at most n bytes, without a part of a
// character at its end.
func wholeCharacters(data []byte, n int64) []byte {
	for back := int64(0); back < utf8.UTFMax && back < n; back++ {
		if utf8.RuneStart(data[n-back]) {
			return data[:n-back]
		}
	}
	return data[:n] // not text
}
