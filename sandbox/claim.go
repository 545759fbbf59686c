package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Claim is the ownership of one sandbox by this process. It ends with Release, with
// Delete, or with the process. Safe for concurrent use.
type Claim struct {
	registry *Registry
	id       ID
	dir      string
	self     ProcessRef

	mu     sync.Mutex
	lock   *os.File // nil once the claim has ended
	record Record
	known  bool // a record exists
}

// Claim makes this process the owner of a sandbox, known or new. A live owner, this
// process included, is an *[InUseError]. What a killed writer left is cleared away; a
// record that cannot be read is set aside, reported and counts as none.
func (r *Registry) Claim(ctx context.Context, id ID) (*Claim, error) {
	if !id.Valid() {
		return nil, refused("", fmt.Sprintf("sandbox %q", id), "this is not the name of a sandbox", "see the list of sandboxes")
	}
	self, err := SelfRef()
	if err != nil {
		return nil, err
	}
	unlock, err := r.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()

	dir := r.entry(id)
	if err := privateDir(dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "lock")
	lock, err := tryLock(path)
	if errors.Is(err, errLocked) {
		return nil, &InUseError{ID: id, Owner: readHolder(path)}
	}
	if err != nil {
		return nil, err
	}
	c := &Claim{registry: r, id: id, dir: dir, self: self, lock: lock}
	if err := c.open(); err != nil {
		lock.Close()
		return nil, err
	}
	return c, nil
}

// open looks at what is there, and says in the lock file who holds it now.
func (c *Claim) open() error {
	if err := dropTemporaries(c.dir); err != nil {
		return fmt.Errorf("clear away temporary records: %w", err)
	}
	rec, err := readRecord(c.dir, c.id)
	var corrupt *corruptError
	switch {
	case errors.As(err, &corrupt):
		if err := c.quarantine(err); err != nil {
			return err
		}
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		// The lock says that nobody holds it. A record that names another live
		// process is believed all the same: somebody may have removed the lock file.
		if o := rec.Info.Owner; o != c.self && o.Alive() {
			return &InUseError{ID: c.id, Owner: o}
		}
		c.record, c.known = rec, true
	}
	data, err := json.Marshal(c.self)
	if err != nil {
		return err
	}
	if err := c.lock.Truncate(0); err != nil {
		return err
	}
	_, err = c.lock.WriteAt(data, 0)
	return err
}

// readHolder tells who holds a lock file; the zero value where that is not (yet)
// written.
func readHolder(path string) (ref ProcessRef) {
	f, err := os.Open(path)
	if err != nil {
		return ref
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, 4096))
	if err != nil || json.Unmarshal(data, &ref) != nil {
		return ProcessRef{}
	}
	return ref
}

// quarantine sets a broken record aside. Nothing is deleted: it may tell somebody
// what was running.
func (c *Claim) quarantine(cause error) error {
	from := filepath.Join(c.dir, recordName)
	to := from + corruptInfix + c.registry.now().UTC().Format("20060102T150405.000000000")
	if err := os.Rename(from, to); err != nil {
		return fmt.Errorf("set a broken record aside: %w", err)
	}
	c.registry.log.Error("a broken sandbox record was set aside; processes of that sandbox are unknown",
		"sandbox", c.id, "file", to, "error", cause)
	return nil
}

// ID is the name of the sandbox.
func (c *Claim) ID() ID { return c.id }

// Dir is the private directory of the sandbox. Delete removes it with all it holds.
// Names that begin with ".record-", "record.json" and "lock" are taken.
func (c *Claim) Dir() string { return c.dir }

// Record returns the record; ok is false when there is none yet.
func (c *Claim) Record() (rec Record, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.record.clone(), c.known
}

// Save writes the record, with this process as the owner and LastUsed as of now.
// Values of environment variables are left out.
func (c *Claim) Save(rec Record) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.save(rec, c.self, c.registry.now())
}

// Update changes the record and writes it, as Save does. change runs under a lock
// and must not call the claim.
func (c *Claim) Update(change func(*Record)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	rec := c.record.clone()
	change(&rec)
	return c.save(rec, c.self, c.registry.now())
}

func (c *Claim) save(rec Record, owner ProcessRef, used time.Time) error {
	if c.lock == nil {
		return fmt.Errorf("sandbox %s: this process no longer holds it: %w", c.id, ErrGone)
	}
	rec = rec.clone()
	rec.Info.ID = c.id
	rec.Info.Owner = owner
	rec.Info.LastUsed = used.UTC()
	if rec.Info.Created.IsZero() {
		rec.Info.Created = rec.Info.LastUsed
	}
	if err := writeRecord(c.dir, rec); err != nil {
		return err
	}
	c.record, c.known = rec, true
	return nil
}

// Release gives the sandbox back; the entry stays as it was last saved, without an
// owner. Releasing again does nothing.
func (c *Claim) Release() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lock == nil {
		return nil
	}
	var err error
	if c.known {
		err = c.save(c.record, ProcessRef{}, c.record.Info.LastUsed)
	}
	return errors.Join(err, c.unlock())
}

// Delete removes the entry with its directory and gives the sandbox back. A claim
// that has ended deletes nothing.
func (c *Claim) Delete(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lock == nil {
		return nil
	}
	unlock, err := c.registry.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	// Lock and record go last, so that a removal that was cut short is found again
	// and nobody else works in there meanwhile.
	if err := removeTree(c.dir, "lock", recordName); err != nil {
		return fmt.Errorf("remove sandbox %s: %w", c.id, err)
	}
	return c.unlock()
}

func (c *Claim) unlock() error {
	err := c.lock.Close()
	c.lock = nil
	return err
}

// removeTree removes a directory with what is below it, the entries named last at
// the end. Links are removed, never followed. Directories that were made unreadable are
// opened up first.
func removeTree(dir string, last ...string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if slices.Contains(last, e.Name()) {
			continue
		}
		if err := removeAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return os.RemoveAll(dir)
}

// removeAll is os.RemoveAll, also for directories without permissions.
func removeAll(path string) error {
	err := os.RemoveAll(path)
	if err == nil || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	// Rooted, so that a link put in the way is not followed.
	root, openErr := os.OpenRoot(filepath.Dir(path))
	if openErr != nil {
		return err
	}
	defer root.Close()
	openUp(root, filepath.Base(path))
	return os.RemoveAll(path)
}

// openUp makes the directory name and those below it readable and writable.
func openUp(root *os.Root, name string) {
	info, err := root.Lstat(name)
	if err != nil || !info.IsDir() {
		return
	}
	_ = root.Chmod(name, 0o700)
	sub, err := root.OpenRoot(name)
	if err != nil {
		return
	}
	defer sub.Close()
	d, err := sub.Open(".")
	if err != nil {
		return
	}
	defer d.Close()
	for {
		names, err := d.Readdirnames(256)
		for _, n := range names {
			openUp(sub, n)
		}
		if err != nil {
			return
		}
	}
}
