//go:build linux

package rooted

import (
	"errors"
	"os"
	"testing"

	"github.com/workberth/workberth/fsbridge"
	"golang.org/x/sys/unix"
)

// needMount skips where no file system can be mounted, unless everything is required.
func needMount(t *testing.T, dir string) {
	t.Helper()
	err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=16m,mode=755")
	if errors.Is(err, unix.EPERM) && os.Getenv("BERTH_REQUIRE_ENGINES") != "1" {
		t.Skip("this process may not mount a file system (run as root)")
	}
	must(t, err)
	t.Cleanup(func() { must(t, unix.Unmount(dir, unix.MNT_DETACH)) })
}

// The mount that counts is the one a path really ends in, whichever one it names. FSB-06
func TestNestedMounts(t *testing.T) {
	for name, how := range ways() {
		t.Run(name, func(t *testing.T) {
			base := tempDir(t)
			plant(t, base, map[string]string{
				"ws/cfg/":      "",
				"ws/plain/f":   "plain",
				"ws/d/":        "",
				"ws/foreign/":  "",
				"ws/sys/f":     "system",
				"scratch/":     "",
				"sysroot/f":    "system",
				"sysroot/link": "-> " + base + "/ws/d",
				"other/":       "",
			})
			needMount(t, base+"/ws/cfg")
			needMount(t, base+"/ws/foreign")
			plant(t, base, map[string]string{
				"ws/cfg/f":       "cfg",
				"ws/cfg/sub/f":   "cfg",
				"ws/foreign/f":   "foreign",
				"ws/foreign/up":  "-> ../plain/f",
				"ws/tocfg":       "-> cfg/sub",
				"ws/toplain":     "-> " + base + "/ws/plain",
				"ws/tosys":       "-> sys/f",
				"ws/tosysroot":   "-> " + base + "/sysroot/f",
				"ws/toscratch":   "-> " + base + "/scratch",
				"ws/cfg/back":    "-> ../d",
				"ws/cfg/backabs": "-> " + base + "/ws/d",
				"ws/plain/over":  "-> ../../scratch",
			})
			tree := open(t, how,
				workspace(base+"/ws"),
				fsbridge.Mount{Path: base + "/ws/cfg", Kind: fsbridge.MountBind, ReadOnly: true},
				fsbridge.Mount{Path: base + "/ws/plain", Kind: fsbridge.MountBind, ReadOnly: true},
				fsbridge.Mount{Path: base + "/ws/sys", Kind: fsbridge.MountSystem},
				fsbridge.Mount{Path: base + "/scratch", Kind: fsbridge.MountTmpfs},
				fsbridge.Mount{Path: base + "/sysroot", Kind: fsbridge.MountSystem},
			)
			for p, want := range map[string]string{
				"d":                        "/ws",
				"cfg":                      "/ws/cfg",
				"cfg/f":                    "/ws/cfg",
				"d/../cfg/sub/f":           "/ws/cfg",
				"tocfg/f":                  "/ws/cfg",
				"plain":                    "/ws/plain",
				"plain/f":                  "/ws/plain",
				"toplain/f":                "/ws/plain",
				"foreign":                  "/ws",
				"foreign/f":                "/ws",
				"foreign/up":               "/ws/plain",
				"cfg/back":                 "/ws",
				"cfg/backabs":              "/ws",
				"cfg/..":                   "/ws",
				"cfg/../plain/f":           "/ws/plain",
				"toscratch":                "/scratch",
				"plain/over":               "/scratch",
				base + "/ws/cfg/sub":       "/ws/cfg",
				base + "/ws/cfg/../d":      "/ws",
				base + "/ws/sys/f":         "/ws/sys",
				base + "/sysroot/f":        "/sysroot",
				base + "/sysroot/link":     "/ws",
				base + "/sysroot/../ws/d":  "/ws",
				base + "/sysroot/../ws/..": "",
				"tosys":                    "",
				"sys/f":                    "",
				"sys":                      "",
				"tosysroot":                "",
				"../sysroot/f":             "",
				"../other":                 "",
				base + "/other":            "",
				base:                       "",
			} {
				h, err := tree.Open(p, 0)
				if want == "" {
					if !errors.Is(err, errOut) {
						t.Errorf("%q: %v, want a refusal", p, err)
					}
					continue
				}
				if err != nil {
					t.Errorf("%q: %v", p, err)
					continue
				}
				if h.Root.Mount.Path != base+want {
					t.Errorf("%q counts as in %s, want %s", p, h.Root.Mount.Path, want)
				}
				h.Close()
			}
			for p, want := range map[string]string{
				"cfg/new": "/ws/cfg", "tocfg/new": "/ws/cfg", "plain/new": "/ws/plain", "d/new": "/ws",
				"foreign/new": "/ws", "toplain/new": "/ws/plain", "cfg/back/new": "/ws", "plain/over/new": "/scratch",
			} {
				place, err := tree.Target(p, nil)
				if err != nil {
					t.Errorf("place of %q: %v", p, err)
					continue
				}
				if place.Dir.Root.Mount.Path != base+want {
					t.Errorf("place of %q counts as in %s, want %s", p, place.Dir.Root.Mount.Path, want)
				}
				place.Close()
			}
			for p, want := range map[string]string{"cfg": "/ws/cfg", "plain": "/ws/plain", "d": "", "foreign": "", "d/../cfg": "/ws/cfg"} {
				place, err := tree.Parent(p, nil)
				must(t, err)
				r, err := tree.MountBelow(&place.Dir, place.Name)
				must(t, err)
				if (r == nil) != (want == "") || r != nil && r.Mount.Path != base+want {
					t.Errorf("mount at or below %q: %v, want %q", p, r, want)
				}
				place.Close()
			}
		})
	}
}

