package bridgetest

import (
	"strings"

	"github.com/workberth/workberth/fsbridge"
)

// pathChecks prove the rules for names of paths.
func pathChecks() []check {
	return []check{
		{name: "invalid", run: pathsInvalid},
		{name: "longest", run: pathsLongest},
		{name: "spellings", rows: []string{"FSB-04"}, run: pathsSpellings},
	}
}

// pathsInvalid asks every operation for paths that name nothing. Nothing may be sent or changed.
func pathsInvalid(k *kit) {
	k.file("a", "kept")
	list := map[string]string{
		"empty":             "",
		"NUL":               "a\x00b",
		"NUL at the end":    "a\x00",
		"NUL first":         "\x00",
		"5,000 bytes":       strings.Repeat("a/", 2500),
		"4,097 bytes":       strings.Repeat("./", 2048) + "a",
		"element too long":  strings.Repeat("x", 256),
		"element in middle": "a/" + strings.Repeat("x", 256) + "/b",
		"absolute":          k.abs(strings.Repeat("x", 256)),
	}
	k.eachOperation(operations(), func(k *kit, op operation) {
		for what, p := range list {
			got, err := k.do(op, p)
			if op.final == quiet { // a pattern: no match, or a refusal
				if err == nil && len(got) > 0 && p != "" {
					k.Errorf("%s: matched %q", what, got)
				}
				continue
			}
			k.refused(op.name+": "+what, err, fsbridge.ErrInvalidPath)
			k.refused(op.name+": "+what, err, fsbridge.ErrOutsideRoot)
		}
	})
	k.wantContent("a", "kept")
}

// pathsLongest uses the longest element and a path close to the longest one.
func pathsLongest(k *kit) {
	long := strings.Repeat("n", 255)
	k.ok("write", k.b.WriteFile(k.ctx, long, []byte("x")))
	k.wantContent(long, "x")
	k.wantNames(".", long)
	k.ok("write again", k.b.WriteFile(k.ctx, long, []byte("y")))
	got, err := k.b.ReadFile(k.ctx, long)
	k.ok("read", err)
	if string(got) != "y" {
		k.Errorf("read %q", got)
	}
	// A deep tree: as relative path it fits, whatever the root's own length is.
	deep := strings.Repeat(strings.Repeat("d", 199)+"/", 10) + "file"
	k.ok("write", k.b.WriteFile(k.ctx, deep, []byte("deep")))
	got, err = k.b.ReadFile(k.ctx, deep)
	k.ok("read", err)
	if string(got) != "deep" {
		k.Errorf("read %q", got)
	}
	padded := strings.Repeat("./", (fsbridge.MaxPath-len(long))/2-1) + long
	got, err = k.b.ReadFile(k.ctx, padded)
	k.ok("read a path of nearly the greatest length", err)
	if string(got) != "y" {
		k.Errorf("read %q", got)
	}
}

// pathsSpellings reaches one file by every harmless spelling, with every operation that reads.
func pathsSpellings(k *kit) {
	k.file("dir/f", "content")
	k.eachOperation(readOperations(), func(k *kit, op operation) {
		base := "dir/f"
		switch op.name {
		case "list", "list-stream", "walk", "watch":
			base = "dir"
		case "readlink", "glob", "glob-below":
			return
		}
		want, err := k.do(op, base)
		k.ok(op.name, err)
		for _, p := range []string{
			"./" + base, "dir/../" + base, ".//" + base, "dir/.././" + base, k.abs(base), "//" + k.abs(base)[1:],
			k.abs("./" + base), k.abs("dir/../" + base),
		} {
			got, err := k.do(op, p)
			k.ok(op.name+" "+p, err)
			if string(got) != string(want) {
				k.Errorf("%s %q gives %s, want %s", op.name, p, brief(got), brief(want))
			}
		}
	})
}
