package bridgetest

import (
	"errors"
	"slices"

	"github.com/workberth/workberth/fsbridge"
)

// declaredChecks compare what the bridge declares with what is expected and with what it does.
func declaredChecks() []check {
	return []check{
		{name: "as-expected", rows: []string{"FSB-01"}, run: declaredAsExpected},
		{name: "missing-refused", rows: []string{"FSB-09", "FSB-07"}, run: declaredMissing},
		{name: "core-only", rows: []string{"FSB-01", "FSB-07", "FSB-09"}, run: declaredCoreOnly},
	}
}

// declaredAsExpected compares the two lists. FSB-01
func declaredAsExpected(k *kit) {
	got := fsbridge.CapabilitiesOf(k.b)
	if k.target.Declared == nil {
		k.Logf("%s declares %q", k.target.Name, got)
		return
	}
	for _, c := range fsbridge.AllCapabilities() {
		want := slices.Contains(k.target.Declared, c)
		if has := slices.Contains(got, c); has != want {
			k.Errorf("capability %q: declared %t, want %t", c, has, want)
		}
	}
	for _, c := range k.target.Declared {
		if !slices.Contains(fsbridge.AllCapabilities(), c) {
			k.Errorf("the target expects a capability %q, which does not exist", c)
		}
	}
}

// declaredMissing asks for everything that is not declared: each call is refused by name, and has
// no effect. FSB-09
func declaredMissing(k *kit) {
	k.file("f", "content")
	k.dir("d")
	was := k.tree(".")
	for _, op := range operations() {
		if op.cap == "" || k.has(op.cap) {
			continue
		}
		for _, p := range []string{"f", "d", "absent"} {
			aux := k.tree(".") // operations on two paths prepare a file
			got, err := k.do(op, p)
			k.unsupported(op.name+" "+p, err, op.cap)
			if len(got) > 0 && string(got) != "" {
				k.Errorf("%s %s: refused, and yet there is a result %q", op.name, p, got)
			}
			for name, text := range aux {
				if is := k.tree(".")[name]; is != text && name != "." {
					k.Errorf("%s %s: refused, and yet %s changed from %s to %s", op.name, p, name, text, is)
				}
			}
		}
	}
	for name, text := range was {
		if is := k.tree(".")[name]; is != text && name != "." {
			k.Errorf("%s changed from %s to %s", name, text, is)
		}
	}
	if !k.has(fsbridge.CapMounts) && fsbridge.Mounts(k.b) != nil {
		k.Error("mounts are not declared, and yet told")
	}
}

// unsupported demands the error of FSB-09.
func (k *kit) unsupported(what string, err error, c fsbridge.Capability) {
	k.Helper()
	k.refused(what, err, fsbridge.ErrUnsupported)
	var ue *fsbridge.UnsupportedError
	if !errors.As(err, &ue) || ue.Capability != c {
		k.Errorf("%s: error %v does not name capability %q", what, err, c)
	}
}

// coreOnly is a bridge with the three core methods and nothing else.
type coreOnly struct{ fsbridge.Bridge }

// declaredCoreOnly strips the bridge to its core: single files are still served, everything else
// is refused by name. FSB-01 FSB-07 FSB-09
func declaredCoreOnly(k *kit) {
	k.b = coreOnly{k.b}
	k.ok("write", k.b.WriteFile(k.ctx, "AGENTS.md", []byte("text")))
	data, err := k.b.ReadFile(k.ctx, "AGENTS.md")
	k.ok("read", err)
	if string(data) != "text" {
		k.Errorf("read %q", data)
	}
	i, err := k.b.Stat(k.ctx, "AGENTS.md")
	k.ok("stat", err)
	if i.Size != 4 || !i.IsRegular() {
		k.Errorf("stat: %+v", i)
	}
	for _, op := range operations() {
		if op.cap != "" {
			_, err := k.do(op, "AGENTS.md")
			k.unsupported(op.name, err, op.cap)
		}
	}
	k.wantContent("AGENTS.md", "text")
}
