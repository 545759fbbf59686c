package bridgetest

import (
	"errors"
	"io/fs"
	"path"
	"syscall"
	"time"

	"github.com/workberth/workberth/fsbridge"
)

// coreChecks prove the truth of the three core operations. FSB-01
func coreChecks() []check {
	return []check{
		{name: "stat-file", rows: []string{"FSB-01"}, run: coreStatFile},
		{name: "stat-dir", rows: []string{"FSB-01"}, run: coreStatDir},
		{name: "stat-hardlink", rows: []string{"FSB-01", "C015"}, run: coreStatHardLink},
		{name: "read", rows: []string{"FSB-01"}, run: coreRead},
		{name: "write", rows: []string{"FSB-01"}, run: coreWrite},
		{name: "write-makes-parents", run: coreParents},
		{name: "missing", rows: []string{"FSB-01"}, run: coreMissing},
		{name: "wrong-type", run: coreWrongType},
		{name: "parent-is-file", run: coreParentIsFile},
		{name: "result-is-own-copy", run: coreOwnCopy},
	}
}

// coreStatFile compares every field that the oracle knows.
func coreStatFile(k *kit) {
	mtime := time.Date(2021, 3, 4, 5, 6, 7, 0, time.UTC)
	k.make("d/f", Node{Type: fsbridge.TypeRegular, Mode: 0o640, Data: []byte("hello"), ModTime: mtime})
	for _, p := range []string{"d/f", k.abs("d/f"), "./d//f"} {
		i, err := k.b.Stat(k.ctx, p)
		k.ok("stat", err)
		if i.Name != "f" || i.Type != fsbridge.TypeRegular || i.Mode != 0o640 || i.Size != 5 {
			k.Errorf("stat %q: %+v", p, i)
		}
		if !i.ModTime.Equal(mtime) {
			k.Errorf("stat %q: modified %v, want %v", p, i.ModTime, mtime)
		}
		if !i.IsRegular() || i.IsDir() {
			k.Errorf("stat %q: wrong type %q", p, i.Type)
		}
		if n := k.look("d/f"); n.Inode != 0 && i.Inode != 0 && n.Inode != i.Inode {
			k.Errorf("stat %q: inode %d, want %d", p, i.Inode, n.Inode)
		}
	}
}

func coreStatDir(k *kit) {
	k.make("d", Node{Type: fsbridge.TypeDir, Mode: 0o750})
	k.file("d/x", "x")
	for _, p := range []string{"d", "d/", k.abs("d"), "./d", "d/."} {
		i, err := k.b.Stat(k.ctx, p)
		k.ok("stat "+p, err)
		if i.Type != fsbridge.TypeDir || i.Mode != 0o750 || !i.IsDir() || i.IsRegular() {
			k.Errorf("stat %q: %+v", p, i)
		}
	}
}

// coreStatHardLink reads a file with two names: it is an ordinary file. C015
func coreStatHardLink(k *kit) {
	k.file("shared.md", "shared")
	k.make("AGENTS.md", Node{HardLink: k.abs("shared.md")})
	i, err := k.b.Stat(k.ctx, "AGENTS.md")
	k.ok("stat", err)
	if !i.IsRegular() || i.Size != 6 {
		k.Errorf("stat: %+v", i)
	}
	if i.Nlink != 0 && i.Nlink != 2 {
		k.Errorf("stat: %d links, want 2", i.Nlink)
	}
	data, err := k.b.ReadFile(k.ctx, "AGENTS.md")
	k.ok("read", err)
	if string(data) != "shared" {
		k.Errorf("read %q", data)
	}
	// An atomic write gives this name a new file; the other keeps the old bytes whole.
	k.ok("write", k.b.WriteFile(k.ctx, "AGENTS.md", []byte("new")))
	k.wantContent("AGENTS.md", "new")
	k.wantContent("shared.md", "shared")
}

func coreRead(k *kit) {
	k.file("a/b/c.txt", "some text\n")
	for _, p := range []string{"a/b/c.txt", k.abs("a/b/c.txt"), "./a/./b//c.txt", "a/../a/b/c.txt", "a/b/../b/c.txt"} {
		data, err := k.b.ReadFile(k.ctx, p)
		k.ok("read "+p, err)
		if string(data) != "some text\n" {
			k.Errorf("read %q = %q", p, data)
		}
	}
	k.file("a/b/c.txt", "changed by someone else")
	data, err := k.b.ReadFile(k.ctx, "a/b/c.txt")
	k.ok("read", err)
	if string(data) != "changed by someone else" {
		k.Errorf("a change made in the environment is not seen: %q", data)
	}
}

