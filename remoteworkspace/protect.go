package remoteworkspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/workberth/workberth/fsbridge"
)

// protectedReason is why a session does not get a memory file.
const protectedReason = "protected memory is for private sessions only"

// inode identifies a file under all of its hard links.
type inode struct{ dev, number uint64 }

// protected are the protected memory files of a workspace, in every spelling that
// exists, with the locations they lead to. A nil value protects nothing. Keeps RWS-13.
type protected struct {
	names  []string
	most   int64 // size up to which one is read
	paths  map[string]bool
	inodes map[inode]bool
}

// findProtected looks where the protected names lead now. The names themselves are
// protected whether they exist or not, so that only a memory file that is itself a link
// to another name could be re-pointed between this and a later read.
func findProtected(ctx context.Context, o *opened, cfg BootstrapConfig) (*protected, error) {
	g := &protected{names: cfg.Protected, most: cfg.MaxFile, paths: make(map[string]bool), inodes: make(map[inode]bool)}
	spelled, err := g.spellings(ctx, o)
	if err != nil {
		return nil, err
	}
	for _, name := range spelled {
		if err := g.add(ctx, o, name); err != nil {
			return nil, fmt.Errorf("protected memory: %w", err)
		}
	}
	return g, nil
}

// spellings lists the protected names as they exist: from the listing of their
// directory where the bridge can list, the usual spellings otherwise.
func (g *protected) spellings(ctx context.Context, o *opened) ([]string, error) {
	var list []string
	for _, name := range g.names {
		dir, base := path.Split(name)
		list = append(list, name, dir+strings.ToLower(base), dir+strings.ToUpper(base))
		if !fsbridge.Has(o.Bridge, fsbridge.CapReadDirectory) {
			continue
		}
		entries, err := fsbridge.ReadDirectory(ctx, o.Bridge, path.Clean(dir))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("protected memory: %w", err)
		}
		for _, e := range entries {
			if strings.EqualFold(e.Name, base) {
				list = append(list, dir+e.Name)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// add takes the location of one spelling.
func (g *protected) add(ctx context.Context, o *opened, name string) error {
	info, err := o.Stat(ctx, name)
	switch {
	case err != nil && wholesale(err):
		return err
	case err != nil || !info.IsRegular():
		return nil //nolint:nilerr // it leads to no file that could be read under another name
	}
	if info.Inode != 0 {
		g.inodes[inode{info.Dev, info.Inode}] = true
		if info.Size > g.most {
			return nil // its identity is known without its content
		}
	}
	src, err := fsbridge.ReadFileWithSource(ctx, o.Bridge, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil && (wholesale(err) || info.Inode == 0):
		return err
	case err != nil:
		return nil //nolint:nilerr // it cannot be read under any name
	}
	g.paths[src.ResolvedPath] = true
	if src.Info.Inode != 0 {
		g.inodes[inode{src.Info.Dev, src.Info.Inode}] = true
	}
	return nil
}

// named reports whether a name is a protected one, in any letter case.
func (g *protected) named(name string) bool {
	return g != nil && slices.ContainsFunc(g.names, func(p string) bool { return strings.EqualFold(p, name) })
}

// covers reports whether a file that was read is a protected one: by its true location,
// in any letter case, or by being the very same file.
func (g *protected) covers(src ReadSource) bool {
	if g == nil {
		return false
	}
	if src.WorkspaceRelativePath != "" && g.named(src.WorkspaceRelativePath) {
		return true
	}
	return g.paths[src.ResolvedPath] || src.Info.Inode != 0 && g.inodes[inode{src.Info.Dev, src.Info.Inode}]
}
