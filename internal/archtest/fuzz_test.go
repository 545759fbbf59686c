package archtest

import (
	"bytes"
	"go/ast"
	"path"
	"strings"
	"testing"
)

// TestFuzzTargetsHaveSeeds wants at least one committed input for each fuzz target, so that the
// ordinary tests run it too: a call of f.Add, or a file in testdata/fuzz/<target>.
func TestFuzzTargetsHaveSeeds(t *testing.T) {
	r := openRepo(t)
	for _, f := range r.goFiles(t) {
		for _, decl := range f.file.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !f.isTest() || !ok || fn.Recv != nil || !strings.HasPrefix(fn.Name.Name, "Fuzz") {
				continue
			}
			corpus := path.Join(f.dir, "testdata/fuzz", fn.Name.Name) + "/"
			seeded := hasCall(fn, "Add")
			for _, name := range r.files {
				seeded = seeded || strings.HasPrefix(name, corpus)
			}
			if !seeded {
				t.Errorf("%s: %s has no seeds: call f.Add or add files to %s", f.name, fn.Name.Name, corpus)
			}
		}
	}
}

// hasCall reports whether fn calls a method of the name.
func hasCall(fn *ast.FuncDecl, method string) (found bool) {
	ast.Inspect(fn, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if sel, ok := call.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == method {
				found = true
			}
		}
		return !found
	})
	return found
}

func TestHasCall(t *testing.T) {
	f := mustParse(t, "a_test.go", "package a\nfunc FuzzA(f *F) { f.Add(1) }\nfunc FuzzB(f *F) { Add(1); _ = f.Add }\n")
	for i, want := range []bool{true, false} {
		if got := hasCall(f.file.Decls[i].(*ast.FuncDecl), "Add"); got != want {
			t.Errorf("function %d: hasCall = %v, want %v", i, got, want)
		}
	}
}

// TestScriptsAreExecutable finds a script that was committed without its mode.
func TestScriptsAreExecutable(t *testing.T) {
	r := openRepo(t)
	for _, name := range r.files {
		if bytes.HasPrefix(r.read(t, name), []byte("#!")) && !r.isExecutable(t, name) && !strings.Contains(name, "testdata/") {
			t.Errorf("%s begins with #! and is not executable: chmod +x", name)
		}
	}
}
