//go:build linux

package local

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/rooted"
	"golang.org/x/sys/unix"
)

// watched is one directory of a watch.
type watched struct {
	path string // below the watched directory, empty for itself
	// seen has the names that were reported when the directory was first read. Events that were
	// queued by then may report them again, up to position until in the stream of events.
	seen  map[string]struct{}
	until uint64
}

const watchMask = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO |
	unix.IN_MODIFY | unix.IN_CLOSE_WRITE | unix.IN_ATTRIB |
	unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR | unix.IN_EXCL_UNLINK

// notice is one event of the kernel.
type notice struct {
	dir  int32
	mask uint32
	name string
	pos  uint64
}

func (n *notice) is(mask uint32) bool { return n.mask&mask != 0 }

// batch handles what one read has brought.
func (w *watch) batch(buf []byte) error {
	pos := w.read
	w.read += uint64(len(buf))
	now := time.Now()
	var last fsbridge.Event
	for len(buf) >= unix.SizeofInotifyEvent {
		size := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(buf[12:]))
		if size > len(buf) {
			return unix.EIO
		}
		name := buf[unix.SizeofInotifyEvent:size]
		if i := bytes.IndexByte(name, 0); i >= 0 {
			name = name[:i]
		}
		n := notice{
			dir:  int32(binary.NativeEndian.Uint32(buf)),
			mask: binary.NativeEndian.Uint32(buf[4:]),
			name: string(name), pos: pos,
		}
		buf, pos = buf[size:], pos+uint64(size)
		e, err := w.event(&n)
		if err != nil {
			return err
		}
		e.Time = now
		// Writes to one file come in bursts: of those that are here already one is enough.
		if e.Kind == "" || e == last && e.Kind == fsbridge.EventWrite {
			continue
		}
		last = e
		w.send(e)
		if e.Kind == fsbridge.EventCreate && e.Dir && w.opts.Recursive {
			if err := w.add(e.Path, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// event says what a notice means; the zero Event means nothing.
func (w *watch) event(n *notice) (fsbridge.Event, error) {
	if n.is(unix.IN_Q_OVERFLOW) {
		// Whatever changes during the rescan is covered by the event after it.
		return fsbridge.Event{Kind: fsbridge.EventOverflow}, w.rescan()
	}
	d := w.dirs[n.dir]
	switch {
	case d == nil:
		return fsbridge.Event{}, nil
	case n.is(unix.IN_IGNORED):
		delete(w.dirs, n.dir)
		return fsbridge.Event{}, nil
	case n.name == "":
		return w.self(n, d)
	case w.b.names.Ours(n.name):
		return fsbridge.Event{}, nil
	}
	e := fsbridge.Event{Path: join(d.path, n.name), Dir: n.is(unix.IN_ISDIR)}
	switch {
	case n.is(unix.IN_CREATE | unix.IN_MOVED_TO):
		if d.known(n) {
			return fsbridge.Event{}, nil
		}
		e.Kind = fsbridge.EventCreate
	case n.is(unix.IN_DELETE | unix.IN_MOVED_FROM):
		delete(d.seen, n.name)
		e.Kind = fsbridge.EventRemove
		if e.Dir && n.is(unix.IN_MOVED_FROM) {
			w.forget(e.Path)
		}
	case n.is(unix.IN_MODIFY | unix.IN_CLOSE_WRITE):
		e.Kind = fsbridge.EventWrite
	case n.is(unix.IN_ATTRIB):
		e.Kind = fsbridge.EventAttrib
	}
	return e, nil
}

// errGone ends a watch whose directory is no longer where it was.
var errGone = fmt.Errorf("the watched directory is gone: %w", unix.ENOENT)

// self handles a notice about a watched directory itself; those below the first are reported by
// their parents.
func (w *watch) self(n *notice, d *watched) (fsbridge.Event, error) {
	if d.path != "" {
		return fsbridge.Event{}, nil
	}
	e := fsbridge.Event{Kind: fsbridge.EventAttrib, Dir: true}
	if n.is(unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_UNMOUNT) {
		e.Kind = fsbridge.EventRemove
		e.Time = time.Now()
		w.send(e)
		return fsbridge.Event{}, errGone
	}
	if !n.is(unix.IN_ATTRIB) {
		return fsbridge.Event{}, nil
	}
	return e, nil
}

// known reports whether a name was reported already when its directory was read.
func (d *watched) known(n *notice) bool {
	if n.pos >= d.until {
		d.seen = nil
	}
	_, ok := d.seen[n.name]
	delete(d.seen, n.name)
	return ok
}

// add watches a directory, and in a recursive watch those below it. With report set what they hold
// is reported as created. A directory that is gone again is not an error.
func (w *watch) add(path string, report bool) error {
	h, err := w.b.tree.Open(w.path, rooted.Directory)
	if err == nil {
		defer h.Close()
	}
	if vanished(err) || err == nil && !h.Stat.Same(&w.root) {
		return errGone
	}
	if err != nil {
		return err
	}
	for todo := []string{path}; len(todo) > 0; {
		next := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		dirs, err := w.addOne(h.FD, next, report)
		if err != nil && (next == "" || !vanished(err)) {
			return err
		}
		if w.opts.Recursive {
			todo = append(todo, dirs...)
		}
	}
	return nil
}

// vanished reports errors of directories that are gone, exchanged or closed to us.
func vanished(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) ||
		errors.Is(err, unix.EACCES) || rooted.IsBusy(err)
}

// addOne watches one directory and returns the directories in it.
func (w *watch) addOne(root int, path string, report bool) (dirs []string, err error) {
	if err := w.b.check(w.ctx); err != nil {
		return nil, err
	}
	fd, err := w.b.tree.OpenBelow(root, path)
	if err != nil {
		return nil, err
	}
	defer rooted.Close(fd)
	name, _ := w.b.tree.ProcName(fd)
	wd, err := unix.InotifyAddWatch(w.fd, name, watchMask)
	if err != nil {
		if err == unix.ENOSPC {
			err = hint(fmt.Errorf("watch %s: %w", fsbridge.DisplayPath(path), err), "the limit is fs.inotify.max_user_watches")
		}
		return nil, err
	}
	d := &watched{path: path}
	w.dirs[int32(wd)] = d
	if len(w.dirs) > w.opts.MaxDirs {
		return nil, hint(&fsbridge.LimitError{What: "watched directories", Limit: int64(w.opts.MaxDirs)}, "raise MaxDirs or watch less")
	}
	if !w.opts.Recursive && !report {
		return nil, nil
	}
	return w.scan(fd, d, report)
}

// scan reads a directory that is watched already, so that nothing falls between.
func (w *watch) scan(fd int, d *watched, report bool) (dirs []string, err error) {
	buf := w.b.tree.Buffer()
	defer w.b.tree.Release(buf)
	if report {
		d.seen = make(map[string]struct{})
	}
	for r := rooted.ReadDir(fd, *buf); ; {
		e, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if w.b.names.Ours(e.Name) {
			continue
		}
		if e.Type == fsbridge.TypeUnknown {
			if st, err := w.b.tree.Lstat(fd, e.Name); err == nil {
				e.Type = st.Type
			}
		}
		path := join(d.path, e.Name)
		isDir := e.Type == fsbridge.TypeDir
		if isDir {
			dirs = append(dirs, path)
		}
		if report {
			d.seen[e.Name] = struct{}{}
			w.send(fsbridge.Event{Kind: fsbridge.EventCreate, Path: path, Dir: isDir, Time: time.Now()})
		}
	}
	if report {
		queued, err := unix.IoctlGetInt(w.fd, unix.TIOCINQ)
		if err != nil {
			return nil, err
		}
		d.until = w.read + uint64(queued)
	}
	return dirs, nil
}

// forget ends the watches of a directory that was moved away, and of those below it.
func (w *watch) forget(path string) {
	for wd, d := range w.dirs {
		if d.path == path || strings.HasPrefix(d.path, path+"/") {
			delete(w.dirs, wd)
			_, _ = unix.InotifyRmWatch(w.fd, uint32(wd)) // it may be gone already
		}
	}
}

// rescan watches what appeared while events were lost, and nothing that went away.
func (w *watch) rescan() error {
	if !w.opts.Recursive {
		return nil
	}
	old := w.dirs
	w.dirs = make(map[int32]*watched)
	if err := w.add("", false); err != nil {
		return err
	}
	for wd := range old {
		if w.dirs[wd] == nil {
			_, _ = unix.InotifyRmWatch(w.fd, uint32(wd)) // it may be gone already
		}
	}
	return nil
}

func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}
