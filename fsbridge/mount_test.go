package fsbridge

import (
	"encoding/json"
	"path"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func table() MountTable {
	return MountTable{
		{Path: "/ws", Kind: MountWorkspace},
		{Path: "/ws/m", Kind: MountTmpfs},
		{Path: "/data", Kind: MountBind, ReadOnly: true},
		{Path: "/data/in/ner", Kind: MountBind},
		{Path: "/", Kind: MountSystem, ReadOnly: true},
	}
}

// TestFind compares by whole elements, longest first. C009
func TestFind(t *testing.T) {
	for _, c := range []struct{ p, mount, rest string }{
		{"/ws", "/ws", "."}, {"/ws/", "/ws", "."}, {"/ws/.", "/ws", "."}, {"//ws", "/ws", "."}, {"/./ws//", "/ws", "."},
		{"/ws/x", "/ws", "x"}, {"/ws//x/./y/", "/ws", "x/y"}, {"/ws/x/..", "/ws", "x/.."}, {"/ws/../ws2/x", "/ws", "../ws2/x"},
		{"/ws2", "/", "ws2"}, {"/ws2/x", "/", "ws2/x"}, {"/w", "/", "w"}, {"/wsx", "/", "wsx"}, {"/ws.", "/", "ws."},
		{"/ws/m", "/ws/m", "."}, {"/ws/m/x", "/ws/m", "x"}, {"/ws/mm", "/ws", "mm"}, {"/ws/m/..", "/ws/m", ".."},
		{"/ws/x/../m/f", "/ws", "x/../m/f"}, // ".." is never resolved by text
		{"/data/in/ner/f", "/data/in/ner", "f"}, {"/data/in", "/data", "in"}, {"/data/in/nerd", "/data", "in/nerd"},
		{"/", "/", "."}, {"//", "/", "."}, {"/..", "/", ".."}, {"/etc/passwd", "/", "etc/passwd"},
		{"/ws/\xff\n", "/ws", "\xff\n"}, {"/ws/...", "/ws", "..."}, {"/ws/.hidden", "/ws", ".hidden"},
	} {
		m, rest, ok := table().Find(c.p)
		if !ok || m.Path != c.mount || rest != c.rest {
			t.Errorf("%q: %q, %q, %t; want %q, %q", c.p, m.Path, rest, ok, c.mount, c.rest)
		}
	}
}

// TestFindNothing: what lies in no mount is in none, a sibling whose name begins with the name of a
// root included. C009
func TestFindNothing(t *testing.T) {
	without := table()[:4]
	for _, p := range []string{
		"", ".", "..", "ws", "ws/x", "./ws", "../ws", "data/x", // relative, whatever they spell
		"/", "/ws2", "/ws2/x", "/w", "/wsx/y", "/data2", "/etc", "/.", "/..", "/../ws",
	} {
		if m, rest, ok := without.Find(p); ok || m != (Mount{}) || rest != "" {
			t.Errorf("%q lies in %+v, rest %q", p, m, rest)
		}
	}
	if _, _, ok := MountTable(nil).Find("/ws"); ok {
		t.Error("no table, and yet a mount")
	}
}

// TestFindRootSpellings: the root may be spelled with needless slashes. C009
func TestFindRootSpellings(t *testing.T) {
	for _, root := range []string{"/r", "/r/", "/r/.", "//r", "/./r//"} {
		tab := MountTable{{Path: root, Kind: MountWorkspace}}
		for p, rest := range map[string]string{"/r": ".", "/r/": ".", "/r/x": "x", "//r//x": "x"} {
			if m, got, ok := tab.Find(p); !ok || m.Path != root || got != rest {
				t.Errorf("root %q: %q: %+v, %q, %t", root, p, m, got, ok)
			}
		}
		for _, p := range []string{"/r2", "/r2/x", "/", "/rx", "r", "r/x"} {
			if m, _, ok := tab.Find(p); ok {
				t.Errorf("root %q: %q lies in %+v", root, p, m)
			}
		}
	}
	// A mount without an absolute path holds nothing: a zero Mount must not open everything.
	for _, root := range []string{"", ".", "r", "./r"} {
		for _, p := range []string{"/", "/r", "/r/x", "r", "r/x", ""} {
			if m, _, ok := (MountTable{{Path: root}}).Find(p); ok {
				t.Errorf("root %q: %q lies in %+v", root, p, m)
			}
		}
	}
}

func TestWorkspace(t *testing.T) {
	if m, ok := table().Workspace(); !ok || m.Path != "/ws" {
		t.Errorf("%+v, %t", m, ok)
	}
	if m, ok := table()[1:].Workspace(); ok || m != (Mount{}) {
		t.Errorf("no workspace, and yet %+v", m)
	}
}

// TestMountJSON keeps the names that configuration and output use.
func TestMountJSON(t *testing.T) {
	in := Mount{Path: "/ws", Kind: MountWorkspace, ReadOnly: true, HostPath: "/h"}
	data, err := json.Marshal(in)
	if err != nil || string(data) != `{"path":"/ws","kind":"workspace","readOnly":true,"hostPath":"/h"}` {
		t.Errorf("%s, %v", data, err)
	}
	var out Mount
	if err := json.Unmarshal(data, &out); err != nil || out != in {
		t.Errorf("%+v, %v", out, err)
	}
}

// genPath makes absolute paths of few names, so that they meet.
func genPath(t *rapid.T, label string) string {
	elems := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "ab", "a.", ".", "..", "", "..."}), 0, 6).Draw(t, label)
	return "/" + strings.Join(elems, "/")
}

