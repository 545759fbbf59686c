package bridgetest

import (
	"errors"
	"io/fs"

	"github.com/workberth/workberth/fsbridge"
)

// linkChecks prove that links inside the mounts work. C007 C015 C031
func linkChecks() []check {
	return []check{
		{name: "read-through", rows: []string{"C007"}, run: linksRead},
		{name: "write-through", rows: []string{"C007", "C031"}, run: linksWrite},
		{name: "write-through-every-way", rows: []string{"C007", "C031"}, run: linksWriteOps},
		{name: "write-dangling", rows: []string{"C031"}, run: linksDangling},
		{name: "lstat-plain", needs: caps(fsbridge.CapLstat), run: linksLstatPlain},
		{name: "lstat", needs: caps(fsbridge.CapLstat), run: linksLstat},
		{name: "readlink", needs: caps(fsbridge.CapReadLink), run: linksReadLink},
		{name: "symlink", needs: caps(fsbridge.CapSymlink), run: linksSymlink},
		{name: "symlink-replace", needs: caps(fsbridge.CapSymlink), run: linksReplace},
		{name: "hard-links", rows: []string{"C015"}, needs: caps(fsbridge.CapReadDirectory), run: linksHard},
	}
}

// plantLinks makes links that stay inside; each leads to real/conf or to the directory real.
func plantLinks(k *kit) (files, dirs []string) {
	k.Helper()
	k.file("real/conf", "old")
	k.dir("sub/deep")
	for name, target := range map[string]string{
		"rel": "real/conf", "abs": k.abs("real/conf"), "chain": "rel", "chainabs": "abs",
		"sub/up": "../real/conf", "sub/deep/up": "../../real/conf", "sub/deep/abs": k.abs("sub/up"),
		"dotted": "./sub/.././real/conf", "rdir": "real", "adir": k.abs("real"), "sub/rdir": "../rdir", "self": ".",
		"sub/root": k.env.Workspace, "slashdir": "real/",
	} {
		k.link(name, target)
	}
	files = []string{
		"rel", "abs", "chain", "chainabs", "sub/up", "sub/deep/up", "sub/deep/abs", "dotted",
		"rdir/conf", "adir/conf", "sub/rdir/conf", "self/self/rel", "self/real/conf", "sub/root/rel", "slashdir/conf",
	}
	return files, []string{"rdir", "adir", "sub/rdir", "self/rdir", "sub/root/real", "slashdir"}
}

// linksRead reads through every link with every operation. C007
func linksRead(k *kit) {
	files, dirs := plantLinks(k)
	k.eachOperation(readOperations(), func(k *kit, op operation) {
		var want []byte
		list := files
		switch op.name {
		case "stat":
			for _, p := range files {
				i, err := k.b.Stat(k.ctx, p)
				k.ok("stat "+p, err)
				if !i.IsRegular() || i.Size != 3 {
					k.Errorf("stat %q describes the link, or another file: %+v", p, i)
				}
			}
			for _, p := range dirs {
				i, err := k.b.Stat(k.ctx, p)
				k.ok("stat "+p, err)
				if !i.IsDir() {
					k.Errorf("stat %q: %+v", p, i)
				}
			}
			return
		case "hash":
			want = []byte(digest([]byte("old")))
		case "list", "list-stream", "walk":
			list, want = dirs, []byte("conf\n")
		case "read", "read-with-source", "read-range", "open-reader":
			want = []byte("old")
		default:
			return
		}
		for _, p := range list {
			got, err := k.do(op, p)
			k.ok(op.name+" "+p, err)
			if string(got) != string(want) {
				k.Errorf("%s %q gives %s, want %s", op.name, p, brief(got), brief(want))
			}
		}
	})
}

// linksWrite writes through every link: the target changes, the link stays a link. C007 C031
func linksWrite(k *kit) {
	files, _ := plantLinks(k)
	for i, p := range files {
		before := k.look(p)
		content := string(rune('a' + i))
		k.ok("write "+p, k.b.WriteFile(k.ctx, p, []byte(content)))
		k.wantContent("real/conf", content)
		if after := k.look(p); after.Type != before.Type || after.Target != before.Target {
			k.Errorf("write %q: was %s %q, is now %s %q", p, before.Type, before.Target, after.Type, after.Target)
		}
	}
	k.wantNames("real", "conf")
}

