//go:build linux

package local

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/workberth/workberth/fsbridge"
	"golang.org/x/sys/unix"
)

// tmpfs mounts a file system of its own at dir until the test ends.
func tmpfs(t *testing.T, dir, size string) {
	t.Helper()
	needRoot(t)
	must(t, os.MkdirAll(dir, 0o755))
	err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size="+size+",mode=755")
	if errors.Is(err, unix.EPERM) {
		missing(t, "may not mount a file system")
	}
	must(t, err)
	t.Cleanup(func() { must(t, unix.Unmount(dir, unix.MNT_DETACH)) })
}

// guestTable is a bridge as it looks inside a sandbox: workspace, read-only bind inside it, scratch
// space and the files of the system around it all.
func guestTable(d *dirs) fsbridge.MountTable {
	must(d.t, os.MkdirAll(d.in("cfg"), 0o755))
	must(d.t, os.MkdirAll(d.at("tmp"), 0o755))
	return fsbridge.MountTable{
		{Path: "/", Kind: fsbridge.MountSystem, ReadOnly: true},
		{Path: d.ws, Kind: fsbridge.MountWorkspace},
		{Path: d.in("cfg"), Kind: fsbridge.MountBind, ReadOnly: true},
		{Path: d.at("tmp"), Kind: fsbridge.MountTmpfs},
	}
}

// changes are all operations that change something at a path.
func changes(b *Bridge, t *testing.T) map[string]func(p string) error {
	ctx := t.Context()
	return map[string]func(p string) error{
		"write": func(p string) error { return b.WriteFile(ctx, p, []byte("changed")) },
		"stream": func(p string) error {
			_, err := b.WriteStream(ctx, p, strings.NewReader("changed"), fsbridge.WriteOptions{})
			return err
		},
		"create":           func(p string) error { return b.CreateFileExclusive(ctx, p+".new", nil) },
		"append":           func(p string) error { return b.AppendFile(ctx, p, []byte("changed")) },
		"mkdir":            func(p string) error { return b.Mkdir(ctx, p+".new", fsbridge.MkdirOptions{}) },
		"mkdir-parents":    func(p string) error { return b.Mkdir(ctx, p+".new/x/y", fsbridge.MkdirOptions{Parents: true}) },
		"remove":           func(p string) error { return b.Remove(ctx, p, fsbridge.RemoveOptions{}) },
		"remove-recursive": func(p string) error { return b.Remove(ctx, p, fsbridge.RemoveOptions{Recursive: true}) },
		"rename-from":      func(p string) error { return b.Rename(ctx, p, "elsewhere", fsbridge.RenameOptions{}) },
		"rename-to":        func(p string) error { return b.Rename(ctx, "source", p, fsbridge.RenameOptions{}) },
		"copy-to":          func(p string) error { return b.Copy(ctx, "source", p, fsbridge.CopyOptions{}) },
		"copy-dir-to": func(p string) error {
			return b.Copy(ctx, "sourcedir", p+".new", fsbridge.CopyOptions{Recursive: true})
		},
		"symlink": func(p string) error { return b.Symlink(ctx, "x", p+".new", fsbridge.SymlinkOptions{}) },
		"symlink-replace": func(p string) error {
			return b.Symlink(ctx, "x", p, fsbridge.SymlinkOptions{Replace: true})
		},
		"chmod": func(p string) error { return b.Chmod(ctx, p, 0o600) },
	}
}

// The policy of the mount where a path really ends is what counts, by whatever way it gets there.
func TestReadOnlyInsideWorkspace(t *testing.T) {
	eachWay(t, func(t *testing.T, d *dirs) {
		b := d.bridge(Options{Mounts: guestTable(d)})
		d.put(d.in("cfg/f"), "kept")
		d.put(d.in("source"), "source")
		d.put(d.in("sourcedir/x"), "source")
		d.link("cfg/f", d.in("l"))
		d.link("cfg", d.in("ld"))
		d.link(d.in("cfg"), d.in("labs"))
		sys := d.at("sys/f")
		d.put(sys, "kept")
		for name, op := range changes(b, t) {
			for _, p := range []string{"cfg/f", d.in("cfg/f"), "ld/f", "labs/f", "l", "cfg/../cfg/f", sys} {
				if p == "l" && strings.Contains("create mkdir mkdir-parents remove remove-recursive rename-from rename-to copy-dir-to symlink symlink-replace", name) {
					continue // works on the link itself, which lies in the workspace
				}
				err := op(p)
				var pe *fsbridge.PathError
				if !errors.Is(err, fsbridge.ErrReadOnly) || !errors.As(err, &pe) || pe.Hint == "" {
					t.Errorf("%s %s: %v", name, p, err)
				}
			}
		}
		for _, p := range []string{d.in("cfg/f"), sys} {
			if got := d.get(p); got != "kept" {
				t.Errorf("%s holds %q", p, got)
			}
		}
		for _, dir := range []string{d.in("cfg"), d.at("sys")} {
			list, err := os.ReadDir(dir)
			must(t, err)
			if len(list) != 1 {
				t.Errorf("%s has %v", dir, list)
			}
		}
		must(t, b.WriteFile(t.Context(), d.at("tmp/f"), []byte("scratch")))
		if data, err := b.ReadFile(t.Context(), sys); err != nil || string(data) != "kept" {
			t.Errorf("read a system file: %q, %v", data, err)
		}
	})
}

