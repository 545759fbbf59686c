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
)

// suiteTest is a test that hands a target to a suite.
type suiteTest struct{ dir, name string }

// suiteTests finds the tests that call bridgetest.Run or backendtest.Run.
func suiteTests(root string) ([]suiteTest, error) {
	var out []suiteTest
	err := eachTestFile(root, func(f testFile) error {
		for _, decl := range f.file.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") && callsSuite(fn) {
				out = append(out, suiteTest{f.dir, fn.Name.Name})
			}
		}
		return nil
	})
	slices.SortFunc(out, func(a, b suiteTest) int {
		return strings.Compare(a.dir+" "+a.name, b.dir+" "+b.name)
	})
	return out, err
}

// callsSuite reports whether a function calls Run of one of the suites.
func callsSuite(fn *ast.FuncDecl) (found bool) {
	ast.Inspect(fn, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if sel, ok := call.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Run" {
				if x, ok := sel.X.(*ast.Ident); ok && (x.Name == "bridgetest" || x.Name == "backendtest") {
					found = true
				}
			}
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
	for _, t := range tests {
		fmt.Fprintf(stderr, "running %s of %s\n", t.name, t.dir)
		cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-run", "^"+t.name+"$", "./"+t.dir)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "BERTH_CAPABILITY_REPORT="+dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s of %s: %w\n%s", t.name, t.dir, err, out)
		}
	}
	return nil
}
