//go:build linux

package seed

import (
	"archive/tar"
	"bytes"
	"strings"
	"testing"
)

// forge makes an archive of entries that Pack would not write, in the language of lay.
func forge(t *testing.T, entries []string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Name: e, Typeflag: tar.TypeReg, Mode: 0o644, Format: tar.FormatPAX}
		if name, target, ok := strings.Cut(e, " -> "); ok {
			h.Name, h.Linkname, h.Typeflag = name, target, tar.TypeSymlink
		}
		if name, target, ok := strings.Cut(e, " = "); ok {
			h.Name, h.Linkname, h.Typeflag = name, target, tar.TypeLink
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
