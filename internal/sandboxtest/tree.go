package sandboxtest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Write makes a file below a directory of this machine, and the directories on the way to it.
func Write(t testing.TB, dir, name, text string, mode os.FileMode) {
	t.Helper()
	p := filepath.Join(dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(text), mode)); err != nil {
		t.Fatal(err)
	}
}

// Tree maps the regular files below a directory of this machine, by their paths below it, to their
// content.
func Tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(p)
		found[strings.TrimPrefix(p, dir+"/")] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// WantTree fails the test where a directory holds other regular files than these, or others in them.
func WantTree(t testing.TB, dir string, want map[string]string) {
	t.Helper()
	got := Tree(t, dir)
	for name, data := range want {
		is, ok := got[name]
		switch {
		case !ok:
			t.Errorf("%q is missing", name)
		case is != data:
			t.Errorf("%q has %d bytes, want %d others", name, len(is), len(data))
		}
		delete(got, name)
	}
	for name, data := range got {
		t.Errorf("%q is there, with %d bytes", name, len(data))
	}
}
