//go:build linux

package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/rooted"
	"golang.org/x/sys/unix"
)

// AppendFile implements fsbridge.Appender. A new file appears complete, with its missing parents.
// Bridges append one after the other; a file that is replaced meanwhile is not appended to, its
// successor is. When the space ends in the middle, the error says how much was appended.
func (b *Bridge) AppendFile(ctx context.Context, path string, data []byte) error {
	if err := b.begin(ctx, opAppend, path); err != nil {
		return err
	}
	defer b.end()
	return pathError(opAppend, path, b.append(ctx, path, data))
}

func (b *Bridge) append(ctx context.Context, path string, data []byte) error {
	for range rooted.Attempts {
		f, err := b.tree.OpenFile(path, unix.O_WRONLY|unix.O_APPEND, writable)
		if errors.Is(err, fs.ErrNotExist) {
			w := &writing{content: bytesContent(data)}
			w.opts.If.Absent = true
			if err = b.writeAt(ctx, path, w); errors.Is(err, fsbridge.ErrConflict) {
				continue // another writer made it first
			}
			return err
		}
		if err != nil {
			return err
		}
		done, err := b.appendTo(ctx, &f, data)
		f.Close()
		if done || err != nil {
			return err
		}
	}
	return rooted.ErrBusy
}

// appendTo reports false when the open file has been replaced by another one.
func (b *Bridge) appendTo(ctx context.Context, f *rooted.File, data []byte) (bool, error) {
	if err := lockFile(ctx, f.FD); err != nil {
		return false, err
	}
	st, err := b.tree.Fstat(f.FD)
	if err != nil {
		return false, err
	}
	if st.Nlink == 0 {
		return false, nil
	}
	for rest := data; len(rest) > 0; {
		n := min(len(rest), chunk)
		err := b.check(ctx)
		if err == nil {
			err = rooted.WriteAll(f.FD, rest[:n])
		}
		if err != nil && len(rest) < len(data) {
			err = fmt.Errorf("after %d of %d bytes: %w", len(data)-len(rest), len(data), err)
		}
		if err != nil {
			return false, err
		}
		rest = rest[n:]
	}
	return true, nil
}
