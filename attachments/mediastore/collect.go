package mediastore

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/workberth/workberth/fsbridge"
)

// Collected tells what a collection removed.
type Collected struct {
	// Objects no reference named, and their Bytes.
	Objects int
	Bytes   int64
	// Temporaries of processes that are gone.
	Temporaries int
	// Views of references that are gone.
	Views int
}

// Collect removes what nothing needs: objects without a reference, temporary files whose
// owner is gone, views of released references. It never removes an object that a
// reference names, also not when the reference itself is damaged, and nothing of an ingest
// under way in any process: it waits for those that are about to give names.
func (s *Store) Collect(ctx context.Context) (Collected, error) {
	c, err := s.collect(ctx)
	if err == nil && c != (Collected{}) {
		s.log.Info("media store collected", "objects", c.Objects, "bytes", c.Bytes, "temporaries", c.Temporaries, "views", c.Views)
	}
	return c, fail("collect media store", s.dir, err)
}

func (s *Store) collect(ctx context.Context) (c Collected, err error) {
	done, err := s.hold(ctx, true)
	if err != nil {
		return c, err
	}
	defer done()
	refs, err := s.names(refsDir)
	if err != nil {
		return c, err
	}
	// A reference's name begins with its object's: nothing has to be parsed to know what
	// must stay.
	needed, alive := make(map[string]bool, len(refs)), make(map[string]bool, len(refs))
	for _, name := range refs {
		prefix, _, _ := strings.Cut(name, "-")
		needed[prefix], alive[name] = true, true
	}
	if err := s.collectTemporaries(ctx, &c); err != nil {
		return c, err
	}
	views, err := s.names(viewsDir)
	if err != nil {
		return c, err
	}
	for _, name := range views {
		if alive[name] {
			continue
		}
		if err := s.root.RemoveAll(viewsDir + "/" + name); err != nil {
			return c, err
		}
		c.Views++
	}
	return c, s.collectObjects(ctx, needed, &c)
}

func (s *Store) collectTemporaries(ctx context.Context, c *Collected) error {
	names, err := s.names(tempDir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		dead, err := s.dead(tempDir + "/" + name)
		if err != nil {
			return err
		}
		if !dead {
			continue
		}
		if err := s.root.Remove(tempDir + "/" + name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		c.Temporaries++
	}
	return nil
}

// dead reports whether nobody holds a temporary file's lock.
func (s *Store) dead(name string) (bool, error) {
	f, err := s.root.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	return tryLock(f, true)
}

func (s *Store) collectObjects(ctx context.Context, needed map[string]bool, c *Collected) error {
	dirs, err := s.names(objectsDir)
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		names, err := s.names(objectsDir + "/" + dir)
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := ctx.Err(); err != nil {
				return err
			}
			if !validDigest(fsbridge.Digest(name)) || needed[name[:16]] {
				continue // not ours, or referenced
			}
			info, err := s.root.Lstat(objectsDir + "/" + dir + "/" + name)
			if err != nil {
				return err
			}
			if err := s.root.Remove(objectsDir + "/" + dir + "/" + name); err != nil {
				return err
			}
			c.Objects++
			c.Bytes += info.Size()
		}
	}
	return nil
}
