package main

import (
	"context"
	"fmt"
	"go/ast"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// suiteTest is a test that hands a target to a suite.
type suiteTest struct{ dir, name string }

// suiteTests finds the tests that call bridgetest.Run or backendtest.Run, themselves or through
// functions of their package. A second look at a target as another user, TestXOrdinaryUser, or with
// its engine on another machine, TestXElsewhere, is left out.
func suiteTests(root string) ([]suiteTest, error) {
	packages := map[string]map[string]*ast.FuncDecl{} // by directory and name
	err := eachTestFile(root, func(f testFile) error {
		if packages[f.dir] == nil {
			packages[f.dir] = map[string]*ast.FuncDecl{}
		}
		for _, decl := range f.file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil {
				packages[f.dir][fn.Name.Name] = fn
			}
		}
		return nil
	})
	var out []suiteTest
	for dir, functions := range packages {
		for name := range functions {
			if strings.HasPrefix(name, "Test") && !strings.HasSuffix(name, "OrdinaryUser") &&
				!strings.HasSuffix(name, "Elsewhere") && callsSuite(functions, name, map[string]bool{}) {
				out = append(out, suiteTest{dir, name})
			}
		}
	}
	slices.SortFunc(out, func(a, b suiteTest) int {
		return strings.Compare(a.dir+" "+a.name, b.dir+" "+b.name)
	})
	return out, err
}

// callsSuite reports whether a function calls Run of one of the suites.
func callsSuite(functions map[string]*ast.FuncDecl, name string, seen map[string]bool) (found bool) {
	fn := functions[name]
	if fn == nil || seen[name] {
		return false
	}
	seen[name] = true
	ast.Inspect(fn, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || found {
			return !found
		}
		switch f := call.Fun.(type) {
		case *ast.SelectorExpr:
			x, ok := f.X.(*ast.Ident)
			found = ok && f.Sel.Name == "Run" && (x.Name == "bridgetest" || x.Name == "backendtest")
		case *ast.Ident:
			found = callsSuite(functions, f.Name, seen)
		}
		return !found
	})
	return found
}

// runSuites runs them, so that they leave their reports in dir.
func runSuites(ctx context.Context, root, dir string, stderr io.Writer) error {
	tests, err := suiteTests(root)
	if err != nil {
		return err
	}
	if len(tests) == 0 {
		return fmt.Errorf("no test below %s calls a suite", root)
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	turns := make(chan struct{}, atOnce)
	var running sync.WaitGroup
	for _, t := range tests {
		turns <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		fmt.Fprintf(stderr, "running %s of %s\n", t.name, t.dir)
		running.Go(func() {
			defer func() { <-turns }()
			cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-timeout=30m", "-run", "^"+t.name+"$", "./"+t.dir)
			cmd.Dir = root
			cmd.Env = append(os.Environ(), "BERTH_CAPABILITY_REPORT="+dir)
			if out, err := cmd.CombinedOutput(); err != nil {
				cancel(fmt.Errorf("%s of %s: %w\n%s", t.name, t.dir, err, out))
			}
		})
	}
	running.Wait()
	return context.Cause(ctx)
}

// atOnce is how many suites run at a time: those of engines mostly wait.
const atOnce = 3
