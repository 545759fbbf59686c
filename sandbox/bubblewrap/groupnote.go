package bubblewrap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/workberth/workberth/internal/cgroup"
	"github.com/workberth/workberth/sandbox"
)

// groupNote is the file in a sandbox's own directory that tells of its control
// group. It is written before the group is made and removed after the group is, so
// a process that dies at any moment leaves no group that nobody knows of. It need
// not be flushed: control groups do not survive a fall of the machine either.
const groupNote = "cgroup.json"

// note is its content.
type note struct {
	Name string   `json:"name"`
	Dirs []string `json:"dirs"`
}

// noteGroup writes it.
func noteGroup(dir, name string, dirs []string) error {
	data, err := json.Marshal(note{name, dirs})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, groupNote), data, 0o600)
}

// forgetGroup removes it.
func forgetGroup(dir string) error {
	err := os.Remove(filepath.Join(dir, groupNote))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// clearGroup removes the control group that an earlier generation of a claimed
// sandbox has left, with the processes in it, if there are any. The claim proves
// that no live generation has it.
func clearGroup(ctx context.Context, claim *sandbox.Claim) error {
	data, err := os.ReadFile(filepath.Join(claim.Dir(), groupNote))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var n note
	if json.Unmarshal(data, &n) != nil { // cut short, so the group was not made
		return forgetGroup(claim.Dir())
	}
	group, err := cgroup.Leftover(n.Name, n.Dirs)
	if err != nil {
		return fmt.Errorf("the note of a control group: %w", err)
	}
	if err := group.Kill(ctx); err != nil {
		return err
	}
	return errors.Join(group.Remove(ctx), forgetGroup(claim.Dir()))
}

// clearGroups does the same for every sandbox of this backend that nobody holds.
func (b *Backend) clearGroups(ctx context.Context) error {
	notes, err := filepath.Glob(filepath.Join(b.opts.StateDir, "sandboxes", Name+"-*", groupNote))
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
			err = errors.Join(clearGroup(ctx, claim), claim.Release())
		}
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}
