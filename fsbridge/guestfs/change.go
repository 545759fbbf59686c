package guestfs

import (
	"context"
	"fmt"
	"strings"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/guest/wire"
)

// Mkdir implements fsbridge.Mkdirer.
func (b *Bridge) Mkdir(ctx context.Context, path string, opts fsbridge.MkdirOptions) error {
	r, err := b.begin(ctx, wire.OpMkdir, path)
	if err != nil {
		return err
	}
	f := wire.NewOpen(r.op, len(path)+16)
	f.B = wire.MkdirRequest{Path: path, Options: opts}.Append(f.B)
	return r.do(f, nil)
}

// Remove implements fsbridge.Remover.
func (b *Bridge) Remove(ctx context.Context, path string, opts fsbridge.RemoveOptions) error {
	r, err := b.begin(ctx, wire.OpRemove, path)
	if err != nil {
		return err
	}
	if err := r.precondition(opts.If); err != nil {
		return err
	}
	f := wire.NewOpen(r.op, len(path)+96)
	f.B = wire.RemoveRequest{Path: path, Options: opts}.Append(f.B)
	return r.do(f, nil)
}

// precondition refuses a digest that is too long to be one, and to be sent.
func (r *request) precondition(p fsbridge.Precondition) error {
	if len(p.Hash) > wire.MaxWord {
		return r.refuse(fmt.Errorf("digest of %d characters: %w", len(p.Hash), fsbridge.ErrInvalid))
	}
	return nil
}

// Rename implements fsbridge.Renamer.
func (b *Bridge) Rename(ctx context.Context, oldPath, newPath string, opts fsbridge.RenameOptions) error {
	r, err := b.begin(ctx, wire.OpRename, oldPath, newPath)
	if err != nil {
		return err
	}
	f := wire.NewOpen(r.op, len(oldPath)+len(newPath)+16)
	f.B = wire.RenameRequest{Old: oldPath, New: newPath, Options: opts}.Append(f.B)
	return r.do(f, nil)
}

// Copy implements fsbridge.Copier.
func (b *Bridge) Copy(ctx context.Context, src, dst string, opts fsbridge.CopyOptions) error {
	r, err := b.begin(ctx, wire.OpCopy, src, dst)
	if err != nil {
		return err
	}
	f := wire.NewOpen(r.op, len(src)+len(dst)+16)
	f.B = wire.CopyRequest{Src: src, Dst: dst, Options: opts}.Append(f.B)
	return r.do(f, nil)
}

// Symlink implements fsbridge.Symlinker.
func (b *Bridge) Symlink(ctx context.Context, target, path string, opts fsbridge.SymlinkOptions) error {
	r, err := b.begin(ctx, wire.OpSymlink, path)
	if err != nil {
		return err
	}
	if len(target) > wire.MaxPath || strings.IndexByte(target, 0) >= 0 {
		return r.refuse(fmt.Errorf("text of the link is too long or has a NUL byte: %w", fsbridge.ErrInvalidPath))
	}
	f := wire.NewOpen(r.op, len(path)+len(target)+16)
	f.B = wire.SymlinkRequest{Target: target, Path: path, Options: opts}.Append(f.B)
	return r.do(f, nil)
}

// Chmod implements fsbridge.Chmoder.
func (b *Bridge) Chmod(ctx context.Context, path string, mode fsbridge.Mode) error {
	r, err := b.begin(ctx, wire.OpChmod, path)
	if err != nil {
		return err
	}
	f := wire.NewOpen(r.op, len(path)+16)
	f.B = wire.ChmodRequest{Path: path, Mode: mode}.Append(f.B)
	return r.do(f, nil)
}
