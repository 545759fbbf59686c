package config

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/workberth/workberth/sandbox"
)

// Sources of a value that are no line of a file.
const (
	SourceDefault = "default"
	SourceEnv     = "environment"
	SourceFlag    = "flag"
)

// Request is what flags and environment ask for; empty strings and nil say
// nothing. Flags win over BERTH_BACKEND, which wins over the file.
type Request struct {
	Backend    string // --backend
	EnvBackend string // BERTH_BACKEND
	Workspace  string // --workspace
	Access     string
	Scope      string
	Session    string
	Agent      string
	Network    string
	// Binding names an entry of "workspaces", whose settings win over those of agents.
	Binding string
	// AllowDangerous are fields named by --allow-dangerous.
	AllowDangerous []string
	// Image, SSH and the others belong to one kind of backend each.
	Image, SSH, SSHConfig, Seed string
}

// Setting is one effective value and where it came from.
type Setting struct {
	Name   string `json:"name"`
	Value  any    `json:"value"`
	Source string `json:"source"`
}

// Effective is the merged configuration.
type Effective struct {
	Backend   string
	Workspace string // as asked; empty means the current directory, or RemoteWorkspace
	Scope     sandbox.Scope
	Session   string
	Agent     string
	Config    sandbox.Config

	sources map[string]string
	values  map[string]any
}

// Settings lists every effective value by name.
func (e *Effective) Settings() []Setting {
	out := make([]Setting, 0, len(e.values))
	for n, v := range e.values {
		out = append(out, Setting{Name: n, Value: v, Source: e.sources[n]})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

// Source tells where the setting of that name came from.
func (e *Effective) Source(name string) string { return e.sources[name] }

// DefaultBackend is used where nothing is chosen.
const DefaultBackend = "bubblewrap"

// Merge combines the layers for one request. defaults gives the built-in
// configuration of a backend. The result is not validated: sandbox.Validate does
// that, knowing the whole.
func (f *File) Merge(req Request, defaults func(backend string) sandbox.Config) (*Effective, error) {
	m := &merger{file: f, eff: &Effective{sources: map[string]string{}, values: map[string]any{}}}
	e := m.eff
	ag, hasAgent := f.doc.Agents[req.Agent]
	if req.Agent != "" && !hasAgent && len(f.doc.Agents) > 0 {
		known := slices.Sorted(maps.Keys(f.doc.Agents))
		return nil, &Error{Path: f.Path, Line: f.line("agents"), Text: fmt.Sprintf("no agent %q is configured; known are %s", req.Agent, strings.Join(known, ", "))}
	}
	bound, isBound := f.doc.Workspaces[req.Binding]
	if req.Binding != "" && !isBound {
		return nil, f.noWorkspace(req.Binding)
	}

	e.Backend = DefaultBackend
	m.set("backend", e.Backend, SourceDefault)
	m.str(&e.Backend, f.doc.Backend, "backend")
	if hasAgent {
		m.str(&e.Backend, ag.Backend, "backend", "agents", req.Agent)
	}
	if isBound {
		m.str(&e.Backend, bound.Backend, "backend", "workspaces", req.Binding)
	}
	m.outer(&e.Backend, req.EnvBackend, "backend", SourceEnv)
	m.outer(&e.Backend, req.Backend, "backend", SourceFlag)

	m.defaults(defaults(e.Backend))
	if f.doc.Defaults != nil {
		m.layer(*f.doc.Defaults, "defaults")
	}
	if l, ok := f.doc.Backends[e.Backend]; ok {
		m.layer(l, "backends", e.Backend)
	}
	scope := string(sandbox.ScopeSession)
	if req.Agent != "" && req.Session == "" {
		scope = string(sandbox.ScopeAgent)
	}
	m.set("scope", scope, SourceDefault)
	m.set("workspace", ".", SourceDefault)
	if e.Backend == RemoteBackend {
		m.set("workspace", RemoteWorkspace, SourceDefault)
	}
	if hasAgent {
		m.layer(ag.Layer, "agents", req.Agent)
		m.str(&e.Workspace, ag.Workspace, "workspace", "agents", req.Agent)
		m.str(&scope, ag.Scope, "scope", "agents", req.Agent)
	}
	if isBound {
		m.layer(bound.Layer, "workspaces", req.Binding)
		m.str(&e.Workspace, bound.Workspace, "workspace", "workspaces", req.Binding)
	}
	m.outer(&e.Workspace, req.Workspace, "workspace", SourceFlag)
	m.outer(&scope, req.Scope, "scope", SourceFlag)
	m.outer(&e.Agent, req.Agent, "agent", SourceFlag)
	e.Session = "default"
	m.set("session", e.Session, SourceDefault)
	m.outer(&e.Session, req.Session, "session", SourceFlag)
	access := string(e.Config.Access)
	m.outer(&access, req.Access, "access", SourceFlag)
	e.Config.Access = sandbox.Access(access)
	m.outer(&e.Config.Network, req.Network, "network", SourceFlag)
	m.outer(&e.Config.Image, req.Image, "image", SourceFlag)
	m.outer(&e.Config.SSH, req.SSH, "ssh", SourceFlag)
	m.outer(&e.Config.SSHConfig, req.SSHConfig, "sshConfig", SourceFlag)
	m.outer(&e.Config.Seed, req.Seed, "seed", SourceFlag)
	if len(req.AllowDangerous) > 0 {
		e.Config.AllowDangerous = append(slices.Clone(e.Config.AllowDangerous), req.AllowDangerous...)
		m.set("allowDangerous", e.Config.AllowDangerous, SourceFlag)
	}
	e.Scope = sandbox.Scope(scope)
	if e.Scope != sandbox.ScopeSession {
		e.Session = ""
		delete(e.values, "session")
	}
	return e, nil
}
