package remoteworkspace

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/workberth/workberth/fsbridge"
)

// Bounds of a bootstrap where the configuration says nothing.
const (
	// DefaultFileBudget is what a session gets of one file, in bytes.
	DefaultFileBudget = 20_000
	// DefaultTotalBudget is what a session gets of all files together, in bytes.
	DefaultTotalBudget = 150_000
	// DefaultMaxExtraFiles bounds what patterns may match.
	DefaultMaxExtraFiles = 200
)

// BootstrapConfig says what a session starts with. The zero value means the default
// documents, no extra files, and no protected memory: a session must be known to be
// private to get it.
type BootstrapConfig struct {
	// Documents are root documents in the order in which they are read. Nil means
	// DefaultDocuments.
	Documents []string
	// Patterns name extra files below the workspace: "*", "?" and "[...]" within one
	// path element, "**" for any number of elements, "{a,b}" for alternatives. One
	// without wildcards is a path.
	Patterns []string
	// Protected are the protected root memory files, compared in any letter case. Nil
	// means MEMORY.md.
	Protected []string
	// IncludeProtected lets protected memory in: the session is its owner's alone.
	IncludeProtected bool
	// Filters decide about files by their true location, after the protection of
	// memory; the first that refuses counts.
	Filters []SessionFilter
	// MaxFile bounds a file that is read, in bytes; a larger one is refused, not cut.
	// Zero means DefaultMaxDocument.
	MaxFile int64
	// FileBudget and TotalBudget bound what a session gets, in bytes. What is beyond is
	// cut at the end of a character, and BootstrapFile.Cut says so. Zero means the
	// defaults, a negative number no bound.
	FileBudget, TotalBudget int64
	// MaxExtraFiles bounds the matches of all patterns; zero means
	// DefaultMaxExtraFiles. More are an error.
	MaxExtraFiles int
}

// Candidate is a file that a filter decides about.
type Candidate struct {
	// Name is the name it was asked by; Source is where it truly lies.
	Name   string
	Source ReadSource
	// Extra: a pattern found it.
	Extra bool
}

// SessionFilter says why a session does not get a file, or "" when it does. Keeps
// RWS-13.
type SessionFilter func(Candidate) (reason string)

// OnlyDocuments is a filter that lets nothing but the named documents through, by
// their true location.
func OnlyDocuments(names ...string) SessionFilter {
	return func(c Candidate) string {
		if slices.Contains(names, c.Source.WorkspaceRelativePath) {
			return ""
		}
		return "this session gets " + strings.Join(names, ", ") + " only"
	}
}

// ReadSource is what a pinned read told about a file: where the bytes truly came from.
type ReadSource struct {
	// Name is the name the file was asked by.
	Name string
	// ResolvedPath is the canonical absolute path in the environment.
	ResolvedPath string
	// WorkspaceRelativePath is that path below the workspace, empty outside it.
	WorkspaceRelativePath string
	// Hash and Size belong to the whole content.
	Hash fsbridge.Digest
	Size int64
	// Info describes the open file.
	Info fsbridge.FileInfo
}

// FileStatus says what became of a file.
type FileStatus string

// The statuses.
const (
	// FileLoaded: the session gets it.
	FileLoaded FileStatus = "loaded"
	// FileMissing: there is no such file.
	FileMissing FileStatus = "missing"
	// FileExcluded: a filter keeps it from this session; Reason tells.
	FileExcluded FileStatus = "excluded"
	// FileRefused: it exists and cannot be read; Err tells.
	FileRefused FileStatus = "refused"
)

// Cut tells that a session gets less than the whole file.
type Cut struct {
	// Size and Kept are in bytes; the beginning was kept.
	Size int64 `json:"size"`
	Kept int64 `json:"kept"`
	// By is the bound that was reached: "file" or "total".
	By string `json:"by"`
}

// BootstrapFile is one file of a session's start.
type BootstrapFile struct {
	// Name is the document, or the path that a pattern matched.
	Name string
	// Pattern is the pattern that found it, empty for root documents.
	Pattern string
	Status  FileStatus
	// Content is what the session gets.
	Content []byte
	// Source is set when the file was read, also when it is excluded then.
	Source *ReadSource
	// Cut is set when Content is not the whole file.
	Cut *Cut
	// Reason explains FileExcluded; Err explains FileRefused.
	Reason string
	Err    error
}

// Bootstrap is what a session starts with: root documents in the configured order, then
// the matches of each pattern, sorted by name bytes.
type Bootstrap struct {
	Dir   string
	Bound bool
	Files []BootstrapFile
	// Bytes is the length of all contents together.
	Bytes int64
}

// Refused lists the files that exist and could not be read.
func (b Bootstrap) Refused() []BootstrapFile {
	var list []BootstrapFile
	for _, f := range b.Files {
		if f.Status == FileRefused {
			list = append(list, f)
		}
	}
	return list
}

// prepare fills in defaults and refuses what cannot be meant.
func (c BootstrapConfig) prepare() (BootstrapConfig, error) {
	if c.Documents == nil {
		c.Documents = DefaultDocuments()
	}
	if c.Protected == nil {
		c.Protected = []string{memoryName}
	}
	for _, name := range append(slices.Clone(c.Documents), c.Protected...) {
		if err := validName(name); err != nil {
			return c, fmt.Errorf("bootstrap: %w", err)
		}
	}
	for _, p := range c.Patterns {
		if _, err := parsePattern(p); err != nil {
			return c, fmt.Errorf("bootstrap: %w", err)
		}
	}
	if c.MaxFile < 0 || c.MaxExtraFiles < 0 {
		return c, fmt.Errorf("bootstrap: a limit is negative: %w", ErrInvalid)
	}
	if c.MaxFile == 0 {
		c.MaxFile = DefaultMaxDocument
	}
	if c.MaxExtraFiles == 0 {
		c.MaxExtraFiles = DefaultMaxExtraFiles
	}
	if c.FileBudget == 0 {
		c.FileBudget = DefaultFileBudget
	}
	if c.TotalBudget == 0 {
		c.TotalBudget = DefaultTotalBudget
	}
	return c, nil
}

// LoadBootstrap reads what a session starts with, through the binding or, for an
// unbound workspace, locally. A missing document is reported as missing, one that
// cannot be read as refused; what concerns the whole workspace is an error: a bound
// workspace that cannot be reached, a bridge without pinned reads (RWS-12), patterns
// and a bridge that cannot list directories (RWS-14), a bridge that does not tell where
// a file lies. Keeps RWS-12 to RWS-14, RWS-16, RWS-21.
func (w *Workspaces) LoadBootstrap(ctx context.Context, dir string, cfg BootstrapConfig) (Bootstrap, error) {
	op := Operation{Method: MethodBootstrap, Dir: dir}
	b, err := w.loadBootstrap(ctx, op, cfg)
	return b, op.fail(err)
}

// ReadAfterCompaction reads AGENTS.md for a conversation that has been compacted, the
// way LoadBootstrap reads it: same protection, filters and bounds. Keeps RWS-15.
func (w *Workspaces) ReadAfterCompaction(ctx context.Context, dir string, cfg BootstrapConfig) (BootstrapFile, error) {
	op := Operation{Method: MethodCompaction, Dir: dir, Name: agentsName}
	cfg.Documents, cfg.Patterns = []string{agentsName}, nil
	b, err := w.loadBootstrap(ctx, op, cfg)
	if err != nil {
		return BootstrapFile{}, op.fail(err)
	}
	return b.Files[0], nil
}
