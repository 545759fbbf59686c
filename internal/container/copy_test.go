package container

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// copyOf copies a directory into an archive and gives what is in it.
func copyOf(t *testing.T, dir string) (*copier, map[string]*tar.Header, error) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	info, err := root.Stat(".")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	c := &copier{ctx: t.Context(), root: root, w: tar.NewWriter(&out), uid: 7, gid: 8, links: map[inode]string{}}
	if err := c.dir(".", info); err != nil {
		return c, nil, err
	}
	if err := c.w.Close(); err != nil {
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
	c, entries, err := copyOf(t, dir)
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
		if entries[name] != nil || !slices.ContainsFunc(c.left, func(s string) bool { return strings.HasPrefix(s, name+" ") }) {
			t.Errorf("%s: %+v, left out %q", name, entries[name], c.left)
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
	c := &copier{root: root}
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

// A stream of frames gives the output in order, hands errors on, and refuses what is no frame.
func TestAttached(t *testing.T) {
	frame := func(kind byte, text string) string {
		h := [frameHeader]byte{kind}
		binary.BigEndian.PutUint32(h[4:], uint32(len(text)))
		return string(h[:]) + text
	}
	for stream, want := range map[string]struct {
		out, err string
		fails    bool
	}{
		frame(1, "ab") + frame(2, "oops") + frame(1, "") + frame(1, "cd"): {out: "abcd", err: "oops"},
		frame(1, "ab") + frame(1, "cd")[:9]:                               {out: "abc", fails: true},
		frame(1, "ab") + "\x01\x00":                                       {out: "ab", fails: true},
		frame(2, "ab")[:9]:                                                {err: "a", fails: true},
		frame(3, "no such thing"):                                         {fails: true},
		"HTTP/1.1 400 Bad":                                                {fails: true},
		frame(0, "x"):                                                     {fails: true},
		"":                                                                {},
	} {
		var said bytes.Buffer
		out, err := io.ReadAll(Attached(nopCloser{io.Discard}, strings.NewReader(stream), &said))
		if string(out) != want.out || said.String() != want.err || (err != nil) != want.fails {
			t.Errorf("%q: %q, %q, %v", stream, out, said.String(), err)
		}
	}
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }
