package bridgetest

import (
	"path"
	"slices"

	"github.com/workberth/workberth/fsbridge"
)

// globChecks prove the expansion of patterns.
func globChecks() []check {
	need := caps(fsbridge.CapGlob)
	return []check{
		{name: "table", needs: need, run: globTable},
		{name: "links", needs: need, run: globLinks},
		{name: "malformed", needs: need, run: globMalformed},
	}
}

func globTable(k *kit) {
	for _, f := range []string{
		"a.md", "b.md", "c.txt", ".hidden.md", "docs/x.md", "docs/y.txt", "docs/deep/z.md", "docs/deep/er/w.md", "src/main.go",
		"src/main_test.go", "odd/*star", "odd/q?", "odd/[b]", "odd/{c}", `odd/back\slash`, "odd/sp ace", "odd/co,mma", "num/1", "num/2", "num/10",
	} {
		k.file(f, "x")
	}
	k.dir("empty")
	for _, c := range []struct {
		pattern string
		want    []string
	}{
		{"a.md", []string{"a.md"}},
		{"absent", nil},
		{"absent/*", nil},
		{"a.md/*", nil},
		{"*.txt", []string{"c.txt"}},
		{"?.md", []string{"a.md", "b.md"}},
		{"[ab].md", []string{"a.md", "b.md"}},
		{"[a-b].md", []string{"a.md", "b.md"}},
		{"[^a].md", []string{"b.md"}},
		{"{a,b}.md", []string{"a.md", "b.md"}},
		{"{a.md,c.txt,absent}", []string{"a.md", "c.txt"}},
		{"docs/*", []string{"docs/deep", "docs/x.md", "docs/y.txt"}},
		{"docs/*.md", []string{"docs/x.md"}},
		{"*/*.md", []string{"docs/x.md"}},
		{"docs/**/*.md", []string{"docs/deep/er/w.md", "docs/deep/z.md", "docs/x.md"}},
		{"**/z.md", []string{"docs/deep/z.md"}},
		{"**/main.go", []string{"src/main.go"}},
		{"docs/**/w.md", []string{"docs/deep/er/w.md"}},
		{"docs/{x,deep/z}.md", []string{"docs/deep/z.md", "docs/x.md"}},
		{"src/*_test.go", []string{"src/main_test.go"}},
		{"empty/*", nil},
		{"empty", []string{"empty"}},
		{"num/?", []string{"num/1", "num/2"}},
		{"num/[0-9]*", []string{"num/1", "num/10", "num/2"}},
		{`odd/\*star`, []string{"odd/*star"}},
		{`odd/q\?`, []string{"odd/q?"}},
		{`odd/\[b\]`, []string{"odd/[b]"}},
		{`odd/\{c\}`, []string{"odd/{c}"}},
		{`odd/back\\slash`, []string{`odd/back\slash`}},
		{"odd/sp ace", []string{"odd/sp ace"}},
		{"odd/co,mma", []string{"odd/co,mma"}},
	} {
		got, err := fsbridge.Glob(k.ctx, k.b, c.pattern, fsbridge.GlobOptions{})
		k.ok("glob "+c.pattern, err)
		if !slices.Equal(got, c.want) {
			k.Errorf("glob %q: %q, want %q", c.pattern, got, c.want)
		}
		// Spelled absolutely, the matches are absolute.
		got, err = fsbridge.Glob(k.ctx, k.b, quotePattern(k.env.Workspace)+"/"+c.pattern, fsbridge.GlobOptions{})
		k.ok("glob absolute "+c.pattern, err)
		var want []string
		for _, w := range c.want {
			want = append(want, k.abs(w))
		}
		if !slices.Equal(got, want) {
			k.Errorf("glob %q below the absolute root: %q, want %q", c.pattern, got, want)
		}
	}
}

// globLinks matches links and does not descend into them.
func globLinks(k *kit) {
	k.file("d/f.md", "x")
	k.link("l.md", "d/f.md")
	k.link("dir", "d")
	k.link("d/loop", ".")
	k.link("gone.md", "absent")
	k.link("out.md", relative(k.env.Workspace, k.env.Out)+"/s")
	k.link("outdir", relative(k.env.Workspace, k.env.Out))
	for pattern, want := range map[string][]string{
		"*.md":    {"gone.md", "l.md", "out.md"},
		"**/*.md": {"d/f.md", "gone.md", "l.md", "out.md"},
		"out*":    {"out.md", "outdir"},
	} {
		got, err := fsbridge.Glob(k.ctx, k.b, pattern, fsbridge.GlobOptions{})
		k.ok("glob "+pattern, err)
		if !slices.Equal(got, want) {
			k.Errorf("glob %q: %q, want %q", pattern, got, want)
		}
	}
	for _, pattern := range []string{"outdir/*", "outdir/**", "outdir/s", "*/s", "**/s", "out*/**", "../*", "../*/s", "**/../../*"} {
		got, err := fsbridge.Glob(k.ctx, k.b, pattern, fsbridge.GlobOptions{})
		for _, g := range got {
			if k.leaks([]byte(g)) || path.Base(g) == "s" || path.Base(g) == k.outBase() {
				k.Errorf("glob %q matched %q, which lies outside", pattern, g)
			}
		}
		if err != nil {
			k.refused("glob "+pattern, err, fsbridge.ErrOutsideRoot, path.ErrBadPattern)
		}
	}
}

func globMalformed(k *kit) {
	k.file("a", "x")
	for _, pattern := range []string{"[", "[a", "[a-", "a[", "d/[", `a\`, "{a", "{a,b"} {
		got, err := fsbridge.Glob(k.ctx, k.b, pattern, fsbridge.GlobOptions{})
		k.refused("glob "+pattern, err, path.ErrBadPattern)
		if len(got) > 0 {
			k.Errorf("glob %q: %q and an error", pattern, got)
		}
	}
}
