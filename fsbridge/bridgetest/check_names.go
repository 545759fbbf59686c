package bridgetest

import (
	"strings"

	"github.com/workberth/workberth/fsbridge"
)

// nameChecks prove that file names are bytes and nothing else. C019 C021 C023
func nameChecks() []check {
	return []check{
		{name: "write-read", rows: []string{"C019", "C021", "C023"}, run: namesWriteRead},
		{name: "list", rows: []string{"C019", "C023"}, needs: caps(fsbridge.CapReadDirectory), run: namesList},
		{name: "stream", rows: []string{"C019", "C023"}, needs: caps(fsbridge.CapStreamDirectory), run: namesStream},
		{name: "walk", rows: []string{"C019", "C023"}, needs: caps(fsbridge.CapWalk), run: namesWalk},
		{name: "glob", rows: []string{"C019", "C023"}, needs: caps(fsbridge.CapGlob), run: namesGlob},
		{name: "mkdir", rows: []string{"C021"}, needs: caps(fsbridge.CapMkdir), run: namesMkdir},
		{name: "rename", rows: []string{"C019", "C021"}, needs: caps(fsbridge.CapRename), run: namesRename},
		{name: "remove", rows: []string{"C021", "C023"}, needs: caps(fsbridge.CapRemove), run: namesRemove},
		{name: "json-form", rows: []string{"C019"}, needs: caps(fsbridge.CapReadDirectory), run: namesDisplay},
	}
}

