//go:build linux

package local

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/rooted"
)

// Bridge serves the files of a mount table. It is safe for concurrent use. Every error is a
// *fsbridge.PathError. Keeps FSB-01 to FSB-08, FSB-10 and FSB-12.
type Bridge struct {
	*state
	asserts []fsbridge.AssertFunc
	view    bool // made by Guarded: Close has no effect
}

// state is what a bridge and its guarded views share.
type state struct {
	tree      *rooted.Tree
	mounts    fsbridge.MountTable
	names     *rooted.Names
	log       *slog.Logger
	readLimit int64
	entries   int
	umask     *uint32 // set when it differs from what the kernel applies
	applied   uint32  // the umask the kernel applies, where known
	commits   stripes
	// users counts running operations; closedBit is set by Close.
	users   atomic.Int64
	closing sync.Once
	closed  sync.Once

	mu      sync.Mutex
	watches map[*watch]struct{} // nil once the bridge is closed
}

var (
	_ fsbridge.Bridge           = (*Bridge)(nil)
	_ fsbridge.Declarer         = (*Bridge)(nil)
	_ fsbridge.Mounter          = (*Bridge)(nil)
	_ fsbridge.Lstater          = (*Bridge)(nil)
	_ fsbridge.SourceReader     = (*Bridge)(nil)
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
	_ fsbridge.DirStreamer      = (*Bridge)(nil)
	_ fsbridge.Walker           = (*Bridge)(nil)
	_ fsbridge.Hasher           = (*Bridge)(nil)
	_ fsbridge.Globber          = (*Bridge)(nil)
	_ fsbridge.Watcher          = (*Bridge)(nil)
)

// New opens the directories of the mount table. A directory that is missing, or is a file, gives a
// *MountError.
func New(opts Options) (*Bridge, error) { return newBridge(opts, rooted.Options{}) }

func newBridge(opts Options, how rooted.Options) (*Bridge, error) {
	s := &state{
		log:       opts.Logger,
		readLimit: opts.ReadLimit,
		entries:   opts.EntryLimit,
		watches:   make(map[*watch]struct{}),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.readLimit == 0 {
		s.readLimit = fsbridge.DefaultReadLimit
	}
	if s.entries == 0 {
		s.entries = DefaultEntryLimit
	}
	if s.readLimit < 0 || s.entries < 0 {
		return nil, fmt.Errorf("local bridge: a limit is negative: %w", fsbridge.ErrInvalid)
	}
	if err := s.setUmask(opts.Umask); err != nil {
		return nil, fmt.Errorf("local bridge: %w", err)
	}
	tag := opts.TempTag
	if tag == "" {
		tag = randomTag()
	}
	if !rooted.ValidTag(tag) {
		return nil, fmt.Errorf("local bridge: TempTag %q is not %d lower-case hexadecimal digits: %w",
			tag, rooted.TagLen, fsbridge.ErrInvalid)
	}
	s.names = rooted.NewNames(tag)
	tree, err := rooted.Open(opts.Mounts, how)
	var bad *rooted.MountError
	if errors.As(err, &bad) {
		return nil, &MountError{Mount: bad.Mount, Err: bad.Err}
	}
	if err != nil {
		return nil, fmt.Errorf("local bridge: %w", err)
	}
	s.tree = tree
	for _, r := range tree.Roots() {
		s.mounts = append(s.mounts, r.Mount)
	}
	if !tree.Kernel() {
		s.log.Info("openat2 is not available, paths are resolved element by element")
	}
	if !tree.HasProc() {
		s.log.Warn("/proc is not available: no pinned reads, no watches, no links through other directories")
	}
	b := &Bridge{state: s}
	if opts.Assert != nil {
		b.asserts = []fsbridge.AssertFunc{opts.Assert}
	}
	return b, nil
}

func randomTag() string {
	var b [rooted.TagLen / 2]byte
	_, _ = rand.Read(b[:]) // never fails, see crypto/rand
	return hex.EncodeToString(b[:])
}

func (s *state) setUmask(want *fsbridge.Mode) error {
	if want != nil && *want&^fsbridge.ModePerm != 0 {
		return fmt.Errorf("umask %#o has more than nine bits: %w", *want, fsbridge.ErrInvalid)
	}
	applied, known := rooted.ProcessUmask()
	s.applied = applied
	if !known {
		s.applied = uint32(fsbridge.ModePerm) // unknown: set every mode explicitly
	}
	if want != nil && (!known || uint32(*want) != applied) {
		m := uint32(*want)
		s.umask = &m
	}
	return nil
}

// TempTag returns the tag of the bridge's temporary files.
func (b *Bridge) TempTag() string { return b.names.Tag() }

// Mounts returns the mount table, with clean paths.
func (b *Bridge) Mounts() fsbridge.MountTable {
	return append(fsbridge.MountTable(nil), b.mounts...)
}

// Declares implements fsbridge.Declarer: without /proc a handle cannot tell its location, so that
// the pinned read (FSB-05) and the watch are missing.
func (b *Bridge) Declares(c fsbridge.Capability) bool {
	switch c {
	case fsbridge.CapReadFileWithSource, fsbridge.CapWatch:
		return b.tree.HasProc()
	}
	return true
}

// Guarded returns a bridge over the same open directories with a further guard. It lives as long
// as b; closing it has no effect. Keeps FSB-10.
func (b *Bridge) Guarded(assert fsbridge.AssertFunc) *Bridge {
	g := &Bridge{state: b.state, view: true}
	g.asserts = append(append(g.asserts, b.asserts...), assert)
	return g
}

const closedBit = 1 << 62

// Close ends the bridge: calls that begin later fail with fs.ErrClosed, watches end, calls that run
// finish first. Readers from OpenReader stay usable. It may be called more than once.
func (b *Bridge) Close() error {
	if b.view {
		return nil
	}
	b.closing.Do(func() {
		b.users.Add(closedBit + 1)
		b.endWatches()
		b.end()
	})
	return nil
}

// begin starts an operation: it counts as running, its path is well formed, and the guard holds.
// end must follow when it returns nil.
func (b *Bridge) begin(ctx context.Context, op, path string) error {
	return b.beginWith(ctx, op, path, fsbridge.ValidPath(path))
}

// beginWith is begin for what is not quite a path; invalid is what is wrong with it.
func (b *Bridge) beginWith(ctx context.Context, op, path string, invalid error) error {
	if b.users.Add(1)&closedBit != 0 {
		b.end()
		return &fsbridge.PathError{Op: op, Path: path, Err: fmt.Errorf("the bridge is closed: %w", fs.ErrClosed)}
	}
	err := invalid
	if err == nil {
		err = b.check(ctx)
	}
	if err != nil {
		b.end()
		return pathError(op, path, err)
	}
	return nil
}

func (b *Bridge) end() {
	if b.users.Add(-1) == closedBit {
		b.closed.Do(b.tree.Close)
	}
}

// check looks at the context and calls the guards. It comes before every effect. Keeps FSB-10.
func (b *Bridge) check(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, assert := range b.asserts {
		if err := assert(); err != nil {
			return &notCurrentError{err}
		}
	}
	return nil
}
