//go:build linux

package rooted

import (
	"fmt"
	"strings"

	"github.com/workberth/workberth/fsbridge"
)

// NoWorkspaceError refuses a relative path where there is no workspace. It matches
// fsbridge.ErrOutsideRoot.
type NoWorkspaceError struct{}

// Error says what is missing.
func (NoWorkspaceError) Error() string {
	return "a relative path starts at the workspace, and there is no workspace mount"
}

// Is matches fsbridge.ErrOutsideRoot.
func (NoWorkspaceError) Is(target error) bool { return target == fsbridge.ErrOutsideRoot }

// EscapeError refuses a path that leaves the mounts. It matches fsbridge.ErrOutsideRoot and says
// nothing of what lies outside.
type EscapeError struct {
	// Link is the path of the link that leads out, below its mount; empty when the path itself does.
	Link string
	// Text is what that link contains.
	Text string
	// System is set when the target lies in a system mount, which is not reached from others.
	System bool
}

// Error gives the rule.
func (e *EscapeError) Error() string { return fsbridge.ErrOutsideRoot.Error() }

// Is matches fsbridge.ErrOutsideRoot.
func (e *EscapeError) Is(target error) bool { return target == fsbridge.ErrOutsideRoot }

// Hint names the link or the rule.
func (e *EscapeError) Hint() string {
	switch {
	case e.Link != "" && e.System:
		return fmt.Sprintf("the link %q points to %q in a system mount, which only an absolute path reaches",
			fsbridge.DisplayPath(e.Link), fsbridge.DisplayPath(e.Text))
	case e.Link != "":
		return fmt.Sprintf("the link %q points to %q, which lies in no mount",
			fsbridge.DisplayPath(e.Link), fsbridge.DisplayPath(e.Text))
	case e.System:
		return "a system mount is reached only by an absolute path that names it"
	}
	return "a path must stay inside the mounts"
}

// start picks the mount that a path names and the rest of the path below it, without leading
// slashes; "." for the mount itself. It is lexical: ".." elements stay in the rest.
func (t *Tree) start(p string) (*Root, string, error) {
	if p[0] != '/' {
		if t.workspace == nil {
			return nil, "", NoWorkspaceError{}
		}
		return t.workspace, p, nil
	}
	r, rest, ok := t.find(p)
	if !ok {
		return nil, "", &EscapeError{}
	}
	return r, rest, nil
}

// find returns the root with the longest path, as configured or as really located, that holds the
// absolute path p, and the rest of p.
func (t *Tree) find(p string) (*Root, string, bool) {
	var best *Root
	var rest string
	length := -1
	for _, r := range t.roots {
		if tail, ok := Below(r.Mount.Path, p); ok && len(r.Mount.Path) > length {
			best, rest, length = r, tail, len(r.Mount.Path)
		}
		if real := r.Real(); real != r.Mount.Path {
			if tail, ok := Below(real, p); ok && len(real) > length {
				best, rest, length = r, tail, len(real)
			}
		}
	}
	if best == nil {
		return nil, "", false
	}
	rest = strings.TrimLeft(rest, "/")
	if rest == "" {
		rest = "."
	}
	return best, rest, true
}

// locate returns the root that holds the real location p, as the kernel tells it.
func (t *Tree) locate(p string) (*Root, string, bool) {
	for range 2 {
		var best *Root
		length := -1
		for _, r := range t.roots {
			if real := r.Real(); len(real) > length {
				if _, ok := Below(real, p); ok {
					best, length = r, len(real)
				}
			}
		}
		if best != nil {
			rest, _ := Below(best.Real(), p)
			return best, strings.TrimLeft(rest, "/"), true
		}
		if !t.refresh() {
			break
		}
	}
	return nil, "", false
}

// refresh reads the roots' locations again and reports whether one has changed.
func (t *Tree) refresh() bool {
	if t.proc == nil {
		return false
	}
	changed := false
	for _, r := range t.roots {
		if real, err := t.proc.path(r.fd); err == nil && real != r.Real() {
			r.real.Store(&real)
			changed = true
		}
	}
	return changed
}

// Below reports whether the absolute path p equals the clean path root or lies below it, compared
// by whole elements, and returns the rest of p as it is spelled: empty or beginning with a slash.
// Empty and "." elements do not count; ".." elements are elements like others.
func Below(root, p string) (rest string, ok bool) {
	if p == "" || p[0] != '/' {
		return "", false
	}
	if root == "/" {
		return p, true
	}
	for rest = p; root != ""; {
		var want, have string
		want, root = next(root)
		have, rest = next(rest)
		if have != want {
			return "", false
		}
	}
	return rest, true
}

// next returns the first element of p and what follows it, slash included. Empty and "."
// elements are skipped; the element is empty when there is none left.
func next(p string) (elem, rest string) {
	for {
		for p != "" && p[0] == '/' {
			p = p[1:]
		}
		i := strings.IndexByte(p, '/')
		if i < 0 {
			i = len(p)
		}
		elem, rest = p[:i], p[i:]
		if elem != "." {
			return elem, rest
		}
		p = rest
	}
}

// last cuts a path before its final element. Trailing slashes and "." elements are dropped and
// reported: they demand a directory. The element is empty when none is left.
func last(p string) (dir, elem string, mustDir bool) {
	for {
		n := len(p)
		for n > 0 && p[n-1] == '/' {
			n--
		}
		mustDir = mustDir || n < len(p)
		p = p[:n]
		i := strings.LastIndexByte(p, '/')
		if elem = p[i+1:]; elem != "." {
			return p[:i+1], elem, mustDir
		}
		mustDir = true
		p = p[:i+1]
	}
}
