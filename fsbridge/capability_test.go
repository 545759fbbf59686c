package fsbridge

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// core is a bridge with nothing but the core.
type core struct{}

func (core) Stat(context.Context, string) (FileInfo, error)   { return FileInfo{}, nil }
func (core) ReadFile(context.Context, string) ([]byte, error) { return nil, nil }
func (core) WriteFile(context.Context, string, []byte) error  { return nil }

// hashing has one capability more, and denies it.
type hashing struct{ core }

func (hashing) HashFile(context.Context, string) (FileHash, error) { return FileHash{Size: 7}, nil }

type denying struct{ hashing }

func (denying) Declares(Capability) bool { return false }

// boasting declares everything and has nothing.
type boasting struct{ core }

func (boasting) Declares(Capability) bool { return true }

// TestHas: a capability is declared by having its method, and a Declarer can only take away. FSB-09
func TestHas(t *testing.T) {
	for _, c := range AllCapabilities() {
		if Has(core{}, c) || Has(boasting{}, c) || Has(denying{}, c) || Has(nil, c) {
			t.Errorf("%q is declared by a bridge without it", c)
		}
		if got := Has(hashing{}, c); got != (c == CapHashFile) {
			t.Errorf("%q: %t", c, got)
		}
	}
	if got := CapabilitiesOf(hashing{}); !slices.Equal(got, []Capability{CapHashFile}) {
		t.Errorf("%q", got)
	}
	if got := CapabilitiesOf(core{}); len(got) != 0 {
		t.Errorf("%q", got)
	}
	if Has(hashing{}, "no such capability") {
		t.Error("a capability that does not exist is declared")
	}
}

// TestUnsupported calls every package function on bridges without the capability: the error names
// it, and nothing else happens. FSB-09
func TestUnsupported(t *testing.T) {
	ctx := t.Context()
	for name, b := range map[string]Bridge{"core": core{}, "denying": denying{}, "boasting": boasting{}, "none": nil} {
		for c, err := range unsupported(ctx, t, b) {
			var ue *UnsupportedError
			var pe *PathError
			if !errors.As(err, &ue) || ue.Capability != c || !errors.Is(err, ErrUnsupported) || !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("%s: %s: %v", name, c, err)
			}
			if !errors.As(err, &pe) || pe.Op == "" || pe.Path != "p" || pe.Hint == "" {
				t.Errorf("%s: %s: %#v", name, c, err)
			}
			if err != nil && !strings.Contains(err.Error(), string(c)) {
				t.Errorf("%s: %s: the text %q does not name it", name, c, err)
			}
		}
		if Mounts(b) != nil {
			t.Errorf("%s: mounts are told", name)
		}
	}
	h, err := HashFile(ctx, hashing{}, "p")
	if err != nil || h.Size != 7 {
		t.Errorf("a declared capability: %+v, %v", h, err)
	}
}

