package config

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// RemoteBackend is the backend whose workspaces lie on another machine: their paths mean
// nothing here.
const RemoteBackend = "ssh"

// RemoteWorkspace is the workspace on another machine for whoever names none.
const RemoteWorkspace = "~/workberth"

// workspace is one entry of "workspaces": where a bound workspace lies, its sandbox, and
// which of its files are documents.
type workspace struct {
	Backend   *string   `yaml:"backend"`
	Workspace *string   `yaml:"workspace"`
	Documents *[]string `yaml:"documents"`
	Patterns  []string  `yaml:"patterns"`
	Protected *[]string `yaml:"protected"`
	MaxSize   *Size     `yaml:"maxDocumentSize"`
	Layer     `yaml:",inline"`
}

// Workspace is a bound workspace as the file has it.
type Workspace struct {
	Name string
	// Documents is the allowlist, Patterns are the extra files of a session's start,
	// Protected the protected memory files. Nil means the defaults.
	Documents []string
	Patterns  []string
	Protected []string
	// MaxDocument bounds a document in bytes; zero means the default.
	MaxDocument int64
}

// Workspaces lists the names of the bound workspaces, sorted.
func (f *File) Workspaces() []string { return slices.Sorted(maps.Keys(f.doc.Workspaces)) }

// Workspace returns the bound workspace of that name; what its sandbox is like comes from
// Merge with Request.Binding.
func (f *File) Workspace(name string) (Workspace, error) {
	w, ok := f.doc.Workspaces[name]
	if !ok {
		return Workspace{}, f.noWorkspace(name)
	}
	out := Workspace{Name: name, Patterns: slices.Clone(w.Patterns), MaxDocument: int64(deref(w.MaxSize))}
	if w.Documents != nil {
		out.Documents = append([]string{}, *w.Documents...)
	}
	if w.Protected != nil {
		out.Protected = append([]string{}, *w.Protected...)
	}
	return out, nil
}

// noWorkspace is the error for a name that is not configured.
func (f *File) noWorkspace(name string) error {
	e := &Error{Path: f.Path, Line: f.line("workspaces"), Text: fmt.Sprintf("no workspace %q is configured under workspaces", name)}
	if known := f.Workspaces(); len(known) > 0 {
		e.Text += "; known are " + strings.Join(known, ", ")
	}
	if e.Path == "" {
		e.Path = "configuration"
	}
	return e
}

// checkWorkspaces refuses bindings whose fault can be seen without knowing a backend.
func (f *File) checkWorkspaces() error {
	for _, name := range f.Workspaces() {
		w := f.doc.Workspaces[name]
		at := func(keys ...string) []string { return append([]string{"workspaces", name}, keys...) }
		if name == "" || strings.ContainsAny(name, "/\x00\n") {
			return f.errorAt("the name must not be empty or have a slash", at()...)
		}
		switch p := deref(w.Workspace); {
		case p == "":
			return f.errorAt("needs a workspace: the directory, on the machine that has it", at()...)
		case strings.HasPrefix(p, "~/") && deref(w.Backend) == RemoteBackend:
		case !path.IsAbs(p):
			return f.errorAt("must be an absolute path; with the backend ssh also ~/ and a path below the home directory", at("workspace")...)
		}
		for key, list := range map[string]*[]string{"documents": w.Documents, "protected": w.Protected} {
			for _, d := range deref(list) {
				if d == "" || d == "." || path.IsAbs(d) || path.Clean(d) != d || d == ".." || strings.HasPrefix(d, "../") {
					return f.errorAt(fmt.Sprintf("%q is no path below the workspace", d), at(key)...)
				}
			}
		}
		for _, p := range w.Patterns {
			if p == "" || path.IsAbs(p) || slices.Contains(strings.Split(p, "/"), "..") {
				return f.errorAt(fmt.Sprintf("%q leaves the workspace", p), at("patterns")...)
			}
		}
		if err := f.checkLayer(&w.Layer, at()...); err != nil {
			return err
		}
	}
	return nil
}
