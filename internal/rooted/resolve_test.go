//go:build linux

package rooted

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/workberth/workberth/fsbridge"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

var (
	errNotExist = fs.ErrNotExist
	errNotDir   = error(syscall.ENOTDIR)
	errLoop     = error(syscall.ELOOP)
	errOut      = fsbridge.ErrOutsideRoot
)

func fixture(t testing.TB) (ws, out string) {
	t.Helper()
	base := tempDir(t)
	ws, out = base+"/ws", base+"/out"
	plant(t, base, map[string]string{
		"ws/f":           "f",
		"ws/d/f":         "df",
		"ws/d/e/f":       "def",
		"out/s":          "secret",
		"out/d/s":        "secret",
		"ws2/x":          "sibling",
		"out/alias":      "-> " + ws,
		"ws/lf":          "-> f",
		"ws/ld":          "-> d",
		"ws/labs":        "-> " + ws + "/d",
		"ws/labsf":       "-> " + ws + "/d/f",
		"ws/d/up":        "-> ../f",
		"ws/chain":       "-> labs/e/f",
		"ws/slash":       "-> d/",
		"ws/fslash":      "-> f/",
		"ws/dang":        "-> absent",
		"ws/dangabs":     "-> " + ws + "/absent",
		"ws/dangdeep":    "-> absent/x",
		"ws/loop":        "-> loop",
		"ws/loop1":       "-> loop2",
		"ws/loop2":       "-> loop1",
		"ws/out":         "-> ../out",
		"ws/outs":        "-> ../out/s",
		"ws/outabs":      "-> " + out,
		"ws/outabss":     "-> " + out + "/s",
		"ws/outdang":     "-> ../out/absent",
		"ws/outdangabs":  "-> " + out + "/absent",
		"ws/viaalias":    "-> " + out + "/alias/f",
		"ws/viaaliasdir": "-> " + out + "/alias",
		"ws/around":      "-> ../ws/f",
		"ws/aroundabs":   "-> " + base + "/ws2/../ws/f",
		"ws/root":        "-> /",
		"ws/procroot":    "-> /proc/self/root",
		"ws/proccwd":     "-> /proc/self/cwd",
		"ws/ws2":         "-> ../ws2/x",
		"ws/d/out":       "-> ../../out",
	})
	return ws, out
}

