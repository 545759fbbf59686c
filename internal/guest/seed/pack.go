package seed

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
)

// together is how much is written at a time, in bytes: what a packet of SSH holds. Each one
// costs the server far more than the bytes in it.
const together = 32 << 10

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

// LeftOut is the list of what was left out in one line, empty when it was nothing.
func (p Packed) LeftOut() string {
	list := strings.Join(p.Left, "; ")
	if more := p.Skipped - len(p.Left); more > 0 {
		list += fmt.Sprintf("; and %d more", more)
	}
	return list
}

// ChangedError tells a file that was changed while it was read.
type ChangedError struct{ Name string }

// Error gives one line.
func (e *ChangedError) Error() string {
	return fmt.Sprintf("%q was changed while it was copied; try again when nothing works there", e.Name)
}

// Pack writes what lies below dir as a tar stream, dir itself first. A file that changes
// meanwhile is a *[ChangedError]; one that disappears is left out.
func Pack(ctx context.Context, w io.Writer, dir string) (Packed, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Packed{}, err
	}
	defer root.Close()
	info, err := root.Stat(".")
	if err != nil {
		return Packed{}, err
	}
	out := bufio.NewWriterSize(w, together)
	tw := tar.NewWriter(out)
	p := NewPacker(tw, root, Owner{})
	if err := tw.WriteHeader(p.header("./", info, tar.TypeDir)); err != nil {
		return Packed{}, err
	}
	p.done.Dirs++
	if err := p.Below(ctx); err != nil {
		return p.done, err // without its end the archive is none
	}
	if err := tw.Close(); err != nil {
		return p.done, err
	}
	return p.done, out.Flush()
}

// Owner is to whom entries are to belong, by number.
type Owner struct{ UID, GID int }

// Packer writes a directory of this machine into an archive. It reads nothing outside of
// it, whatever somebody does to its links meanwhile.
type Packer struct {
	root  *os.Root
	w     *tar.Writer
	owner Owner
	done  Packed
	names map[fileID]string // files with several names that were written, by their first
}

// NewPacker makes a Packer; archive and root stay the caller's.
func NewPacker(w *tar.Writer, root *os.Root, owner Owner) *Packer {
	return &Packer{root: root, w: w, owner: owner, names: make(map[fileID]string)}
}

// Done tells what was written up to now.
func (p *Packer) Done() Packed { return p.done }

// Below writes everything that lies below the root, in the order of names.
func (p *Packer) Below(ctx context.Context) error {
	info, err := p.root.Stat(".")
	if err != nil {
		return err
	}
	return p.dir(ctx, ".", info)
}

// dir writes what is in a directory, which was info a moment ago.
func (p *Packer) dir(ctx context.Context, name string, info fs.FileInfo) error {
	d, err := p.open(name, info, syscall.O_DIRECTORY)
	if err != nil {
		return err
	}
	names, err := d.Readdirnames(-1)
	if err = errors.Join(err, d.Close()); err != nil {
		return err
	}
	slices.Sort(names)
	for _, base := range names {
		if err := p.entry(ctx, path.Join(name, base)); err != nil {
			return err
		}
	}
	return nil
}

// entry writes one file, and all of it if it is a directory.
func (p *Packer) entry(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	info, err := p.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it has just been removed
	}
	if err != nil {
		return err
	}
	switch info.Mode().Type() {
	case fs.ModeDir:
		if err := p.w.WriteHeader(p.header(name+"/", info, tar.TypeDir)); err != nil {
			return err
		}
		p.done.Dirs++
		return p.dir(ctx, name, info)
	case fs.ModeSymlink:
		return p.symlink(name, info)
	case 0:
		return p.file(name, info)
	}
	p.skip(name, "it is neither file, directory nor link")
	return nil
}

// header describes an entry.
func (p *Packer) header(name string, info fs.FileInfo, kind byte) *tar.Header {
	return &tar.Header{
		Typeflag: kind, Name: name, Mode: Mode(info), ModTime: info.ModTime(),
		Uid: p.owner.UID, Gid: p.owner.GID, Format: tar.FormatPAX,
	}
}

// file writes a regular file, or a further name of one that was written.
func (p *Packer) file(name string, info fs.FileInfo) error {
	h := p.header(name, info, tar.TypeReg)
	if id, several := idOf(info); several {
		if first, ok := p.names[id]; ok {
			h.Typeflag, h.Linkname = tar.TypeLink, first
			p.done.Links++
			return p.w.WriteHeader(h)
		}
		p.names[id] = name
	}
	f, err := p.open(name, info, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	now, err := f.Stat()
	if err != nil {
		return err
	}
	h.Size = now.Size()
	if err := p.w.WriteHeader(h); err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	n, err := io.CopyN(p.w, f, h.Size)
	p.done.Files++
	p.done.Bytes += n
	if errors.Is(err, io.EOF) {
		return &ChangedError{name}
	}
	return err
}

// open opens a file that was info a moment ago.
func (p *Packer) open(name string, info fs.FileInfo, flags int) (*os.File, error) {
	f, err := p.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW|flags, 0)
	if err != nil {
		return nil, err
	}
	now, err := f.Stat()
	if err == nil && !os.SameFile(now, info) {
		err = &ChangedError{name}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// symlink writes a link that stays inside. What it leads to decides, not its text alone: a
// link to a link that leaves leaves.
func (p *Packer) symlink(name string, info fs.FileInfo) error {
	target, err := p.root.Readlink(name)
	if err != nil {
		return err
	}
	to := path.Join(path.Dir(name), target)
	if path.IsAbs(target) || to == ".." || strings.HasPrefix(to, "../") {
		p.skip(name, fmt.Sprintf("a link that leads out, to %q", target))
		return nil
	}
	if _, err := p.root.Stat(name); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
		p.skip(name, fmt.Sprintf("a link that leads out by way of others or in a circle, to %q", target))
		return nil
	}
	h := p.header(name, info, tar.TypeSymlink)
	h.Linkname = target
	p.done.Links++
	return p.w.WriteHeader(h)
}

// skip leaves an entry out.
func (p *Packer) skip(name, why string) {
	p.done.Skipped++
	if len(p.done.Left) < maxListed {
		p.done.Left = append(p.done.Left, fmt.Sprintf("%q (%s)", name, why))
	}
}

// Mode is a file's mode as an archive has it, without the bits that give a program the
// rights of its owner.
func Mode(info fs.FileInfo) int64 {
	mode := int64(info.Mode().Perm())
	if info.IsDir() && info.Mode()&fs.ModeSticky != 0 {
		mode |= 0o1000
	}
	if info.IsDir() && info.Mode()&fs.ModeSetgid != 0 {
		mode |= 0o2000
	}
	return mode
}
