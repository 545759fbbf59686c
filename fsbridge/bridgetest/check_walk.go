package bridgetest

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"github.com/workberth/workberth/fsbridge"
)

// walkChecks prove walking.
func walkChecks() []check {
	need := caps(fsbridge.CapWalk)
	return []check{
		{name: "order", needs: need, run: walkOrder},
		{name: "depth", needs: need, run: walkDepth},
		{name: "links", needs: need, run: walkLinks},
		{name: "hash", needs: need, run: walkHash},
		{name: "skip", needs: need, run: walkSkip},
		{name: "callback-error", needs: need, run: walkCallback},
		{name: "unreadable", needs: need, run: walkUnreadable},
		{name: "errors", needs: need, run: walkErrors},
		{name: "large", needs: need, run: walkLarge},
		{name: "deep", needs: need, run: walkDeep},
	}
}

// walk collects the paths of a walk.
func (k *kit) walk(p string, o fsbridge.WalkOptions) []string {
	k.Helper()
	var got []string
	k.ok("walk", fsbridge.Walk(k.ctx, k.b, p, o, func(e fsbridge.WalkEntry) error {
		if e.Err != nil {
			k.Errorf("walk: %q: %v", e.Path, e.Err)
		}
		if want := e.Path[strings.LastIndexByte(e.Path, '/')+1:]; e.Info.Name != want {
			k.Errorf("walk: %q has info of %q", e.Path, e.Info.Name)
		}
		got = append(got, e.Path)
		return nil
	}))
	return got
}

func (k *kit) wantWalk(p string, o fsbridge.WalkOptions, want ...string) {
	k.Helper()
	if got := k.walk(p, o); !slices.Equal(got, want) {
		k.Errorf("walk %q %+v: %q, want %q", p, o, got, want)
	}
}

func walkOrder(k *kit) {
	for _, f := range []string{"t/b", "t/a/z", "t/a/y", "t/a.x", "t/a-x", "t/B", "t/c/d/e/f"} {
		k.file(f, "x")
	}
	k.dir("t/empty")
	want := []string{
		"B", "a", "a/y", "a/z", "a-x", "a.x", "b", "c", "c/d", "c/d/e", "c/d/e/f", "empty",
	}
	// Siblings are sorted by the bytes of their names; a directory's content follows it at once.
	for _, p := range []string{"t", k.abs("t"), "t/", "./t"} {
		k.wantWalk(p, fsbridge.WalkOptions{}, want...)
	}
	k.wantWalk("t/empty", fsbridge.WalkOptions{})
	k.wantWalk(".", fsbridge.WalkOptions{MaxDepth: 1}, "t")
}

func walkDepth(k *kit) {
	k.file("t/a/b/c/d", "x")
	k.file("t/e", "x")
	k.wantWalk("t", fsbridge.WalkOptions{MaxDepth: 1}, "a", "e")
	k.wantWalk("t", fsbridge.WalkOptions{MaxDepth: 2}, "a", "a/b", "e")
	k.wantWalk("t", fsbridge.WalkOptions{MaxDepth: 4}, "a", "a/b", "a/b/c", "a/b/c/d", "e")
	k.wantWalk("t", fsbridge.WalkOptions{MaxDepth: 100}, "a", "a/b", "a/b/c", "a/b/c/d", "e")
}

// walkLinks meets links of all sorts and follows none.
func walkLinks(k *kit) {
	k.file("t/d/f", "x")
	for name, target := range map[string]string{
		"t/a": "d", "t/loop": ".", "t/up": "..", "t/out": "../" + relative(k.env.Workspace, k.env.Out), "t/outabs": k.env.Out,
		"t/gone": "absent", "t/d/back": "../d", "t/self": "self", "t/file": "d/f",
	} {
		k.link(name, target)
	}
	k.wantWalk("t", fsbridge.WalkOptions{Hash: true}, "a", "d", "d/back", "d/f", "file", "gone", "loop", "out", "outabs", "self", "up")
	k.ok("walk", fsbridge.Walk(k.ctx, k.b, "t", fsbridge.WalkOptions{Hash: true}, func(e fsbridge.WalkEntry) error {
		if e.Path == "a" && e.Info.Type != fsbridge.TypeSymlink {
			k.Errorf("a link was walked as a %s", e.Info.Type)
		}
		if (e.Digest != "") != e.Info.IsRegular() {
			k.Errorf("%q, a %s, has digest %q", e.Path, e.Info.Type, e.Digest)
		}
		return nil
	}))
}

func walkHash(k *kit) {
	content := map[string]string{"a": "", "b": "text", "d/c": string(pattern(200_000, 1))}
	for p, c := range content {
		k.file("t/"+p, c)
	}
	for _, hash := range []bool{true, false} {
		k.ok("walk", fsbridge.Walk(k.ctx, k.b, "t", fsbridge.WalkOptions{Hash: hash}, func(e fsbridge.WalkEntry) error {
			want := digest([]byte(content[e.Path]))
			if e.Path == "d" || !hash {
				want = ""
			}
			if e.Digest != want {
				k.Errorf("%q has digest %q, want %q", e.Path, e.Digest, want)
			}
			if c, ok := content[e.Path]; ok && e.Info.Size != int64(len(c)) {
				k.Errorf("%q has size %d, want %d", e.Path, e.Info.Size, len(c))
			}
			return nil
		}))
	}
}

