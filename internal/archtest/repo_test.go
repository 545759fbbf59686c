package archtest

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/workberth/workberth"

// repo is the source tree under test.
type repo struct {
	root  string
	files []string // slash-separated, relative to root, sorted
}

// goFile is one parsed Go file.
type goFile struct {
	name    string // relative to the root
	dir     string // of the package, relative to the root; "." for the root
	set     *token.FileSet
	file    *ast.File
	source  []byte
	imports []string
}

// isTest reports whether the file is compiled for tests only.
func (f goFile) isTest() bool { return strings.HasSuffix(f.name, "_test.go") }

// openRepo lists the files of the repository: those git knows or would add. In a tree without git
// it lists all, less what is made by the build.
func openRepo(t *testing.T) repo {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	r := repo{root: root}
	// The tree may belong to another user than the one who tests, as in many CI systems.
	list := exec.CommandContext(t.Context(), "git", "-c", "safe.directory=*",
		"ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Logf("no list of files from git (%v), walking the tree instead", err)
		r.files = walk(t, root)
	} else {
		for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
			// A file that was removed and not yet committed is still listed.
			if _, err := os.Lstat(filepath.Join(root, name)); err == nil {
				r.files = append(r.files, name)
			}
		}
	}
	slices.Sort(r.files)
	r.files = slices.Compact(r.files)
	if len(r.files) == 0 {
		t.Fatal("the repository has no files; this test is looking in the wrong place")
	}
	return r
}

// walk lists the files below root that are not made by the build.
func walk(t *testing.T, root string) []string {
	t.Helper()
	made := []string{".git", ".cache", "bin"}
	var files []string
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case slices.Contains(made, name):
			return fs.SkipDir
		case !d.IsDir() && !strings.HasPrefix(name, "internal/helperbin/embedded/berth-guest-"):
			files = append(files, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// read returns the content of one file.
func (r repo) read(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(r.root, name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// goFiles parses every Go file, whatever its build tags, except those below testdata.
func (r repo) goFiles(t *testing.T) []goFile {
	t.Helper()
	var files []goFile
	for _, name := range r.files {
		if !strings.HasSuffix(name, ".go") || strings.Contains("/"+name, "/testdata/") {
			continue
		}
		f, err := parse(name, r.read(t, name))
		if err != nil {
			t.Error(err)
			continue
		}
		files = append(files, f)
	}
	return files
}

// parse parses one Go file.
func parse(name string, source []byte) (goFile, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return goFile{}, err
	}
	f := goFile{name: name, dir: path.Dir(name), set: set, file: file, source: source}
	for _, spec := range file.Imports {
		f.imports = append(f.imports, strings.Trim(spec.Path.Value, "\"`"))
	}
	return f, nil
}

// mustParse parses source given in a test.
func mustParse(t *testing.T, name, source string) goFile {
	t.Helper()
	f, err := parse(name, []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// line returns the text of one line, counted from 1.
func (f goFile) line(n int) string {
	lines := bytes.Split(f.source, []byte("\n"))
	if n < 1 || n > len(lines) {
		return ""
	}
	return string(lines[n-1])
}

// isSuite reports whether the package is a suite: test code that others import.
func isSuite(dir string) bool {
	return strings.HasSuffix(dir, "test") || dir == "integration" || strings.HasPrefix(dir, "integration/")
}

// report fails with one line for each problem.
func report(t *testing.T, problems []string) {
	t.Helper()
	for _, p := range problems {
		t.Error(p)
	}
}

// isExecutable reports whether the owner may execute the file.
func (r repo) isExecutable(t *testing.T, name string) bool {
	t.Helper()
	info, err := os.Stat(filepath.Join(r.root, name))
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode()&0o100 != 0
}
