//go:build linux

package rooted

import (
	"errors"
	"strings"
	"testing"

	"github.com/workberth/workberth/fsbridge"
	"golang.org/x/sys/unix"
)

// FuzzOpen feeds arbitrary paths to every way of resolving, over a workspace full of links. Whatever
// is opened lies in the workspace, and all ways agree.
func FuzzOpen(f *testing.F) {
	ws, _ := fixture(f)
	trees := map[string]*Tree{"kernel": open(f, Options{}, workspace(ws)), "careful": open(f, Options{NoOpenat2: true}, workspace(ws))}
	for _, p := range []string{
		"f", "d/../f", "out/s", "outabss", "labs/../f", "../out/s", "/etc/passwd", "procroot/etc/passwd", "viaalias",
		"viaaliasdir/../s", "around", "loop1", "WS/f", "WS/../out/s", "slash/.", "d/out/../out/s", "ld/up/..", "root/WS/f", "aroundabs",
	} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, p string) {
		p = strings.ReplaceAll(p, "WS", ws)
		if fsbridge.ValidPath(p) != nil {
			return
		}
		var answers [2]string
		for i, name := range []string{"kernel", "careful"} {
			tree := trees[name]
			for _, flags := range []Flags{0, NoFollow} {
				h, err := tree.Open(p, flags)
				if err != nil {
					var escape *EscapeError
					if errors.As(err, &escape) {
						err = errOut // the hints may differ
					}
					answers[i] += err.Error() + ";"
					continue
				}
				at, err := tree.Location(&h)
				must(t, err)
				h.Close()
				if _, inside := Below(ws, at); !inside {
					t.Fatalf("%s: %q leads to %q", name, p, at)
				}
				answers[i] += at + ";"
			}
			place, err := tree.Target(p, nil)
			if err != nil {
				continue
			}
			at, err := tree.Location(&place.Dir)
			must(t, err)
			place.Close()
			if _, inside := Below(ws, at); !inside {
				t.Fatalf("%s: the place of %q is in %q", name, p, at)
			}
		}
		if answers[0] != answers[1] && !strings.Contains(answers[0]+answers[1], unix.ENAMETOOLONG.Error()) {
			t.Fatalf("%q: kernel says %q, the careful walk %q", p, answers[0], answers[1])
		}
	})
}