func walkSkip(k *kit) {
	for _, f := range []string{"t/.git/config", "t/a/.git/x", "t/a/f", "t/node_modules/m/f", "t/z"} {
		k.file(f, "x")
	}
	k.file("t/b/node_modules", "a file of that name is no directory")
	k.wantWalk("t", fsbridge.WalkOptions{SkipDirs: []string{".git", "node_modules"}},
		".git", "a", "a/.git", "a/f", "b", "b/node_modules", "node_modules", "z")
	var got []string
	k.ok("walk", fsbridge.Walk(k.ctx, k.b, "t", fsbridge.WalkOptions{}, func(e fsbridge.WalkEntry) error {
		got = append(got, e.Path)
		if e.Info.IsDir() && (e.Path == ".git" || e.Path == "a") {
			return fs.SkipDir
		}
		return nil
	}))
	if want := []string{".git", "a", "b", "b/node_modules", "node_modules", "node_modules/m", "node_modules/m/f", "z"}; !slices.Equal(got, want) {
		k.Errorf("with SkipDir: %q, want %q", got, want)
	}
}

// walkCallback ends the walk by an error of the callback, which comes back as it is.
func walkCallback(k *kit) {
	for i := range 100 {
		k.file(numbered("t/f", i), "x")
	}
	errStop := errors.New("enough")
	n := 0
	err := fsbridge.Walk(k.ctx, k.b, "t", fsbridge.WalkOptions{}, func(fsbridge.WalkEntry) error {
		if n++; n == 5 {
			return errStop
		}
		return nil
	})
	if err != errStop { //nolint:errorlint // the very error is promised
		k.Errorf("walk returned %v, want the callback's error as it is", err)
	}
	if n != 5 {
		k.Errorf("%d steps, want 5", n)
	}
	_, err = k.b.Stat(k.ctx, "t")
	k.ok("stat", err)
}

// walkUnreadable goes on after a directory and a file that may not be read.
func walkUnreadable(k *kit) {
	k.file("t/a", "x")
	k.file("t/locked/f", "x")
	k.make("t/m", Node{Type: fsbridge.TypeRegular, Mode: 0o200, Data: []byte("x")})
	k.file("t/z", "x")
	k.make("t/locked", Node{Type: fsbridge.TypeDir, Mode: 0o300})
	defer k.make("t/locked", Node{Type: fsbridge.TypeDir, Mode: 0o755})
	if _, err := k.b.ReadFile(k.ctx, "t/m"); err == nil {
		k.Skip("the bridge's process may read everything (it runs as root)")
	}
	errs := map[string]error{}
	var got []string
	k.ok("walk", fsbridge.Walk(k.ctx, k.b, "t", fsbridge.WalkOptions{Hash: true}, func(e fsbridge.WalkEntry) error {
		if e.Err != nil {
			errs[e.Path] = e.Err
		}
		if len(got) == 0 || got[len(got)-1] != e.Path { // a directory may come again with its error
			got = append(got, e.Path)
		}
		return nil
	}))
	if want := []string{"a", "locked", "m", "z"}; !slices.Equal(got, want) {
		k.Errorf("walk: %q, want %q", got, want)
	}
	for _, p := range []string{"locked", "m"} {
		if !errors.Is(errs[p], fs.ErrPermission) {
			k.Errorf("%q: error %v, want %v", p, errs[p], fs.ErrPermission)
		}
	}
	if len(errs) != 2 {
		k.Errorf("errors %v", errs)
	}
}

func walkErrors(k *kit) {
	k.file("f", "x")
	fail := func(fsbridge.WalkEntry) error { return errors.New("was called") }
	k.refused("walk nothing", fsbridge.Walk(k.ctx, k.b, "absent", fsbridge.WalkOptions{}, fail), fs.ErrNotExist)
	k.refused("walk a file", fsbridge.Walk(k.ctx, k.b, "f", fsbridge.WalkOptions{}, fail), syscall.ENOTDIR)
	k.refused("negative depth", fsbridge.Walk(k.ctx, k.b, ".", fsbridge.WalkOptions{MaxDepth: -1}, fail), fsbridge.ErrInvalid)
	k.refused("negative bound", fsbridge.Walk(k.ctx, k.b, ".", fsbridge.WalkOptions{MaxEntries: -1}, fail), fsbridge.ErrInvalid)
}

// walkLarge visits several thousand entries, each once and in order.
func walkLarge(k *kit) {
	var want []string
	for d := range 30 {
		dir := numbered("d", d)
		want = append(want, dir)
		for f := range 100 {
			k.file("t/"+numbered(dir+"/f", f), "x")
			want = append(want, numbered(dir+"/f", f))
		}
	}
	if got := k.walk("t", fsbridge.WalkOptions{}); !slices.Equal(got, want) {
		k.Errorf("%d entries, want %d in order", len(got), len(want))
	}
}

// walkDeep visits a deep tree.
func walkDeep(k *kit) {
	p := "t"
	var want []string
	for i := range 200 {
		p += fmt.Sprintf("/d%d", i%10)
		want = append(want, strings.TrimPrefix(p, "t/"))
	}
	k.dir(p)
	if got := k.walk("t", fsbridge.WalkOptions{}); !slices.Equal(got, want) {
		k.Errorf("%d entries, want %d", len(got), len(want))
	}
}
