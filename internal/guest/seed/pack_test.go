package seed

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// packedOf copies a directory into an archive and gives what is in it.
func packedOf(t *testing.T, dir string) (*Packer, map[string]*tar.Header, error) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	c := NewPacker(w, root, Owner{UID: 7, GID: 8})
	if err := c.Below(t.Context()); err != nil {
		return c, nil, err
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	entries := map[string]*tar.Header{}
	for r := tar.NewReader(&out); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return c, entries, nil
		}
		if err != nil {
			t.Fatal(err)
		}
		entries[h.Name] = h
	}
}

// Names are bytes, links are what they say, and what leads out or is no file is told and left out. C051
func TestCopy(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	long := strings.Repeat("long/", 60) + "name"
	if err := errors.Join(
		os.MkdirAll(filepath.Dir(at(long)), 0o755), os.WriteFile(at(long), []byte("l"), 0o600), os.WriteFile(at("not\xfftext"), []byte("n"), 0o755),
		os.WriteFile(at("one"), []byte("1"), 0o644), os.Link(at("one"), at("two")), os.Mkdir(at("d"), 0o700),
		os.Symlink("../one", at("d/in")), os.Symlink("../../x", at("d/out")), os.Symlink("/one", at("abs")), os.Symlink("..", at("up")), os.Symlink("d/../..x", at("odd")),
	); err != nil {
		t.Fatal(err)
	}
	c, entries, err := packedOf(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, check := range map[string]func(h *tar.Header) bool{
		long:          func(h *tar.Header) bool { return h.Size == 1 && h.Mode == 0o600 },
		"not\xfftext": func(h *tar.Header) bool { return h.Size == 1 && h.Mode == 0o755 },
		"one":         func(h *tar.Header) bool { return h.Typeflag == tar.TypeReg },
		"two":         func(h *tar.Header) bool { return h.Typeflag == tar.TypeLink && h.Linkname == "one" && h.Mode == 0o644 },
		"d/":          func(h *tar.Header) bool { return h.Typeflag == tar.TypeDir && h.Mode == 0o700 },
		"d/in":        func(h *tar.Header) bool { return h.Typeflag == tar.TypeSymlink && h.Linkname == "../one" },
		"odd":         func(h *tar.Header) bool { return h.Linkname == "d/../..x" },
	} {
		if h := entries[name]; h == nil || !check(h) || h.Uid != 7 || h.Gid != 8 {
			t.Errorf("%q: %+v", name, h)
		}
	}
	for _, name := range []string{"d/out", "abs", "up"} {
		if entries[name] != nil || !slices.ContainsFunc(c.Done().Left, func(s string) bool { return strings.HasPrefix(s, fmt.Sprintf("%q ", name)) }) {
			t.Errorf("%s: %+v, left out %q", name, entries[name], c.Done().Left)
		}
	}
}

// A file that is another one when it is opened is not copied: nothing comes from outside. C051
func TestCopyWhileChanged(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	secret := filepath.Join(outside, "secret")
	if err := errors.Join(os.WriteFile(secret, []byte("secret"), 0o644), os.WriteFile(filepath.Join(dir, "f"), []byte("f"), 0o644)); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	info, err := root.Lstat("f")
	if err != nil {
		t.Fatal(err)
	}
	c := NewPacker(nil, root, Owner{})
	for what, put := range map[string]func() error{
		"a link out": func() error { return os.Symlink(secret, filepath.Join(dir, "f")) },
		"another":    func() error { return os.WriteFile(filepath.Join(dir, "f"), []byte("g"), 0o644) },
	} {
		if err := errors.Join(os.Rename(filepath.Join(dir, "f"), filepath.Join(dir, "kept-"+what)), put()); err != nil {
			t.Fatal(err)
		}
		if f, err := c.open("f", info, 0); err == nil {
			t.Errorf("%s: opened %s", what, f.Name())
		}
	}
}

// What a killed helper has left goes with a later copy, and what may be at work stays.
func TestStaleHalves(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "odd [name]*")
	old, young := filepath.Join(dir, halfPrefix+"old"), filepath.Join(dir, halfPrefix+"young")
	long := time.Now().Add(-2 * staleAfter)
	if err := errors.Join(os.MkdirAll(filepath.Join(old, "d"), 0o755), os.Mkdir(young, 0o755), os.Chmod(filepath.Join(old, "d"), 0), os.Chtimes(old, long, long)); err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	if _, err := Pack(t.Context(), &archive, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	if err := Unpack(&archive, filepath.Join(dir, "ws")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(old); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the old one: %v", err)
	}
	if _, err := os.Stat(young); err != nil {
		t.Errorf("the young one: %v", err)
	}
}
