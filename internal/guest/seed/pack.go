package seed

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// maxListed is how many names Packed keeps of what was left out.
const maxListed = 20

// Packed tells what became of a directory.
type Packed struct {
	// Files, Dirs and Links were written; Bytes is the content of the files.
	Files, Dirs, Links int
	Bytes              int64
	// Skipped is how many entries were left out, and Left the first of them, each with its
	// reason.
	Skipped int
	Left    []string
}

// Pack writes what lies below dir as a tar stream. A file that changes its size meanwhile
// is an error.
func Pack(ctx context.Context, w io.Writer, dir string) (Packed, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Packed{}, err
	}
	defer root.Close()
	p := &packer{root: root, dir: dir, tw: tar.NewWriter(w), seen: make(map[fileID]string)}
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err := errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		return p.entry(name, d)
	})
	return p.done, errors.Join(err, p.tw.Close())
}

type packer struct {
	root *os.Root
	dir  string
	tw   *tar.Writer
	done Packed
	seen map[fileID]string // files with several names, by the first
}

// skip leaves an entry out.
func (p *packer) skip(name, why string) error {
	p.done.Skipped++
	if len(p.done.Left) < maxListed {
		p.done.Left = append(p.done.Left, fmt.Sprintf("%q: %s", name, why))
	}
	return nil
}

func (p *packer) entry(name string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	h := &tar.Header{Name: name, Mode: mode(info.Mode()), ModTime: info.ModTime(), Format: tar.FormatPAX}
	switch {
	case info.IsDir():
		h.Typeflag, h.Name = tar.TypeDir, name+"/"
		p.done.Dirs++
		return p.tw.WriteHeader(h)
	case info.Mode()&fs.ModeSymlink != 0:
		target, why, err := p.link(name)
		if err != nil {
			return err
		}
		if why != "" {
			return p.skip(name, why)
		}
		h.Typeflag, h.Linkname = tar.TypeSymlink, target
		p.done.Links++
		return p.tw.WriteHeader(h)
	case info.Mode().IsRegular():
		return p.file(name, info, h)
	}
	return p.skip(name, "it is neither file, directory nor link")
}

// file writes a regular file, or a further name of one that was written.
func (p *packer) file(name string, info fs.FileInfo, h *tar.Header) error {
	if id, several := idOf(info); several {
		if first, ok := p.seen[id]; ok {
			h.Typeflag, h.Linkname = tar.TypeLink, first
			p.done.Links++
			return p.tw.WriteHeader(h)
		}
		p.seen[id] = name
	}
	f, err := p.root.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	now, err := f.Stat()
	if err != nil {
		return err
	}
	if !now.Mode().IsRegular() {
		return fmt.Errorf("%q became another kind of file while it was read", name)
	}
	h.Typeflag, h.Size = tar.TypeReg, now.Size()
	if err := p.tw.WriteHeader(h); err != nil {
		return err
	}
	n, err := io.Copy(p.tw, io.LimitReader(f, h.Size))
	if err == nil && n < h.Size {
		err = fmt.Errorf("%q became shorter while it was read", name)
	}
	p.done.Files++
	p.done.Bytes += n
	return err
}

// link returns a link's target, or why it must not travel. What it leads to decides, not
// its text alone: a link to a link that leaves leaves.
func (p *packer) link(name string) (target, why string, err error) {
	target, err = p.root.Readlink(name)
	if err != nil {
		return "", "", err
	}
	if path.IsAbs(target) {
		return "", fmt.Sprintf("the link leads to %q, an absolute path of this machine", target), nil
	}
	lexical := path.Join(path.Dir(name), target)
	if lexical == ".." || strings.HasPrefix(lexical, "../") {
		return "", fmt.Sprintf("the link leads out of the directory, to %q", target), nil
	}
	switch _, err := p.root.Stat(name); {
	case err == nil, errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return target, "", nil
	default: // it leads out by way of another one, or in a circle
		if real, e := filepath.EvalSymlinks(filepath.Join(p.dir, name)); e == nil {
			return "", fmt.Sprintf("the link leads out of the directory, to %q", real), nil
		}
		return "", "the link leads out of the directory by way of others, or in a circle", nil
	}
}

// mode is the permission part of a mode as tar writes it.
func mode(m fs.FileMode) int64 {
	bits := int64(m.Perm())
	for _, b := range []struct {
		is  fs.FileMode
		bit int64
	}{{fs.ModeSetuid, 0o4000}, {fs.ModeSetgid, 0o2000}, {fs.ModeSticky, 0o1000}} {
		if m&b.is != 0 {
			bits |= b.bit
		}
	}
	return bits
}
