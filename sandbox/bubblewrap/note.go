package bubblewrap

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/workberth/workberth/internal/cgroup"
	"github.com/workberth/workberth/sandbox"
)

// noteFile is the file in a sandbox's own directory that tells what a generation is
// about to make on this machine. It is written before anything is made and removed
// after everything is gone, so a process that dies at any moment leaves nothing that
// nobody knows of. It need not be flushed: neither processes nor control groups
// survive a fall of the machine.
const noteFile = "start.json"

// note is its content.
type note struct {
	// Tag is in the arguments of bwrap and of everything it becomes.
	Tag string `json:"tag"`
	// Group and Dirs are the control group.
	Group string   `json:"group,omitempty"`
	Dirs  []string `json:"dirs,omitempty"`
	// First is process 1 of the namespace, once it is known. It is over after all
	// others, and the only one by which that can be told.
	First sandbox.ProcessRef `json:"first"`
}

// write writes the note of a sandbox whose directory is dir.
func (n note) write(dir string) error {
	data, err := json.Marshal(n)
	if err != nil {
		return err
	}
	// Replaced as a whole: what an earlier note tells of is there already.
	temporary := filepath.Join(dir, noteFile+".new")
	if err := os.WriteFile(temporary, data, 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, filepath.Join(dir, noteFile))
}

// readNote reads the note of a sandbox whose directory is dir. Without one, or with one
// that is none of ours, the result is the zero note.
func readNote(dir string) (note, error) {
	data, err := os.ReadFile(filepath.Join(dir, noteFile))
	if errors.Is(err, fs.ErrNotExist) {
		return note{}, nil
	}
	if err != nil {
		return note{}, err
	}
	var n note
	if json.Unmarshal(data, &n) != nil || len(n.Tag) != tagLen {
		return note{}, nil
	}
	return n, nil
}

// forget removes the note.
func forget(dir string) error {
	err := os.Remove(filepath.Join(dir, noteFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// clearAway ends and removes what an earlier generation of a claimed sandbox has
// left. The claim proves that no live generation has it.
func clearAway(ctx context.Context, claim *sandbox.Claim) error {
	n, err := readNote(claim.Dir())
	if err != nil {
		return err
	}
	if n.Tag == "" {
		return forget(claim.Dir())
	}
	if err := errors.Join(endTagged(ctx, n.Tag), n.First.Kill(ctx)); err != nil {
		return err
	}
	if len(n.Dirs) > 0 {
		group, err := cgroup.Leftover(n.Group, n.Dirs)
		if err != nil {
			return fmt.Errorf("the note of a control group: %w", err)
		}
		if err := errors.Join(group.Kill(ctx), group.Remove(ctx)); err != nil {
			return err
		}
	}
	return forget(claim.Dir())
}

// quell ends the generation of a record whose bwrap was ended, and waits until all of
// its processes are over.
func (b *Backend) quell(ctx context.Context, rec sandbox.Record) error {
	n, err := readNote(filepath.Join(b.opts.StateDir, "sandboxes", string(rec.Info.ID)))
	if err != nil || n.Tag == "" || n.Tag != rec.InstanceTag {
		return err
	}
	return errors.Join(endTagged(ctx, n.Tag), n.First.Kill(ctx))
}

// tagLen is the length of a tag: 64 random bits, which no other process has in its
// arguments by chance.
const tagLen = 16

// endTagged ends the processes that carry the tag in their arguments, and returns
// when they are over. Where bwrap has ended they are about to end by themselves, but
// for one case: a bwrap that is killed just after it has made its child leaves that
// waiting for it for ever. (A process that is ending has no arguments any more.)
func endTagged(ctx context.Context, tag string) error {
	patience := time.Now().Add(startBound)
	for {
		refs, starting, err := tagged(tag)
		if err != nil || len(refs) == 0 && (!starting || time.Now().After(patience)) {
			return err
		}
		// Once more afterwards: one of them may have made another one meanwhile.
		for _, r := range refs {
			if err := r.Kill(ctx); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// startBound is how long a process without arguments may be one that is just
// starting; some have none for other reasons.
const startBound = 200 * time.Millisecond

// tagged lists the processes that carry the tag in their arguments and live. starting
// tells that another one may: a process that is just becoming another program has no
// arguments for a moment, and it may be the bwrap of an owner that has just died.
func tagged(tag string) (out []sandbox.ProcessRef, starting bool, err error) {
	cmdlines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil, false, err
	}
	for _, path := range cmdlines {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil || pid == os.Getpid() {
			continue
		}
		ref, err := sandbox.RefOf(pid)
		if err != nil {
			continue // it has ended
		}
		// Looked at after the identity was taken: a process that has got the number of
		// another one since is not meant.
		data, err := os.ReadFile(path)
		if err == nil && len(data) == 0 {
			// Threads of the kernel and the dead have none either, and no program.
			_, err := os.Readlink(filepath.Join(filepath.Dir(path), "exe"))
			starting = starting || err == nil
			continue
		}
		if err != nil || !slices.ContainsFunc(bytes.Split(data, []byte{0}), func(arg []byte) bool { return string(arg) == tagArg(tag) }) {
			continue
		}
		if ref.Alive() {
			out = append(out, ref)
		}
	}
	return out, starting, nil
}

// clearAll does what clearAway does for every sandbox of this backend that nobody
// holds.
func (b *Backend) clearAll(ctx context.Context) error {
	notes, err := filepath.Glob(filepath.Join(b.opts.StateDir, "sandboxes", Name+"-*", noteFile))
	if err != nil {
		return err
	}
	var failures []error
	for _, path := range notes {
		id := sandbox.ID(filepath.Base(filepath.Dir(path)))
		rec, err := b.registry.Get(id)
		if err == nil && rec.Info.Owner.Alive() {
			continue // the usual case, without a lock
		}
		claim, err := b.registry.Claim(ctx, id)
		if errors.Is(err, sandbox.ErrInUse) {
			continue
		}
		if err == nil {
			err = errors.Join(clearAway(ctx, claim), claim.Leave(ctx))
		}
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}
