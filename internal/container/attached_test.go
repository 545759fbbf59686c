package container

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"testing"
)

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
