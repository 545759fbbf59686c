//go:build linux

package local

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/workberth/workberth/fsbridge"
)

// C009
func TestRootSpellings(t *testing.T) {
	d := newDirs(t, ways()["kernel"])
	d.put(d.in("x"), "inside")
	d.put(d.ws+"2/x", "sibling")
	for _, root := range []string{d.ws, d.ws + "/", d.ws + "/.", "/" + d.ws} {
		b := d.bridge(Options{Mounts: fsbridge.MountTable{{Path: root, Kind: fsbridge.MountWorkspace}}})
		for p, ok := range map[string]bool{
			"x": true, d.ws + "/x": true, d.ws: true, d.ws + "/": true, d.ws + "//x": true, "/" + d.ws + "/x": true,
			d.ws + "2/x": false, "../" + filepath.Base(d.ws) + "2/x": false, d.ws + "2": false, d.ws + "/../ws2/x": false, "/": false,
		} {
			_, err := b.Stat(t.Context(), p)
			if ok && err != nil || !ok && !errors.Is(err, fsbridge.ErrOutsideRoot) {
				t.Errorf("root %q: stat %q: %v", root, p, err)
			}
		}
	}
}

func TestNewTellsWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(dir+"/file", nil, 0o644))
	bad := fsbridge.Mode(0o1777)
	for name, c := range map[string]struct {
		opts Options
		want error
		text string
	}{
		"missing":   {Options{Mounts: fsbridge.MountTable{{Path: dir + "/absent", Kind: fsbridge.MountWorkspace}}}, fs.ErrNotExist, "workspace mount"},
		"a file":    {Options{Mounts: fsbridge.MountTable{{Path: dir + "/file", Kind: fsbridge.MountWorkspace}}}, syscall.ENOTDIR, dir + "/file"},
		"no mounts": {Options{}, fsbridge.ErrInvalid, "no mounts"},
		"tag":       {Options{Mounts: fsbridge.MountTable{{Path: dir}}, TempTag: "short"}, fsbridge.ErrInvalid, "TempTag"},
		"limit":     {Options{Mounts: fsbridge.MountTable{{Path: dir}}, ReadLimit: -1}, fsbridge.ErrInvalid, "negative"},
		"umask":     {Options{Mounts: fsbridge.MountTable{{Path: dir}}, Umask: &bad}, fsbridge.ErrInvalid, "umask"},
	} {
		b, err := New(c.opts)
		if err == nil {
			must(t, b.Close())
		}
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want %v with %q", name, err, c.want, c.text)
		}
		var bad *MountError
		if (name == "missing" || name == "a file") && (!errors.As(err, &bad) || bad.Mount.Kind != fsbridge.MountWorkspace) {
			t.Errorf("%s: %v is no *MountError of the workspace", name, err)
		}
	}
}

func TestNoWorkspace(t *testing.T) {
	dir := t.TempDir()
	b, err := New(Options{Mounts: fsbridge.MountTable{{Path: dir, Kind: fsbridge.MountBind}}})
	must(t, err)
	defer b.Close()
	_, err = b.Stat(t.Context(), "x")
	if !errors.Is(err, fsbridge.ErrOutsideRoot) || !strings.Contains(err.Error(), "no workspace") {
		t.Errorf("a relative path: %v", err)
	}
	if _, err := b.Stat(t.Context(), dir); err != nil {
		t.Error(err)
	}
}

