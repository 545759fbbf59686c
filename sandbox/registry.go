package sandbox

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

// Registry keeps records of sandboxes on disk, shared safely by any number of
// processes of one user:
//
//	<state>/sandboxes/lock           held for moments, by whoever changes the set
//	<state>/sandboxes/<id>/lock      held by the owner for as long as it lives
//	<state>/sandboxes/<id>/record.json
//
// Who holds an entry's lock owns the sandbox and is the only one to write in its
// directory. The kernel gives the lock back when the owner ends in whatever way, and
// the record tells who it was by pid, start time and boot id, so ownership survives a
// reused pid and a process that cannot be seen from here. Directories have mode 0700.
type Registry struct {
	dir string
	log *slog.Logger
	now func() time.Time
}

// RegistryOptions direct OpenRegistry. The zero value is good.
type RegistryOptions struct {
	// Log gets what was found broken and what was reaped. Nil discards.
	Log *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// OpenRegistry opens the registry below the state directory, an absolute path, and
// creates what is missing. A directory that belongs to somebody else, or that others
// may write, is refused with a *[Problem].
func OpenRegistry(stateDir string, opts RegistryOptions) (*Registry, error) {
	if err := privateDir(stateDir); err != nil {
		return nil, err
	}
	dir := filepath.Join(stateDir, "sandboxes")
	if err := privateDir(dir); err != nil {
		return nil, err
	}
	r := &Registry{dir: dir, log: discard(opts.Log), now: opts.Now}
	if r.now == nil {
		r.now = time.Now
	}
	return r, nil
}

// InUseError names the live process that holds a sandbox. It matches ErrInUse.
type InUseError struct {
	ID ID
	// Owner is zero where it could not be told.
	Owner ProcessRef
}

// Error names the process.
func (e *InUseError) Error() string {
	if e.Owner.IsZero() {
		return fmt.Sprintf("sandbox %s is in use by another process", e.ID)
	}
	return fmt.Sprintf("sandbox %s is in use by %s", e.ID, e.Owner)
}

// Is matches ErrInUse.
func (e *InUseError) Is(target error) bool { return target == ErrInUse }

// Get returns the record of one sandbox. An unknown one is an error that matches
// ErrNotFound, a broken one is reported.
func (r *Registry) Get(id ID) (Record, error) {
	if !id.Valid() {
		return Record{}, fmt.Errorf("sandbox %q: %w", id, ErrNotFound)
	}
	rec, err := readRecord(r.entry(id), id)
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, fmt.Errorf("sandbox %s: %w", id, ErrNotFound)
	}
	return rec, err
}

// CorruptRecord is an entry that cannot be read. The next claim or reconciliation
// sets its file aside.
type CorruptRecord struct {
	ID  ID
	Dir string
	Err error
}

// List returns the records of all sandboxes of a backend ("" means all), sorted by
// name, and the entries that cannot be read. Entries that are just being made or
// removed are left out.
func (r *Registry) List(backend string) (records []Record, corrupt []CorruptRecord, err error) {
	ids, err := r.ids(backend)
	if err != nil {
		return nil, nil, err
	}
	for _, id := range ids {
		rec, err := readRecord(r.entry(id), id)
		switch {
		case err == nil:
			records = append(records, rec)
		case errors.Is(err, fs.ErrNotExist):
		default:
			corrupt = append(corrupt, CorruptRecord{ID: id, Dir: r.entry(id), Err: err})
		}
	}
	return records, corrupt, nil
}

// ids lists the entries of a backend, sorted. Other files are not ours.
func (r *Registry) ids(backend string) ([]ID, error) {
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return nil, fmt.Errorf("list sandboxes: %w", err)
	}
	var ids []ID
	for _, e := range entries {
		id := ID(e.Name())
		if e.IsDir() && id.Valid() && (backend == "" || id.Backend() == backend) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// entry is the directory of a sandbox.
func (r *Registry) entry(id ID) string { return filepath.Join(r.dir, string(id)) }

// lock holds the registry for a moment.
func (r *Registry) lock(ctx context.Context) (unlock func(), err error) {
	f, err := waitLock(ctx, filepath.Join(r.dir, "lock"))
	if err != nil {
		return nil, err
	}
	return func() { f.Close() }, nil
}