// hostileNames are names that a shell, an option parser, a line splitter or an encoder trips over.
func hostileNames() []string {
	return []string{
		"good", "bad\xff\xfe", "bad\xff\xff", "\xfe", "\xff", "\xe9t\xe9", "\xc3", "\xf0\x9f\x98\x80", "e\u0301", "\u00e9", // C019
		"-n", "-rf", "--help", "-e", "--", "-", "-d", "-p", "--version", // C021
		"x\ny", "x", "y", "t\tab", " lead", "trail ", " ", "q\"q", "s's", `b\s`, `\`, "$(id)", "*", "?", "[a-z]", "{a,b}", // C023
		"`id`", "a;b", "a|b", "a&b", ">out", "!x", "~", "#c", "%s", "%2e%2e", "\r", "\x01", "\x7f", "\x1b[31m", "...", "..a", ".hidden", "a:b", "C:",
		"con", strings.Repeat("l", 255), strings.Repeat("\u00e9", 127), "\u202egpj.exe", "\\x41", "x\\ny",
	}
}

// plantNames makes a file of every name in the directory dir, with its name as content.
func plantNames(k *kit, dir string) []string {
	k.Helper()
	var made []string
	for _, n := range hostileNames() {
		p := n
		if dir != "." {
			p = dir + "/" + n
		}
		if k.try(p, Node{Type: fsbridge.TypeRegular, Data: []byte("content of " + n)}) {
			made = append(made, n)
		}
	}
	return made
}

// namesWriteRead writes and reads every name.
func namesWriteRead(k *kit) {
	for _, n := range hostileNames() {
		p := "d/" + n
		for _, content := range []string{"first", "content of " + n} {
			k.ok("write "+fsbridge.DisplayPath(p), k.b.WriteFile(k.ctx, p, []byte(content)))
		}
		got, err := k.b.ReadFile(k.ctx, p)
		k.ok("read "+fsbridge.DisplayPath(p), err)
		if string(got) != "content of "+n {
			k.Errorf("read %q = %q", p, got)
		}
		i, err := k.b.Stat(k.ctx, p)
		k.ok("stat "+fsbridge.DisplayPath(p), err)
		if i.Name != n || !i.IsRegular() {
			k.Errorf("stat %q: %+v", p, i)
		}
		// At the root of the workspace too, where the whole relative path is the name.
		k.ok("write "+fsbridge.DisplayPath(n), k.b.WriteFile(k.ctx, n, []byte(n)))
	}
	k.wantNames("d", hostileNames()...)
	k.wantNames(".", append(hostileNames(), "d")...)
	for _, n := range hostileNames() {
		k.wantContent("d/"+n, "content of "+n)
		k.wantContent(n, n)
	}
}

// same demands exactly the wanted names, each once.
func (k *kit) same(what string, got, want []string) {
	k.Helper()
	count := map[string]int{}
	for _, g := range got {
		count[g]++
	}
	for _, w := range want {
		if count[w] != 1 {
			k.Errorf("%s: %q occurs %d times", what, w, count[w])
		}
		delete(count, w)
	}
	for g, n := range count {
		k.Errorf("%s: %q occurs %d times and does not exist", what, g, n)
	}
}

func namesList(k *kit) {
	want := plantNames(k, "d")
	l, err := fsbridge.ReadDirectory(k.ctx, k.b, "d")
	k.ok("list", err)
	var got []string
	for _, e := range l {
		got = append(got, e.Name)
		data, err := k.b.ReadFile(k.ctx, "d/"+e.Name)
		k.ok("read a name the listing gave", err)
		if string(data) != "content of "+e.Name {
			k.Errorf("%q holds %q", e.Name, data)
		}
	}
	k.same("list", got, want)
}

func namesStream(k *kit) {
	want := plantNames(k, "d")
	var got []string
	for e, err := range fsbridge.StreamDirectory(k.ctx, k.b, "d") {
		k.ok("stream", err)
		got = append(got, e.Name)
	}
	k.same("stream", got, want)
}

func namesWalk(k *kit) {
	want := plantNames(k, "d")
	var got []string
	k.ok("walk", fsbridge.Walk(k.ctx, k.b, "d", fsbridge.WalkOptions{}, func(e fsbridge.WalkEntry) error {
		got = append(got, e.Path)
		return nil
	}))
	k.same("walk", got, want)
}

// quotePattern makes a pattern that matches exactly name.
func quotePattern(name string) string {
	var b strings.Builder
	for i := range len(name) {
		if strings.IndexByte(`\*?[]{},`, name[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(name[i])
	}
	return b.String()
}

func namesGlob(k *kit) {
	want := plantNames(k, "d")
	got, err := fsbridge.Glob(k.ctx, k.b, "d/*", fsbridge.GlobOptions{})
	k.ok("glob", err)
	var all []string
	for _, n := range want {
		all = append(all, "d/"+n)
	}
	k.same("glob d/*", got, all)
	for _, n := range want {
		got, err := fsbridge.Glob(k.ctx, k.b, "d/"+quotePattern(n), fsbridge.GlobOptions{})
		k.ok("glob "+fsbridge.DisplayPath(n), err)
		k.same("glob "+fsbridge.DisplayPath(n), got, []string{"d/" + n})
	}
}

func namesMkdir(k *kit) {
	for _, n := range hostileNames() {
		k.ok("mkdir "+fsbridge.DisplayPath(n), fsbridge.Mkdir(k.ctx, k.b, n, fsbridge.MkdirOptions{}))
		k.ok("write", k.b.WriteFile(k.ctx, n+"/f", []byte(n)))
	}
	k.wantNames(".", hostileNames()...)
	for _, n := range hostileNames() {
		k.wantContent(n+"/f", n)
	}
}

func namesRename(k *kit) {
	k.file("keep", "kept")
	for i, n := range plantNames(k, "d") {
		k.ok("rename from "+fsbridge.DisplayPath(n), fsbridge.Rename(k.ctx, k.b, "d/"+n, numbered("e/n", i), fsbridge.RenameOptions{Parents: true}))
		k.wantContent(numbered("e/n", i), "content of "+n)
		k.ok("rename to "+fsbridge.DisplayPath(n), fsbridge.Rename(k.ctx, k.b, numbered("e/n", i), "e/"+n, fsbridge.RenameOptions{}))
		k.wantContent("e/"+n, "content of "+n)
	}
	k.wantNames("d")
	k.wantContent("keep", "kept")
}

// namesRemove removes each name and checks after every step that nothing else went with it.
func namesRemove(k *kit) {
	k.file("keep", "kept")
	k.file("keepdir/f", "kept")
	left := plantNames(k, ".")
	for len(left) > 0 {
		n := left[0]
		left = left[1:]
		k.ok("remove "+fsbridge.DisplayPath(n), fsbridge.Remove(k.ctx, k.b, n, fsbridge.RemoveOptions{Recursive: len(left)%2 == 0}))
		k.wantNames(".", append([]string{"keep", "keepdir"}, left...)...)
	}
	k.wantContent("keepdir/f", "kept")
}

// namesDisplay turns every listed name into its printable form and back.
func namesDisplay(k *kit) {
	plantNames(k, "d")
	l, err := fsbridge.ReadDirectory(k.ctx, k.b, "d")
	k.ok("list", err)
	for _, e := range l {
		back, err := fsbridge.ParseDisplayPath(fsbridge.DisplayPath(e.Name))
		k.ok("parse", err)
		data, err := k.b.ReadFile(k.ctx, "d/"+back)
		k.ok("read", err)
		if string(data) != "content of "+e.Name {
			k.Errorf("%q holds %q", e.Name, data)
		}
	}
}