func TestOpenTable(t *testing.T) {
	ws, out := fixture(t)
	base := filepath.Dir(ws)
	for name, how := range ways() {
		tree := open(t, how, workspace(ws))
		proc := tree.HasProc()
		for _, c := range []struct {
			p     string
			flags Flags
			want  string // relative to ws
			err   error
			proc  bool // needs /proc
		}{
			{p: "f", want: "f"},
			{p: "./f", want: "f"},
			{p: "d//f", want: "d/f"},
			{p: "d/../f", want: "f"},
			{p: "d/e/../../f", want: "f"},
			{p: ".", want: "."},
			{p: "d/..", want: "."},
			{p: "d/.", want: "d"},
			{p: "d/", want: "d"},
			{p: "d/e/..", want: "d"},
			{p: "f/", err: errNotDir},
			{p: "f/.", err: errNotDir},
			{p: "f/..", err: errNotDir},
			{p: "f/x", err: errNotDir},
			{p: "absent", err: errNotExist},
			{p: "absent/..", err: errNotExist},
			{p: "absent/../f", err: errNotExist},
			{p: "lf", want: "f"},
			{p: "lf/", err: errNotDir},
			{p: "ld", want: "d"},
			{p: "ld/f", want: "d/f"},
			{p: "ld/", want: "d"},
			{p: "ld/..", want: "."},
			{p: "labs/..", want: "."},
			{p: "labs/f", want: "d/f"},
			{p: "labsf", want: "d/f"},
			{p: "labs/e/f", want: "d/e/f"},
			{p: "d/up", want: "f"},
			{p: "ld/up", want: "f"},
			{p: "chain", want: "d/e/f"},
			{p: "slash", want: "d"},
			{p: "slash/f", want: "d/f"},
			{p: "fslash", err: errNotDir},
			{p: "dang", err: errNotExist},
			{p: "dangabs", err: errNotExist},
			{p: "dangdeep", err: errNotExist},
			{p: "loop", err: errLoop},
			{p: "loop1/x", err: errLoop},
			{p: ws, want: "."},
			{p: ws + "/f", want: "f"},
			{p: ws + "//d/", want: "d"},
			{p: "..", err: errOut},
			{p: "../out/s", err: errOut},
			{p: "d/../../out/s", err: errOut},
			{p: "d/../..", err: errOut},
			{p: "../ws2/x", err: errOut},
			{p: ws + "2/x", err: errOut},
			{p: base, err: errOut},
			{p: "/", err: errOut},
			{p: "/etc/hostname", err: errOut},
			{p: ws + "/../out/s", err: errOut},
			{p: out + "/s", err: errOut},
			{p: "out", err: errOut},
			{p: "out/s", err: errOut},
			{p: "out/absent", err: errOut},
			{p: "outs", err: errOut},
			{p: "outabs", err: errOut},
			{p: "outabs/s", err: errOut},
			{p: "outabss", err: errOut},
			{p: "outdang", err: errOut},
			{p: "outdangabs", err: errOut},
			{p: "d/out/s", err: errOut},
			{p: "ld/out/s", err: errOut},
			{p: "root", err: errOut},
			{p: "root/etc/hostname", err: errOut},
			{p: "procroot", err: errOut},
			{p: "proccwd", err: errOut},
			{p: "ws2", err: errOut},
			{p: "aroundabs", err: errOut},
			{p: "around", want: "f"},
			{p: "../ws/f", want: "f"},
			{p: "viaalias", want: "f", proc: true},
			{p: "viaaliasdir/d/f", want: "d/f", proc: true},
			{p: "viaaliasdir/absent", err: errNotExist, proc: true},
			{p: "lf", flags: NoFollow, want: "lf"},
			{p: "outs", flags: NoFollow, want: "outs"},
			{p: "loop", flags: NoFollow, want: "loop"},
			{p: "labs/up", flags: NoFollow, want: "d/up"},
			{p: "ld/", flags: NoFollow, want: "d"},
			{p: "out/", flags: NoFollow, err: errOut},
			{p: "f", flags: Directory, err: errNotDir},
			{p: "lf", flags: Directory, err: errNotDir},
			{p: "ld", flags: Directory, want: "d"},
		} {
			if c.proc && !proc {
				c.want, c.err = "", errOut
			}
			h, err := tree.Open(c.p, c.flags)
			if c.err != nil {
				if !errors.Is(err, c.err) {
					t.Errorf("%s: Open(%q, %d): %v, want %v", name, c.p, c.flags, err, c.err)
				}
				if errors.Is(c.err, fsbridge.ErrOutsideRoot) && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)) {
					t.Errorf("%s: Open(%q) tells of what is outside: %v", name, c.p, err)
				}
				if err == nil {
					h.Close()
				}
				continue
			}
			if err != nil {
				t.Errorf("%s: Open(%q, %d): %v", name, c.p, c.flags, err)
				continue
			}
			var st unix.Stat_t
			must(t, unix.Lstat(filepath.Join(ws, c.want), &st))
			if h.Stat.Inode != st.Ino {
				t.Errorf("%s: Open(%q, %d) gave another file than %q", name, c.p, c.flags, c.want)
			}
			if proc {
				at, err := tree.Location(&h)
				must(t, err)
				if want := filepath.Join(ws, c.want); at != want {
					t.Errorf("%s: Open(%q) is at %q, want %q", name, c.p, at, want)
				}
			}
			h.Close()
		}
	}
}

func TestPlaces(t *testing.T) {
	ws, _ := fixture(t)
	for name, how := range ways() {
		tree := open(t, how, workspace(ws))
		for _, c := range []struct {
			p      string
			follow bool
			dir    string
			elem   string
			exists bool
			must   bool
			err    error
		}{
			{p: "f", dir: ".", elem: "f"},
			{p: "f", follow: true, dir: ".", elem: "f", exists: true},
			{p: "new", follow: true, dir: ".", elem: "new"},
			{p: "d/new/", follow: true, dir: "d", elem: "new", must: true},
			{p: "lf", dir: ".", elem: "lf"},
			{p: "lf", follow: true, dir: ".", elem: "f", exists: true},
			{p: "labsf", follow: true, dir: "d", elem: "f", exists: true},
			{p: "chain", follow: true, dir: "d/e", elem: "f", exists: true},
			{p: "dang", follow: true, dir: ".", elem: "absent"},
			{p: "dangabs", follow: true, dir: ".", elem: "absent"},
			{p: "dangdeep", follow: true, err: errNotExist},
			{p: "labs/new", dir: "d", elem: "new"},
			{p: "d/e/../new", dir: "d", elem: "new"},
			{p: ".", dir: ".", elem: "", must: true},
			{p: "d/..", dir: ".", elem: "", must: false},
			{p: ws, dir: ".", elem: "", must: true},
			{p: "absent/new", err: errNotExist},
			{p: "f/new", err: errNotDir},
			{p: "out/new", err: errOut},
			{p: "outs", dir: ".", elem: "outs"},
			{p: "outs", follow: true, err: errOut},
			{p: "outdang", follow: true, err: errOut},
			{p: "../new", err: errOut},
			{p: "loop", dir: ".", elem: "loop"},
			{p: "loop", follow: true, err: errLoop},
		} {
			get := tree.Parent
			if c.follow {
				get = tree.Target
			}
			place, err := get(c.p, nil)
			if !errors.Is(err, c.err) || c.err == nil && err != nil {
				t.Errorf("%s: place of %q: %v, want %v", name, c.p, err, c.err)
			}
			if err != nil {
				continue
			}
			dir, err := tree.Fstat(place.Dir.FD)
			must(t, err)
			if dir.Inode != inode(t, filepath.Join(ws, c.dir)) || place.Name != c.elem || place.Exists != c.exists ||
				c.elem != "" && place.MustDir != c.must {
				t.Errorf("%s: place of %q: %q (exists %v, directory %v), want %+v", name, c.p, place.Name, place.Exists, place.MustDir, c)
			}
			place.Close()
		}
	}
}

// Missing directories are made where they are missing, through links too, and nowhere else.
func TestMaker(t *testing.T) {
	for name, how := range ways() {
		ws, out := fixture(t)
		tree := open(t, how, workspace(ws))
		mk := func(dir *Handle, elem string) error { return unix.Mkdirat(dir.FD, elem, 0o755) }
		for p, want := range map[string]string{
			"n1/n2/f":       "n1/n2",
			"labs/n3/f":     "d/n3",
			"dang/f":        "absent",
			"n4/../n5/f":    "n5",
			"n6//./n7/f":    "n6/n7",
			ws + "/n8/n9/f": "n8/n9",
		} {
			place, err := tree.Parent(p, mk)
			if err != nil {
				t.Errorf("%s: %q: %v", name, p, err)
				continue
			}
			st, err := tree.Fstat(place.Dir.FD)
			must(t, err)
			if st.Inode != inode(t, filepath.Join(ws, want)) {
				t.Errorf("%s: %q is elsewhere than in %q", name, p, want)
			}
			place.Close()
		}
		for _, p := range []string{"out/n/f", "outdang/n/f", "../n/f", "f/n/f", "../out/n/f"} {
			if place, err := tree.Parent(p, mk); err == nil {
				place.Close()
				t.Errorf("%s: %q: made", name, p)
			}
		}
		list, err := os.ReadDir(out)
		must(t, err)
		if len(list) != 3 {
			t.Errorf("%s: OUT has changed: %v", name, list)
		}
	}
}

func TestStays(t *testing.T) {
	ws, out := fixture(t)
	base := filepath.Dir(ws)
	for name, how := range ways() {
		tree := open(t, how, workspace(ws))
		place, err := tree.Named("d/l", nil)
		must(t, err)
		for text, inside := range map[string]bool{
			"f": true, "../f": true, "../absent/x": true, "../..": false, "../../ws": true, "../../ws/f": true,
			"../../out": false, "../../out/absent": false, "../absent/..": true, "../absent/../..": false,
			"absent/../../../x": false, "absent/../../../ws/x": true, ws: true, ws + "/absent": true, ws + "/../out": false, out: false, "/": false,
			"/etc": false, "../out": false, "../out/s": false, "../outdang": false, "../dang": true,
			"../labs/../x": true, "../loop": false, base + "/ws2": false, ws + "2": false, "../f/x": true, "f/../../..": false,
		} {
			err := tree.Stays(&place.Dir, "l", text)
			if (err == nil) != inside {
				t.Errorf("%s: a link to %q: %v, want inside: %v", name, text, err, inside)
			}
			if !inside && !errors.Is(err, errOut) && !errors.Is(err, errLoop) {
				t.Errorf("%s: a link to %q: %v", name, text, err)
			}
		}
		place.Close()
	}
}

