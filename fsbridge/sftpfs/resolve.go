package sftpfs

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"syscall"

	"github.com/workberth/workberth/fsbridge"
)

// maxLinks is how many links one path may lead through, as on Linux.
const maxLinks = 40

// place is where a path leads.
type place struct {
	// abs is the path for the server: absolute, clean, without links except perhaps the last element.
	abs   string
	mount fsbridge.Mount
	// info describes the file where exists is set.
	info   fsbridge.FileInfo
	exists bool
	// missing are the elements that do not exist, the last one included; abs contains them.
	missing []string
	// dirOnly is set when the path was spelled so that it can only mean a directory.
	dirOnly bool
}

// isLink tells whether the place is a symbolic link itself.
func (p place) isLink() bool { return p.exists && p.info.Type == fsbridge.TypeSymlink }

// changeable refuses changes in read-only mounts.
func (p place) changeable() error {
	if p.mount.ReadOnly {
		return fmt.Errorf("mount %s is %w", p.mount.Path, fsbridge.ErrReadOnly)
	}
	return nil
}

// lstat describes a file itself.
func (c *call) lstat(p string) (fsbridge.FileInfo, error) {
	i, err := ask(c, func() (fs.FileInfo, error) { return c.b.client.Lstat(p) })
	if err != nil {
		return fsbridge.FileInfo{}, err
	}
	return infoOf(path.Base(p), i)
}

// walker is the state of one resolution.
type walker struct {
	c     *call
	mount fsbridge.Mount
	cur   string
	links int
}

// resolve finds where p leads, one element at a time, and never asks about anything outside the mounts.
// With follow, a final link is followed. Only the last element may be missing unless parents is set.
func (c *call) resolve(p string, follow, parents bool) (place, error) {
	w := &walker{c: c}
	mounts := c.b.opts.Mounts
	var todo []string
	if strings.HasPrefix(p, "/") {
		m, rest, ok := mounts.Find(p)
		if !ok {
			return place{}, fsbridge.ErrOutsideRoot
		}
		w.mount, todo = m, strings.Split(rest, "/")
	} else {
		m, ok := mounts.Workspace()
		if !ok {
			return place{}, fmt.Errorf("there is no workspace, so that a relative path leads nowhere: %w", fsbridge.ErrOutsideRoot)
		}
		w.mount, todo = m, strings.Split(p, "/")
	}
	w.cur = w.mount.Path
	pl, err := w.run(todo, follow, parents)
	if err != nil {
		return place{}, err
	}
	pl.dirOnly = strings.HasSuffix(p, "/") || strings.HasSuffix(p, "/.")
	if pl.dirOnly && pl.exists && !pl.info.IsDir() && !pl.isLink() {
		return place{}, syscall.ENOTDIR
	}
	return pl, nil
}

// run walks the elements of todo. That a mount is a directory is taken for granted until it is the mount
// itself that is asked for.
func (w *walker) run(todo []string, follow, parents bool) (place, error) {
	mount := fsbridge.FileInfo{Type: fsbridge.TypeDir}
	info := mount
	for len(todo) > 0 {
		e := todo[0]
		todo = todo[1:]
		if e == "" || e == "." {
			continue
		}
		if !info.IsDir() {
			return place{}, syscall.ENOTDIR
		}
		next := path.Join(w.cur, e) // ".." steps up
		if e == ".." && w.cur == "/" {
			return place{}, fsbridge.ErrOutsideRoot
		}
		if err := w.enter(next); err != nil {
			return place{}, err
		}
		if next == w.mount.Path {
			info, w.cur = mount, next
			continue
		}
		var err error
		info, err = w.c.lstat(next)
		if errors.Is(err, fs.ErrNotExist) {
			return w.absent(next, e, todo, parents)
		}
		if err != nil {
			return place{}, err
		}
		if info.Type != fsbridge.TypeSymlink || !follow && last(todo) {
			w.cur = next
			continue
		}
		if todo, err = w.follow(next, todo); err != nil {
			return place{}, err
		}
		info = mount // or the directory with the link in it, which is one as well
	}
	if info == mount {
		i, err := ask(w.c, func() (fs.FileInfo, error) { return w.c.b.client.Stat(w.cur) })
		if err != nil {
			return place{}, err
		}
		if info, err = infoOf(path.Base(w.cur), i); err != nil {
			return place{}, err
		}
	}
	return place{abs: w.cur, mount: w.mount, info: info, exists: true}, nil
}

// last tells whether nothing of meaning is left.
func last(todo []string) bool {
	for _, e := range todo {
		if e != "" && e != "." {
			return false
		}
	}
	return true
}

// enter moves to the mount that holds p. A system mount is never entered from another one.
func (w *walker) enter(p string) error {
	m, _, ok := w.c.b.opts.Mounts.Find(p)
	if !ok || m.Kind == fsbridge.MountSystem && w.mount.Path != m.Path {
		return fsbridge.ErrOutsideRoot
	}
	w.mount = m
	return nil
}

// follow replaces the link at p by its target.
func (w *walker) follow(p string, todo []string) ([]string, error) {
	if w.links++; w.links > maxLinks {
		return nil, syscall.ELOOP
	}
	target, err := w.c.readlink(p)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(target, "/") {
		m, rest, ok := w.c.b.opts.Mounts.Find(target)
		if !ok || m.Kind == fsbridge.MountSystem {
			return nil, fsbridge.ErrOutsideRoot
		}
		w.mount, w.cur, target = m, m.Path, rest
	} else if err := w.enter(w.cur); err != nil {
		return nil, err
	}
	return append(strings.Split(target, "/"), todo...), nil
}

// absent is the answer for a path whose element e does not exist.
func (w *walker) absent(p, e string, todo []string, parents bool) (place, error) {
	missing := []string{e}
	for _, e := range todo {
		switch e {
		case "", ".":
		case "..":
			return place{}, fs.ErrNotExist
		default:
			missing = append(missing, e)
			p = path.Join(p, e)
			if err := w.enter(p); err != nil {
				return place{}, err
			}
		}
	}
	if len(missing) > 1 && !parents {
		return place{}, fs.ErrNotExist
	}
	return place{abs: p, mount: w.mount, missing: missing}, nil
}

// existing resolves a path that must exist.
func (c *call) existing(p string, follow bool) (place, error) {
	pl, err := c.resolve(p, follow, false)
	if err == nil && !pl.exists {
		err = fs.ErrNotExist
	}
	return pl, err
}

// readlink reads a link. What the server says is a path, or it is refused.
func (c *call) readlink(p string) (string, error) {
	target, err := ask(c, func() (string, error) { return c.b.client.ReadLink(p) })
	if err != nil {
		return "", err
	}
	if target == "" || len(target) > fsbridge.MaxPath || strings.IndexByte(target, 0) >= 0 {
		return "", &protocolError{"a link without a proper target"}
	}
	return target, nil
}
