//go:build linux

package local

import (
	"context"
	"fmt"
	"strings"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/rooted"
)

// Stat implements fsbridge.Bridge.
func (b *Bridge) Stat(ctx context.Context, path string) (fsbridge.FileInfo, error) {
	return b.stat(ctx, opStat, path, 0)
}

// Lstat implements fsbridge.Lstater.
func (b *Bridge) Lstat(ctx context.Context, path string) (fsbridge.FileInfo, error) {
	return b.stat(ctx, opLstat, path, rooted.NoFollow)
}

func (b *Bridge) stat(ctx context.Context, op, path string, f rooted.Flags) (fsbridge.FileInfo, error) {
	if err := b.begin(ctx, op, path); err != nil {
		return fsbridge.FileInfo{}, err
	}
	defer b.end()
	h, err := b.tree.Open(path, f)
	if err != nil {
		return fsbridge.FileInfo{}, pathError(op, path, err)
	}
	h.Close()
	return info(&h.Stat, path), nil
}

// ReadLink implements fsbridge.LinkReader. What is not a link is fs.ErrInvalid.
func (b *Bridge) ReadLink(ctx context.Context, path string) (string, error) {
	if err := b.begin(ctx, opLink, path); err != nil {
		return "", err
	}
	defer b.end()
	h, err := b.tree.Open(path, rooted.NoFollow)
	if err != nil {
		return "", pathError(opLink, path, err)
	}
	defer h.Close()
	if h.Stat.Type != fsbridge.TypeSymlink {
		return "", pathError(opLink, path, fmt.Errorf("is a %s, not a link: %w", h.Stat.Type, fsbridge.ErrInvalid))
	}
	text, err := rooted.Readlink(h.FD, "")
	return text, pathError(opLink, path, err)
}

// info gives a description the name that was asked for.
func info(st *rooted.Stat, path string) fsbridge.FileInfo {
	i := st.FileInfo
	i.Name = base(path)
	return i
}

// base returns the last element of a path as it is spelled, "/" for the root.
func base(p string) string {
	t := strings.TrimRight(p, "/")
	if t == "" {
		return "/"
	}
	return t[strings.LastIndexByte(t, '/')+1:]
}
