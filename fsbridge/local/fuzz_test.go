//go:build linux

package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/rooted"
)

// FuzzPaths feeds arbitrary paths to reading and changing operations over a workspace full of links.
// No byte of OUT is returned and nothing in OUT changes. C001 C013
func FuzzPaths(f *testing.F) {
	for _, p := range []string{
		"f", "out/s", "outs", "abs/s", "abss", "d/../out/s", "loop", "root/etc/passwd", "proc/etc/passwd", "../out/s",
		"WS/f", "WS/../out/s", "OUT/s", "d/", "d/.", "d/..", "x/y/z", "out/new", "dang", "dangout", "alias/f", "alias/../s", "-rf", "\xff\n",
	} {
		f.Add(p, "f")
		f.Add("f", p)
	}
	base, err := filepath.EvalSymlinks(f.TempDir())
	must(f, err)
	ws, out := base+"/ws", base+"/out"
	must(f, os.MkdirAll(out+"/d", 0o755))
	must(f, os.WriteFile(out+"/s", []byte("secret"), 0o644))
	must(f, os.WriteFile(out+"/d/s", []byte("secret"), 0o644))
	must(f, os.Symlink(ws, out+"/alias"))
	before := shape(f, out)
	plant := func(t testing.TB) {
		must(t, os.RemoveAll(ws))
		must(t, os.MkdirAll(ws+"/d/e", 0o755))
		must(t, os.WriteFile(ws+"/f", []byte("inside"), 0o644))
		must(t, os.WriteFile(ws+"/d/f", []byte("inside"), 0o644))
		for name, text := range map[string]string{
			"out": "../out", "outs": "../out/s", "abs": out, "abss": out + "/s", "loop": "loop", "root": "/", "proc": "/proc/self/root",
			"dang": "absent", "dangout": "../out/absent", "alias": out + "/alias", "ld": "d", "d/up": "..", "d/out": "../../out",
		} {
			must(t, os.Symlink(text, ws+"/"+name))
		}
	}
	must(f, os.Mkdir(ws, 0o755))
	f.Fuzz(func(t *testing.T, p, q string) {
		expand := strings.NewReplacer("WS", ws, "OUT", out)
		p, q = expand.Replace(p), expand.Replace(q)
		for _, how := range []rooted.Options{{}, {NoOpenat2: true}} {
			plant(t)
			b, err := newBridge(Options{Mounts: fsbridge.MountTable{{Path: ws, Kind: fsbridge.MountWorkspace}}}, how)
			must(t, err)
			attackWith(t, b, p, q)
			must(t, b.Close())
			if after := shape(t, out); after != before {
				t.Fatalf("%q, %q: OUT was changed from\n%s\nto\n%s", p, q, before, after)
			}
		}
	})
}

// attackWith tries everything with two paths.
func attackWith(t *testing.T, b *Bridge, p, q string) {
	t.Helper()
	ctx := t.Context()
	leak := func(data []byte) {
		if strings.Contains(string(data), "secret") {
			t.Fatalf("%q gave %q", p, data)
		}
	}
	data, _ := b.ReadFile(ctx, p)
	leak(data)
	src, err := b.ReadFileWithSource(ctx, p)
	leak(src.Data)
	if err == nil && !strings.HasPrefix(src.ResolvedPath, b.Mounts()[0].Path+"/") {
		t.Fatalf("%q lies at %q", p, src.ResolvedPath)
	}
	data, _ = b.ReadRange(ctx, p, 0, 10)
	leak(data)
	list, _ := b.ReadDirectory(ctx, p)
	for _, e := range list {
		if e.Name == "s" {
			t.Fatalf("%q lists %q", p, e.Name)
		}
	}
	_ = b.Copy(ctx, p, q, fsbridge.CopyOptions{})
	_ = b.Copy(ctx, p, q+".copy", fsbridge.CopyOptions{Recursive: true})
	_ = b.Symlink(ctx, p, q+".link", fsbridge.SymlinkOptions{})
	_ = b.WriteFile(ctx, p, []byte("x"))
	_ = b.AppendFile(ctx, p, []byte("x"))
	_ = b.CreateFileExclusive(ctx, p+".new", []byte("x"))
	_ = b.Mkdir(ctx, p+"/n/m", fsbridge.MkdirOptions{Parents: true})
	_ = b.Chmod(ctx, p, 0o700)
	_ = b.Rename(ctx, p, q, fsbridge.RenameOptions{Parents: true})
	_ = b.Remove(ctx, q, fsbridge.RemoveOptions{Recursive: true})
	_ = b.Remove(ctx, p, fsbridge.RemoveOptions{Recursive: true})
}
