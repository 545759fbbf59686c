package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// allowedState lists package-level variables that change, each with the reason. The key is the
// package's directory, a dot, and the name.
func allowedState() map[string]string {
	return map[string]string{
		"internal/guest/wire.classes": "a pool of buffers: nothing in it is carried from one use to the next",
	}
}

// isStateType reports a type whose only use is to change: no table has it.
func isStateType(expr ast.Expr) bool {
	switch e := expr.(type) {
	case *ast.ChanType:
		return true
	case *ast.StarExpr:
		return isStateType(e.X)
	case *ast.ArrayType:
		return isStateType(e.Elt)
	case *ast.MapType:
		return isStateType(e.Value)
	case *ast.IndexExpr: // atomic.Pointer[T]
		return isStateType(e.X)
	case *ast.StructType:
		return slices.ContainsFunc(e.Fields.List, func(f *ast.Field) bool { return isStateType(f.Type) })
	case *ast.SelectorExpr:
		pkg, ok := e.X.(*ast.Ident)
		return ok && (pkg.Name == "sync" || pkg.Name == "atomic")
	}
	return false
}

// isStateValue reports an initial value that only makes sense if it is changed later.
func isStateValue(expr ast.Expr) bool {
	switch e := expr.(type) {
	case *ast.CallExpr:
		fn, ok := e.Fun.(*ast.Ident)
		return ok && (fn.Name == "make" || fn.Name == "new")
	case *ast.CompositeLit:
		return e.Type != nil && isStateType(e.Type)
	case *ast.UnaryExpr:
		return e.Op == token.AND && isStateValue(e.X)
	}
	return false
}

// base returns the variable that an expression on the left of an assignment belongs to.
func base(expr ast.Expr) *ast.Ident {
	for {
		switch e := expr.(type) {
		case *ast.Ident:
			return e
		case *ast.IndexExpr:
			expr = e.X
		case *ast.SelectorExpr:
			expr = e.X
		case *ast.StarExpr:
			expr = e.X
		case *ast.ParenExpr:
			expr = e.X
		default:
			return nil
		}
	}
}

// states returns the package-level variables of one package that hold state: those of a type made
// for it, and those that some function assigns to. It maps the name to where and why.
func states(files []goFile) map[string]string {
	found := map[string]string{}
	globals := map[string]bool{}
	for _, f := range files {
		for _, decl := range f.file.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok || gen.Tok != token.VAR {
				continue
			}
			for _, s := range gen.Specs {
				spec := s.(*ast.ValueSpec)
				stateful := spec.Type != nil && isStateType(spec.Type) || slices.ContainsFunc(spec.Values, isStateValue)
				for _, name := range spec.Names {
					if name.Name == "_" {
						continue
					}
					globals[name.Name] = true
					if stateful {
						found[name.Name] = fmt.Sprintf("%v: its type is made to change", f.set.Position(name.Pos()))
					}
				}
			}
		}
	}
	for _, f := range files {
		for _, decl := range f.file.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			local := locals(fn)
			assigned := func(expr ast.Expr) {
				if id := base(expr); id != nil && globals[id.Name] && !local[id.Name] {
					found[id.Name] = fmt.Sprintf("%v: %s assigns to it", f.set.Position(id.Pos()), fn.Name.Name)
				}
			}
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.AssignStmt:
					if n.Tok != token.DEFINE {
						for _, left := range n.Lhs {
							assigned(left)
						}
					}
				case *ast.IncDecStmt:
					assigned(n.X)
				}
				return true
			})
		}
	}
	return found
}

// locals returns every name that a function declares anywhere: a variable of that name in it is
// taken to be the local one.
func locals(fn *ast.FuncDecl) map[string]bool {
	names := map[string]bool{}
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			for _, name := range n.Names {
				names[name.Name] = true
			}
		case *ast.ValueSpec:
			for _, name := range n.Names {
				names[name.Name] = true
			}
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				for _, left := range n.Lhs {
					if id, ok := left.(*ast.Ident); ok {
						names[id.Name] = true
					}
				}
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				for _, e := range []ast.Expr{n.Key, n.Value} {
					if id, ok := e.(*ast.Ident); ok {
						names[id.Name] = true
					}
				}
			}
		}
		return true
	})
	return names
}

// TestNoPackageState keeps state in values that somebody made and somebody ends. Sentinels, tables
// and assertions at package level are none.
func TestNoPackageState(t *testing.T) {
	packages := map[string][]goFile{}
	for _, f := range openRepo(t).goFiles(t) {
		if !f.isTest() {
			packages[f.dir] = append(packages[f.dir], f)
		}
	}
	allowed := allowedState()
	for dir, files := range packages {
		for name, where := range states(files) {
			key := dir + "." + name
			if _, ok := allowed[key]; !ok {
				t.Errorf("%s is package-level state (%s): pass it in, or give a reason in internal/archtest/state_test.go", key, where)
			}
			delete(allowed, key)
		}
	}
	for key := range allowed {
		t.Errorf("%s is allowed as package-level state and is none", key)
	}
}

func TestStates(t *testing.T) {
	f := mustParse(t, "a.go", strings.Join([]string{
		"package a",
		"var ErrX = errors.New(`x`)",
		"var table = map[string]int{`a`: 1}",
		"var names = [...]string{`a`}",
		"var _ I = (*T)(nil)",
		"var mu sync.Mutex",
		"var count atomic.Int64",
		"var pools [4]sync.Pool",
		"var once = sync.Once{}",
		"var ptr = &sync.Map{}",
		"var ch = make(chan int)",
		"var cache = map[string]*sync.Pool{}",
		"var typed atomic.Pointer[T]",
		"var anon struct{ x int; mu sync.Mutex }",
		"var hook = func() {}",
		"var indexed = map[string]int{}",
		"var counted int",
		"var field struct{ x int }",
		"var deref *int",
		"var shadowed, parameter, ranged int",
		"func f(parameter int) {",
		"hook = nil",
		"indexed[`a`] = 1",
		"func() { counted++ }()",
		"field.x += 2",
		"*deref = 1",
		"shadowed := 1; shadowed = 2",
		"parameter = 2",
		"for ranged := range 3 { ranged = 1 }",
		"_ = table[`a`]",
		"}",
	}, "\n"))
	var got []string
	for name := range states([]goFile{f}) {
		got = append(got, name)
	}
	slices.Sort(got)
	want := []string{
		"anon", "cache", "ch", "count", "counted", "deref", "field", "hook", "indexed", "mu",
		"once", "pools", "ptr", "typed",
	}
	if !slices.Equal(got, want) {
		t.Errorf("states() = %q, want %q", got, want)
	}
}
