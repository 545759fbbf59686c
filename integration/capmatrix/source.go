package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// contractFiles are the parts of the contract whose rows are listed.
func contractFiles() []string { return []string{"fsbridge.md", "sandbox.md", "gitenv.md"} }

// rowForm is what a row's name looks like.
var rowForm = regexp.MustCompile(`\b(?:FSB|SBX|GIT)-\d\d\b`)

// statedRows lists the rows of the contract, by file.
func statedRows(root string) (map[string][]string, error) {
	out := map[string][]string{}
	for _, name := range contractFiles() {
		text, err := os.ReadFile(filepath.Join(root, "docs", "contract", name))
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			cells := strings.Split(line, "|")
			if len(cells) > 2 && rowForm.MatchString(cells[1]) {
				out[name] = append(out[name], strings.TrimSpace(cells[1]))
			}
		}
		if len(out[name]) == 0 {
			return nil, fmt.Errorf("%s states no row", name)
		}
	}
	return out, nil
}

// namedRows tells which tests name a row: functions as "fsbridge/local.TestX", scripts by their
// path. Rows that a file names outside its test functions, as in a table, belong to the file.
func namedRows(root string) (map[string][]string, error) {
	out := map[string][]string{}
	add := func(where string, text []byte) {
		for _, row := range rowForm.FindAllString(string(text), -1) {
			if !slices.Contains(out[row], where) {
				out[row] = append(out[row], where)
			}
		}
	}
	err := eachTestFile(root, func(f testFile) error {
		rest := slices.Clone(f.source)
		for _, decl := range f.file.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || !isTest(fn) {
				continue
			}
			start, end := fn.Pos(), fn.End()
			if fn.Doc != nil {
				start = fn.Doc.Pos()
			}
			from, to := f.set.Position(start).Offset, f.set.Position(end).Offset
			add(f.dir+"."+fn.Name.Name, f.source[from:to])
			copy(rest[from:to], bytes.Repeat([]byte{' '}, to-from))
		}
		add(f.name, rest)
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = eachFile(root, func(name string) error {
		if path.Ext(name) != ".txtar" {
			return nil
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		add(name, text)
		return err
	})
	for _, where := range out {
		slices.Sort(where)
	}
	return out, err
}

// isTest reports whether go test runs the function.
func isTest(fn *ast.FuncDecl) bool {
	if fn.Recv != nil {
		return false
	}
	for _, prefix := range []string{"Test", "Fuzz", "Example"} {
		if strings.HasPrefix(fn.Name.Name, prefix) && fn.Name.Name != "TestMain" {
			return true
		}
	}
	return false
}

// testFile is a parsed test file. Names are relative to the root, with slashes.
type testFile struct {
	name, dir string
	set       *token.FileSet
	file      *ast.File
	source    []byte
}

// aboutTests are the places whose tests are about tests: the rules of the repository, the suites on
// themselves, and this program. They name rows to count them, and prove none.
func aboutTests() []string {
	return []string{"internal/archtest", "integration/capmatrix", "fsbridge/bridgetest", "sandbox/backendtest"}
}

// eachTestFile visits the test files in order, less those about tests.
func eachTestFile(root string, visit func(testFile) error) error {
	return eachFile(root, func(name string) error {
		if !strings.HasSuffix(name, "_test.go") || slices.Contains(aboutTests(), path.Dir(name)) {
			return nil
		}
		source, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, source, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		return visit(testFile{name: name, dir: path.Dir(name), set: set, file: file, source: source})
	})
}

// eachFile visits the files of the repository in order, less what builds leave behind.
func eachFile(root string, visit func(name string) error) error {
	return fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == "bin" || strings.HasPrefix(d.Name(), ".") && name != "."):
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		return visit(name)
	})
}
