package bridgetest

import (
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestNames: the names of checks are unique and can be selected with -run.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, th := range suite() {
		for _, c := range th.checks {
			name := th.name + "/" + c.name
			if seen[name] {
				t.Errorf("two checks are called %q", name)
			}
			seen[name] = true
			if th.name == "" || c.name == "" || strings.ContainsAny(th.name+c.name, "/ ()_") {
				t.Errorf("check name %q", name)
			}
			if c.run == nil {
				t.Errorf("check %q does nothing", name)
			}
		}
	}
	if len(seen) != len(Checks()) {
		t.Errorf("%d checks, listed are %d", len(seen), len(Checks()))
	}
}

func TestRelative(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"/a/ws", "/a/out", "../out"}, {"/ws", "/out", "../out"}, {"/a/b/ws", "/out", "../../../out"},
		{"/ws", "/ws/in", "in"}, {"/a", "/a", "."},
	} {
		if got := relative(c.from, c.to); got != c.want {
			t.Errorf("from %q to %q: %q, want %q", c.from, c.to, got, c.want)
		}
	}
}

// TestLegit: bytes are legitimate when the racing checks can have written them.
func TestLegit(t *testing.T) {
	for s, want := range map[string]bool{
		"": true, "legit 0": true, "written": true, "legit 0written": true, "writtenwritten": true, "content of from-3": true,
		"content of from-3written": true, "secretX": false, "legit 0secretX": false, "writtensecretX": false, "writte": true, "writtenx": false, "content of ": false,
		"root:x:0:0": false, "content of from-3writtensecretX": false, "content of secretX": false,
	} {
		if got := legit([]byte(s)); got != want {
			t.Errorf("%q: %t, want %t", s, got, want)
		}
	}
}

// TestPattern: different seeds give different bytes, and nothing is short of its length.
func TestPattern(t *testing.T) {
	a, b := pattern(1000, 1), pattern(1000, 2)
	if len(a) != 1000 || slices.Equal(a, b) || slices.Equal(a[:500], a[500:]) || len(pattern(0, 1)) != 0 {
		t.Error("the patterns are not what the checks need")
	}
	if !slices.Equal(a[:10], pattern(10, 1)) {
		t.Error("a shorter pattern is not the beginning of a longer one")
	}
}

// TestHostOracle maps by the longest directory and cleans nothing.
func TestHostOracle(t *testing.T) {
	o := HostOracle{"/": "/host", "/ws": "/tmp/ws", "/ws/m": "/mnt"}
	for p, want := range map[string]string{
		"/ws": "/tmp/ws", "/ws/a/../b": "/tmp/ws/a/../b", "/ws2/x": "/host/ws2/x", "/ws/m/f": "/mnt/f", "/ws/mm": "/tmp/ws/mm", "/etc": "/host/etc",
	} {
		if got, ok := o.HostPath(p); !ok || got != want {
			t.Errorf("%q: %q, want %q", p, got, want)
		}
	}
	if got, ok := (HostOracle{"/ws": "/x"}).HostPath("/ws2"); ok {
		t.Errorf("a sibling is mapped to %q", got)
	}
}
