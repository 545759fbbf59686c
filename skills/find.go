package skills

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/workberth/workberth/fsbridge"
)

// FileName is what the file of a skill is called. Other spellings are read with a warning.
const FileName = "SKILL.md"

// candidate is a SKILL.md that was found. It is read unless a fault rejects it already.
type candidate struct {
	Skill
	info fsbridge.FileInfo
	// linked: a link below its root leads to it.
	linked bool
}

// find picks the skills out of a tree, in the order of their paths.
func (t *tree) find() []candidate {
	byDir, links := map[string][]node{}, map[string]bool{}
	for _, n := range t.nodes {
		if n.link {
			links[n.path] = true
		}
		if strings.EqualFold(path.Base(n.path), FileName) {
			d := path.Dir(n.path)
			byDir[d] = append(byDir[d], n)
		}
	}
	var out []candidate
	for _, dir := range sortedKeys(byDir) {
		c := t.candidate(dir, byDir[dir])
		c.linked = slices.ContainsFunc(byDir[dir], func(n node) bool { return n.link }) || links[dir] || inside(links, dir)
		out = append(out, c)
	}
	t.resources(out)
	t.complain(byDir)
	return out
}

// candidate decides which of the spellings in a folder is its skill.
func (t *tree) candidate(dir string, spelt []node) candidate {
	at := max(0, slices.IndexFunc(spelt, func(n node) bool { return path.Base(n.path) == FileName }))
	n := spelt[at]
	c := candidate{info: n.info, Skill: Skill{
		Kind: t.root.Kind, Root: t.root.Path, Dir: t.at(dir), File: t.at(n.path), Size: n.info.Size,
	}}
	if base := path.Base(n.path); base != FileName {
		c.fault(SeverityWarning, 0, RuleFileName, fmt.Sprintf("the file is called %s; programs that look for %s do not find it", base, FileName), fmt.Sprintf("rename it: mv %s %s", base, FileName))
	}
	for i, other := range spelt {
		if i != at {
			c.fault(SeverityWarning, 0, RuleFileName, fmt.Sprintf("%s beside it is not read", path.Base(other.path)), "remove it, or move what it says")
		}
	}
	switch {
	case n.err != nil:
		rule, text, fix := linkTrouble(n)
		c.fault(SeverityError, 0, rule, text, fix)
	case !n.info.IsRegular():
		c.fault(SeverityError, 0, RuleRegularFile, "it is no regular file but a "+string(n.info.Type), "make it a text file")
	case levels(dir) > t.limits.Depth:
		c.fault(SeverityError, 0, RuleLimit, fmt.Sprintf("it lies %d levels below its root, at most %d are searched", levels(dir), t.limits.Depth), "move it up, or raise the depth")
	case n.info.Size > t.limits.FileBytes:
		c.tooLarge(n.info.Size, t.limits.FileBytes)
	}
	return c
}

func (s *Skill) tooLarge(size, limit int64) {
	s.fault(SeverityError, 0, RuleSize, fmt.Sprintf("it has %d bytes, at most %d are read", size, limit), "move text into files beside it, or raise the limit")
}

// linkTrouble says what is wrong with a node that could not be looked at.
func linkTrouble(n node) (rule Rule, text, fix string) {
	switch {
	case errors.Is(n.err, fsbridge.ErrOutsideRoot):
		return RuleLink, "it is a link that leaves the permitted directories", "permit the directory that holds its target (skills.links in the configuration), or copy it"
	case n.link && errors.Is(n.err, fs.ErrNotExist):
		return RuleLink, "it is a link to something that does not exist", "correct the link or remove it"
	}
	return RuleReadable, "it cannot be looked at: " + reason(n.err).Error(), "see its owner and mode"
}

// resources gives every file to the innermost skill folder that holds it.
func (t *tree) resources(list []candidate) {
	byDir := make(map[string]*candidate, len(list))
	for i := range list {
		byDir[list[i].Dir] = &list[i]
	}
	for _, n := range t.nodes {
		full := t.at(n.path)
		c := byDir[t.holder(byDir, path.Dir(n.path))]
		switch {
		case c == nil || full == c.File:
		case n.err != nil && n.link:
			_, text, fix := linkTrouble(n)
			c.fault(SeverityWarning, 0, RuleLink, fmt.Sprintf("%s: %s", fsbridge.DisplayPath(strings.TrimPrefix(full, c.Dir+"/")), text), fix)
		case !n.info.IsRegular() || strings.EqualFold(path.Base(full), FileName) && path.Dir(full) == c.Dir:
		case len(c.Resources) == t.limits.Resources:
			if !slices.ContainsFunc(c.Faults, func(f Fault) bool { return f.Rule == RuleLimit }) {
				c.fault(SeverityError, 0, RuleLimit, fmt.Sprintf("it has more than %d files", t.limits.Resources), "move what the agent does not need out of its folder, or raise the limit")
			}
		default:
			c.Resources = append(c.Resources, Resource{
				Path: t.below(c.Dir, full), Size: n.info.Size, Executable: n.info.Mode&0o100 != 0,
			})
		}
	}
}

// below is a path relative to the folder that holds it.
func (t *tree) below(dir, full string) string {
	if dir == "." {
		return full
	}
	return strings.TrimPrefix(full, strings.TrimSuffix(dir, "/")+"/")
}

// holder is the innermost folder with a skill at or above a path of the tree, "" for none.
func (t *tree) holder(byDir map[string]*candidate, rel string) string {
	for {
		if d := t.at(rel); byDir[d] != nil {
			return d
		}
		if rel == "." {
			return ""
		}
		rel = path.Dir(rel)
	}
}

// complain adds notices about what belongs to no skill: unreadable folders, links that lead
// nowhere, folders without a skill, limits.
func (t *tree) complain(byDir map[string][]node) {
	with := map[string]bool{} // first elements below which there is a skill
	for d := range byDir {
		first, _, _ := strings.Cut(d, "/")
		with[first] = true
	}
	for _, n := range t.nodes {
		first, _, deeper := strings.Cut(n.path, "/")
		switch {
		case strings.EqualFold(path.Base(n.path), FileName):
		case n.err != nil && (!n.link || !with["."] && !with[first]):
			rule, text, fix := linkTrouble(n)
			t.notice(n.path, rule, text, fix)
		case n.info.IsDir() && levels(n.path) == t.limits.Depth+resourceDepth:
			t.notice(n.path, RuleLimit, "what lies below is not searched: it is too deep", "move it up, or raise the depth")
		case !deeper && n.info.IsDir() && !with["."] && !with[first] && !strings.HasPrefix(first, ".") && !slices.Contains(skipDirs(), first):
			t.notice(n.path, RuleEmpty, "the folder has no "+FileName, "add one, or move the folder out of the skill root")
		}
	}
	if t.full {
		t.notice(".", RuleLimit, fmt.Sprintf("more than %d files and folders, or %d bytes of paths; the rest is not searched", t.limits.Entries, maxPathBytes), "move what holds no skills out of the skill root, or raise the limit")
	}
}
