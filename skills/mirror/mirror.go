// Package mirror brings skills of this machine into a sandbox, to be read there: by binds where the
// sandbox shares this machine's files, by a verified copy through its bridge where it does not.
//
// The folder of a skill in the sandbox is its name, which is a checked slug: nothing that a SKILL.md
// says becomes another path.
package mirror

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/sandbox"
	"github.com/workberth/workberth/skills"
)

// DefaultDir is where skills are copied to, relative to the workspace. It is no skill root, so that
// copies are not taken for skills of the workspace.
const DefaultDir = ".berth/skills"

// ErrForeign says that the directory holds files that were not put there by Sync.
var ErrForeign = errors.New("the directory holds files of others")

// Binds are the read-only binds that show loaded skills of this machine below target, an absolute
// path in the sandbox. Skills that are not loaded and those of the workspace, which are there
// already, are left out. Files that a skill has by way of a link out of its folder are not seen
// through a bind; Sync copies them. Where SKILL.md itself is such a link, that is an error: no folder is
// bound but the skill's own.
func Binds(l skills.Listing, target string) ([]sandbox.Bind, error) {
	if !path.IsAbs(target) {
		return nil, fmt.Errorf("bind skills at %q: give an absolute path: %w", target, fsbridge.ErrInvalid)
	}
	var out []sandbox.Bind
	for _, v := range Eligible(l) {
		if !filepath.IsAbs(v.RealFile) {
			return nil, fmt.Errorf("bind skill %s: where %s truly lies is not known: %w", v.Name, fsbridge.DisplayPath(v.File), fsbridge.ErrUnsupported)
		}
		dir, err := filepath.EvalSymlinks(v.Dir)
		if err != nil {
			return nil, fmt.Errorf("bind skill %s: %w", v.Name, err)
		}
		if dir != filepath.Dir(v.RealFile) {
			return nil, &fsbridge.PathError{
				Op: "bind the folder of", Path: v.File, Err: fmt.Errorf("its file lies in another folder, at %s: %w", fsbridge.DisplayPath(v.RealFile), fsbridge.ErrUnsupported),
				Hint: "deny the skill, put its file into its folder, or copy skills instead",
			}
		}
		out = append(out, sandbox.Bind{Source: dir, Target: path.Join(target, v.Name), ReadOnly: true})
	}
	return out, nil
}

// Eligible are the loaded skills that are not in the workspace already, by name.
func Eligible(l skills.Listing) []skills.Verdict {
	return slices.DeleteFunc(l.Loaded(), func(v skills.Verdict) bool {
		return v.Kind == skills.KindWorkspace || !skills.ValidName(v.Name)
	})
}

// file is one file to have in the sandbox.
type file struct {
	// to is relative to the directory of the copies, from a path of the source bridge.
	to, from string
	digest   fsbridge.Digest
	size     int64
	exec     bool
}

// mode is the permission of a copy: nobody is to change it there.
func (f file) mode() fsbridge.Mode {
	if f.exec {
		return 0o555
	}
	return 0o444
}

// files lists what the eligible skills consist of, by path.
func files(l skills.Listing) ([]file, error) {
	var out []file
	for _, v := range Eligible(l) {
		out = append(out, file{to: path.Join(v.Name, skills.FileName), from: v.File, digest: v.Digest, size: v.Size})
		for _, r := range v.Resources {
			if !inside(r.Path) {
				return nil, fmt.Errorf("skill %s: %q is no path of a file in it: %w", v.Name, r.Path, fsbridge.ErrOutsideRoot)
			}
			out = append(out, file{to: path.Join(v.Name, r.Path), from: path.Join(v.Dir, r.Path), digest: r.Digest, size: r.Size, exec: r.Executable})
		}
	}
	slices.SortFunc(out, func(a, b file) int { return strings.Compare(a.to, b.to) })
	return out, nil
}

// inside reports whether a relative path stays where it starts.
func inside(p string) bool {
	return p != "" && !path.IsAbs(p) && path.Clean(p) == p && p != "." && p != ".." && !strings.HasPrefix(p, "../") && fsbridge.ValidPath(p) == nil
}