// linksWriteOps does the same with every other operation that changes content.
func linksWriteOps(k *kit) {
	k.file("real/conf", "old")
	k.link("conf", "real/conf")
	stays := func(what string) {
		k.Helper()
		if n := k.look("conf"); n.Type != fsbridge.TypeSymlink || n.Target != "real/conf" {
			k.Errorf("%s: the link became a %s", what, n.Type)
		}
	}
	if k.has(fsbridge.CapWriteStream) {
		res, err := fsbridge.WriteStream(k.ctx, k.b, "conf", stringReader("stream"), fsbridge.WriteOptions{})
		k.ok("write-stream", err)
		if res.Created {
			k.Error("write-stream: says it created the file")
		}
		k.wantContent("real/conf", "stream")
		stays("write-stream")
	}
	if k.has(fsbridge.CapAppendFile) {
		before := string(k.content("real/conf"))
		k.ok("append", fsbridge.AppendFile(k.ctx, k.b, "conf", []byte("+more")))
		k.wantContent("real/conf", before+"+more")
		stays("append")
	}
	if k.has(fsbridge.CapCreateFileExclusive) {
		before := string(k.content("real/conf"))
		k.refused("create", fsbridge.CreateFileExclusive(k.ctx, k.b, "conf", []byte("x")), fs.ErrExist)
		k.wantContent("real/conf", before)
		stays("create")
	}
	if k.has(fsbridge.CapChmod) {
		k.ok("chmod", fsbridge.Chmod(k.ctx, k.b, "conf", 0o600))
		if n := k.look("real/conf"); n.Mode != 0o600 {
			k.Errorf("chmod through a link: mode %o", n.Mode)
		}
		stays("chmod")
	}
}

// linksDangling writes through a link to a file that does not exist yet: either it is created
// and the link stays, or nothing changes at all.
func linksDangling(k *kit) {
	k.dir("sub")
	k.link("l", "sub/new")
	if err := k.b.WriteFile(k.ctx, "l", []byte("x")); err == nil {
		k.wantContent("sub/new", "x")
	} else {
		k.refused("write", err)
		k.wantNames("sub")
	}
	if n := k.look("l"); n.Type != fsbridge.TypeSymlink || n.Target != "sub/new" {
		k.Errorf("the link became a %s", n.Type)
	}
	if k.has(fsbridge.CapCreateFileExclusive) {
		k.link("l2", "sub/new2")
		k.refused("create", fsbridge.CreateFileExclusive(k.ctx, k.b, "l2", []byte("x")), fs.ErrExist)
		k.wantMissing("sub/new2")
	}
	_, err := k.b.ReadFile(k.ctx, "l3")
	k.refused("read", err, fs.ErrNotExist)
	k.link("l3", "absent")
	_, err = k.b.ReadFile(k.ctx, "l3")
	k.refused("read a dangling link", err, fs.ErrNotExist)
}

// linksLstatPlain describes files that are no links.
func linksLstatPlain(k *kit) {
	k.make("d/f", Node{Type: fsbridge.TypeRegular, Mode: 0o640, Data: []byte("12345")})
	for _, p := range []string{"d/f", "d", k.abs("d/f"), "./d/../d/f"} {
		want, err := k.b.Stat(k.ctx, p)
		k.ok("stat "+p, err)
		got, err := fsbridge.Lstat(k.ctx, k.b, p)
		k.ok("lstat "+p, err)
		if got != want {
			k.Errorf("lstat %q: %+v, stat says %+v", p, got, want)
		}
	}
	_, err := fsbridge.Lstat(k.ctx, k.b, "absent")
	k.refused("lstat absent", err, fs.ErrNotExist)
}

func linksLstat(k *kit) {
	k.file("f", "12345")
	k.link("l", "f")
	k.link("gone", "absent")
	k.link("out", relative(k.env.Workspace, k.env.Out)+"/s")
	k.link("d/l", "../f")
	for _, p := range []string{"l", "gone", "out", "d/l", k.abs("l")} {
		i, err := fsbridge.Lstat(k.ctx, k.b, p)
		k.ok("lstat "+p, err)
		if i.Type != fsbridge.TypeSymlink {
			k.Errorf("lstat %q: type %q", p, i.Type)
		}
	}
	i, err := fsbridge.Lstat(k.ctx, k.b, "f")
	k.ok("lstat f", err)
	if !i.IsRegular() || i.Size != 5 || i.Name != "f" {
		k.Errorf("lstat f: %+v", i)
	}
	_, err = fsbridge.Lstat(k.ctx, k.b, "absent")
	k.refused("lstat absent", err, fs.ErrNotExist)
}

