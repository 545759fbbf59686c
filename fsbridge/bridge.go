package fsbridge

import (
	"context"
	"io"
	"iter"
	"time"
)

// Limits that hold on every bridge.
const (
	// MaxPath is the longest path a bridge accepts, in bytes.
	MaxPath = 4096
	// DefaultReadLimit bounds ReadFile and ReadFileWithSource where the bridge
	// was made without a limit of its own, in bytes.
	DefaultReadLimit = 64 << 20
)

// Bridge gives access to the files of one environment. It is safe for
// concurrent use. Every method returns a [*PathError]; context errors are
// wrapped in it and still match [context.Canceled] and
// [context.DeadlineExceeded]. Keeps FSB-01.
type Bridge interface {
	// Stat describes the file at path, following links.
	Stat(ctx context.Context, path string) (FileInfo, error)
	// ReadFile returns the whole content of the regular file at path. A file
	// larger than the bridge's read limit is ErrTooLarge, never a cut result.
	ReadFile(ctx context.Context, path string) ([]byte, error)
	// WriteFile atomically replaces the content of path, or creates the file
	// (mode 0666 less the umask) and its missing parent directories. An
	// existing file keeps its mode and, where the process may set it, its
	// owner and group. It is WriteStream with the zero WriteOptions.
	WriteFile(ctx context.Context, path string, data []byte) error
}

// AssertFunc is a guard: it reports whether the caller's authority still holds.
// It is synchronous and does no I/O; a non-nil error means the authority is gone.
// A guarded bridge calls it, and looks at ctx, before each single command it
// sends; when either fails the command is not sent and the call returns the
// error, which matches ErrNotCurrent. Keeps FSB-10.
type AssertFunc func() error

// Factory makes a guarded bridge for one environment. The host adapter that
// supplies it has already authorised the environment; a Factory fetches no
// credentials. Keeps FSB-10 and FSB-13.
type Factory func(ctx context.Context, assertCurrent AssertFunc) (Bridge, error)

// SourcedFile is the result of a pinned read.
type SourcedFile struct {
	// Data is the content.
	Data []byte
	// ResolvedPath is the canonical absolute path, in the environment, of the
	// very file that Data was read from: the path of the open descriptor.
	ResolvedPath string
	// WorkspaceRelativePath is ResolvedPath relative to the workspace mount, or
	// empty when the file lies outside it.
	WorkspaceRelativePath string
	// Info describes the open file.
	Info FileInfo
}

// Digest is the SHA-256 of a file's bytes in lower-case hexadecimal.
type Digest string

// FileHash is the result of hashing a file.
type FileHash struct {
	Digest Digest
	Size   int64
}

// Precondition restricts a change to a known state of the file it changes. The
// zero value restricts nothing. It is checked against the open file immediately
// before the change takes effect; a process in the environment can still change
// the file in between, so it detects lost updates and is not a lock.
type Precondition struct {
	// Hash, when set, is the digest the current content must have.
	Hash Digest
	// Absent demands that the file does not exist. It excludes Hash. On a bridge that
	// declares CapCreateFileExclusive a write with Absent takes the name as an exclusive
	// creation does: it never replaces a file, whoever makes one meanwhile.
	Absent bool
}

// WriteOptions direct WriteStream. The zero value is what WriteFile does.
type WriteOptions struct {
	// Mode is the permission of the file (lower nine bits; set-id and sticky
	// bits are refused unless AllowSetID is set). Zero keeps the mode of an
	// existing file and gives a new one 0666 less the umask.
	Mode Mode
	// AllowSetID permits set-id and sticky bits in Mode.
	AllowSetID bool
	// If is checked before the new content becomes visible.
	If Precondition
	// NoParents refuses to create missing parent directories.
	NoParents bool
	// Sync flushes content and directory entry to stable storage.
	Sync bool
	// Size, when positive, is the exact number of bytes the reader must yield;
	// another number is an error and changes nothing. It allows space to be
	// reserved.
	Size int64
}

// WriteResult tells what a write did.
type WriteResult struct {
	FileHash
	// Created is true when the file did not exist before.
	Created bool
}

