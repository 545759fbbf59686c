package mirror

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/skills"
)

const (
	// manifestName is the record of what Sync has put into the directory, maxManifest its largest
	// size in bytes.
	manifestName = ".manifest.json"
	maxManifest  = 8 << 20
	// maxEntries is how many files and folders there may be in the directory, maxPathBytes how long
	// their paths may be together.
	maxEntries   = 200_000
	maxPathBytes = 64 << 20
)

// manifest is that record: the digest of each file, by path.
type manifest struct {
	Version int                        `json:"version"`
	Files   map[string]fsbridge.Digest `json:"files"`
}

// Options direct Sync.
type Options struct {
	// Dir is where the copies go, a path of the bridge; DefaultDir when empty.
	Dir string
	// MaxBytes bounds all files together; 256 MiB by default.
	MaxBytes int64
	// Parallel is how many files are written at once; 64 by default.
	Parallel int
}

// Result is what a Sync did.
type Result struct {
	Dir string `json:"dir"`
	// Skills are the names of the skills that are there now.
	Skills    []string `json:"skills"`
	Written   []string `json:"written"`
	Removed   []string `json:"removed"`
	Unchanged int      `json:"unchanged"`
	// Kept are files that are no longer wanted and were changed there since: nobody but their
	// writer can say whether they may go.
	Kept []string `json:"kept,omitempty"`
}

// Sync makes a directory in a sandbox hold the loaded skills of this machine and nothing else that
// it put there before. Only files whose hash differs are written, each atomically and read-only;
// every written file's hash is compared with the listing's, so that a skill that changed since it
// was listed is an error and not a mixture. Files that are no longer wanted are removed if they
// are as Sync left them. A directory with files of others is refused (ErrForeign) before anything is
// changed. A second call after a failure finishes the work.
//
// from reads this machine's skills, to is the sandbox. The listing must have been made with
// hashes.
func Sync(ctx context.Context, l skills.Listing, from, to fsbridge.Bridge, opts Options) (Result, error) {
	s := &copying{from: from, to: to, opts: opts.orDefaults()}
	wanted, err := files(l)
	if err != nil {
		return Result{}, err
	}
	if err := s.check(wanted); err != nil {
		return Result{}, err
	}
	s.result = Result{Dir: s.opts.Dir, Skills: []string{}, Written: []string{}, Removed: []string{}}
	for _, v := range Eligible(l) {
		s.result.Skills = append(s.result.Skills, v.Name)
	}
	if err := s.look(ctx); err != nil {
		return Result{}, err
	}
	if err := s.hash(ctx, wanted); err != nil {
		return Result{}, err
	}
	write, remove := s.plan(wanted)
	if len(write) == 0 && len(remove) == 0 {
		return s.result, nil
	}
	if err := s.apply(ctx, wanted, write, remove); err != nil {
		return Result{}, err
	}
	return s.result, nil
}

func (o Options) orDefaults() Options {
	if o.Dir == "" {
		o.Dir = DefaultDir
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = 256 << 20
	}
	if o.Parallel <= 0 {
		o.Parallel = 64
	}
	return o
}

// copying is one Sync under way.
type copying struct {
	from, to fsbridge.Bridge
	opts     Options
	result   Result

	// before is what the manifest says, present what is there, with the hashes of what could be as it
	// should.
	before  manifest
	present map[string]fsbridge.WalkEntry
}

// check refuses what cannot be copied as a whole.
func (s *copying) check(wanted []file) error {
	var total int64
	for _, f := range wanted {
		if total += f.size; total > s.opts.MaxBytes {
			return fmt.Errorf("copy skills: %w", &fsbridge.LimitError{What: "size of all skills", Limit: s.opts.MaxBytes})
		}
		if f.digest == "" {
			return fmt.Errorf("copy skills: %s has no hash in the listing: %w", fsbridge.DisplayPath(f.from), fsbridge.ErrInvalid)
		}
	}
	for _, c := range []fsbridge.Capability{fsbridge.CapWalk, fsbridge.CapHashFile, fsbridge.CapRemove} {
		if !fsbridge.Has(s.to, c) {
			return &fsbridge.PathError{
				Op: "copy skills to", Path: s.opts.Dir, Err: &fsbridge.UnsupportedError{Capability: c},
				Hint: "choose a backend whose bridge declares it, see docs/capabilities.md",
			}
		}
	}
	return nil
}

func (s *copying) at(rel string) string { return path.Join(s.opts.Dir, rel) }

// plan compares what is wanted with what is there.
func (s *copying) plan(wanted []file) (write []file, remove []string) {
	want := map[string]bool{}
	for _, f := range wanted {
		want[f.to] = true
		e, there := s.present[f.to]
		if there && e.Info.IsRegular() && e.Digest == f.digest && e.Info.Mode&fsbridge.ModePerm == f.mode() {
			s.result.Unchanged++
			continue
		}
		write = append(write, f)
	}
	for p, digest := range s.before.Files {
		e, there := s.present[p]
		switch {
		case want[p]:
		case !there:
			remove = append(remove, p) // from the record
		case !e.Info.IsRegular() || e.Digest != digest:
			s.result.Kept = append(s.result.Kept, p)
		default:
			remove = append(remove, p)
		}
	}
	slices.Sort(remove)
	slices.Sort(s.result.Kept)
	return write, remove
}