// The files of the system are reached by absolute paths that name them, and what they lead to has
// the policy of the place where it lies.
func TestSystemRoot(t *testing.T) {
	for name, how := range ways() {
		base := tempDir(t)
		plant(t, base, map[string]string{"ws/f": "x", "ws/esc": "-> /etc/passwd", "ws/escrel": "-> ../../../../../../../../etc/passwd", "out/s": "x"})
		must(t, os.Symlink(base+"/ws", base+"/alias"))
		tree := open(t, how, workspace(base+"/ws"), fsbridge.Mount{Path: "/", Kind: fsbridge.MountSystem})
		for p, want := range map[string]string{
			"f":                          base + "/ws",
			base + "/ws/f":               base + "/ws",
			base + "/alias/f":            base + "/ws",
			"/etc/passwd":                "/",
			"/":                          "/",
			"/..":                        "/",
			"/../etc/passwd":             "/",
			base + "/out/s":              "/",
			base + "/out/../ws/f":        base + "/ws",
			"esc":                        "",
			"escrel":                     "",
			base + "/ws/esc":             "",
			"../out/s":                   "",
			base + "/ws/../out/s":        "",
			base + "/ws/../../etc/hosts": "",
		} {
			h, err := tree.Open(p, 0)
			if want == "" {
				if !errors.Is(err, errOut) {
					t.Errorf("%s: %q: %v, want a refusal", name, p, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s: %q: %v", name, p, err)
				continue
			}
			if h.Root.Mount.Path != want {
				t.Errorf("%s: %q counts as in %s, want %s", name, p, h.Root.Mount.Path, want)
			}
			h.Close()
		}
	}
}

// A workspace whose directory is renamed while it is open stays itself.
func TestRenamedRoot(t *testing.T) {
	for _, name := range []string{"kernel", "careful"} {
		base := tempDir(t)
		plant(t, base, map[string]string{"ws/f": "x", "ws/abs": "-> " + base + "/moved/f"})
		tree := open(t, ways()[name], workspace(base+"/ws"))
		must(t, os.Rename(base+"/ws", base+"/moved"))
		for _, p := range []string{"f", "abs", base + "/ws/f"} {
			h, err := tree.Open(p, 0)
			if err != nil {
				t.Errorf("%s: %q: %v", name, p, err)
				continue
			}
			h.Close()
		}
	}
}