// RemoveOptions direct Remove.
type RemoveOptions struct {
	// Recursive removes a directory with its content. Links inside are removed,
	// never followed.
	Recursive bool
	// If is checked first, for a regular file only.
	If Precondition
	// IgnoreMissing makes a missing path a success.
	IgnoreMissing bool
}

// RenameOptions direct Rename.
type RenameOptions struct {
	// NoReplace fails with fs.ErrExist when the new name is taken.
	NoReplace bool
	// Parents creates missing parent directories of the new name.
	Parents bool
}

// CopyOptions direct Copy.
type CopyOptions struct {
	// Recursive copies a directory with its content; links are copied as links
	// when they stay inside the mounts and refused otherwise.
	Recursive bool
	// NoReplace fails with fs.ErrExist when the destination exists. Otherwise an
	// existing file is atomically replaced; an existing directory never is.
	NoReplace bool
}

// MkdirOptions direct Mkdir.
type MkdirOptions struct {
	// Parents creates missing parents and accepts an existing directory.
	Parents bool
	// Mode is the permission of new directories; zero means 0777 less the umask.
	Mode Mode
}

// SymlinkOptions direct Symlink.
type SymlinkOptions struct {
	// Replace atomically replaces an existing link or file, never a directory.
	Replace bool
}

// WalkOptions direct Walk.
type WalkOptions struct {
	// MaxDepth limits the depth below the root; zero means no limit. Depth 1 is
	// the content of the root.
	MaxDepth int
	// MaxEntries ends the walk with ErrTooLarge after so many entries; zero
	// means 10 million.
	MaxEntries int
	// Hash fills FileInfo-independent digests of regular files in WalkEntry.
	Hash bool
	// SkipDirs lists base names of directories that are reported but not
	// entered, such as ".git".
	SkipDirs []string
}

// WalkEntry is one step of a walk. Path is relative to the walk's root.
type WalkEntry struct {
	Path string
	Info FileInfo
	// Digest is set for regular files when WalkOptions.Hash asked for it.
	Digest Digest
	// Err reports what could not be read at Path; the walk goes on.
	Err error
}

// GlobOptions direct Glob.
type GlobOptions struct {
	// MaxMatches ends the search with ErrTooLarge; zero means 100,000.
	MaxMatches int
}

// EventKind says what happened to a watched path.
type EventKind string

// The kinds of events. Overflow means events were lost: list again.
const (
	EventCreate   EventKind = "create"
	EventWrite    EventKind = "write"
	EventRemove   EventKind = "remove"
	EventAttrib   EventKind = "attrib"
	EventOverflow EventKind = "overflow"
)

// Event is one change below a watched directory. A rename is a remove of the
// old name and a create of the new one.
type Event struct {
	Kind EventKind
	// Path is relative to the watched directory; empty for the directory itself.
	Path string
	// Dir is true when the path is (or was) a directory.
	Dir  bool
	Time time.Time
}

// WatchOptions direct Watch.
type WatchOptions struct {
	// Recursive watches directories below as well, new ones included.
	Recursive bool
	// MaxDirs refuses to watch more directories; zero means 8,192.
	MaxDirs int
}

// Watch is a running watch. Events is closed when the watch ends; Err then tells
// why (nil after Close). The receiver must drain Events or call Close: a full
// buffer turns into one EventOverflow, it never blocks the environment.
type Watch interface {
	Events() <-chan Event
	Err() error
	Close() error
}

