package remoteworkspace_test

import (
	"context"
	"errors"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/remoteworkspace"
)

// plugin is a memory plugin that takes everything.
type plugin struct {
	supports bool
	asked    []remoteworkspace.MemoryClassifierInput
	err      error
	short    bool
}

func (p *plugin) Name() string                             { return "other" }
func (p *plugin) SupportsWorkspaceMemoryReadSources() bool { return p.supports }
func (p *plugin) Classify(_ context.Context, in remoteworkspace.MemoryClassifierInput) ([]remoteworkspace.MemoryClass, error) {
	p.asked = append(p.asked, in)
	classes := make([]remoteworkspace.MemoryClass, len(in.ReadSources))
	for i := range classes {
		classes[i] = remoteworkspace.MemoryClass{Kind: remoteworkspace.MemoryNote, Automatic: true}
	}
	if p.short {
		classes = classes[1:]
	}
	return classes, p.err
}

func coreMemory(t testing.TB, rules []remoteworkspace.MemoryRule, prov remoteworkspace.ProvenanceFunc) *remoteworkspace.CoreMemory {
	t.Helper()
	c, err := remoteworkspace.NewCoreMemory(rules, prov)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// RWS-17: the core's decisions follow from path, rules and provenance.
func TestCoreMemory(t *testing.T) {
	prov := func(_ context.Context, dir, relative string, hash fsbridge.Digest) (remoteworkspace.Origin, error) {
		if dir != "/srv/ws" || hash != "h" {
			t.Errorf("asked for %s %s", dir, hash)
		}
		switch relative {
		case "memory/fetched.md":
			return remoteworkspace.OriginExternal, nil
		case "memory/mine.md":
			return remoteworkspace.OriginAgent, nil
		}
		return remoteworkspace.OriginUnknown, nil
	}
	c := coreMemory(t, nil, prov)
	for relative, want := range map[string]remoteworkspace.MemoryClass{
		"MEMORY.md":                   {Kind: remoteworkspace.MemoryLongTerm, Automatic: true},
		"memory.MD":                   {Kind: remoteworkspace.MemoryLongTerm, Automatic: true},
		"memory/2026-11-30.md":        {Kind: remoteworkspace.MemoryDaily, Automatic: true},
		"memory/2026-11-30-trip.md":   {Kind: remoteworkspace.MemoryDaily, Automatic: true},
		"memory/people/ann.md":        {Kind: remoteworkspace.MemoryNote, Automatic: true},
		"memory/mine.md":              {Kind: remoteworkspace.MemoryNote, Automatic: true},
		"memory/fetched.md":           {Kind: remoteworkspace.MemoryNote, Reason: "its content comes from outside"},
		"notes/MEMORY.md":             {Reason: "no rule makes it memory"},
		"AGENTS.md":                   {Reason: "no rule makes it memory"},
		"memory/image.png":            {Reason: "no rule makes it memory"},
		"":                            {Reason: "it lies outside the workspace"},
		"memory.md/../../etc/passwd2": {Reason: "no rule makes it memory"},
	} {
		got, err := c.Classify(t.Context(), remoteworkspace.MemoryClassifierInput{
			Dir: "/srv/ws", Bound: true, ReadSources: []remoteworkspace.ReadSource{{Name: "x", ResolvedPath: "/workspace/" + relative, WorkspaceRelativePath: relative, Hash: "h"}},
		})
		if err != nil || got[0] != want {
			t.Errorf("%s: %+v, %v, want %+v", relative, got, err, want)
		}
	}
	for _, bad := range []string{"", "/x", "../x", "[a"} {
		if _, err := remoteworkspace.NewCoreMemory([]remoteworkspace.MemoryRule{{Pattern: bad}}, nil); err == nil {
			t.Errorf("rule %q was taken", bad)
		}
	}
	errDB := errors.New("records are gone")
	c = coreMemory(t, nil, func(context.Context, string, string, fsbridge.Digest) (remoteworkspace.Origin, error) {
		return "", errDB
	})
	_, err := remoteworkspace.ClassifyMemory(t.Context(), c, remoteworkspace.MemoryClassifierInput{ReadSources: []remoteworkspace.ReadSource{{ResolvedPath: "/w/MEMORY.md", WorkspaceRelativePath: "MEMORY.md"}}})
	wantErr(t, "provenance", err, errDB)
}

// RWS-17, RWS-18: the far side's files are classified by the far side's paths. Files of
// the same names lie in the workspace directory of this machine and would mislead
// whoever looked: a link out of memory, a directory, nothing where memory is.
func TestLocalFilesDoNotMislead(t *testing.T) {
	places(t, func(t *testing.T, p place) {
		p.write(t, "memory/note.md", "far note")
		p.write(t, "AGENTS.md", "far agents")
		p.write(t, "MEMORY.md", "far memory")
		f := simple(t, p)
		here := place{root: f.dir}
		here.write(t, "elsewhere.md", "local")
		if err := errors.Join(
			os.Mkdir(filepath.Join(f.dir, "memory"), 0o755),
			os.Symlink("../elsewhere.md", filepath.Join(f.dir, "memory/note.md")), // would be no memory
			os.Symlink("memory/note.md", filepath.Join(f.dir, "AGENTS.md")),       // would be memory
			os.Mkdir(filepath.Join(f.dir, "MEMORY.md"), 0o755),                    // would be no file
		); err != nil {
			t.Fatal(err)
		}
		b, err := f.w.LoadBootstrap(t.Context(), f.dir, remoteworkspace.BootstrapConfig{Patterns: []string{"memory/*.md"}, IncludeProtected: true})
		if err != nil {
			t.Fatal(err)
		}
		classify := func() string {
			t.Helper()
			m, err := remoteworkspace.ClassifyMemory(t.Context(), coreMemory(t, nil, nil), remoteworkspace.MemoryClassifierInput{Dir: f.dir, Bound: b.Bound, ReadSources: b.MemorySources()})
			if err != nil {
				t.Fatal(err)
			}
			var list []string
			for _, file := range m.Files {
				list = append(list, file.Name+" "+string(file.Kind))
			}
			slices.Sort(list)
			return strings.Join(list, ", ")
		}
		want := "AGENTS.md , MEMORY.md long-term, memory/note.md note"
		if got := classify(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if err := os.RemoveAll(f.dir); err != nil {
			t.Fatal(err)
		}
		if got := classify(); got != want {
			t.Errorf("without local files: %s, want %s", got, want)
		}
		if f.locals.Load() != 0 {
			t.Error("a local workspace was opened")
		}
	})
}

// RWS-18: no file of the package can open or look at a file of this machine, but the one
// that resolves the names of workspace directories.
func TestNoLocalDisk(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range f.Imports {
			switch path := strings.Trim(i.Path.Value, `"`); path {
			case "os", "io/ioutil", "syscall", "os/exec", "golang.org/x/sys/unix", "path/filepath":
				if name != "canonical.go" || path != "path/filepath" {
					t.Errorf("%s imports %s", name, path)
				}
			}
		}
	}
}

// RWS-19, RWS-20: a plugin that does not declare support is not asked about a bound
// workspace, and nothing takes its place; one that does gets the read sources.
func TestOtherPlugins(t *testing.T) {
	in := remoteworkspace.MemoryClassifierInput{Dir: "/srv/ws", Bound: true, ReadSources: []remoteworkspace.ReadSource{
		{Name: "MEMORY.md", ResolvedPath: "/workspace/MEMORY.md", WorkspaceRelativePath: "MEMORY.md", Size: 3},
	}}
	old := &plugin{}
	m, err := remoteworkspace.ClassifyMemory(t.Context(), old, in)
	if err != nil || len(m.Files) != 0 || len(old.asked) != 0 || !strings.Contains(m.LeftOut, "other") {
		t.Errorf("%+v, %v, asked %d times", m, err, len(old.asked))
	}
	ready := &plugin{supports: true}
	m, err = remoteworkspace.ClassifyMemory(t.Context(), ready, in)
	if err != nil || len(m.Files) != 1 || !m.Files[0].Automatic || m.LeftOut != "" || len(ready.asked) != 1 || ready.asked[0].ReadSources[0] != in.ReadSources[0] {
		t.Errorf("%+v, %v, %+v", m, err, ready.asked)
	}
	in.Bound = false
	if m, err = remoteworkspace.ClassifyMemory(t.Context(), old, in); err != nil || len(m.Files) != 1 {
		t.Errorf("local workspace: %+v, %v", m, err)
	}
	if m, err = remoteworkspace.ClassifyMemory(t.Context(), nil, in); err != nil || m.LeftOut == "" {
		t.Errorf("no plugin: %+v, %v", m, err)
	}
	ready.short = true
	if _, err = remoteworkspace.ClassifyMemory(t.Context(), ready, in); err == nil {
		t.Error("a plugin that forgets a file is believed")
	}
}

// RWS-21: a source without a location is never automatic, whatever the plugin would say,
// and the plugin does not get to see it.
func TestSourceWithoutLocation(t *testing.T) {
	p := &plugin{supports: true}
	m, err := remoteworkspace.ClassifyMemory(t.Context(), p, remoteworkspace.MemoryClassifierInput{Bound: true, ReadSources: []remoteworkspace.ReadSource{
		{Name: "lost.md"}, {Name: "a.md", ResolvedPath: "/workspace/a.md", WorkspaceRelativePath: "a.md"},
	}})
	if err != nil || len(m.Files) != 2 || m.Files[0].Automatic || m.Files[0].Reason == "" || !m.Files[1].Automatic || len(p.asked[0].ReadSources) != 1 {
		t.Errorf("%+v, %v", m, err)
	}
}

// RWS-23: synchronisation may go only with five complete verifications, each of its own;
// a binding in force is none.
func TestMayRemoveSync(t *testing.T) {
	root := t.TempDir()
	f := simple(t, place{root: root, open: localFactory(root)})
	var r remoteworkspace.SyncRequirements
	if f.registry.State(f.dir) != remoteworkspace.StateReady || r.MayRemoveSync() || len(r.Unmet()) != 5 {
		t.Errorf("a binding alone: unmet %v", r.Unmet())
	}
	proof := func(name string) remoteworkspace.Verification {
		return remoteworkspace.Verification{Proof: name, At: time.Unix(1, 0), Version: "1"}
	}
	all := remoteworkspace.SyncRequirements{
		MemorySearch: proof("a"), MemoryMaintenance: proof("b"), Skills: proof("c"), Attachments: proof("d"), HostProvisioning: proof("e"),
	}
	if !all.MayRemoveSync() {
		t.Errorf("all verified: unmet %v", all.Unmet())
	}
	for _, spoil := range []func(*remoteworkspace.SyncRequirements){
		func(r *remoteworkspace.SyncRequirements) { r.MemorySearch = remoteworkspace.Verification{} },
		func(r *remoteworkspace.SyncRequirements) { r.MemoryMaintenance.At = time.Time{} },
		func(r *remoteworkspace.SyncRequirements) { r.Skills.Version = "" },
		func(r *remoteworkspace.SyncRequirements) { r.Attachments.Proof = "" },
		func(r *remoteworkspace.SyncRequirements) { r.HostProvisioning.Proof = "a" },
	} {
		r := all
		if spoil(&r); r.MayRemoveSync() || len(r.Unmet()) != 1 {
			t.Errorf("unmet %v", r.Unmet())
		}
	}
}
