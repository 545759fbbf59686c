//go:build linux

package local

import (
	"context"
	"os"

	"github.com/workberth/workberth/internal/rooted"
	"golang.org/x/sys/unix"
)

// opOpenDir names OpenDir in errors.
const opOpenDir = "open directory"

// OpenDir resolves a directory by the rules of every other operation and returns a
// mere handle on it (O_PATH), which the caller closes. A command that is started
// there by the handle runs where a file operation on the same path would act,
// whatever is renamed in between.
func (b *Bridge) OpenDir(ctx context.Context, path string) (*os.File, error) {
	if err := b.begin(ctx, opOpenDir, path); err != nil {
		return nil, err
	}
	defer b.end()
	h, err := b.tree.Open(path, rooted.Directory)
	if err != nil {
		return nil, pathError(opOpenDir, path, err)
	}
	defer h.Close()
	fd, err := unix.FcntlInt(uintptr(h.FD), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, pathError(opOpenDir, path, err)
	}
	return os.NewFile(uintptr(fd), path), nil
}