// The capabilities. A bridge declares one by implementing its interface.
type (
	// Lstater describes a file without following a final link.
	Lstater interface {
		Lstat(ctx context.Context, path string) (FileInfo, error)
	}
	// SourceReader is the pinned read: bytes and true location of one open
	// file. A bridge that cannot take both from one descriptor must not
	// implement it. Keeps FSB-03 to FSB-06.
	SourceReader interface {
		ReadFileWithSource(ctx context.Context, path string) (SourcedFile, error)
	}
	// RangeReader reads at most n bytes from offset off; fewer at the end of the
	// file. n is bounded by the bridge's read limit.
	RangeReader interface {
		ReadRange(ctx context.Context, path string, off, n int64) ([]byte, error)
	}
	// StreamReader opens a regular file for streaming in constant memory. The
	// returned FileInfo belongs to the open file. Closing early is free. ctx
	// governs the whole stream.
	StreamReader interface {
		OpenReader(ctx context.Context, path string) (io.ReadCloser, FileInfo, error)
	}
	// StreamWriter writes atomically from a reader in constant memory. A reader
	// that fails aborts the write: the old file stays and no temporary is left.
	StreamWriter interface {
		WriteStream(ctx context.Context, path string, r io.Reader, opts WriteOptions) (WriteResult, error)
	}
	// ExclusiveCreator writes a new file and its missing parents; an existing
	// path is fs.ErrExist and its bytes are unchanged. The complete content
	// appears at once. Keeps FSB-08.
	ExclusiveCreator interface {
		CreateFileExclusive(ctx context.Context, path string, data []byte) error
	}
	// Appender adds data at the end of an existing or new regular file.
	// Appending is not atomic towards readers; concurrent appends do not
	// overwrite each other.
	Appender interface {
		AppendFile(ctx context.Context, path string, data []byte) error
	}
	// Mkdirer makes directories.
	Mkdirer interface {
		Mkdir(ctx context.Context, path string, opts MkdirOptions) error
	}
	// Remover removes files, links and directories. A final link is removed
	// itself. A mount point is never removed.
	Remover interface {
		Remove(ctx context.Context, path string, opts RemoveOptions) error
	}
	// Renamer renames within one file system. Across file systems a regular file
	// is copied to a temporary beside the new name, renamed, and the source
	// removed only if it is still the very file that was copied; a directory
	// across file systems is refused with ErrCrossDevice.
	Renamer interface {
		Rename(ctx context.Context, oldPath, newPath string, opts RenameOptions) error
	}
	// Copier copies inside the environment; content does not cross the transport.
	Copier interface {
		Copy(ctx context.Context, src, dst string, opts CopyOptions) error
	}
	// LinkReader returns the text of a link.
	LinkReader interface {
		ReadLink(ctx context.Context, path string) (string, error)
	}
	// Symlinker makes a link whose target, resolved from the link's directory,
	// stays inside the mounts (it need not exist). Others are ErrOutsideRoot.
	Symlinker interface {
		Symlink(ctx context.Context, target, path string, opts SymlinkOptions) error
	}
	// Chmoder sets the permission bits of a file or directory. Set-id and sticky
	// bits are refused.
	Chmoder interface {
		Chmod(ctx context.Context, path string, mode Mode) error
	}
	// DirReader lists a directory, sorted by name bytes. Keeps FSB-07.
	DirReader interface {
		ReadDirectory(ctx context.Context, path string) ([]DirEntry, error)
	}
	// DirStreamer lists a directory in the order of the file system and in
	// constant memory. After an error the sequence ends.
	DirStreamer interface {
		StreamDirectory(ctx context.Context, path string) iter.Seq2[DirEntry, error]
	}
	// Walker visits everything below a directory, parents before content,
	// siblings sorted by name bytes, without following links. fn runs on the
	// calling goroutine, once per entry; its error ends the walk and is returned
	// as it is. fs.SkipDir from fn for a directory leaves its content out (the
	// entries may already have crossed the transport).
	Walker interface {
		Walk(ctx context.Context, path string, opts WalkOptions, fn func(WalkEntry) error) error
	}
	// Hasher hashes a regular file where it is.
	Hasher interface {
		HashFile(ctx context.Context, path string) (FileHash, error)
	}
	// Globber expands a pattern: "*", "?", "[...]" within one path element, "**"
	// for any number of elements, "{a,b}" for alternatives, "\" to quote.
	// Matches are paths as the pattern would have spelled them, sorted. Links
	// are matched, not descended. A malformed pattern is path.ErrBadPattern.
	Globber interface {
		Glob(ctx context.Context, pattern string, opts GlobOptions) ([]string, error)
	}
	// Watcher reports changes below a directory.
	Watcher interface {
		Watch(ctx context.Context, path string, opts WatchOptions) (Watch, error)
	}
	// Mounter tells the mounts a bridge serves. Every bridge should.
	Mounter interface {
		Mounts() MountTable
	}
)
