//go:build linux

package local

import (
	"fmt"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/rooted"
	"golang.org/x/sys/unix"
)

// nameable refuses paths whose final element is no name that could be renamed, removed or made:
// "." and "..", and mounts.
func nameable(place *rooted.Place, path string) error {
	switch e := base(path); {
	case e == "." || e == "..":
		return hint(fmt.Errorf("the path ends in %q: %w", e, fsbridge.ErrInvalid), "name the directory itself")
	case place.Name == "":
		return mountPointError(place.Dir.Root)
	}
	return nil
}

// movable refuses, before any effect, to change a name in a read-only mount, and names that are a
// mount or have one below them.
func (b *Bridge) movable(place *rooted.Place) error {
	if err := writable(place.Dir.Root); err != nil {
		return err
	}
	r, err := b.tree.MountBelow(&place.Dir, place.Name)
	if err != nil {
		return err
	}
	if r != nil {
		return mountPointError(r)
	}
	return nil
}

func mountPointError(r *rooted.Root) error {
	return hint(fmt.Errorf("a mount point is never renamed or removed: %w", unix.EBUSY),
		"%s is a mount; its content can be changed", fsbridge.DisplayPath(r.Mount.Path))
}
