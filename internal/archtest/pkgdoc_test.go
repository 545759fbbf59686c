package archtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// undocumented returns a problem for every package without a package comment.
func undocumented(files []goFile) (problems []string) {
	comments := map[string]string{}
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
			comments[f.dir] += f.name + " "
		} else {
			problems = append(problems, fmt.Sprintf("%s: the package comment does not begin with %q", f.name, want))
		}
	}
	for dir := range names {
		switch at := strings.Fields(comments[dir]); {
		case len(at) == 0:
			problems = append(problems, fmt.Sprintf("%s: no file has a package comment; say what the room is for and what it must not know", dir))
		case len(at) > 1:
			problems = append(problems, fmt.Sprintf("%s: more than one package comment: %s", dir, comments[dir]))
		}
	}
	slices.Sort(problems)
	return problems
}

// TestPackagesAreDocumented wants exactly one package comment for each package. A comment that
// stands over the package clause of a second file by accident would be shown as part of it.
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
	})
	want := []string{"bare: no file", "odd/a.go: the package", "odd: no file", "twice: more than one"}
	if len(got) != len(want) {
		t.Fatalf("undocumented() = %q, want %q", got, want)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("problem %d = %q, want %q...", i, got[i], want[i])
		}
	}
}