func coreWrite(k *kit) {
	k.file("other", "untouched")
	for _, c := range []struct{ p, content string }{
		{"f", "first"}, {"f", "second, longer than the first"}, {"f", "3"}, {"f", ""}, {k.abs("f"), "absolute"},
		{"./f", "dotted"}, {"other/../f", "never"},
	} {
		err := k.b.WriteFile(k.ctx, c.p, []byte(c.content))
		if c.p == "other/../f" { // "other" is a file: the kernel's answer, or a lexical one
			continue
		}
		k.ok("write "+c.p, err)
		k.wantContent("f", c.content)
	}
	k.wantContent("other", "untouched")
	k.wantNames(".", "f", "other")
}

func coreParents(k *kit) {
	k.ok("write", k.b.WriteFile(k.ctx, "a/b/c/f", []byte("x")))
	k.wantContent("a/b/c/f", "x")
	for _, d := range []string{"a", "a/b", "a/b/c"} {
		if n := k.look(d); n.Type != fsbridge.TypeDir || n.Mode != 0o755 {
			k.Errorf("parent %q: %s, mode %o, want a directory of mode 755", d, n.Type, n.Mode)
		}
	}
	k.ok("write", k.b.WriteFile(k.ctx, k.abs("a/n/f"), []byte("y")))
	k.wantContent("a/n/f", "y")
	k.wantNames("a", "b", "n")
}

func coreMissing(k *kit) {
	k.dir("d")
	for _, p := range []string{"absent", "d/absent", "no/such/dir", k.abs("absent")} {
		_, err := k.b.Stat(k.ctx, p)
		k.refused("stat "+p, err, fs.ErrNotExist)
		k.namesAsked("stat "+p, err, p)
		data, err := k.b.ReadFile(k.ctx, p)
		k.refused("read "+p, err, fs.ErrNotExist)
		k.namesAsked("read "+p, err, p)
		if len(data) > 0 {
			k.Errorf("read %q: data and an error", p)
		}
		if errors.Is(err, fsbridge.ErrOutsideRoot) {
			k.Errorf("read %q: a missing file is not outside: %v", p, err)
		}
	}
	k.wantNames(".", "d")
}

// coreWrongType reads and writes a directory as a file.
func coreWrongType(k *kit) {
	k.file("d/x", "kept")
	for _, p := range []string{"d", ".", k.env.Workspace} {
		_, err := k.b.ReadFile(k.ctx, p)
		k.refused("read "+p, err, fsbridge.ErrNotRegular)
		k.refused("write "+p, k.b.WriteFile(k.ctx, p, []byte("x")), fsbridge.ErrNotRegular, syscall.EISDIR, fs.ErrExist)
	}
	k.wantContent("d/x", "kept")
	k.wantNames(".", "d")
}

// coreParentIsFile uses a file as a directory.
func coreParentIsFile(k *kit) {
	k.file("f", "kept")
	_, err := k.b.Stat(k.ctx, "f/x")
	k.refused("stat", err, syscall.ENOTDIR, fs.ErrNotExist)
	_, err = k.b.ReadFile(k.ctx, "f/x")
	k.refused("read", err, syscall.ENOTDIR, fs.ErrNotExist)
	k.refused("write", k.b.WriteFile(k.ctx, "f/x", []byte("x")))
	k.refused("write", k.b.WriteFile(k.ctx, "f/x/y", []byte("x")))
	k.wantContent("f", "kept")
	k.wantNames(".", "f")
}

// coreOwnCopy changes buffers after the call: neither side may keep the other's.
func coreOwnCopy(k *kit) {
	buf := []byte("as written")
	k.ok("write", k.b.WriteFile(k.ctx, "f", buf))
	copy(buf, "XXXXXXXXXX")
	first, err := k.b.ReadFile(k.ctx, "f")
	k.ok("read", err)
	copy(first, "YYYYYYYYYY")
	second, err := k.b.ReadFile(k.ctx, path.Clean("f"))
	k.ok("read", err)
	if string(second) != "as written" {
		k.Errorf("read %q", second)
	}
	k.wantContent("f", "as written")
}
