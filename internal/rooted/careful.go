//go:build linux

package rooted

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// maxLinks is how many links one resolution follows, as in the kernel.
const maxLinks = 40

// walker is one careful walk: it stands in a directory that was reached from the handle of root
// through names, none of which is a link, and has rest before it.
type walker struct {
	t     *Tree
	asked *Root
	root  *Root
	names []string
	fd    int
	owned bool
	rest  string
	links int
	// link and text are the last link that was followed, for the message if it leads out.
	link, text string
	mk         Maker
	made       int
}

// end is where a walk stopped: at name in the walker's directory, or at that directory itself when
// name is empty.
type end struct {
	name    string
	child   int // O_PATH descriptor of name, -1 when it is missing or was not looked at
	stat    Stat
	mustDir bool
}

func (t *Tree) walker(asked *Root, rest string) *walker {
	return &walker{t: t, asked: asked, root: asked, fd: asked.fd, rest: rest}
}

func (w *walker) close() {
	if w.owned {
		Close(w.fd)
		w.owned = false
	}
}

// take hands the walker's directory over.
func (w *walker) take() Handle {
	h := Handle{FD: w.fd, Root: w.root, names: w.names, known: true, owned: w.owned}
	w.owned = false
	return h
}

// walk goes on to the final element. With look set it opens that one too; with follow set as well,
// a final link is followed. On an error rest still begins with the element that failed.
func (w *walker) walk(follow, look bool) (end, error) {
	for {
		elem, rest := next(w.rest)
		if elem == "" {
			return end{child: -1, mustDir: true}, nil
		}
		if elem == ".." {
			w.rest = rest
			if err := w.up(); err != nil {
				return end{}, err
			}
			continue
		}
		tail, _ := next(rest)
		final := tail == ""
		mustDir := final && rest != ""
		if final && !look {
			return end{name: elem, child: -1, mustDir: mustDir}, nil
		}
		child, err := retryOpen(w.fd, elem, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err == unix.ENOENT {
			if final {
				return end{name: elem, child: -1, mustDir: mustDir}, nil
			}
			if w.mk != nil {
				if err := w.make(elem); err != nil {
					return end{}, err
				}
				continue
			}
		}
		if err != nil {
			return end{}, err
		}
		var st Stat
		if err := w.t.fstat(child, &st); err != nil {
			Close(child)
			return end{}, err
		}
		if st.Type == "symlink" && (!final || follow || mustDir) {
			err := w.expand(child, elem, rest)
			Close(child)
			if err != nil {
				return end{}, err
			}
			continue
		}
		if final {
			return end{name: elem, child: child, stat: st, mustDir: mustDir}, nil
		}
		if !st.IsDir() {
			Close(child)
			return end{}, unix.ENOTDIR
		}
		if err := w.down(elem, child); err != nil {
			return end{}, err
		}
		w.rest = rest
	}
}

// make has a missing directory made.
func (w *walker) make(elem string) error {
	if w.made++; w.made > Attempts+len(w.rest) {
		return ErrBusy
	}
	here := Handle{FD: w.fd, Root: w.root, names: w.names, known: true}
	if err := w.mk(&here, elem); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// expand replaces a link by what it contains.
func (w *walker) expand(child int, elem, rest string) error {
	text, err := readlinkat(child, "")
	if err != nil {
		return err
	}
	if w.links++; w.links > maxLinks {
		return unix.ELOOP
	}
	if text == "" {
		return unix.ENOENT
	}
	w.link, w.text = strings.Join(append(slices.Clip(w.names), elem), "/"), text
	if text[0] == '/' {
		return w.jump(text + rest)
	}
	w.rest = text + rest
	return nil
}

// down steps into a directory. It takes the descriptor over.
func (w *walker) down(elem string, child int) error {
	w.close()
	w.fd, w.owned = child, true
	w.names = append(slices.Clip(w.names), elem)
	if !w.root.nested {
		return nil
	}
	here := join(w.root.Real(), w.names)
	for _, r := range w.t.roots {
		if r == w.root || r.Real() != here {
			continue
		}
		if r.System() && !w.asked.System() {
			return w.escape(true)
		}
		w.root, w.names = r, nil
	}
	return nil
}

// up steps to the parent directory: back along the names, or out of the mount, where only another
// mount may be entered.
func (w *walker) up() error {
	if len(w.names) > 0 {
		w.names = w.names[: len(w.names)-1 : len(w.names)-1]
		return w.back()
	}
	dir := w.root.Real()
	if dir == "/" {
		return nil
	}
	dir = path.Dir(dir)
	for {
		elem, rest := next(w.rest)
		if elem != ".." {
			break
		}
		dir, w.rest = path.Dir(dir), rest
	}
	return w.jump(dir + w.rest)
}

// back opens the directory at names again, from the root.
func (w *walker) back() error {
	w.close()
	w.fd = w.root.fd
	if len(w.names) == 0 {
		return nil
	}
	if w.t.openat2 {
		name := strings.Join(w.names, "/")
		fd, err := beneath(w.root.fd, name, unix.O_PATH|unix.O_DIRECTORY, resolveBeneath|unix.RESOLVE_NO_SYMLINKS)
		if err == nil {
			w.fd, w.owned = fd, true
			return nil
		}
		if err != unix.ENAMETOOLONG {
			return moved(err)
		}
	}
	for _, name := range w.names {
		fd, err := retryOpen(w.fd, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return moved(err)
		}
		w.close()
		w.fd, w.owned = fd, true
	}
	return nil
}

// moved turns what a vanished or exchanged directory gives into a new start.
func moved(err error) error {
	switch err {
	case unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.EXDEV:
		return errChanged
	}
	return err
}

// jump goes on at an absolute path, if a mount that may be entered holds it.
func (w *walker) jump(abs string) error {
	root, rest, ok := w.t.find(abs)
	system := ok && root.System() && !w.asked.System()
	if !ok || system {
		if root, rest, ok = w.t.probe(abs); !ok {
			return w.escape(system)
		}
		if root.System() && !w.asked.System() {
			return w.escape(true)
		}
	}
	w.close()
	w.root, w.fd, w.names, w.rest = root, root.fd, nil, rest
	return nil
}

func (w *walker) escape(system bool) error {
	return &EscapeError{Link: w.link, Text: w.text, System: system}
}

// probe finds the mount that an absolute path really leads to when it goes there through links that
// lie in no mount, as /home does on machines where it is a link. It opens the longest existing part
// before any ".." with O_PATH, which has no effect on what is there, and asks the handle where it is.
// Only "inside, and where" comes out of it: what exists elsewhere makes no difference.
func (t *Tree) probe(abs string) (*Root, string, bool) {
	if t.proc == nil {
		return nil, "", false
	}
	var ends []int
	for rest := abs; ; {
		elem, tail := next(rest)
		if elem == "" || elem == ".." {
			break
		}
		ends = append(ends, len(abs)-len(tail))
		rest = tail
	}
	for i := len(ends) - 1; i >= 0; i-- {
		fd, err := t.openAnywhere(abs[:ends[i]])
		if err != nil {
			continue
		}
		real, err := t.proc.path(fd)
		Close(fd)
		if err != nil || looksDeleted(real) {
			return nil, "", false
		}
		root, below, ok := t.locate(real)
		return root, below + abs[ends[i]:], ok
	}
	return nil, "", false
}

func (t *Tree) openAnywhere(abs string) (int, error) {
	if t.openat2 {
		return beneath(unix.AT_FDCWD, abs, unix.O_PATH, unix.RESOLVE_NO_MAGICLINKS)
	}
	return retryOpen(unix.AT_FDCWD, abs, unix.O_PATH|unix.O_CLOEXEC, 0)
}

// stays walks the rest as far as it exists and counts the remainder by its elements.
func (w *walker) stays() error {
	for {
		e, err := w.walk(true, true)
		if err == nil {
			if e.child >= 0 {
				Close(e.child)
			}
			return nil
		}
		switch err {
		case unix.ENOENT, unix.ENOTDIR, unix.EACCES:
		default:
			return err
		}
		depth := 0
		for {
			elem, rest := next(w.rest)
			if elem == "" {
				return nil
			}
			w.rest = rest
			if elem == ".." {
				depth--
			} else {
				depth++
			}
			if depth == 0 {
				break
			}
		}
	}
}
