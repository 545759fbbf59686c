package skills

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/sandboxtest"
	"github.com/workberth/workberth/skills"
	"github.com/workberth/workberth/skills/mirror"
)

// counted is a bridge that tells before which read it is.
type counted struct {
	fsbridge.Bridge
	n    *atomic.Int64
	told func(n int64)
}

func (c counted) ReadFile(ctx context.Context, path string) ([]byte, error) {
	c.told(c.n.Add(1))
	return c.Bridge.ReadFile(ctx, path)
}

// The connection is cut, or the helper killed, while skills are copied: the call fails, every file that
// is there is whole, and the next call finishes. SKL-03 SKL-08
func TestMirrorInterrupted(t *testing.T) {
	t.Parallel()
	kinds := sandboxtest.Kinds()
	if testing.Short() {
		kinds = []sandboxtest.Kind{sandboxtest.Docker, sandboxtest.Host}
	}
	sandboxtest.Each(t, kinds, func(t *testing.T, p *sandboxtest.Place) {
		src := installed(t)
		want := map[string]string{}
		for i := range 60 {
			name, text := fmt.Sprintf("part-%02d", i), strings.Repeat(fmt.Sprintf("part %02d\n", i), 20_000)
			sandboxtest.Write(t, src.dir, "one/"+name, text, 0o644)
			want[mirror.DefaultDir+"/one/"+name] = text
		}
		var err error
		src.discovery, err = skills.Discover(t.Context(), src.bridge, src.discovery.Roots, nil, skills.Options{Parallel: 8})
		if err != nil {
			t.Fatal(err)
		}
		l := src.list(t, skills.Policy{})
		sb, c, err := p.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		b, err := sb.Bridge(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		from := counted{Bridge: src.bridge, n: &atomic.Int64{}, told: func(n int64) {
			switch {
			case n != 30:
			case p.Kind.Overland():
				p.Cut()
			default:
				p.KillHelper()
			}
		}}
		_, err = mirror.Sync(t.Context(), l, from, b, mirror.Options{Parallel: 4})
		_ = c.Close() // it is gone
		if err == nil {
			t.Fatal("the copy is said to be complete")
		}
		for name, text := range sandboxtest.Tree(t, p.Root) {
			if whole, ok := want[name]; ok && text != whole {
				t.Errorf("%s has %d bytes", name, len(text))
			}
		}
		if b, err = p.Sandbox(t).Bridge(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if _, err := mirror.Sync(t.Context(), l, src.bridge, b, mirror.Options{}); err != nil {
			t.Fatal(err)
		}
		got := sandboxtest.Tree(t, p.Root)
		for name, text := range want {
			if got[name] != text {
				t.Errorf("%s has %d bytes after the second call", name, len(got[name]))
			}
			delete(got, name)
		}
		if len(got) != 3 { // SKILL.md, run.sh and the record
			t.Errorf("besides there are %q", slices.Sorted(maps.Keys(got)))
		}
	})
}