// Over random trees of links, every way gives the answer that the kernel's own resolution without
// any containment shows to be right: the same file when it lies inside, a refusal when it does not.
func TestWaysAgree(t *testing.T) {
	texts := []string{"a", "b", "c", "..", "../..", "a/b", "b/a", "../a", "../b/c", "/WS", "/WS/a", "/WS/b/../c", "/OUT", "/OUT/s", "../out", "../out/s", "../ws/a", ".", "absent", "/WS/absent", "c/", "a/."}
	names := []string{"a", "b", "c", "..", ".", "", "absent"}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	rounds := 60
	if testing.Short() {
		rounds = 10
	}
	for range rounds {
		base := tempDir(t)
		ws, out := base+"/ws", base+"/out"
		plant(t, base, map[string]string{"ws/": "", "out/s": "secret"})
		fill(t, rnd, ws, 3, func() string {
			return strings.NewReplacer("/WS", ws, "/OUT", out).Replace(texts[rnd.IntN(len(texts))])
		})
		trees := map[string]*Tree{}
		for name, how := range ways() {
			trees[name] = open(t, how, workspace(ws))
		}
		for range 200 {
			var parts []string
			for range 1 + rnd.IntN(5) {
				parts = append(parts, names[rnd.IntN(len(names))])
			}
			p := strings.Join(parts, "/")
			if p == "" || p[0] == '/' {
				p = "." + p
			}
			agree(t, trees, ws, p)
		}
		for _, tree := range trees {
			_ = tree // closed by the test's cleanup
		}
	}
}

// fill makes a random tree of the names a, b and c.
func fill(t *testing.T, rnd *rand.Rand, dir string, depth int, text func() string) {
	for _, name := range []string{"a", "b", "c"} {
		p := dir + "/" + name
		switch k := rnd.IntN(5); {
		case k == 0:
			must(t, os.WriteFile(p, []byte("inside"), 0o644))
		case k <= 2 && depth > 0:
			must(t, os.Mkdir(p, 0o755))
			fill(t, rnd, p, depth-1, text)
		default:
			must(t, os.Symlink(text(), p))
		}
	}
}

// agree compares all ways with each other and with the truth.
func agree(t *testing.T, trees map[string]*Tree, ws, p string) {
	t.Helper()
	var real string
	fd, truth := unix.Open(ws+"/"+p, unix.O_PATH|unix.O_CLOEXEC, 0)
	var st unix.Stat_t
	if truth == nil {
		must(t, unix.Fstat(fd, &st))
		var err error
		real, err = readlinkat(unix.AT_FDCWD, "/proc/self/fd/"+fdName(fd))
		must(t, err)
		Close(fd)
	}
	_, inside := Below(ws, real)
	answers := map[string]string{}
	for name, tree := range trees {
		h, err := tree.Open(p, 0)
		switch {
		case err == nil && (truth != nil || !inside || h.Stat.Inode != st.Ino):
			t.Errorf("%s: %q leads to %q (%v), and was opened", name, p, real, truth)
		case err != nil && truth == nil && inside && !errors.Is(err, errOut):
			t.Errorf("%s: %q leads to %q: %v", name, p, real, err)
		case err != nil && truth == nil && !inside && !errors.Is(err, errOut):
			t.Errorf("%s: %q leads out to %q: %v", name, p, real, err)
		}
		answers[name] = "ok"
		if err != nil {
			answers[name] = err.Error()
		} else {
			h.Close()
		}
	}
	for name, answer := range answers {
		if answer != answers["kernel"] && trees[name].HasProc() {
			t.Errorf("%q: kernel says %q, %s says %q", p, answers["kernel"], name, answer)
		}
	}
}

// An honest path inside is opened by every way, as the standard library would.
func TestHarmlessPathsLikeTheStandardLibrary(t *testing.T) {
	ws, _ := fixture(t)
	trees := map[string]*Tree{}
	for name, how := range ways() {
		trees[name] = open(t, how, workspace(ws))
	}
	elems := []string{"d", "e", "f", "ld", "lf", "labs", "up", ".", "..", "x"}
	rapid.Check(t, func(t *rapid.T) {
		p := strings.Join(rapid.SliceOfN(rapid.SampledFrom(elems), 1, 6).Draw(t, "path"), "/")
		want, werr := os.Stat(ws + "/" + p)
		real, rerr := filepath.EvalSymlinks(ws + "/" + p)
		if _, inside := Below(ws, real); rerr == nil && !inside {
			return
		}
		for name, tree := range trees {
			h, err := tree.Open(p, 0)
			if errors.Is(err, errOut) && strings.Contains(p, "..") {
				continue // it may have left on the way
			}
			if (err == nil) != (werr == nil) {
				t.Fatalf("%s: %q: %v, the standard library says %v", name, p, err, werr)
			}
			if err == nil {
				if h.Stat.Inode != want.Sys().(*syscall.Stat_t).Ino {
					t.Fatalf("%s: %q is another file", name, p)
				}
				h.Close()
			}
		}
	})
}
