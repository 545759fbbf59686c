//go:build linux

package local

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/workberth/workberth/fsbridge"
	"pgregory.net/rapid"
)

func TestGlobTable(t *testing.T) {
	eachWay(t, func(t *testing.T, d *dirs) {
		for _, p := range []string{"a.go", "b.go", ".hidden.go", "d/a.go", "d/e/b.go", "d/e/x.txt", "lit*eral", "sp ace", "new\nline", "bad\xff"} {
			d.put(d.in(p), "x")
		}
		d.put(d.at("s.go"), "secret")
		d.link("d", d.in("ld"))
		d.link("../out", d.in("lout"))
		d.link("absent", d.in("dang"))
		for pattern, want := range map[string][]string{
			"*.go":             {".hidden.go", "a.go", "b.go"},
			"?.go":             {"a.go", "b.go"},
			"[a]*.go":          {"a.go"},
			"[^a].go":          {"b.go"},
			"**/*.go":          {".hidden.go", "a.go", "b.go", "d/a.go", "d/e/b.go"},
			"d/**":             {"d", "d/a.go", "d/e", "d/e/b.go", "d/e/x.txt"},
			"d/**/":            {"d/", "d/e/"},
			"*/":               {"d/"},
			"./*.go":           {"./.hidden.go", "./a.go", "./b.go"},
			"d/../*.go":        {"d/../.hidden.go", "d/../a.go", "d/../b.go"},
			"d//e/*":           {"d/e/b.go", "d/e/x.txt"},
			"ld/*":             {"ld/a.go", "ld/e"},
			"l*":               {"ld", "lit*eral", "lout"},
			"l*/*":             nil,
			"**/s.go":          nil,
			"*/a.go":           {"d/a.go"},
			"*/e/b.go":         {"d/e/b.go"},
			"{a,b,c}.go":       {"a.go", "b.go"},
			"{d,}/**/b.go":     nil, // "/**/b.go" lies in no mount
			"d/{e,}/*.go":      {"d/a.go", "d/e/b.go"},
			`lit\*eral`:        {"lit*eral"},
			"dang":             {"dang"},
			"absent/*":         nil,
			"a.go/*":           nil,
			"absent":           nil,
			"new?line":         {"new\nline"},
			"bad*":             {"bad\xff"},
			d.ws + "/*.go":     {d.ws + "/.hidden.go", d.ws + "/a.go", d.ws + "/b.go"},
			d.ws + "/d/a.go":   {d.ws + "/d/a.go"},
			"**/**/**/b.go":    {"b.go", "d/e/b.go"},
			"**/e/**":          {"d/e", "d/e/b.go", "d/e/x.txt"},
			"**/{b,x}.{go,md}": {"b.go", "d/e/b.go"},
		} {
			got, err := d.b.Glob(t.Context(), pattern, fsbridge.GlobOptions{})
			if pattern == "{d,}/**/b.go" {
				if !errors.Is(err, fsbridge.ErrOutsideRoot) {
					t.Errorf("%q: %v", pattern, err)
				}
				continue
			}
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%q: %q, %v, want %q", pattern, got, err, want)
			}
		}
		for _, pattern := range []string{"../*", "lout/*", "lout/s.go", d.out + "/*", "/*", "../out/s.go", "d/../../*"} {
			if got, err := d.b.Glob(t.Context(), pattern, fsbridge.GlobOptions{}); !errors.Is(err, fsbridge.ErrOutsideRoot) {
				t.Errorf("%q: %q, %v", pattern, got, err)
			}
		}
		if _, err := d.b.Glob(t.Context(), "**", fsbridge.GlobOptions{MaxMatches: 3}); !errors.Is(err, fsbridge.ErrTooLarge) {
			t.Errorf("more than 3 matches: %v", err)
		}
	})
}

// Over random trees and patterns, the same paths are found as by doublestar.
func TestGlobLikeDoublestar(t *testing.T) {
	d := newDirs(t, ways()["kernel"])
	for _, p := range []string{"a", "b", "ab/a", "ab/b/a", "ab/ab/ab/b", "ba/a", "ba/ba/x", "x/y/z/a", "x/y/b", ".a/b", "a.b"} {
		d.put(d.in(p), "x")
	}
	elems := []string{"*", "**", "a", "b", "ab", "?", "a*", "*b", "[ab]", "[^a]*", "{a,b}", "{ab,x/y}", "x", "y", ".a", "*.*", "{a*,**/b}"}
	rapid.Check(t, func(t *rapid.T) {
		pattern := strings.Join(rapid.SliceOfN(rapid.SampledFrom(elems), 1, 4).Draw(t, "pattern"), "/")
		got, err := d.b.Glob(d.t.Context(), pattern, fsbridge.GlobOptions{})
		if err != nil {
			t.Fatalf("%q: %v", pattern, err)
		}
		want, err := doublestar.Glob(os.DirFS(d.ws), pattern)
		if err != nil {
			t.Fatalf("%q: %v", pattern, err)
		}
		want = slices.DeleteFunc(want, func(p string) bool { return p == "." })
		slices.Sort(want)
		want = slices.Compact(want)
		if !slices.Equal(got, want) {
			t.Fatalf("%q: %q, want %q", pattern, got, want)
		}
	})
}

// FuzzPattern feeds arbitrary patterns: no crash, nothing from outside, and what is not malformed for
// the parser is not for the search.
func FuzzPattern(f *testing.F) {
	for _, p := range []string{"*", "**/*.go", "{a,b}/*", "[a-z]*", `\*`, "../*", "lout/**", "{..,.}/*", "*/{a,..}/*", "**/**", "[]]", "{{,},}", "//", "/", "l*/s"} {
		f.Add(p)
	}
	base, err := filepath.EvalSymlinks(f.TempDir())
	must(f, err)
	must(f, os.MkdirAll(base+"/ws/a/b", 0o755))
	must(f, os.MkdirAll(base+"/out/deep", 0o755))
	must(f, os.WriteFile(base+"/out/secret", nil, 0o644))
	must(f, os.Symlink("../out", base+"/ws/lout"))
	b, err := New(Options{Mounts: fsbridge.MountTable{{Path: base + "/ws", Kind: fsbridge.MountWorkspace}}})
	must(f, err)
	f.Cleanup(func() { must(f, b.Close()) })
	f.Fuzz(func(t *testing.T, pattern string) {
		list, err := b.Glob(t.Context(), pattern, fsbridge.GlobOptions{})
		if err != nil {
			return
		}
		for _, p := range list {
			if strings.Contains(p, "secret") || strings.Contains(p, "deep") {
				t.Fatalf("%q gave %q", pattern, list)
			}
			if _, err := b.Lstat(t.Context(), p); err != nil {
				t.Fatalf("%q gave %q, which is not there: %v", pattern, p, err)
			}
		}
	})
}