func TestKernelReadOnly(t *testing.T) {
	d := newDirs(t, ways()["kernel"])
	tmpfs(t, d.in("m"), "1m")
	d.put(d.in("m/f"), "kept")
	d.put(d.in("source"), "source")
	d.put(d.in("sourcedir/x"), "source")
	must(t, unix.Mount("", d.in("m"), "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	for name, op := range changes(d.b, t) {
		err := op("m/f")
		if !errors.Is(err, fsbridge.ErrReadOnly) || !errors.Is(err, syscall.EROFS) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := d.get(d.in("m/f")); got != "kept" {
		t.Errorf("holds %q", got)
	}
}

// Mount points stay where they are, and their content when what is around them is removed.
func TestMountPointsStay(t *testing.T) {
	eachWay(t, func(t *testing.T, d *dirs) {
		ctx := t.Context()
		must(t, os.MkdirAll(d.in("a/bind"), 0o755))
		tmpfs(t, d.in("b/foreign"), "1m")
		d.put(d.in("a/bind/f"), "kept")
		d.put(d.in("b/foreign/f"), "kept")
		b := d.bridge(Options{Mounts: fsbridge.MountTable{
			{Path: d.ws, Kind: fsbridge.MountWorkspace}, {Path: d.in("a/bind"), Kind: fsbridge.MountBind},
		}})
		must(t, os.Mkdir(d.in("empty"), 0o755))
		for _, p := range []string{".", d.ws, "a", "a/bind", d.in("a/bind"), "a/../a/bind", "b", "b/foreign"} {
			err := b.Remove(ctx, p, fsbridge.RemoveOptions{Recursive: true})
			if !errors.Is(err, syscall.EBUSY) && !errors.Is(err, fsbridge.ErrInvalid) {
				t.Errorf("remove %s: %v", p, err)
			}
			if p == "b" {
				continue // a directory that only contains a mount nobody told of may be moved
			}
			if err := b.Rename(ctx, p, "moved", fsbridge.RenameOptions{}); !errors.Is(err, syscall.EBUSY) && !errors.Is(err, fsbridge.ErrInvalid) {
				t.Errorf("rename %s: %v", p, err)
			}
			if err := b.Rename(ctx, "empty", p, fsbridge.RenameOptions{}); err == nil {
				t.Errorf("rename over %s succeeded", p)
			}
		}
		for _, p := range []string{"a/bind/f", "b/foreign/f"} {
			if got := d.get(d.in(p)); got != "kept" {
				t.Errorf("%s holds %q", p, got)
			}
		}
		for _, p := range []string{"a/.", "a/..", "a/./", "..", "b/foreign/.."} {
			if err := b.Remove(ctx, p, fsbridge.RemoveOptions{Recursive: true}); !errors.Is(err, fsbridge.ErrInvalid) && !errors.Is(err, fsbridge.ErrOutsideRoot) {
				t.Errorf("remove %s: %v", p, err)
			}
		}
	})
}

// FSB-06
func TestSourceTellsTheMount(t *testing.T) {
	for _, name := range []string{"kernel", "careful"} {
		d := newDirs(t, ways()[name])
		b := d.bridge(Options{Mounts: guestTable(d)})
		d.put(d.in("f"), "x")
		d.put(d.in("cfg/f"), "x")
		d.put(d.at("tmp/f"), "x")
		d.link(d.at("tmp/f"), d.in("scratch"))
		d.put(d.at("sys"), "x")
		for p, want := range map[string][2]string{
			"f":                   {d.in("f"), "f"},
			"cfg/../f":            {d.in("f"), "f"},
			"cfg/f":               {d.in("cfg/f"), ""},
			"scratch":             {d.at("tmp/f"), ""},
			d.out + "/tmp/../sys": {d.at("sys"), ""},
			d.at("sys"):           {d.at("sys"), ""},
			"/etc/passwd":         {"/etc/passwd", ""},
		} {
			src, err := b.ReadFileWithSource(t.Context(), p)
			if p == d.out+"/tmp/../sys" {
				// from one mount to the system's only by its own name
				if !errors.Is(err, fsbridge.ErrOutsideRoot) {
					t.Errorf("%s: %s: %v", name, p, err)
				}
				continue
			}
			if err != nil || src.ResolvedPath != want[0] || src.WorkspaceRelativePath != want[1] {
				t.Errorf("%s: %s: %q (%q), %v, want %q", name, p, src.ResolvedPath, src.WorkspaceRelativePath, err, want)
			}
		}
	}
}
