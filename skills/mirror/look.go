package mirror

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/workberth/workberth/fsbridge"
)

// hashTime bounds the hashing of what is there: a file can grow faster than it is hashed.
const hashTime = time.Minute

// readManifest reads what should be the manifest, and no more than one can have.
func (s *copying) readManifest(ctx context.Context) ([]byte, error) {
	if !fsbridge.Has(s.to, fsbridge.CapReadRange) {
		return s.to.ReadFile(ctx, s.at(manifestName))
	}
	return fsbridge.ReadRange(ctx, s.to, s.at(manifestName), 0, maxManifest+1)
}

// hash hashes what is there of the wanted files with the size they should have, and of those of the
// manifest with a size that was ever copied: a file of another size is another one.
func (s *copying) hash(ctx context.Context, wanted []file) error {
	want := map[string]int64{}
	for _, f := range wanted {
		want[f.to] = f.size
	}
	var list []string
	for p, e := range s.present {
		size, isWanted := want[p]
		_, ours := s.before.Files[p]
		if e.Info.IsRegular() && (isWanted && e.Info.Size == size || !isWanted && ours && e.Info.Size <= s.opts.MaxBytes) {
			list = append(list, p)
		}
	}
	sums := make([]fsbridge.Digest, len(list))
	brief, cancel := context.WithTimeout(ctx, hashTime)
	defer cancel()
	err := s.all(brief, len(list), func(i int) error {
		h, err := fsbridge.HashFile(brief, s.to, s.at(list[i]))
		if sums[i] = h.Digest; errors.Is(err, fs.ErrNotExist) || errors.Is(err, fsbridge.ErrNotRegular) || errors.Is(err, fsbridge.ErrOutsideRoot) || errors.Is(err, fs.ErrPermission) {
			return nil // it is another one by now
		}
		return err
	})
	for i, p := range list {
		e := s.present[p]
		e.Digest = sums[i]
		s.present[p] = e
	}
	if brief.Err() != nil && ctx.Err() == nil {
		return nil // it grows faster than it is hashed, so it is no copy
	}
	return err
}

// look reads the manifest and lists what is there.
func (s *copying) look(ctx context.Context) error {
	s.present = map[string]fsbridge.WalkEntry{}
	var data []byte
	var readErr, walkErr error
	var wg sync.WaitGroup
	wg.Go(func() { data, readErr = s.readManifest(ctx) })
	wg.Go(func() {
		room := maxPathBytes
		walkErr = fsbridge.Walk(ctx, s.to, s.opts.Dir, fsbridge.WalkOptions{MaxEntries: maxEntries}, func(e fsbridge.WalkEntry) error {
			if room -= len(e.Path); room < 0 {
				return &fsbridge.PathError{
					Op: "list the copies in", Path: s.opts.Dir, Err: &fsbridge.LimitError{What: "size of all paths", Limit: maxPathBytes},
					Hint: "remove what does not belong there",
				}
			}
			s.present[e.Path] = e
			return nil
		})
	})
	wg.Wait()
	if walkErr != nil && !errors.Is(walkErr, fs.ErrNotExist) {
		return walkErr
	}
	switch {
	case errors.Is(readErr, fs.ErrNotExist):
		for p := range s.present {
			return &fsbridge.PathError{
				Op: "copy skills to", Path: s.opts.Dir, Err: fmt.Errorf("%w: %s", ErrForeign, fsbridge.DisplayPath(p)),
				Hint: "give a directory that is empty or was filled by an earlier copy",
			}
		}
		return nil
	case readErr != nil:
		return readErr
	}
	if len(data) > maxManifest || json.Unmarshal(data, &s.before) != nil || s.before.Version != 1 {
		return &fsbridge.PathError{
			Op: "copy skills to", Path: s.opts.Dir, Err: fmt.Errorf("%w: %s is no record of an earlier copy", ErrForeign, manifestName),
			Hint: "remove the directory, or give another one",
		}
	}
	for p := range s.before.Files {
		if !inside(p) {
			delete(s.before.Files, p) // the record lies where others can write
		}
	}
	return nil
}