func unsupported(ctx context.Context, t *testing.T, b Bridge) map[Capability]error {
	t.Helper()
	out := map[Capability]error{}
	_, out[CapLstat] = Lstat(ctx, b, "p")
	_, out[CapReadFileWithSource] = ReadFileWithSource(ctx, b, "p")
	_, out[CapReadRange] = ReadRange(ctx, b, "p", 0, 1)
	r, _, err := OpenReader(ctx, b, "p")
	out[CapOpenReader] = err
	if r != nil {
		t.Error("a reader and an error")
	}
	src := strings.NewReader("data")
	_, out[CapWriteStream] = WriteStream(ctx, b, "p", src, WriteOptions{})
	if src.Len() != 4 {
		t.Error("the source was read")
	}
	out[CapCreateFileExclusive] = CreateFileExclusive(ctx, b, "p", nil)
	out[CapAppendFile] = AppendFile(ctx, b, "p", nil)
	out[CapMkdir] = Mkdir(ctx, b, "p", MkdirOptions{})
	out[CapRemove] = Remove(ctx, b, "p", RemoveOptions{IgnoreMissing: true})
	out[CapRename] = Rename(ctx, b, "p", "q", RenameOptions{})
	out[CapCopy] = Copy(ctx, b, "p", "q", CopyOptions{})
	_, out[CapReadLink] = ReadLink(ctx, b, "p")
	out[CapSymlink] = Symlink(ctx, b, "t", "p", SymlinkOptions{})
	out[CapChmod] = Chmod(ctx, b, "p", 0o600)
	_, out[CapReadDirectory] = ReadDirectory(ctx, b, "p")
	steps := 0
	for e, err := range StreamDirectory(ctx, b, "p") {
		steps++
		out[CapStreamDirectory] = err
		if e != (DirEntry{}) {
			t.Errorf("an entry and an error: %+v", e)
		}
	}
	if steps != 1 {
		t.Errorf("%d steps, want one error", steps)
	}
	for range StreamDirectory(ctx, b, "p") {
		break // leaving at once must do no harm
	}
	out[CapWalk] = Walk(ctx, b, "p", WalkOptions{}, func(WalkEntry) error {
		t.Error("the callback was called")
		return nil
	})
	_, out[CapHashFile] = HashFile(ctx, b, "p")
	_, out[CapGlob] = Glob(ctx, b, "p", GlobOptions{})
	w, err := WatchDirectory(ctx, b, "p", WatchOptions{})
	out[CapWatch] = err
	if w != nil {
		t.Error("a watch and an error")
	}
	if len(out) != len(AllCapabilities())-1 { // CapMounts has no error
		t.Errorf("%d functions were called", len(out))
	}
	return out
}

// TestCapabilitiesAreComplete reads the package's source: every constant is in AllCapabilities, in
// its order, and every interface of one method has a constant, a case in Has and a package function.
func TestCapabilitiesAreComplete(t *testing.T) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "capability.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var constants []string
	functions := map[string]bool{}
	cases := map[string]string{} // constant to interface
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			for _, id := range n.Names {
				if strings.HasPrefix(id.Name, "Cap") {
					constants = append(constants, id.Name)
				}
			}
		case *ast.FuncDecl:
			if n.Recv == nil {
				functions[n.Name.Name] = true
			}
		case *ast.CaseClause:
			for _, e := range n.List {
				id, ok := e.(*ast.Ident)
				if !ok {
					continue
				}
				ast.Inspect(n, func(m ast.Node) bool {
					if a, ok := m.(*ast.TypeAssertExpr); ok {
						cases[id.Name] = a.Type.(*ast.Ident).Name
					}
					return true
				})
			}
		}
		return true
	})
	all := AllCapabilities()
	if len(constants) != len(all) || len(cases) != len(all) {
		t.Fatalf("%d constants, %d in AllCapabilities, %d in Has", len(constants), len(all), len(cases))
	}
	seen := map[Capability]bool{}
	for _, c := range all {
		if seen[c] || c == "" {
			t.Errorf("capability %q is listed twice, or is empty", c)
		}
		seen[c] = true
	}
	bridge, err := parser.ParseFile(set, "bridge.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	interfaces := map[string]string{} // interface to its method
	ast.Inspect(bridge, func(n ast.Node) bool {
		if s, ok := n.(*ast.TypeSpec); ok {
			if i, ok := s.Type.(*ast.InterfaceType); ok && s.Name.Name != "Bridge" && s.Name.Name != "Watch" {
				if len(i.Methods.List) != 1 {
					t.Errorf("interface %s has %d methods", s.Name.Name, len(i.Methods.List))
				}
				interfaces[s.Name.Name] = i.Methods.List[0].Names[0].Name
			}
		}
		return true
	})
	if len(interfaces) != len(all) {
		t.Errorf("%d interfaces for %d capabilities", len(interfaces), len(all))
	}
	for constant, iface := range cases {
		method, ok := interfaces[iface]
		if !ok {
			t.Errorf("%s stands for %s, which is no interface of one method", constant, iface)
		}
		delete(interfaces, iface)
		if method == "Watch" {
			method = "WatchDirectory" // Watch is a type
		}
		if !functions[method] {
			t.Errorf("there is no function %s for %s", method, constant)
		}
	}
	for iface := range interfaces {
		t.Errorf("interface %s has no capability", iface)
	}
}
