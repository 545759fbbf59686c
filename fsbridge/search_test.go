package fsbridge

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// fakeTree is a set of files; a name that ends in a slash is a directory.
type fakeTree []string

func (f fakeTree) Find(p string, _ bool) (place string, dir bool, err error) {
	switch clean := path.Clean(p); {
	case strings.HasPrefix(clean, ".."):
		return "", false, ErrOutsideRoot
	case clean == "." || slices.Contains(f, clean+"/"):
		return clean, true, nil
	case slices.Contains(f, clean):
		return clean, false, nil
	case slices.Contains(f, path.Dir(clean)):
		return "", false, syscall.ENOTDIR
	}
	return "", false, fs.ErrNotExist
}

func (f fakeTree) List(place string) ([]DirEntry, error) {
	if path.Base(place) == "locked" {
		return nil, fs.ErrPermission
	}
	if path.Base(place) == "broken" {
		return nil, ErrUnavailable
	}
	var list []DirEntry
	for _, p := range f {
		if clean := path.Clean(p); path.Dir(clean) == place {
			e := DirEntry{Name: path.Base(clean), Info: FileInfo{Name: path.Base(clean), Type: TypeRegular}}
			if clean != p {
				e.Info.Type = TypeDir
			}
			list = append(list, e)
		}
	}
	return list, nil
}

func TestMatchPatterns(t *testing.T) {
	tree := fakeTree{"a.go", "b.go", "d/", "d/a.go", "d/e/", "d/e/b.go", "locked/", "locked/c.go"}
	for pattern, want := range map[string][]string{
		"*.go":          {"a.go", "b.go"},
		"**/*.go":       {"a.go", "b.go", "d/a.go", "d/e/b.go"},
		"d/**":          {"d", "d/a.go", "d/e", "d/e/b.go"},
		"*/":            {"d/", "locked/"},
		"d/**/":         {"d/", "d/e/"},
		"d/":            {"d/"},
		"a.go/":         nil,
		"a.go/*":        nil,
		"absent/*":      nil,
		"{a,b}.go":      {"a.go", "b.go"},
		"{a,}*.go":      {"a.go", "b.go"},
		"./d/./*":       {"./d/./a.go", "./d/./e"},
		"**/**/e/**":    {"d/e", "d/e/b.go"},
		"*/e/b.go":      {"d/e/b.go"},
		"locked/*":      nil,
		"{a.go,absent}": {"a.go"},
	} {
		list, err := ParsePattern(pattern)
		if err != nil {
			t.Fatalf("%q: %v", pattern, err)
		}
		got, err := MatchPatterns(list, 100, tree)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v, want %q", pattern, got, err, want)
		}
	}
	all, err := ParsePattern("**")
	if err != nil {
		t.Fatal(err)
	}
	var limit *LimitError
	if got, err := MatchPatterns(all, 3, tree); !errors.As(err, &limit) || len(got) > 0 {
		t.Errorf("more than 3: %q, %v", got, err)
	}
	if got, err := MatchPatterns(all, 100, append(tree, "broken/")); !errors.Is(err, ErrUnavailable) || len(got) > 0 {
		t.Errorf("a listing that fails: %q, %v", got, err)
	}
	out, err := ParsePattern("../*")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := MatchPatterns(out, 100, tree); !errors.Is(err, ErrOutsideRoot) {
		t.Errorf("outside: %v", err)
	}
}
