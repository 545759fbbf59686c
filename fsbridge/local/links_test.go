//go:build linux

package local

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"github.com/workberth/workberth/fsbridge"
)

// C007 C031
func TestWriteThroughLinks(t *testing.T) {
	eachWay(t, func(t *testing.T, d *dirs) {
		ctx := t.Context()
		d.put(d.in("AGENTS.md"), "a")
		d.link("AGENTS.md", d.in("CLAUDE.md"))
		d.put(d.in("real/conf"), "old")
		d.link("real/conf", d.in("conf"))
		d.link("real", d.in("dir"))
		d.link(d.in("real"), d.in("absdir"))
		d.link(d.in("real/conf"), d.in("abs"))
		d.link("conf", d.in("chain"))
		d.link("real/new", d.in("dangling"))
		d.link("real/sub/deep", d.in("dangling-deep"))
		for link, target := range map[string]string{
			"CLAUDE.md": "AGENTS.md", "conf": "real/conf", "abs": "real/conf", "chain": "real/conf",
			"dangling": "real/new", "dangling-deep": "real/sub/deep",
			"dir/viadir": "real/viadir", "absdir/viaabs": "real/viaabs", "absdir/new/parents": "real/new-parents",
		} {
			if link == "absdir/new/parents" {
				link, target = "absdir/np/x", "real/np/x"
			}
			before, _ := os.Readlink(d.in(link))
			if err := d.b.WriteFile(ctx, link, []byte("via "+link)); err != nil {
				t.Errorf("write %s: %v", link, err)
				continue
			}
			if got := d.get(d.in(target)); got != "via "+link {
				t.Errorf("write %s: %s holds %q", link, target, got)
			}
			if after, _ := os.Readlink(d.in(link)); after != before {
				t.Errorf("write %s: link is now %q, was %q", link, after, before)
			}
			data, err := d.b.ReadFile(ctx, link)
			if err != nil || string(data) != "via "+link {
				t.Errorf("read %s: %q, %v", link, data, err)
			}
		}
	})
}

// A link to a path that goes through a directory outside and comes back is honest where it exists.
func TestLinkThroughAliasOutside(t *testing.T) {
	for _, name := range []string{"kernel", "careful"} {
		t.Run(name, func(t *testing.T) {
			d := newDirs(t, ways()[name])
			d.put(d.in("f"), "inside")
			d.link(d.ws, d.at("alias"))
			d.link(d.at("alias/f"), d.in("abs"))
			d.link("../out/alias/f", d.in("rel"))
			d.link("../ws/f", d.in("back"))
			d.link(d.at("alias/missing"), d.in("dangling"))
			d.link(d.at("alias/../secret"), d.in("dots"))
			d.put(d.at("secret"), "top")
			for _, p := range []string{"abs", "rel", "back"} {
				data, err := d.b.ReadFile(t.Context(), p)
				if err != nil || string(data) != "inside" {
					t.Errorf("%s: %q, %v", p, data, err)
				}
			}
			if _, err := d.b.ReadFile(t.Context(), "dangling"); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, fsbridge.ErrOutsideRoot) {
				t.Errorf("dangling: %v", err)
			}
			if _, err := d.b.ReadFile(t.Context(), "dots"); !errors.Is(err, fsbridge.ErrOutsideRoot) {
				t.Errorf("dots: %v", err)
			}
		})
	}
}

// No answer tells whether something exists outside.
func TestNoOracle(t *testing.T) {
	eachWay(t, func(t *testing.T, d *dirs) {
		d.put(d.at("there"), "x")
		for _, text := range []string{"../out/there", "../out/not", d.at("there"), d.at("not"), "../out/not/deeper", "../out/there/deeper"} {
			must(t, os.RemoveAll(d.in("l")))
			d.link(text, d.in("l"))
			want := `stat l: outside the permitted directories`
			if _, err := d.b.Stat(t.Context(), "l"); err == nil || err.Error() != want || !errors.Is(err, fsbridge.ErrOutsideRoot) {
				t.Errorf("%s: %v", text, err)
			}
			if err := d.b.WriteFile(t.Context(), "l", nil); !errors.Is(err, fsbridge.ErrOutsideRoot) {
				t.Errorf("write through %s: %v", text, err)
			}
		}
	})
}
