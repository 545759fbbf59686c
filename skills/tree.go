package skills

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/workberth/workberth/fsbridge"
)

const (
	// resourceDepth is how many levels below the deepest possible skill folder its files may lie.
	resourceDepth = 16
	// linkRounds is how many links may follow one another on the way to a file.
	linkRounds = 3
	// maxNotices is how many notices of one root are told.
	maxNotices = 1_000
)

// skipDirs are folders that hold no skills of their own.
func skipDirs() []string { return []string{".git", "node_modules", "__pycache__", ".venv"} }

// node is a file or folder below a root. Its path is relative to the root, as links spell it.
type node struct {
	path string
	info fsbridge.FileInfo
	// link: the last element of the path is a link; info describes what it leads to.
	link bool
	// err is why it could not be looked at.
	err error
}

// place is the identity of a folder, where the bridge tells it.
type place struct{ dev, inode uint64 }

// tree is what lies below a root, with links to folders followed: each folder once, and besides in
// every skill that has a link to it among its files.
type tree struct {
	b      fsbridge.Bridge
	root   Root
	opts   Options
	limits Limits

	nodes   []node
	notices []Fault
	seen    map[place]string
	full    bool // the limit of entries was reached

	// looked and bytes count what walks have met, also several at a time.
	looked, bytes atomic.Int64
}

// maxPathBytes bounds the paths of one tree together: names may be long, and many folders deep.
const maxPathBytes = 64 << 20

// errEnough ends a walk at a limit.
var errEnough = errors.New("enough entries")

// grow looks at everything below the root. A missing root that is not needed is found=false. The
// error concerns the whole machine: what is wrong with one file is in its node.
func (t *tree) grow(ctx context.Context) (found bool, err error) {
	t.seen = map[place]string{}
	list, err := t.walk(ctx, ".", t.limits.Depth+resourceDepth)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !t.root.Needed:
		return false, nil
	case err != nil && (t.root.Needed || !aboutFile(err)):
		return false, rootError(t.root.Path, reason(err), "see whether the directory exists and can be read, or correct the configured roots")
	case err != nil:
		t.notice(".", RuleReadable, "the skill root cannot be searched: "+reason(err).Error(), "correct the configured roots")
		return false, nil
	}
	links := t.add(list, true)
	for round := 0; len(links) > 0; round++ {
		if links, err = t.follow(ctx, links, round); err != nil {
			return false, err
		}
	}
	t.full = t.looked.Load() > int64(t.limits.Entries) || t.bytes.Load() > maxPathBytes
	slices.SortFunc(t.nodes, func(a, b node) int { return cmp.Compare(a.path, b.path) })
	return true, nil
}

// at is a path of the tree as the bridge takes it.
func (t *tree) at(rel string) string { return path.Join(t.root.Path, rel) }

func (t *tree) notice(rel string, rule Rule, text, fix string) {
	switch more := len(t.notices) - maxNotices; {
	case more < 0:
		t.notices = append(t.notices, Fault{Path: t.at(rel), Severity: SeverityWarning, Rule: rule, Text: oneLine(text), Fix: oneLine(fix)})
	case more == 0:
		t.notices = append(t.notices, Fault{Path: t.root.Path, Severity: SeverityWarning, Rule: RuleLimit, Text: fmt.Sprintf("there are more than %d notices; the others are not told", maxNotices), Fix: "see to these first"})
	}
}

// walk lists what lies below a folder of the tree, with paths relative to the root, until all walks
// together have met as many as there may be. It may be called for several folders at a time.
func (t *tree) walk(ctx context.Context, rel string, depth int) ([]node, error) {
	var out []node
	visit := func(e fsbridge.WalkEntry) error {
		at := path.Join(rel, e.Path)
		if t.looked.Add(1) > int64(t.limits.Entries) || t.bytes.Add(int64(len(at))) > maxPathBytes {
			return errEnough
		}
		out = append(out, node{path: at, info: e.Info, err: e.Err})
		return nil
	}
	opts := fsbridge.WalkOptions{MaxDepth: depth, SkipDirs: skipDirs()}
	var err error
	if fsbridge.Has(t.b, fsbridge.CapWalk) {
		err = fsbridge.Walk(ctx, t.b, t.at(rel), opts, visit)
	} else {
		err = t.list(ctx, t.at(rel), opts, visit)
	}
	if errors.Is(err, errEnough) {
		err = nil
	}
	return out, err
}

// add takes nodes in and returns the links among them. With once, folders that were seen before
// are left out with what is in them.
func (t *tree) add(list []node, once bool) (links []node) {
	skip := ""
	for _, n := range list {
		if skip != "" && strings.HasPrefix(n.path, skip) {
			continue
		}
		switch {
		case n.info.Type == fsbridge.TypeSymlink && n.err == nil:
			links = append(links, n)
			continue
		case n.info.IsDir() && once:
			if before, again := t.visit(n); again && before != n.path {
				skip = n.path + "/"
				continue
			}
		}
		t.nodes = append(t.nodes, n)
	}
	return links
}

// visit marks a folder as seen and tells under which path it was seen before.
func (t *tree) visit(n node) (before string, again bool) {
	p := place{n.info.Dev, n.info.Inode}
	if p.inode == 0 {
		return "", false
	}
	if before, again = t.seen[p]; again {
		return before, true
	}
	t.seen[p] = n.path
	return "", false
}