// TestFindProperties: the mount holds the path, no other holds it more closely, and mount and rest
// put together name the same place.
func TestFindProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tab MountTable
		for range rapid.IntRange(0, 5).Draw(t, "mounts") {
			p := path.Clean(genPath(t, "mount"))
			tab = append(tab, Mount{Path: p})
		}
		p := genPath(t, "path")
		m, rest, ok := tab.Find(p)
		// The reference: elements compared one by one.
		want := -1
		pe := elements(p)
		for i, c := range tab {
			ce := elements(c.Path)
			if len(ce) > len(pe) || strings.Join(ce, "/") != strings.Join(pe[:len(ce)], "/") {
				continue
			}
			if want < 0 || len(ce) > len(elements(tab[want].Path)) {
				want = i
			}
		}
		if ok != (want >= 0) {
			t.Fatalf("%q: found %t, want mount %d", p, ok, want)
		}
		if !ok {
			return
		}
		if strings.Join(elements(m.Path), "/") != strings.Join(elements(tab[want].Path), "/") {
			t.Fatalf("%q lies in %q, want %q", p, m.Path, tab[want].Path)
		}
		if rest == "" || strings.HasPrefix(rest, "/") || strings.HasSuffix(rest, "/") && rest != "/" {
			t.Fatalf("rest %q", rest)
		}
		whole := append(elements(m.Path), elements(rest)...)
		if strings.Join(whole, "/") != strings.Join(pe, "/") {
			t.Fatalf("%q became %q and %q", p, m.Path, rest)
		}
	})
}

// elements are the elements of a path that mean something by their text.
func elements(p string) []string {
	out := []string{}
	for e := range strings.SplitSeq(p, "/") {
		if e != "" && e != "." {
			out = append(out, e)
		}
	}
	return out
}

// FuzzFind: whatever the path, a mount that is found holds it, and nothing below a sibling is found.
func FuzzFind(f *testing.F) {
	for _, p := range []string{"/ws", "/ws2", "/ws/../x", "//ws/./a", "", "ws", "/ws\x00", "/ws/m/../..", "/w\xff"} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, p string) {
		tab := table()[:4]
		m, rest, ok := tab.Find(p)
		if !ok {
			return
		}
		if !strings.HasPrefix(p, "/") || rest == "" || rest[0] == '/' {
			t.Errorf("%q: %+v, rest %q", p, m, rest)
		}
		if got := strings.Join(elements(m.Path+"/"+rest), "/"); got != strings.Join(elements(p), "/") {
			t.Errorf("%q became %q", p, got)
		}
		again, rest2, ok2 := tab.Find(m.Path + "/" + rest)
		if !ok2 || again != m || rest2 != rest {
			t.Errorf("%q: found again as %+v, %q, %t", p, again, rest2, ok2)
		}
	})
}
