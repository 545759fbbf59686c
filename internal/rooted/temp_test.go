//go:build linux

package rooted

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
)

func TestTagged(t *testing.T) {
	const tag = "0123456789abcdef"
	for name, want := range map[string]bool{
		".berth-0123456789abcdef-1":    true,
		".berth-0123456789abcdef-1f":   true,
		".berth-0123456789abcdef-":     false,
		".berth-0123456789abcdef":      false,
		".berth-0123456789abcdee-1":    false,
		".berth-0123456789ABCDEF-1":    false,
		".berth-0123456789abcdef-1x":   false,
		".berth-0123456789abcdef-1-2":  false,
		".berth-0123456789abcdef+1":    false,
		"x.berth-0123456789abcdef-1":   false,
		".berth-0123456789abcdef-1 ":   false,
		".berth-0123456789abcdef-one":  false,
		".berth-0123456789abcdef1-1":   false,
		".berth-0123456789abcdef-+1":   false,
		".berth-0123456789abcdef-0x1":  false,
		".berth-00123456789abcdef-1":   false,
		"":                             false,
		".berth-0123456789abcdef-1/..": false,
	} {
		if Tagged(name, tag) != want {
			t.Errorf("Tagged(%q) is not %v", name, want)
		}
	}
	for tag, want := range map[string]bool{
		"0123456789abcdef": true, "": false, "0123456789abcde": false, "0123456789abcdeF": false, "0123456789abcde/": false, "0123456789abcdef0": false,
	} {
		if ValidTag(tag) != want {
			t.Errorf("ValidTag(%q) is not %v", tag, want)
		}
	}
	n := NewNames(tag)
	a, b := n.New(), n.New()
	if a == b || !n.Ours(a) || !n.Live(a) {
		t.Errorf("names %q and %q", a, b)
	}
	if n.Done(a); n.Live(a) || !n.Live(b) {
		t.Error("a name lives on")
	}
}

func TestTemp(t *testing.T) {
	for name, how := range map[string]Options{"tmpfile": {}, "named": {NoTmpfile: true}, "no-proc": {NoProc: true}} {
		t.Run(name, func(t *testing.T) {
			dir := tempDir(t)
			plant(t, dir, map[string]string{"old": "old", "l": "-> old", "d/x": "x", "sub/": ""})
			tree := open(t, how, workspace(dir))
			names := NewNames("0123456789abcdef")
			h := tree.Roots()[0].Handle()
			before := openFDs(t)
			write := func(finish func(*Temp) error) error {
				tmp, err := tree.NewTemp(&h, 0o644, names)
				must(t, err)
				defer tmp.Discard()
				must(t, WriteAll(tmp.FD, []byte("new")))
				return finish(tmp)
			}
			must(t, write(func(tmp *Temp) error { return tmp.LinkNew(&h, "fresh") }))
			if err := write(func(tmp *Temp) error { return tmp.LinkNew(&h, "old") }); !errors.Is(err, fs.ErrExist) {
				t.Errorf("a taken name: %v", err)
			}
			if err := write(func(tmp *Temp) error { return tmp.LinkNew(&h, "l") }); !errors.Is(err, fs.ErrExist) {
				t.Errorf("a taken name: %v", err)
			}
			if err := write(func(tmp *Temp) error { return tmp.Replace(&h, "d") }); err == nil {
				t.Error("a directory was replaced")
			}
			if got, _ := os.ReadFile(dir + "/old"); string(got) != "old" {
				t.Errorf("old holds %q", got)
			}
			must(t, write(func(tmp *Temp) error { return tmp.Replace(&h, "old") }))
			must(t, write(func(*Temp) error { return nil }))
			sub, err := tree.Child(&h, "sub")
			must(t, err)
			must(t, write(func(tmp *Temp) error { return tmp.LinkNew(&sub, "deeper") }))
			must(t, write(func(tmp *Temp) error { return tmp.Replace(&sub, "deeper") }))
			sub.Close()
			must(t, ReplaceWithLink(names, "d/x", &h, "l"))
			for _, p := range []string{"fresh", "old", "sub/deeper"} {
				if got, _ := os.ReadFile(dir + "/" + p); string(got) != "new" {
					t.Errorf("%s holds %q", p, got)
				}
			}
			if text, _ := os.Readlink(dir + "/l"); text != "d/x" {
				t.Errorf("the link leads to %q", text)
			}
			list, err := os.ReadDir(dir)
			must(t, err)
			for _, e := range list {
				if strings.HasPrefix(e.Name(), tempPrefix) {
					t.Errorf("%s was left", e.Name())
				}
			}
			if n := openFDs(t) - before; n != 0 {
				t.Errorf("%d descriptors leaked", n)
			}
			if len(names.live) != 0 {
				t.Errorf("names live on: %v", names.live)
			}
		})
	}
}

func TestParseOctal(t *testing.T) {
	for s, want := range map[string]uint32{"0022": 0o22, "0": 0, "0777": 0o777, "8": 1 << 31, "": 1 << 31, "777777": 1 << 31} {
		got, ok := parseOctal(s)
		if ok != (want != 1<<31) || ok && got != want {
			t.Errorf("parseOctal(%q) = %o, %v", s, got, ok)
		}
	}
	if _, ok := ProcessUmask(); !ok {
		t.Error("the umask of this process is not known")
	}
}
