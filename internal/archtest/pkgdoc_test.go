package archtest

import (
	"fmt"
	"go/build/constraint"
	"slices"
	"strings"
	"testing"
)

// undocumented returns a problem for every package without a package comment.
func undocumented(files []goFile) (problems []string) {
	comments := map[string][]string{}
	constrained := map[string]bool{} // packages whose comments all stand in files with a build constraint
	names := map[string]string{}
	for _, f := range files {
		if f.isTest() {
			continue
		}
		name := f.file.Name.Name
		names[f.dir] = name
		if f.file.Doc == nil {
			continue
		}
		want := "Package " + name + " "
		if name == "main" {
			want = "Command "
		}
		if text := f.file.Doc.Text(); strings.HasPrefix(text, want) {
			constrained[f.dir] = isConstrained(f) && (constrained[f.dir] || comments[f.dir] == nil)
			comments[f.dir] = append(comments[f.dir], f.name)
		} else {
			problems = append(problems, fmt.Sprintf("%s: the package comment does not begin with %q", f.name, want))
		}
	}
	for dir := range names {
		switch at := comments[dir]; {
		case len(at) == 0:
			problems = append(problems, fmt.Sprintf("%s: no file has a package comment; say what the room is for and what it must not know", dir))
		case len(at) > 1 && !constrained[dir]:
			problems = append(problems, fmt.Sprintf("%s: more than one package comment: %s", dir, strings.Join(at, " ")))
		}
	}
	slices.Sort(problems)
	return problems
}

// isConstrained reports whether the file has a build constraint.
func isConstrained(f goFile) bool {
	for _, group := range f.file.Comments {
		for _, c := range group.List {
			if c.Pos() < f.file.Package && constraint.IsGoBuild(c.Text) {
				return true
			}
		}
	}
	return false
}

// TestPackagesAreDocumented wants exactly one package comment for each package, or one for each of
// the builds it is divided into. A comment that stands over the package clause of a second file by
// accident would be shown as part of it.
func TestPackagesAreDocumented(t *testing.T) {
	report(t, undocumented(openRepo(t).goFiles(t)))
}

func TestUndocumented(t *testing.T) {
	got := undocumented([]goFile{
		mustParse(t, "good/a.go", "// Package good is good.\npackage good\n"),
		mustParse(t, "good/b.go", "//go:build x\n\npackage good\n"),
		mustParse(t, "bare/a.go", "package bare\n"),
		mustParse(t, "bare/a_test.go", "// Package bare is tested.\npackage bare\n"),
		mustParse(t, "cmd/x/main.go", "// Command x does it.\npackage main\n"),
		mustParse(t, "odd/a.go", "// This one is odd.\npackage odd\n"),
		mustParse(t, "twice/a.go", "// Package twice is one.\npackage twice\n"),
		mustParse(t, "twice/b.go", "// Package twice is two.\npackage twice\n"),
		mustParse(t, "built/a.go", "//go:build linux\n\n// Package built is one.\npackage built\n"),
		mustParse(t, "built/b.go", "//go:build !linux\n\n// Package built is another.\npackage built\n"),
		mustParse(t, "half/a.go", "//go:build linux\n\n// Package half is one.\npackage half\n"),
		mustParse(t, "half/b.go", "// Package half is another.\npackage half\n"),
		mustParse(t, "flah/a.go", "// Package flah is another.\npackage flah\n"),
		mustParse(t, "flah/b.go", "//go:build linux\n\n// Package flah is one.\npackage flah\n"),
	})
	want := []string{"bare: no file", "flah: more than one", "half: more than one", "odd/a.go: the package", "odd: no file", "twice: more than one"}
	if len(got) != len(want) {
		t.Fatalf("undocumented() = %q, want %q", got, want)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("problem %d = %q, want %q...", i, got[i], want[i])
		}
	}
}