// apply makes the changes. The record first has every file of before and after, so that a failure
// in between leaves no file that nobody answers for.
func (s *copying) apply(ctx context.Context, wanted, write []file, remove []string) error {
	after := manifest{Version: 1, Files: map[string]fsbridge.Digest{}}
	for _, p := range s.result.Kept {
		after.Files[p] = s.before.Files[p]
	}
	for _, f := range wanted {
		after.Files[f.to] = f.digest
	}
	during := manifest{Version: 1, Files: map[string]fsbridge.Digest{}}
	maps.Copy(during.Files, s.before.Files)
	maps.Copy(during.Files, after.Files)
	if err := s.record(ctx, during); err != nil {
		return err
	}
	if err := s.clear(ctx, write); err != nil {
		return err
	}
	if err := s.all(ctx, len(write), func(i int) error { return s.copy(ctx, write[i]) }); err != nil {
		return err
	}
	for _, f := range write {
		s.result.Written = append(s.result.Written, f.to)
	}
	kept := make([]bool, len(remove))
	if err := s.all(ctx, len(remove), func(i int) error {
		err := fsbridge.Remove(ctx, s.to, s.at(remove[i]), fsbridge.RemoveOptions{If: fsbridge.Precondition{Hash: s.before.Files[remove[i]]}, IgnoreMissing: true})
		switch {
		case errors.Is(err, fsbridge.ErrConflict):
			kept[i] = true // it was changed meanwhile
		case errors.Is(err, fsbridge.ErrOutsideRoot): // its folder was replaced: it is not there any more
		default:
			return err
		}
		return nil
	}); err != nil {
		return err
	}
	for i, p := range remove {
		if _, there := s.present[p]; kept[i] {
			s.result.Kept = append(s.result.Kept, p)
			after.Files[p] = s.before.Files[p]
		} else if there {
			s.result.Removed = append(s.result.Removed, p)
		}
	}
	s.prune(ctx, after, remove)
	return s.record(ctx, after)
}

func (s *copying) record(ctx context.Context, m manifest) error {
	data, err := json.MarshalIndent(m, "", " ")
	switch {
	case err != nil:
		return err
	case len(data) >= maxManifest:
		return fmt.Errorf("copy skills: %w", &fsbridge.LimitError{What: "size of the record of all files", Limit: maxManifest, Actual: int64(len(data))})
	}
	return s.to.WriteFile(ctx, s.at(manifestName), append(data, '\n'))
}

// clear removes links and other things that lie where a file or its folder is to be, so that
// nothing is written through them.
func (s *copying) clear(ctx context.Context, write []file) error {
	bad := map[string]bool{}
	for _, f := range write {
		if e, there := s.present[f.to]; there && !e.Info.IsRegular() {
			bad[f.to] = true
		}
		for d := path.Dir(f.to); d != "."; d = path.Dir(d) {
			if e, there := s.present[d]; there && !e.Info.IsDir() {
				bad[d] = true
			}
		}
	}
	list := make([]string, 0, len(bad))
	for p := range bad {
		list = append(list, p)
	}
	return s.all(ctx, len(list), func(i int) error {
		return fsbridge.Remove(ctx, s.to, s.at(list[i]), fsbridge.RemoveOptions{IgnoreMissing: true})
	})
}

// copy copies one file and compares its hash with the listing's before it is written.
func (s *copying) copy(ctx context.Context, f file) error {
	data, err := s.from.ReadFile(ctx, f.from)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	if fsbridge.DigestOf(sum[:]) != f.digest {
		return &fsbridge.PathError{Op: "copy", Path: f.from, Err: fsbridge.ErrConflict, Hint: "the skill has changed since it was listed; copy again"}
	}
	if !fsbridge.Has(s.to, fsbridge.CapWriteStream) {
		return s.to.WriteFile(ctx, s.at(f.to), data)
	}
	res, err := fsbridge.WriteStream(ctx, s.to, s.at(f.to), strings.NewReader(string(data)), fsbridge.WriteOptions{Mode: f.mode(), Size: int64(len(data))})
	if err == nil && res.Digest != f.digest {
		return &fsbridge.PathError{Op: "copy", Path: s.at(f.to), Err: fmt.Errorf("it was written with hash %s: %w", res.Digest, fsbridge.ErrConflict), Hint: "copy again"}
	}
	return err
}

// prune removes the folders that removed files have left empty. A folder that is not empty stays.
func (s *copying) prune(ctx context.Context, after manifest, remove []string) {
	used := map[string]bool{}
	for p := range after.Files {
		for d := path.Dir(p); d != "."; d = path.Dir(d) {
			used[d] = true
		}
	}
	empty := map[string]bool{}
	for _, p := range remove {
		for d := path.Dir(p); d != "."; d = path.Dir(d) {
			empty[d] = empty[d] || !used[d]
		}
	}
	var dirs []string
	for d, ok := range empty {
		if ok {
			dirs = append(dirs, d)
		}
	}
	slices.SortFunc(dirs, func(a, b string) int { return len(b) - len(a) }) // lowest first
	for _, d := range dirs {
		_ = fsbridge.Remove(ctx, s.to, s.at(d), fsbridge.RemoveOptions{IgnoreMissing: true}) // not empty: somebody uses it
	}
}

// all runs fn for 0 to n-1, several at a time.
func (s *copying) all(ctx context.Context, n int, fn func(i int) error) error {
	var wg sync.WaitGroup
	errs := make([]error, n)
	turns := make(chan struct{}, s.opts.Parallel)
	for i := range n {
		turns <- struct{}{}
		wg.Go(func() {
			defer func() { <-turns }()
			if errs[i] = ctx.Err(); errs[i] == nil {
				errs[i] = fn(i)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
