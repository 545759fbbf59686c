package remoteworkspace_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/remoteworkspace"
)

// byName finds a file of a bootstrap.
func byName(t testing.TB, b remoteworkspace.Bootstrap, name string) remoteworkspace.BootstrapFile {
	t.Helper()
	i := slices.IndexFunc(b.Files, func(f remoteworkspace.BootstrapFile) bool { return f.Name == name })
	if i < 0 {
		t.Fatalf("%s is not in %+v", name, b.Files)
	}
	return b.Files[i]
}

// namesOf lists names and statuses.
func namesOf(b remoteworkspace.Bootstrap) string {
	var list []string
	for _, f := range b.Files {
		list = append(list, f.Name+" "+string(f.Status))
	}
	return strings.Join(list, ", ")
}

// RWS-12 RWS-14: documents in their order, then matches sorted; missing ones are told;
// a session gets the bytes of the far side with their true location.
func TestBootstrap(t *testing.T) {
	places(t, func(t *testing.T, p place) {
		f := simple(t, p)
		for _, name := range []string{"AGENTS.md", "USER.md", "docs/b.md", "docs/a.md", "docs/deep/c.md", "docs/x.txt", "guide.md"} {
			p.write(t, name, "content of "+name)
		}
		if err := os.Symlink("AGENTS.md", filepath.Join(p.root, "CLAUDE.md")); err != nil {
			t.Fatal(err)
		}
		cfg := remoteworkspace.BootstrapConfig{
			Documents: []string{"USER.md", "AGENTS.md", "SOUL.md"},
			Patterns:  []string{"docs/**/*.md", "guide.md", "nothing.md", "*.{md,rst}", "doc*", "none/*.md"},
		}
		want := "USER.md loaded, AGENTS.md loaded, SOUL.md missing, docs/a.md loaded, docs/b.md loaded, docs/deep/c.md loaded, " +
			"guide.md loaded, nothing.md missing, AGENTS.md excluded, CLAUDE.md excluded, USER.md excluded, guide.md excluded"
		for name, wrap := range map[string]func(fsbridge.Bridge) fsbridge.Bridge{
			"full": nil, "without glob": with(faulty{denied: []fsbridge.Capability{fsbridge.CapGlob}}),
		} {
			f := bind(t, p, wrap, remoteworkspace.Options{}, remoteworkspace.DocumentOptions{})
			for range 2 {
				b, err := f.w.LoadBootstrap(t.Context(), f.dir, cfg)
				if err != nil {
					t.Fatal(err)
				}
				if got := namesOf(b); got != want {
					t.Errorf("%s:\n%s, want\n%s", name, got, want)
				}
				a := byName(t, b, "docs/deep/c.md")
				if string(a.Content) != "content of docs/deep/c.md" || a.Source.WorkspaceRelativePath != "docs/deep/c.md" ||
					string(a.Source.Hash) != sha("content of docs/deep/c.md") || a.Pattern != "docs/**/*.md" || a.Cut != nil {
					t.Errorf("%+v", a)
				}
				if c := byName(t, b, "CLAUDE.md"); !strings.Contains(c.Reason, "same file as AGENTS.md") || c.Content != nil {
					t.Errorf("%+v", c)
				}
				if !b.Bound || b.Bytes == 0 || len(b.Refused()) != 0 {
					t.Errorf("%+v", b)
				}
			}
		}
		if f.locals.Load() != 0 {
			t.Error("local files were read")
		}
	})
}

// RWS-12: without pinned reads nothing is loaded, and the capability is named. FSB-09
func TestBootstrapNeedsSource(t *testing.T) {
	root := t.TempDir()
	p := place{root: root, open: localFactory(root)}
	p.write(t, "AGENTS.md", "a")
	for name, wrap := range map[string]func(fsbridge.Bridge) fsbridge.Bridge{
		"core": core, "denied": with(faulty{denied: []fsbridge.Capability{fsbridge.CapReadFileWithSource}}),
	} {
		f := bind(t, p, wrap, remoteworkspace.Options{}, remoteworkspace.DocumentOptions{})
		for _, method := range []string{"bootstrap", "compaction"} {
			err := every(f.w, f.docs, f.dir)[method](t.Context())
			wantErr(t, name+" "+method, err, fsbridge.ErrUnsupported)
			var u *fsbridge.UnsupportedError
			if !errors.As(err, &u) || u.Capability != fsbridge.CapReadFileWithSource {
				t.Errorf("%s %s: %v", name, method, err)
			}
		}
		if f.locals.Load() != 0 {
			t.Error("a local copy was read instead")
		}
	}
}