// C033
func TestUmaskOption(t *testing.T) {
	for _, mask := range []fsbridge.Mode{0, 0o002, 0o022, 0o027, 0o077} {
		d := newDirs(t, ways()["kernel"])
		b := d.bridge(Options{Mounts: d.b.Mounts(), Umask: &mask})
		ctx := t.Context()
		must(t, b.WriteFile(ctx, "new/f", nil))
		must(t, b.Mkdir(ctx, "m", fsbridge.MkdirOptions{}))
		must(t, b.AppendFile(ctx, "appended", []byte("x")))
		must(t, b.CreateFileExclusive(ctx, "created", nil))
		must(t, os.WriteFile(d.in("s.sh"), nil, 0o600))
		must(t, os.Chmod(d.in("s.sh"), 0o777))
		must(t, b.WriteFile(ctx, "s.sh", []byte("x")))
		must(t, b.Copy(ctx, "s.sh", "copied.sh", fsbridge.CopyOptions{}))
		must(t, b.Mkdir(ctx, "exact", fsbridge.MkdirOptions{Mode: 0o775}))
		must(t, os.Mkdir(d.in("tree"), 0o700))
		must(t, os.Chmod(d.in("tree"), 0o777))
		must(t, b.Copy(ctx, "tree", "tree2", fsbridge.CopyOptions{Recursive: true}))
		for p, want := range map[string]fsbridge.Mode{
			"new": 0o777 &^ mask, "new/f": 0o666 &^ mask, "m": 0o777 &^ mask, "appended": 0o666 &^ mask, "created": 0o666 &^ mask,
			"s.sh": 0o777, "copied.sh": 0o777 &^ mask, "exact": 0o775, "tree2": 0o777 &^ mask,
		} {
			st, err := os.Stat(d.in(p))
			must(t, err)
			if got := fsbridge.Mode(st.Mode().Perm()); got != want {
				t.Errorf("umask %03o: %s has mode %03o, want %03o", mask, p, got, want)
			}
		}
	}
}

// A mount spelled through a link is served under that spelling, and so are locations in it.
func TestAliasPath(t *testing.T) {
	d := newDirs(t, ways()["kernel"])
	d.put(d.in("d/f"), "x")
	d.link(d.in("d/f"), d.in("real"))
	d.link(d.ws, filepath.Dir(d.ws)+"/alias")
	alias := filepath.Dir(d.ws) + "/alias"
	d.link(alias+"/d/f", d.in("spelled"))
	b := d.bridge(Options{Mounts: fsbridge.MountTable{{Path: alias, Kind: fsbridge.MountWorkspace}}})
	for _, p := range []string{"d/f", "real", "spelled", alias + "/d/f", d.ws + "/d/f"} {
		src, err := b.ReadFileWithSource(t.Context(), p)
		if err != nil || src.ResolvedPath != alias+"/d/f" || src.WorkspaceRelativePath != "d/f" {
			t.Errorf("%s: %q (%q), %v", p, src.ResolvedPath, src.WorkspaceRelativePath, err)
		}
	}
}

func TestClosed(t *testing.T) {
	d := newDirs(t, ways()["kernel"])
	d.put(d.in("f"), "content")
	b := d.bridge(Options{Mounts: d.b.Mounts()})
	g := b.Guarded(func() error { return nil })
	r, _, err := b.OpenReader(t.Context(), "f")
	must(t, err)
	must(t, g.Close()) // has no effect
	_, err = b.Stat(t.Context(), "f")
	must(t, err)
	must(t, b.Close())
	must(t, b.Close())
	for name, b := range map[string]*Bridge{"bridge": b, "view": g} {
		if _, err := b.Stat(t.Context(), "f"); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("%s: stat: %v", name, err)
		}
	}
	buf := make([]byte, 10)
	if n, err := r.Read(buf); err != nil || string(buf[:n]) != "content" {
		t.Errorf("an open stream: %q, %v", buf[:n], err)
	}
	must(t, r.Close())
	if _, err := r.Read(buf); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("a closed stream: %v", err)
	}
}

func TestNoProcDeclaresLess(t *testing.T) {
	d := newDirs(t, ways()["no-proc"])
	d.put(d.in("f"), "x")
	for _, c := range []fsbridge.Capability{fsbridge.CapReadFileWithSource, fsbridge.CapWatch} {
		if fsbridge.Has(d.b, c) {
			t.Errorf("%s is declared", c)
		}
	}
	if _, err := d.b.ReadFileWithSource(t.Context(), "f"); !errors.Is(err, fsbridge.ErrUnsupported) {
		t.Errorf("pinned read: %v", err)
	}
	if _, err := d.b.Watch(t.Context(), ".", fsbridge.WatchOptions{}); !errors.Is(err, fsbridge.ErrUnsupported) {
		t.Errorf("watch: %v", err)
	}
}
