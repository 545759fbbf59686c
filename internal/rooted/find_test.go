//go:build linux

package rooted

import (
	"errors"
	"path"
	"strings"
	"testing"

	"github.com/workberth/workberth/fsbridge"
	"pgregory.net/rapid"
)

// C009
func TestBelow(t *testing.T) {
	for _, c := range []struct {
		root, p, rest string
		ok            bool
	}{
		{"/r", "/r", "", true},
		{"/r", "/r/", "/", true},
		{"/r", "/r/x", "/x", true},
		{"/r", "//r//./x", "//./x", true},
		{"/r", "/r/../x", "/../x", true},
		{"/r", "/r2", "", false},
		{"/r", "/r2/x", "", false},
		{"/r", "/", "", false},
		{"/r", "/../r", "", false},
		{"/r/s", "/r", "", false},
		{"/r/s", "/r/./s/", "/", true},
		{"/", "/", "/", true},
		{"/", "/x", "/x", true},
		{"/r", "r", "", false},
		{"/r", "", "", false},
	} {
		rest, ok := Below(c.root, c.p)
		if ok != c.ok || ok && rest != c.rest {
			t.Errorf("Below(%q, %q) = %q, %v, want %q, %v", c.root, c.p, rest, ok, c.rest, c.ok)
		}
	}
}

func TestLast(t *testing.T) {
	for p, want := range map[string]struct {
		dir, elem string
		must      bool
	}{
		"a":        {"", "a", false},
		"a/":       {"", "a", true},
		"a/b":      {"a/", "b", false},
		"a/b//":    {"a/", "b", true},
		"a/b/.":    {"a/", "b", true},
		"a/b/./":   {"a/", "b", true},
		".":        {"", "", true},
		"./":       {"", "", true},
		"./.":      {"", "", true},
		"..":       {"", "..", false},
		"a/..":     {"a/", "..", false},
		"./a":      {"./", "a", false},
		"a/.b":     {"a/", ".b", false},
		"a//b":     {"a//", "b", false},
		"a/./b/.c": {"a/./b/", ".c", false},
	} {
		dir, elem, mustDir := last(p)
		if dir != want.dir || elem != want.elem || mustDir != want.must {
			t.Errorf("last(%q) = %q, %q, %v, want %+v", p, dir, elem, mustDir, want)
		}
	}
}

// The look-up agrees with the mount table's own, whatever the path.
func TestFindAgreesWithMountTable(t *testing.T) {
	dir := tempDir(t)
	plant(t, dir, map[string]string{"a/b/c/": "", "ab/": "", "a/bb/": ""})
	table := fsbridge.MountTable{
		workspace(dir + "/a"),
		{Path: dir + "/a/b", Kind: fsbridge.MountBind},
		{Path: dir + "/ab", Kind: fsbridge.MountBind},
	}
	tree := open(t, Options{}, table...)
	elems := []string{"a", "b", "ab", "bb", "c", ".", "..", "", "x"}
	rapid.Check(t, func(t *rapid.T) {
		p := dir + "/" + strings.Join(rapid.SliceOfN(rapid.SampledFrom(elems), 0, 6).Draw(t, "path"), "/")
		m, rest, ok := table.Find(p)
		root, got, found := tree.find(p)
		if ok != found {
			t.Fatalf("find(%q) = %v, the table says %v", p, found, ok)
		}
		if !ok {
			return
		}
		if root.Mount.Path != m.Path || squeezed(got) != rest {
			t.Fatalf("find(%q) = %q in %s, the table says %q in %s", p, got, root.Mount.Path, rest, m.Path)
		}
	})
}

// squeezed is a relative path without empty and "." elements.
func squeezed(p string) string {
	var list []string
	for rest := p; ; {
		var e string
		if e, rest = next(rest); e == "" {
			break
		}
		list = append(list, e)
	}
	if len(list) == 0 {
		return "."
	}
	return strings.Join(list, "/")
}

func TestRootSpellings(t *testing.T) {
	dir := tempDir(t)
	for _, spelled := range []string{dir, dir + "/", dir + "/.", "/" + dir, dir + "//./"} {
		tree := open(t, Options{}, workspace(spelled))
		if got := tree.Roots()[0].Mount.Path; got != path.Clean(dir) {
			t.Errorf("%q became %q", spelled, got)
		}
	}
	for _, bad := range []string{"", "rel", dir + "/../x", dir + "\x00"} {
		if tree, err := Open(fsbridge.MountTable{workspace(bad)}, Options{}); err == nil {
			tree.Close()
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestOpenRefusesTables(t *testing.T) {
	dir := tempDir(t)
	plant(t, dir, map[string]string{"ws/": "", "file": "x"})
	before := openFDs(t)
	for name, c := range map[string]struct {
		table fsbridge.MountTable
		want  error
	}{
		"empty":    {nil, fsbridge.ErrInvalid},
		"missing":  {fsbridge.MountTable{workspace(dir + "/absent")}, errNotExist},
		"file":     {fsbridge.MountTable{workspace(dir + "/file")}, errNotDir},
		"twice":    {fsbridge.MountTable{workspace(dir + "/ws"), {Path: dir + "/ws/", Kind: fsbridge.MountBind}}, fsbridge.ErrInvalid},
		"two ws":   {fsbridge.MountTable{workspace(dir + "/ws"), workspace(dir)}, fsbridge.ErrInvalid},
		"relative": {fsbridge.MountTable{workspace("ws")}, fsbridge.ErrInvalid},
	} {
		tree, err := Open(c.table, Options{})
		if err == nil {
			tree.Close()
		}
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if after := openFDs(t); after != before {
		t.Errorf("%d descriptors leaked", after-before)
	}
}