// RWS-14: patterns need a listing; without it a configuration with patterns fails, also
// where the bridge can search by itself, and one without patterns works (FSB-07).
func TestPatternsNeedListing(t *testing.T) {
	root := t.TempDir()
	p := place{root: root, open: localFactory(root)}
	p.write(t, "AGENTS.md", "a")
	p.write(t, "docs/a.md", "d")
	f := bind(t, p, with(faulty{denied: []fsbridge.Capability{fsbridge.CapReadDirectory}}), remoteworkspace.Options{}, remoteworkspace.DocumentOptions{})
	b, err := f.w.LoadBootstrap(t.Context(), f.dir, remoteworkspace.BootstrapConfig{Patterns: []string{"docs/*.md"}})
	wantErr(t, "patterns", err, fsbridge.ErrUnsupported)
	var u *fsbridge.UnsupportedError
	if !errors.As(err, &u) || u.Capability != fsbridge.CapReadDirectory || len(b.Files) != 0 {
		t.Errorf("%v, %+v", err, b)
	}
	b, err = f.w.LoadBootstrap(t.Context(), f.dir, remoteworkspace.BootstrapConfig{Patterns: []string{"docs/a.md"}})
	if err != nil || byName(t, b, "docs/a.md").Status != remoteworkspace.FileLoaded {
		t.Errorf("a path is no pattern: %v", err)
	}
}

// RWS-13: protected memory is filtered by where a file truly lies: under every spelling,
// through links, chains of links and hard links, from either side.
func TestProtectedMemory(t *testing.T) {
	places(t, func(t *testing.T, p place) {
		p.write(t, "MEMORY.md", "secret")
		p.write(t, "notes/real.md", "secret two")
		p.write(t, "USER.md", "open")
		link := func(mk func(a, b string) error, target, name string) {
			t.Helper()
			if err := mk(target, filepath.Join(p.root, name)); err != nil {
				t.Fatal(err)
			}
		}
		link(os.Symlink, "MEMORY.md", "SOUL.md")
		link(os.Symlink, "SOUL.md", "TOOLS.md")
		link(os.Symlink, "notes/real.md", "memory.md")
		link(os.Symlink, "..", "notes/up")
		link(func(a, b string) error { return os.Link(filepath.Join(p.root, a), b) }, "MEMORY.md", "hard.md")
		cfg := remoteworkspace.BootstrapConfig{
			Documents: []string{"AGENTS.md", "SOUL.md", "TOOLS.md", "USER.md", "MEMORY.md", "memory.md", "Memory.MD", "notes/up/MEMORY.md", "notes/up/SOUL.md"},
			Patterns:  []string{"*.md", "notes/*"},
		}
		f := simple(t, p)
		b, err := f.w.LoadBootstrap(t.Context(), f.dir, cfg)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range b.Files {
			if strings.Contains(string(file.Content), "secret") {
				t.Errorf("%s lets protected memory through", file.Name)
			}
			wants := file.Name != "USER.md" && file.Name != "AGENTS.md"
			if excluded := file.Status == remoteworkspace.FileExcluded; excluded != wants && file.Pattern == "" {
				t.Errorf("%s is %s", file.Name, file.Status)
			}
		}
		for _, name := range []string{"hard.md", "notes/real.md"} {
			if f := byName(t, b, name); f.Status != remoteworkspace.FileExcluded || !strings.Contains(f.Reason, "protected") {
				t.Errorf("%+v", f)
			}
		}
		cfg.IncludeProtected = true
		if b, err = f.w.LoadBootstrap(t.Context(), f.dir, cfg); err != nil || string(byName(t, b, "MEMORY.md").Content) != "secret" && string(byName(t, b, "SOUL.md").Content) != "secret" {
			t.Errorf("a private session does not get its memory: %v, %s", err, namesOf(b))
		}
	})
}

