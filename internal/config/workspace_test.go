package config

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/workberth/workberth/sandbox"
)

const bindings = `backend: local
defaults:
  limits: {pids: 7}
workspaces:
  notes:
    backend: docker
    workspace: /srv/notes
    image: debian
    access: ro
    documents: [AGENTS.md, notes/a.md]
    patterns: ["docs/*.md"]
    protected: []
    maxDocumentSize: 64KiB
  far:
    backend: ssh
    workspace: ~/far
  here:
    workspace: /srv/here
`

// RWS-06 Q-07: the allowlist and the rest of a binding are configuration.
func TestWorkspaces(t *testing.T) {
	f, err := Parse("c.yaml", []byte(bindings))
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Workspaces(); !slices.Equal(got, []string{"far", "here", "notes"}) {
		t.Errorf("names %v", got)
	}
	w, err := f.Workspace("notes")
	if err != nil || !slices.Equal(w.Documents, []string{"AGENTS.md", "notes/a.md"}) || !slices.Equal(w.Patterns, []string{"docs/*.md"}) ||
		w.Protected == nil || len(w.Protected) != 0 || w.MaxDocument != 64<<10 {
		t.Errorf("%+v, %v", w, err)
	}
	if w, err := f.Workspace("here"); err != nil || w.Documents != nil || w.Patterns != nil || w.Protected != nil || w.MaxDocument != 0 {
		t.Errorf("%+v, %v", w, err)
	}
	e, err := f.Merge(Request{Binding: "notes"}, builtin)
	if err != nil || e.Backend != "docker" || e.Workspace != "/srv/notes" || e.Config.Image != "debian" || e.Config.Access != sandbox.AccessReadOnly || e.Config.Limits.Pids != 7 {
		t.Errorf("%+v, %v", e, err)
	}
	if got := e.Source("image"); got != "c.yaml:8" {
		t.Errorf("source of image is %q", got)
	}
	if e, err := f.Merge(Request{Binding: "here"}, builtin); err != nil || e.Backend != "local" {
		t.Errorf("%+v, %v", e, err)
	}
	for _, name := range []string{"nots"} {
		_, err := f.Merge(Request{Binding: name}, builtin)
		_, err2 := f.Workspace(name)
		var ce *Error
		if !errors.As(err, &ce) || !strings.Contains(err.Error(), "known are far, here, notes") || err2 == nil {
			t.Errorf("%s: %v, %v", name, err, err2)
		}
	}
	if _, err := (&File{}).Workspace("x"); err == nil || !strings.Contains(err.Error(), "no workspace \"x\"") {
		t.Errorf("no file: %v", err)
	}
}

func TestWorkspaceFaults(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"  a: {}\n", "c.yaml:2: workspaces.a: needs a workspace"},
		{"  a:\n    workspace: rel\n", "c.yaml:3: workspaces.a.workspace: must be an absolute path"},
		{"  a:\n    workspace: ~/x\n    backend: docker\n", "must be an absolute path"},
		{"  a:\n    workspace: /x\n    documents: [../y]\n", "c.yaml:4: workspaces.a.documents: \"../y\" is no path"},
		{"  a:\n    workspace: /x\n    documents: [/y]\n", "is no path"},
		{"  a:\n    workspace: /x\n    protected: ['a//b']\n", "workspaces.a.protected"},
		{"  a:\n    workspace: /x\n    patterns: ['../*']\n", "c.yaml:4: workspaces.a.patterns: \"../*\" leaves"},
		{"  a:\n    workspace: /x\n    access: all\n", "c.yaml:4: workspaces.a.access: must be"},
		{"  a/b:\n    workspace: /x\n", "must not be empty or have a slash"},
		{"  a:\n    workspace: /x\n    document: [x]\n", "unknown field \"document\""},
		{"  a:\n    workspace: /x\n    maxDocumentSize: lots\n", "is not a size"},
	} {
		_, err := Parse("c.yaml", []byte("workspaces:\n"+c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
}
