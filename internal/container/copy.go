package container

import (
	"archive/tar"
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
	"time"

	"golang.org/x/sys/unix"

	"github.com/workberth/workberth/sandbox"
)

// maxNamed is how many of the files that were left out are named.
const maxNamed = 20

// copied is what a copy of a workspace consists of.
type copied struct {
	files int
	bytes int64
	// left are the names of what was left out, with the reason.
	left []string
	at   time.Time
}

// describe tells people what the sandbox works on.
func (c *copied) describe(spec sandbox.Spec) string {
	const after = "rm deletes the volume"
	if spec.Config.Access == sandbox.AccessNone {
		return "an empty volume on the engine's machine; " + after
	}
	return fmt.Sprintf("a volume on the engine's machine, filled from %s at %s (%d files, %d bytes); recreate copies again, %s",
		spec.Workspace, c.at.UTC().Format(time.RFC3339), c.files, c.bytes, after)
}

// fillWorkspace makes the volume in place of the workspace and copies the workspace into it; where the
// workspace is hidden it is empty.
func (g *generation) fillWorkspace(ctx context.Context) error {
	spec, id := g.Resolved.Spec, g.Resolved.ID
	f := &filler{g: g, volume: g.away.volume, container: g.b.fillerName(id), labels: g.b.labels(g.Resolved)}
	if err := g.markFilling(true); err != nil {
		return err
	}
	g.away.filled = true
	if err := g.engine.CreateVolume(ctx, f.volume, f.allLabels()); err != nil {
		return g.fillFailure(ctx, "the workspace", err)
	}
	if err := f.open(ctx); err != nil {
		return g.fillFailure(ctx, "the workspace", err)
	}
	a := g.plan.account
	c := &copier{ctx: ctx, uid: a.InsideUID, gid: a.InsideGID, links: map[inode]string{}}
	mode, content := int64(0o700), func(*tar.Writer) error { return nil }
	if spec.Config.Access != sandbox.AccessNone {
		root, err := os.OpenRoot(spec.Workspace)
		if err != nil {
			return g.fillFailure(ctx, "the workspace", err)
		}
		defer root.Close()
		info, err := root.Stat(".")
		if err != nil {
			return g.fillFailure(ctx, "the workspace", err)
		}
		c.root, mode = root, modeOf(info)
		content = func(w *tar.Writer) error { c.w = w; return c.dir(".", info) }
		g.b.log.Info("copying the workspace to the engine's machine", "sandbox", id, "workspace", spec.Workspace, "volume", f.volume)
	}
	if err := f.put(ctx, mode, a.InsideUID, a.InsideGID, content); err != nil {
		return g.fillFailure(ctx, "the workspace", err)
	}
	c.copied.at = g.b.now()
	g.away.copied = &c.copied
	g.b.log.Info("the workspace was copied", "sandbox", id, "files", c.files, "bytes", c.bytes)
	if n := len(c.left); n > 0 {
		g.b.log.Warn("parts of the workspace were not copied", "sandbox", id, "count", n, "names", c.left[:min(n, maxNamed)])
	}
	return nil
}

// copier writes a directory of this machine into an archive. It reads nothing outside of it, whatever
// somebody does to its links meanwhile.
type copier struct {
	copied
	ctx      context.Context
	root     *os.Root
	w        *tar.Writer
	uid, gid int
	links    map[inode]string // files with several names that were written, by their first
}

type inode struct{ dev, ino uint64 }

// changedError: a file is not any more what it was.
type changedError struct{ name string }

func (e *changedError) Error() string {
	return fmt.Sprintf("%q was changed while it was copied; try again when nothing works there", e.name)
}

// dir writes what is in a directory, which was info a moment ago.
func (c *copier) dir(name string, info fs.FileInfo) error {
	d, err := c.open(name, info, unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	names, err := d.Readdirnames(-1)
	if err = errors.Join(err, d.Close()); err != nil {
		return err
	}
	slices.Sort(names)
	for _, base := range names {
		if err := c.entry(path.Join(name, base)); err != nil {
			return err
		}
	}
	return nil
}

// entry writes one file, and all of it if it is a directory.
func (c *copier) entry(name string) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	info, err := c.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it has just been removed
	}
	if err != nil {
		return err
	}
	h := tar.Header{Name: name, Mode: modeOf(info), ModTime: info.ModTime(), Uid: c.uid, Gid: c.gid}
	switch info.Mode().Type() {
	case fs.ModeDir:
		h.Typeflag, h.Name = tar.TypeDir, name+"/"
		if err := c.write(&h, nil); err != nil {
			return err
		}
		return c.dir(name, info)
	case fs.ModeSymlink:
		target, err := c.root.Readlink(name)
		if err != nil {
			return err
		}
		if leaves(name, target) {
			c.left = append(c.left, fmt.Sprintf("%s (a link out of the workspace, to %s)", name, target))
			return nil
		}
		h.Typeflag, h.Linkname = tar.TypeSymlink, target
		return c.write(&h, nil)
	case 0:
		return c.file(&h, info)
	default:
		c.left = append(c.left, name+" (neither a file, a directory nor a link)")
		return nil
	}
}

// leaves reports whether a link, by its words, leads out of the tree.
func leaves(name, target string) bool {
	if path.IsAbs(target) {
		return true
	}
	to := path.Join(path.Dir(name), target)
	return to == ".." || strings.HasPrefix(to, "../")
}

// file writes a regular file; one that was written under another name, as a link to that.
func (c *copier) file(h *tar.Header, info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if ok && st.Nlink > 1 {
		id := inode{uint64(st.Dev), st.Ino}
		if first, known := c.links[id]; known {
			h.Typeflag, h.Linkname = tar.TypeLink, first
			return c.write(h, nil)
		}
		c.links[id] = h.Name
	}
	f, err := c.open(h.Name, info, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	now, err := f.Stat()
	if err != nil {
		return err
	}
	h.Typeflag, h.Size = tar.TypeReg, now.Size()
	return c.write(h, f)
}

// open opens a file that was info a moment ago.
func (c *copier) open(name string, info fs.FileInfo, flags int) (*os.File, error) {
	f, err := c.root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|flags, 0)
	if err != nil {
		return nil, err
	}
	now, err := f.Stat()
	if err == nil && !os.SameFile(now, info) {
		err = &changedError{name}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// write writes an entry with its content, of which only as much as was announced.
func (c *copier) write(h *tar.Header, content io.Reader) error {
	if err := c.w.WriteHeader(h); err != nil {
		return fmt.Errorf("%q: %w", h.Name, err)
	}
	c.files++
	if content == nil {
		return nil
	}
	n, err := io.CopyN(c.w, content, h.Size)
	c.bytes += n
	if errors.Is(err, io.EOF) {
		return &changedError{h.Name}
	}
	return err
}

// modeOf is a file's mode as an archive has it, without the bits that give a program rights.
func modeOf(info fs.FileInfo) int64 {
	mode := int64(info.Mode().Perm())
	if info.IsDir() && info.Mode()&fs.ModeSticky != 0 {
		mode |= 0o1000
	}
	if info.IsDir() && info.Mode()&fs.ModeSetgid != 0 {
		mode |= 0o2000
	}
	return mode
}
