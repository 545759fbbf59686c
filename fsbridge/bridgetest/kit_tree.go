package bridgetest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"

	"github.com/workberth/workberth/fsbridge"
)

// tree describes everything below the directory at p, one text per file: type, mode, times, inode
// and a hash of the content. Two equal trees are the same files, untouched.
func (k *kit) tree(p string) map[string]string {
	k.Helper()
	out := map[string]string{}
	k.addTree(out, k.abs(p), ".")
	return out
}

func (k *kit) addTree(out map[string]string, p, rel string) {
	k.Helper()
	n, err := k.env.Oracle.Look(p)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		k.Fatalf("oracle: look at %q: %v", p, err)
	}
	text := fmt.Sprintf("%s %o inode %d links %d %d", n.Type, n.Mode, n.Inode, n.Nlink, n.ModTime.UnixNano())
	switch n.Type {
	case fsbridge.TypeRegular:
		h := sha256.New()
		r, err := k.env.Oracle.Open(p)
		if err != nil {
			k.Fatalf("oracle: open %q: %v", p, err)
		}
		_, err = io.Copy(h, r)
		if err := errors.Join(err, r.Close()); err != nil {
			k.Fatalf("oracle: read %q: %v", p, err)
		}
		text += fmt.Sprintf(" %d bytes %x", n.Size, h.Sum(nil))
	case fsbridge.TypeSymlink:
		text += fmt.Sprintf(" -> %q", n.Target)
	case fsbridge.TypeDir:
		names, err := k.env.Oracle.Names(p)
		if err != nil {
			k.Fatalf("oracle: list %q: %v", p, err)
		}
		for _, name := range names {
			k.addTree(out, p+"/"+name, rel+"/"+name)
		}
	}
	out[rel] = text
}

// wantSame demands that the tree at p is still as it was.
func (k *kit) wantSame(what, p string, was map[string]string) {
	k.Helper()
	is := k.tree(p)
	for _, name := range slices.Sorted(maps.Keys(was)) {
		switch {
		case is[name] == "":
			k.Errorf("%s: %s is gone", what, name)
		case is[name] != was[name]:
			k.Errorf("%s: %s changed\n  was %s\n  is  %s", what, name, was[name], is[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if was[name] == "" {
			k.Errorf("%s: %s appeared: %s", what, name, is[name])
		}
	}
}

// sealOut fills OUT with secrets and remembers what it looks like.
func (k *kit) sealOut() {
	k.Helper()
	out := k.env.Out
	k.file(out+"/s", k.secret)
	k.file(out+"/src", k.secret)
	k.file(out+"/f.txt", k.secret)
	k.file(out+"/sub/"+k.secret, k.secret)
	k.file(out+"/"+k.secret, k.secret)
	k.sealed = k.tree(out)
}

// verifyOut demands that OUT is exactly as it was.
func (k *kit) verifyOut() {
	k.Helper()
	k.wantSame("OUT, which lies outside every mount", k.env.Out, k.sealed)
}

// verifyNoTemporaries demands that no temporary file is left in any mount.
func (k *kit) verifyNoTemporaries() {
	k.Helper()
	for _, dir := range []string{k.env.Workspace, k.env.Bind} {
		if dir != "" {
			k.findTemporaries(dir)
		}
	}
}

func (k *kit) findTemporaries(dir string) {
	k.Helper()
	names, err := k.env.Oracle.Names(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		k.Fatalf("oracle: list %q: %v", dir, err)
	}
	for _, name := range names {
		p := dir + "/" + name
		if k.target.isTemporary(name) {
			k.Errorf("a temporary file is left: %q", p)
		}
		n, err := k.env.Oracle.Look(p)
		if err == nil && n.Type == fsbridge.TypeDir {
			k.findTemporaries(p)
		}
	}
}