// RWS-13: without a listing, and without inode numbers, the location of the read still
// tells.
func TestProtectedMemoryByPathAlone(t *testing.T) {
	root := t.TempDir()
	p := place{root: root, open: localFactory(root)}
	p.write(t, "deep/real.md", "secret")
	for _, l := range [][2]string{{"deep/real.md", "MEMORY.md"}, {"deep/real.md", "SOUL.md"}} {
		if err := os.Symlink(l[0], filepath.Join(root, l[1])); err != nil {
			t.Fatal(err)
		}
	}
	wrap := func(b fsbridge.Bridge) fsbridge.Bridge {
		return &numberless{faulty: with(faulty{
			denied: []fsbridge.Capability{fsbridge.CapReadDirectory},
			source: func(s *fsbridge.SourcedFile) { s.Info.Inode, s.Info.Dev = 0, 0 },
		})(b).(*faulty)}
	}
	f := bind(t, p, wrap, remoteworkspace.Options{}, remoteworkspace.DocumentOptions{})
	b, err := f.w.LoadBootstrap(t.Context(), f.dir, remoteworkspace.BootstrapConfig{Patterns: []string{"deep/real.md"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"SOUL.md", "MEMORY.md", "deep/real.md"} {
		if got := byName(t, b, name); got.Status != remoteworkspace.FileExcluded || got.Content != nil {
			t.Errorf("%+v", got)
		}
	}
}

// numberless is a bridge that does not tell inode numbers.
type numberless struct{ *faulty }

func (n *numberless) Stat(ctx context.Context, path string) (fsbridge.FileInfo, error) {
	i, err := n.faulty.Stat(ctx, path)
	i.Inode, i.Dev = 0, 0
	return i, err
}

// RWS-13: a name that is re-pointed to memory between two looks does not help: what
// counts is the location of the read that gave the bytes (FSB-05).
func TestProtectedMemorySwapped(t *testing.T) {
	root := t.TempDir()
	p := place{root: root, open: localFactory(root)}
	p.write(t, "MEMORY.md", "secret")
	p.write(t, "SOUL.md", "harmless")
	f := bind(t, p, with(faulty{before: func(op, path string) error {
		if op != "source" || path != "SOUL.md" {
			return nil
		}
		return errors.Join(os.Remove(filepath.Join(root, "SOUL.md")), os.Symlink("MEMORY.md", filepath.Join(root, "SOUL.md")))
	}}), remoteworkspace.Options{}, remoteworkspace.DocumentOptions{})
	b, err := f.w.LoadBootstrap(t.Context(), f.dir, remoteworkspace.BootstrapConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if got := byName(t, b, "SOUL.md"); got.Status != remoteworkspace.FileExcluded || got.Content != nil {
		t.Errorf("%+v", got)
	}
}

// RWS-13: session filters see the resolved path too.
func TestSessionFilters(t *testing.T) {
	places(t, func(t *testing.T, p place) {
		p.write(t, "AGENTS.md", "a")
		p.write(t, "private/x.md", "x")
		if err := os.Symlink("private/x.md", filepath.Join(p.root, "SOUL.md")); err != nil {
			t.Fatal(err)
		}
		f := simple(t, p)
		b, err := f.w.LoadBootstrap(t.Context(), f.dir, remoteworkspace.BootstrapConfig{Filters: []remoteworkspace.SessionFilter{
			remoteworkspace.OnlyDocuments("AGENTS.md", "SOUL.md"),
		}})
		if err != nil {
			t.Fatal(err)
		}
		if got := byName(t, b, "SOUL.md"); got.Status != remoteworkspace.FileExcluded || !strings.Contains(got.Reason, "only") {
			t.Errorf("%+v", got)
		}
		if got := byName(t, b, "AGENTS.md"); got.Status != remoteworkspace.FileLoaded {
			t.Errorf("%+v", got)
		}
	})
}

// RWS-15: after a compaction AGENTS.md comes from the far side, as it is then, and a
// missing one is told.
func TestReadAfterCompaction(t *testing.T) {
	places(t, func(t *testing.T, p place) {
		f := simple(t, p)
		read := func() remoteworkspace.BootstrapFile {
			t.Helper()
			file, err := f.w.ReadAfterCompaction(t.Context(), f.dir, remoteworkspace.BootstrapConfig{Patterns: []string{"*"}})
			if err != nil {
				t.Fatal(err)
			}
			return file
		}
		if file := read(); file.Status != remoteworkspace.FileMissing || file.Name != "AGENTS.md" {
			t.Errorf("%+v", file)
		}
		for _, content := range []string{"before", "after"} {
			p.write(t, "AGENTS.md", content)
			if file := read(); string(file.Content) != content {
				t.Errorf("%+v", file)
			}
		}
		f.release()
		_, err := f.w.ReadAfterCompaction(t.Context(), f.dir, remoteworkspace.BootstrapConfig{})
		wantErr(t, "stopped", err, remoteworkspace.ErrUnavailable)
	})
}

// RWS-21: a read that does not tell where its file lies fails; no other copy is chosen.
func TestMissingSource(t *testing.T) {
	root := t.TempDir()
	p := place{root: root, open: localFactory(root)}
	p.write(t, "AGENTS.md", "a")
	f := bind(t, p, with(faulty{source: func(s *fsbridge.SourcedFile) { s.ResolvedPath, s.WorkspaceRelativePath = "", "" }}), remoteworkspace.Options{}, remoteworkspace.DocumentOptions{})
	b, err := f.w.LoadBootstrap(t.Context(), f.dir, remoteworkspace.BootstrapConfig{})
	if err == nil || len(b.Files) != 0 || f.locals.Load() != 0 {
		t.Errorf("%+v, %v", b, err)
	}
}

// what is larger than the limit is refused, what is beyond a budget is cut at a
// character, and both are told.
func TestBootstrapBounds(t *testing.T) {
	places(t, func(t *testing.T, p place) {
		f := simple(t, p)
		p.write(t, "AGENTS.md", strings.Repeat("ä", 30))
		p.write(t, "SOUL.md", "sixteen bytes ok")
		p.write(t, "TOOLS.md", strings.Repeat("x", 101))
		p.write(t, "USER.md", "late")
		load := func(file, total int64) remoteworkspace.Bootstrap {
			t.Helper()
			b, err := f.w.LoadBootstrap(t.Context(), f.dir, remoteworkspace.BootstrapConfig{MaxFile: 100, FileBudget: file, TotalBudget: total})
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		b := load(25, 42)
		a := byName(t, b, "AGENTS.md")
		if len(a.Content) != 24 || !utf8.Valid(a.Content) || *a.Cut != (remoteworkspace.Cut{Size: 60, Kept: 24, By: "file"}) || a.Source.Size != 60 {
			t.Errorf("%+v %+v", a, a.Cut)
		}
		if s := byName(t, b, "SOUL.md"); string(s.Content) != "sixteen bytes ok" || s.Cut != nil {
			t.Errorf("%+v", s)
		}
		wantErr(t, "TOOLS.md", byName(t, b, "TOOLS.md").Err, fsbridge.ErrTooLarge)
		if u := byName(t, b, "USER.md"); string(u.Content) != "la" || u.Cut.By != "total" || b.Bytes != 42 {
			t.Errorf("%+v %+v", u, b.Bytes)
		}
		if len(b.Refused()) != 1 {
			t.Errorf("refused %+v", b.Refused())
		}
		if b := load(-1, -1); len(byName(t, b, "AGENTS.md").Content) != 60 || byName(t, b, "USER.md").Cut != nil {
			t.Error("no bound is a bound")
		}
		_, err := f.w.LoadBootstrap(t.Context(), f.dir, remoteworkspace.BootstrapConfig{Patterns: []string{"*.md"}, MaxExtraFiles: 3})
		wantErr(t, "too many matches", err, fsbridge.ErrTooLarge)
	})
}

func TestBootstrapConfigRefused(t *testing.T) {
	root := t.TempDir()
	f := simple(t, place{root: root, open: localFactory(root)})
	for _, cfg := range []remoteworkspace.BootstrapConfig{
		{Documents: []string{"../x"}}, {Protected: []string{"/x"}}, {Patterns: []string{"/etc/*"}}, {Patterns: []string{"a/../../*"}},
		{Patterns: []string{"{x,../y}/*"}}, {Patterns: []string{"[a"}}, {Patterns: []string{""}}, {Patterns: []string{"{a"}}, {MaxFile: -1}, {MaxExtraFiles: -1},
	} {
		if _, err := f.w.LoadBootstrap(t.Context(), f.dir, cfg); err == nil {
			t.Errorf("%+v was taken", cfg)
		}
	}
	if f.opened.Load() != 0 {
		t.Error("the bridge was touched for a configuration that cannot be meant")
	}
}

// RWS-16: a connection that fails anywhere ends the load as a whole; there is no half
// bootstrap.
func TestBootstrapIsWhole(t *testing.T) {
	root := t.TempDir()
	p := place{root: root, open: localFactory(root)}
	p.write(t, "AGENTS.md", "a")
	p.write(t, "USER.md", "u")
	p.write(t, "docs/a.md", "d")
	cfg := remoteworkspace.BootstrapConfig{Patterns: []string{"docs/*.md"}}
	for n := 0; ; n++ {
		calls := 0
		f := bind(t, p, with(faulty{denied: []fsbridge.Capability{fsbridge.CapGlob}, before: func(string, string) error {
			if calls++; calls > n {
				return fsbridge.ErrUnavailable
			}
			return nil
		}}), remoteworkspace.Options{}, remoteworkspace.DocumentOptions{})
		b, err := f.w.LoadBootstrap(t.Context(), f.dir, cfg)
		if calls <= n {
			if err != nil || len(b.Files) != 9 || n < 10 {
				t.Errorf("after %d calls: %v, %s", n, err, namesOf(b))
			}
			return
		}
		wantErr(t, "cut", err, remoteworkspace.ErrUnavailable)
		if len(b.Files) != 0 {
			t.Errorf("cut after %d calls: %s", n, namesOf(b))
		}
	}
}

// The two ways of expanding a pattern agree on any tree.
func TestExpandAgrees(t *testing.T) {
	root := t.TempDir()
	p := place{root: root, open: localFactory(root)}
	for _, name := range []string{"a.md", "b.txt", ".hidden/a.md", "x/a.md", "x/y/b.md", "x/y/z/c.md", "[odd]/a.md", "é/ü.md"} {
		p.write(t, name, name)
	}
	if err := os.Symlink("x", filepath.Join(root, "l")); err != nil {
		t.Fatal(err)
	}
	f := simple(t, p)
	g := bind(t, p, with(faulty{denied: []fsbridge.Capability{fsbridge.CapGlob}}), remoteworkspace.Options{}, remoteworkspace.DocumentOptions{})
	elem := rapid.SampledFrom([]string{"*", "**", "a.md", "*.md", "x", "?", "y", "{x,l}", "[a-z]", "*.{md,txt}", "l", ".", `\[odd\]`, ".*"})
	rapid.Check(t, func(t *rapid.T) {
		cfg := remoteworkspace.BootstrapConfig{Patterns: []string{strings.Join(rapid.SliceOfN(elem, 1, 4).Draw(t, "elements"), "/")}, Documents: []string{}}
		a, err := f.w.LoadBootstrap(t.Context(), f.dir, cfg)
		b, err2 := g.w.LoadBootstrap(t.Context(), g.dir, cfg)
		if err != nil || err2 != nil || namesOf(a) != namesOf(b) {
			t.Fatalf("%s: %s %v, listing: %s %v", cfg.Patterns, namesOf(a), err, namesOf(b), err2)
		}
	})
}
