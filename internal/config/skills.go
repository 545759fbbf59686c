package config

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// skillSettings is the section "skills".
type skillSettings struct {
	Roots     *[]string   `yaml:"roots"`
	Installed *[]string   `yaml:"installed"`
	Bundled   *[]string   `yaml:"bundled"`
	Links     []string    `yaml:"links"`
	Allow     []string    `yaml:"allow"`
	Deny      []string    `yaml:"deny"`
	Limits    skillLimits `yaml:"limits"`
}

// skillLimits is the section "skills.limits".
type skillLimits struct {
	Skills   *int  `yaml:"skills"`
	FileSize *Size `yaml:"fileSize"`
	Depth    *int  `yaml:"depth"`
	Entries  *int  `yaml:"entries"`
}

// Skills is what the file says about skills. It is a decision of the user about all sandboxes.
type Skills struct {
	// Roots are skill roots of the workspace, relative to it, strongest first. Installed and
	// Bundled are directories of this machine, absolute or with "~/". Nil means the defaults.
	Roots     []string
	Installed []string
	Bundled   []string
	// Links are further directories of this machine that links in its skill roots may lead to.
	Links []string
	// Allow and Deny are patterns of names.
	Allow []string
	Deny  []string
	// Limits; zero means the default. FileSize is in bytes.
	MaxSkills int
	FileSize  int64
	Depth     int
	Entries   int
}

// Skills returns what the file says about skills.
func (f *File) Skills() Skills {
	s := f.doc.Skills
	if s == nil {
		return Skills{}
	}
	out := Skills{
		Links: slices.Clone(s.Links), Allow: slices.Clone(s.Allow), Deny: slices.Clone(s.Deny),
		MaxSkills: deref(s.Limits.Skills), FileSize: int64(deref(s.Limits.FileSize)), Depth: deref(s.Limits.Depth), Entries: deref(s.Limits.Entries),
	}
	for _, l := range []struct {
		from *[]string
		to   *[]string
	}{{s.Roots, &out.Roots}, {s.Installed, &out.Installed}, {s.Bundled, &out.Bundled}} {
		if l.from != nil {
			*l.to = append([]string{}, *l.from...)
		}
	}
	return out
}

// checkSkills refuses paths, patterns and limits that cannot be meant.
func (f *File) checkSkills() error {
	s := f.doc.Skills
	if s == nil {
		return nil
	}
	for _, r := range deref(s.Roots) {
		if r == "" || path.IsAbs(r) || path.Clean(r) != r || r == ".." || strings.HasPrefix(r, "../") {
			return f.errorAt(fmt.Sprintf("%q is no directory below the workspace", r), "skills", "roots")
		}
	}
	for key, list := range map[string][]string{"installed": deref(s.Installed), "bundled": deref(s.Bundled), "links": s.Links} {
		for _, d := range list {
			if !filepath.IsAbs(d) && !strings.HasPrefix(d, "~/") {
				return f.errorAt(fmt.Sprintf("%q must be an absolute path, or ~/ and a path below the home directory", d), "skills", key)
			}
		}
	}
	for key, list := range map[string][]string{"allow": s.Allow, "deny": s.Deny} {
		for _, p := range list {
			if _, err := path.Match(p, ""); err != nil || p == "" {
				return f.errorAt(fmt.Sprintf("%q is no pattern of names", p), "skills", key)
			}
		}
	}
	for key, n := range map[string]*int{"skills": s.Limits.Skills, "depth": s.Limits.Depth, "entries": s.Limits.Entries} {
		if n != nil && *n <= 0 {
			return f.errorAt("must be at least 1", "skills", "limits", key)
		}
	}
	return nil
}