// follow looks at where links lead and into the folders they lead to. It returns the links that
// were found there.
func (t *tree) follow(ctx context.Context, links []node, round int) ([]node, error) {
	above := t.above()
	if round > 0 {
		above = nil // seen already
	}
	parents := make([]fsbridge.FileInfo, len(above))
	err := each(ctx, len(links)+len(above), t.opts.parallel(), func(i int) error {
		if i >= len(links) {
			info, err := t.b.Stat(ctx, above[i-len(links)])
			if err != nil && !aboutFile(err) {
				return err
			}
			parents[i-len(links)] = info
			return nil
		}
		n := &links[i]
		info, err := t.b.Stat(ctx, t.at(n.path))
		if err != nil && !aboutFile(err) {
			return err
		}
		n.link, n.err = true, err
		if err == nil {
			n.info = info
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, info := range parents {
		t.visit(node{path: ".", info: info})
	}
	slices.SortFunc(links, func(a, b node) int { return cmp.Compare(a.path, b.path) })
	return t.enter(ctx, links, round)
}

// above are the root and the folders that hold it: a link to one of them is a loop.
func (t *tree) above() []string {
	list := []string{t.root.Path}
	for p := path.Clean(t.root.Path); p != "." && p != "/"; {
		p = path.Dir(p)
		list = append(list, p)
	}
	return list
}

// enter walks the folders that links lead to.
func (t *tree) enter(ctx context.Context, links []node, round int) ([]node, error) {
	var dirs []int
	holders := t.skillDirs()
	for i := range links {
		n := &links[i]
		switch {
		case n.err != nil:
		case n.info.IsDir():
			before, again := t.seen[place{n.info.Dev, n.info.Inode}]
			inSkill := inside(holders, n.path)
			if !inSkill {
				t.visit(*n)
			}
			switch {
			case again && (!inSkill || before == "." || strings.HasPrefix(n.path, before+"/")):
				t.notice(n.path, RuleLoop, "a link to a folder that is searched already: "+fsbridge.DisplayPath(t.at(before)), "")
				continue
			case round+1 >= linkRounds || round > 0 && n.info.Inode == 0:
				t.notice(n.path, RuleLimit, fmt.Sprintf("a link behind %d links is not followed", round), "link to the folder itself")
				continue
			case t.depth(n.path) <= 0:
				t.notice(n.path, RuleLimit, "a link so deep is not followed", "move it up, or raise the depth")
				continue
			}
			dirs = append(dirs, i)
		}
		t.nodes = append(t.nodes, *n)
	}
	below := make([][]node, len(dirs))
	err := each(ctx, len(dirs), t.opts.parallel(), func(i int) (err error) {
		n := links[dirs[i]]
		below[i], err = t.walk(ctx, n.path, t.depth(n.path))
		if err != nil && aboutFile(err) {
			return nil // it went away meanwhile
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var next []node
	for i, list := range below {
		next = append(next, t.add(list, !inside(holders, links[dirs[i]].path))...)
	}
	return next, nil
}

// skillDirs are the folders that hold a SKILL.md so far.
func (t *tree) skillDirs() map[string]bool {
	out := map[string]bool{}
	for _, n := range t.nodes {
		if strings.EqualFold(path.Base(n.path), FileName) {
			out[path.Dir(n.path)] = true
		}
	}
	return out
}

// inside reports whether one of the folders holds a path.
func inside(dirs map[string]bool, rel string) bool {
	for rel != "." {
		if rel = path.Dir(rel); dirs[rel] {
			return true
		}
	}
	return false
}

// depth is how many levels below a path may be looked at.
func (t *tree) depth(rel string) int { return t.limits.Depth + resourceDepth - levels(rel) }

// levels is the number of elements of a relative path.
func levels(rel string) int {
	if rel == "." {
		return 0
	}
	return strings.Count(rel, "/") + 1
}

// list is a walk by directory listings, each level at once, for bridges that cannot walk.
func (t *tree) list(ctx context.Context, root string, opts fsbridge.WalkOptions, visit func(fsbridge.WalkEntry) error) error {
	level := []string{""}
	for depth := 1; len(level) > 0 && depth <= opts.MaxDepth; depth++ {
		lists := make([][]fsbridge.DirEntry, len(level))
		errs := make([]error, len(level))
		err := each(ctx, len(level), t.opts.parallel(), func(i int) error {
			lists[i], errs[i] = fsbridge.ReadDirectory(ctx, t.b, path.Join(root, level[i]))
			if depth == 1 || errs[i] != nil && !aboutFile(errs[i]) {
				return errs[i]
			}
			return nil
		})
		if err != nil {
			return err
		}
		var next []string
		for i, dir := range level {
			if errs[i] != nil {
				if err := visit(fsbridge.WalkEntry{Path: dir, Info: fsbridge.FileInfo{Name: path.Base(dir), Type: fsbridge.TypeUnknown}, Err: errs[i]}); err != nil {
					return err
				}
			}
			for _, e := range lists[i] {
				p := path.Join(dir, e.Name)
				if err := visit(fsbridge.WalkEntry{Path: p, Info: e.Info}); err != nil {
					return err
				}
				if e.Info.IsDir() && !slices.Contains(opts.SkipDirs, e.Name) {
					next = append(next, p)
				}
			}
		}
		level = next
	}
	return nil
}

// aboutFile reports whether an error concerns the file that was asked for, and not the way to
// the machine or the authority to ask.
func aboutFile(err error) bool {
	for _, e := range []error{fsbridge.ErrUnavailable, fsbridge.ErrNotCurrent, fsbridge.ErrOutcomeUnknown, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, e) {
			return false
		}
	}
	for _, e := range []error{fs.ErrNotExist, fs.ErrPermission, fsbridge.ErrOutsideRoot, fsbridge.ErrNotRegular, fsbridge.ErrTooLarge} {
		if errors.Is(err, e) {
			return true
		}
	}
	var errno syscall.Errno
	return errors.As(err, &errno)
}

// reason is what an error of a bridge says, without repeating the path.
func reason(err error) error {
	var p *fsbridge.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