func linksReadLink(k *kit) {
	k.file("f", "x")
	k.dir("d")
	for name, target := range map[string]string{
		"a": "f", "b": k.abs("f"), "c": "../elsewhere/../x", "e": " odd\nname ", "g": "\xff\xfe", "d/h": "../f",
	} {
		k.link(name, target)
		got, err := fsbridge.ReadLink(k.ctx, k.b, name)
		k.ok("readlink "+name, err)
		if got != target {
			k.Errorf("readlink %q = %q, want %q", name, got, target)
		}
	}
	_, err := fsbridge.ReadLink(k.ctx, k.b, "f")
	k.refused("readlink of a file", err)
	_, err = fsbridge.ReadLink(k.ctx, k.b, "d")
	k.refused("readlink of a directory", err)
	_, err = fsbridge.ReadLink(k.ctx, k.b, "absent")
	k.refused("readlink of nothing", err, fs.ErrNotExist)
}

func linksSymlink(k *kit) {
	k.file("f", "content")
	k.dir("d")
	for _, c := range []struct{ at, target string }{
		{"a", "f"}, {"b", k.abs("f")}, {"d/c", "../f"}, {"dang", "absent/file"}, {"d/dot", "."}, {"d/up", ".."},
		{"odd", "d/../f"}, {"nl", "a\nb"}, {"-dash", "-f"},
	} {
		k.ok("symlink "+c.at, fsbridge.Symlink(k.ctx, k.b, c.target, c.at, fsbridge.SymlinkOptions{}))
		if n := k.look(c.at); n.Type != fsbridge.TypeSymlink || n.Target != c.target {
			k.Errorf("symlink %q: %s -> %q, want %q", c.at, n.Type, n.Target, c.target)
		}
	}
	for _, p := range []string{"f", "d", "a"} {
		k.refused("symlink "+p, fsbridge.Symlink(k.ctx, k.b, "f", p, fsbridge.SymlinkOptions{}), fs.ErrExist)
	}
	k.wantContent("f", "content")
	k.refused("empty target", fsbridge.Symlink(k.ctx, k.b, "", "e", fsbridge.SymlinkOptions{}))
	k.refused("NUL in target", fsbridge.Symlink(k.ctx, k.b, "a\x00b", "e", fsbridge.SymlinkOptions{}))
	k.wantMissing("e")
}

func linksReplace(k *kit) {
	k.file("f", "content")
	k.file("g", "other")
	k.file("d/x", "kept")
	k.link("l", "f")
	o := fsbridge.SymlinkOptions{Replace: true}
	k.ok("replace a link", fsbridge.Symlink(k.ctx, k.b, "g", "l", o))
	k.ok("replace a file", fsbridge.Symlink(k.ctx, k.b, "g", "f", o))
	k.ok("replace nothing", fsbridge.Symlink(k.ctx, k.b, "g", "new", o))
	for _, p := range []string{"l", "f", "new"} {
		if n := k.look(p); n.Type != fsbridge.TypeSymlink || n.Target != "g" {
			k.Errorf("%q: %s -> %q", p, n.Type, n.Target)
		}
	}
	err := fsbridge.Symlink(k.ctx, k.b, "g", "d", o)
	k.refused("replace a directory", err)
	if errors.Is(err, fs.ErrNotExist) {
		k.Errorf("replace a directory: %v", err)
	}
	k.wantContent("d/x", "kept")
	k.wantContent("g", "other")
}

// linksHard reads a store of hard-linked files. C015
func linksHard(k *kit) {
	k.file("store/pkg", "package")
	const n = 1000
	for i := range n {
		k.make(numbered("node_modules/f", i), Node{HardLink: k.abs("store/pkg")})
	}
	l, err := fsbridge.ReadDirectory(k.ctx, k.b, "node_modules")
	k.ok("list", err)
	if len(l) != n {
		k.Errorf("%d entries, want %d", len(l), n)
	}
	for _, e := range l {
		if !e.Info.IsRegular() {
			k.Fatalf("%q: type %q", e.Name, e.Info.Type)
		}
	}
	for i := 0; i < n; i += 97 {
		got, err := k.b.ReadFile(k.ctx, numbered("node_modules/f", i))
		k.ok("read", err)
		if string(got) != "package" {
			k.Errorf("read %q", got)
		}
	}
}
