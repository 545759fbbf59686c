//go:build linux

package local

import (
	"context"
	"fmt"

	"github.com/workberth/workberth/fsbridge"
)

// Chmod implements fsbridge.Chmoder. Links are followed. The set-id and sticky bits of a directory
// stay as they are, those of a file are dropped.
func (b *Bridge) Chmod(ctx context.Context, path string, mode fsbridge.Mode) error {
	if err := b.begin(ctx, opChmod, path); err != nil {
		return err
	}
	defer b.end()
	return pathError(opChmod, path, b.chmod(ctx, path, mode))
}

func (b *Bridge) chmod(ctx context.Context, path string, mode fsbridge.Mode) error {
	if mode&^fsbridge.ModePerm != 0 {
		return hint(fmt.Errorf("mode %#o has more than nine bits: %w", uint32(mode), fsbridge.ErrInvalid),
			"set-id and sticky bits are not set through a bridge")
	}
	h, err := b.tree.Open(path, 0)
	if err != nil {
		return err
	}
	defer h.Close()
	if err := writable(h.Root); err != nil {
		return err
	}
	if h.Stat.IsDir() {
		mode |= h.Stat.Mode &^ fsbridge.ModePerm
	}
	if err := b.check(ctx); err != nil {
		return err
	}
	return b.tree.Chmod(&h, mode)
}
