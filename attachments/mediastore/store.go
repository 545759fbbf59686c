package mediastore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"
)

// DefaultLimit is the largest content a store takes where nothing else is configured,
// in bytes: 50 MiB.
const DefaultLimit int64 = 50 << 20

// The parts of a store's directory.
const (
	objectsDir = "objects" // ab/abcd...: contents, by SHA-256
	refsDir    = "refs"    // references, by id
	viewsDir   = "views"   // ID/NAME: an object under its arrival's name
	tempDir    = "tmp"     // what is not complete yet
	lockFile   = "lock"    // held shared by ingests, alone by a collection
	formatFile = "format"  // tells the layout
	format     = "workberth media store 1\n"
)

// Options direct Open.
type Options struct {
	// Dir is the store's directory, absolute. It is made, with its parents, when missing.
	Dir string
	// Limit is the largest content, in bytes; a content of exactly that size is taken.
	// Zero means DefaultLimit.
	Limit int64
	// Now tells when a reference is made. Nil is the system's clock.
	Now func() time.Time
	// Logger is told what a collection removed. Nil discards.
	Logger *slog.Logger
}

// Store is an open media store. It is safe for concurrent use, by several processes too.
type Store struct {
	dir   string
	root  *os.Root
	limit int64
	now   func() time.Time
	log   *slog.Logger
}

// Open opens a store, making it when it does not exist. Close it after use.
func Open(opts Options) (*Store, error) {
	s, err := open(opts)
	if err != nil {
		return nil, fail("open media store", opts.Dir, err)
	}
	return s, nil
}

func open(opts Options) (*Store, error) {
	switch {
	case !filepath.IsAbs(opts.Dir):
		return nil, fmt.Errorf("its directory must be an absolute path: %w", ErrInvalid)
	case opts.Limit < 0:
		return nil, fmt.Errorf("limit %d is negative: %w", opts.Limit, ErrInvalid)
	}
	s := &Store{dir: filepath.Clean(opts.Dir), limit: opts.Limit, now: opts.Now, log: opts.Logger}
	if s.limit == 0 {
		s.limit = DefaultLimit
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return nil, err
	}
	s.root = root
	if err := s.layOut(); err != nil {
		_ = root.Close()
		return nil, err
	}
	return s, nil
}

// layOut checks the directory and makes its parts.
func (s *Store) layOut() error {
	info, err := s.root.Stat(".")
	if err != nil {
		return err
	}
	if err := private(info); err != nil {
		return err
	}
	found, err := s.root.ReadFile(formatFile)
	switch {
	case err == nil && string(found) != format:
		return fmt.Errorf("it has another format, %q: %w", found, ErrInvalid)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	for _, d := range []string{objectsDir, refsDir, viewsDir, tempDir} {
		if err := s.root.Mkdir(d, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if found != nil {
		return nil
	}
	if err := s.writeDurably(formatFile, []byte(format)); err != nil {
		return err
	}
	return s.syncDir(".")
}

// Close ends the use of the store. Objects that are open stay readable.
func (s *Store) Close() error { return s.root.Close() }

// Dir is the store's directory.
func (s *Store) Dir() string { return s.dir }

// Limit is the largest content the store takes, in bytes.
func (s *Store) Limit() int64 { return s.limit }

// hold takes the store's lock until release is called.
func (s *Store) hold(ctx context.Context, alone bool) (release func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := s.root.OpenFile(lockFile, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lock(ctx, f, alone); err != nil {
		f.Close()
		return nil, fmt.Errorf("waiting for the store's lock: %w", err)
	}
	return func() { f.Close() }, nil
}

// writeDurably gives a small file its name when its content is complete and on disk. The
// name is on disk after syncDir.
func (s *Store) writeDurably(name string, data []byte) error {
	tmp := tempDir + "/" + newName()
	f, err := s.root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = s.root.Rename(tmp, name)
	}
	if err != nil {
		_ = s.root.Remove(tmp)
	}
	return err
}

// syncDir flushes a directory's names.
func (s *Store) syncDir(name string) error {
	d, err := s.root.Open(name)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
