package guestfs

import (
	"context"
	"strings"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/guest/wire"
)

// Stat implements fsbridge.Bridge.
func (b *Bridge) Stat(ctx context.Context, path string) (fsbridge.FileInfo, error) {
	return b.info(ctx, wire.OpStat, path)
}

// Lstat implements fsbridge.Lstater.
func (b *Bridge) Lstat(ctx context.Context, path string) (fsbridge.FileInfo, error) {
	return b.info(ctx, wire.OpLstat, path)
}

func (b *Bridge) info(ctx context.Context, op wire.Op, path string) (fsbridge.FileInfo, error) {
	r, err := b.begin(ctx, op, path)
	if err != nil {
		return fsbridge.FileInfo{}, err
	}
	var info fsbridge.FileInfo
	if err := r.do(pathFrame(op, path), func(d *wire.Decoder) { info = d.Info() }); err != nil {
		return fsbridge.FileInfo{}, err
	}
	info.Name = base(path)
	return info, nil
}

// ReadLink implements fsbridge.LinkReader. What is not a link is fs.ErrInvalid.
func (b *Bridge) ReadLink(ctx context.Context, path string) (string, error) {
	r, err := b.begin(ctx, wire.OpReadLink, path)
	if err != nil {
		return "", err
	}
	var target string
	if err := r.do(pathFrame(wire.OpReadLink, path), func(d *wire.Decoder) { target = d.String(wire.MaxPath) }); err != nil {
		return "", err
	}
	if target == "" || strings.IndexByte(target, 0) >= 0 {
		return "", r.violated(wire.Violation("text of a link %q", wire.Printable(target, wire.MaxQuote)))
	}
	return target, nil
}

// HashFile implements fsbridge.Hasher.
func (b *Bridge) HashFile(ctx context.Context, path string) (fsbridge.FileHash, error) {
	r, err := b.begin(ctx, wire.OpHash, path)
	if err != nil {
		return fsbridge.FileHash{}, err
	}
	var h fsbridge.FileHash
	if err := r.do(pathFrame(wire.OpHash, path), func(d *wire.Decoder) { h = d.Hash() }); err != nil {
		return fsbridge.FileHash{}, err
	}
	if h.Digest == "" {
		return fsbridge.FileHash{}, r.violated(wire.Violation("hash without a digest"))
	}
	return h, nil
}

// pathFrame is the request of an operation that takes a path only.
func pathFrame(op wire.Op, path string) *wire.Frame {
	f := wire.NewOpen(op, len(path)+4)
	f.B = wire.PathRequest{Path: path}.Append(f.B)
	return f
}

// base returns the last element of a path as it is spelled, "/" for the root: the
// name of a FileInfo, which is the caller's own word.
func base(p string) string {
	t := strings.TrimRight(p, "/")
	if t == "" {
		return "/"
	}
	return t[strings.LastIndexByte(t, '/')+1:]
}
