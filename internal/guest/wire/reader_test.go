package wire_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/workberth/workberth/internal/guest/wire"
)

func frameBytes(kind wire.Kind, stream uint64, payload []byte) []byte {
	f := wire.NewFrame(kind, stream, len(payload))
	defer f.Release()
	f.B = append(f.B, payload...)
	b, _ := f.Bytes()
	return bytes.Clone(b)
}

// Frames come back as they were sent, however the bytes arrive.
func TestFramesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type frame struct {
			kind    wire.Kind
			stream  uint64
			payload []byte
		}
		var want []frame
		var stream []byte
		for range rapid.IntRange(0, 8).Draw(t, "frames") {
			f := frame{
				kind:    wire.Kind(rapid.IntRange(int(wire.KindHello), int(wire.KindCancel)).Draw(t, "kind")),
				stream:  rapid.Uint64().Draw(t, "stream"),
				payload: bytes.Repeat(rapid.SliceOfN(rapid.Byte(), 1, 50).Draw(t, "payload"), rapid.IntRange(0, 2000).Draw(t, "times")),
			}
			want = append(want, f)
			stream = append(stream, frameBytes(f.kind, f.stream, f.payload)...)
		}
		var src io.Reader = bytes.NewReader(stream)
		switch rapid.IntRange(0, 2).Draw(t, "way") {
		case 1:
			src = iotest.HalfReader(src)
		case 2:
			src = iotest.DataErrReader(src)
		}
		r := wire.NewReader(src)
		for i, w := range want {
			f, err := r.Next()
			if err != nil {
				t.Fatalf("frame %d: %v", i, err)
			}
			if f.Kind() != w.kind || f.Stream() != w.stream || !bytes.Equal(f.Payload(), w.payload) {
				t.Fatalf("frame %d: %v, stream %d, %d bytes", i, f.Kind(), f.Stream(), len(f.Payload()))
			}
			f.Release()
		}
		if _, err := r.Next(); err != io.EOF {
			t.Fatalf("after the last frame: %v", err)
		}
	})
}

// Only the end between two frames is the end.
func TestCutFrames(t *testing.T) {
	whole := frameBytes(wire.KindData, 3, []byte("content"))
	for n := range whole {
		_, err := wire.NewReader(bytes.NewReader(whole[:n])).Next()
		want := io.ErrUnexpectedEOF
		if n == 0 {
			want = io.EOF
		}
		if err != want {
			t.Errorf("%d of %d bytes: %v, want %v", n, len(whole), err, want)
		}
	}
	failing := io.MultiReader(bytes.NewReader(whole[:5]), iotest.ErrReader(errors.New("the cable is cut")))
	if _, err := wire.NewReader(failing).Next(); err == nil || err.Error() != "the cable is cut" {
		t.Errorf("failing transport: %v", err)
	}
}

func TestLargestFrame(t *testing.T) {
	f := wire.NewFrame(wire.KindData, 1, wire.MaxFrame)
	f.B = append(f.B, make([]byte, wire.MaxFrame-(wire.HeaderSize-4))...)
	b, ok := f.Bytes()
	if !ok {
		t.Fatal("the largest frame is too large")
	}
	got, err := wire.NewReader(bytes.NewReader(b)).Next()
	if err != nil || len(got.B) != wire.MaxFrame+4 {
		t.Fatalf("%v", err)
	}
	f.B = append(f.B, 0)
	if _, ok := f.Bytes(); ok {
		t.Error("a frame beyond the largest may be sent")
	}
}

// A length is believed only as far as bytes have come.
func TestAllocationIsBounded(t *testing.T) {
	claim := []byte{0x00, 0x10, 0x00, 0x00, byte(wire.KindData), 0, 0, 0, 0, 0, 0, 0, 1}
	if n := testing.AllocsPerRun(10, func() {
		_, _ = wire.NewReader(bytes.NewReader(claim)).Next()
	}); n > 20 {
		t.Errorf("%v allocations", n)
	}
	// A list that promises more elements than there are bytes allocates nothing.
	for _, payload := range [][]byte{
		{0xff, 0xff, 0x03},       // 65535 strings, none there
		{0xff, 0xff, 0x03, 0, 0}, // 65535 strings, two there
		{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},
	} {
		d := wire.NewDecoder(payload)
		if list := d.Strings(wire.MaxArgs, wire.MaxFrame); cap(list) > len(payload) {
			t.Errorf("% x: room for %d strings", payload, cap(list))
		}
		if !errors.Is(d.Finish(), wire.ErrProtocol) {
			t.Errorf("% x: %v", payload, d.Finish())
		}
	}
}

func TestSkipTo(t *testing.T) {
	m := wire.Magic
	for name, c := range map[string]struct {
		in, before, after string
		limit             int
		fails             bool
	}{
		"at once":            {m + "x", "", "x", 0, false},
		"after some":         {"abc" + m + "x", "abc", "x", 3, false},
		"one too many":       {"abcd" + m + "x", "abcd", "", 3, true},
		"false starts":       {m[:3] + m[:7] + m + "x", m[:3] + m[:7], "x", 100, false},
		"first byte doubled": {m[:1] + m + "x", m[:1], "x", 10, false},
		"only the first":     {strings.Repeat("q", 5000) + m + "x", strings.Repeat("q", wire.MaxQuote), "x", 5000, false},
		"never":              {"abc", "abc", "", 10, true},
		"cut magic":          {"abc" + m[:7], "abc", "", 10, true},
		"nothing":            {"", "", "", 10, true},
	} {
		src := strings.NewReader(c.in)
		r := wire.NewReader(src)
		before, err := r.SkipTo(m, c.limit)
		if (err != nil) != c.fails || string(before) != c.before {
			t.Errorf("%s: %q, %v", name, before, err)
		}
		if !c.fails && r.Buffered() != len(c.after) {
			t.Errorf("%s: %d bytes are left, want %q", name, r.Buffered(), c.after)
		}
	}
}

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"":                      "",
		"plain":                 "plain",
		"grüße":                 "grüße",
		"a\nb\r\n\r\nc\t":       "a b c",
		"\x1b[31mred":           `\x1b[31mred`,
		"bad \xff byte":         `bad \xff byte`,
		"\u202eright to left":   `\xe2\x80\xaeright to left`,
		"nul\x00":               `nul\x00`,
		strings.Repeat("l", 30): strings.Repeat("l", 20) + "...",
		"back\\slash":           `back\slash`,
		"replacement \ufffd":    "replacement \ufffd",
	} {
		if got := wire.Printable(in, 20); len(in) <= 20 && got != want || len(in) > 20 && !strings.HasPrefix(got, want[:5]) {
			t.Errorf("Printable(%q) = %q, want %q", in, got, want)
		}
	}
}

// stutter yields its bytes one at a time, and a deadline before each of them.
type stutter struct {
	bytes []byte
	turn  bool
}

func (s *stutter) Read(p []byte) (int, error) {
	if s.turn = !s.turn; s.turn {
		return 0, os.ErrDeadlineExceeded
	}
	if len(s.bytes) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:1], s.bytes)
	s.bytes = s.bytes[n:]
	return n, nil
}

// A deadline interrupts reading and loses nothing.
func TestReaderGoesOnAfterDeadline(t *testing.T) {
	payload := bytes.Repeat([]byte("0123456789"), 50)
	r := wire.NewReader(&stutter{bytes: append(frameBytes(wire.KindData, 7, payload), frameBytes(wire.KindEnd, 8, nil)...)})
	var got []uint64
	deadlines := 0
	for {
		f, err := r.Next()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			deadlines++
			continue
		}
		if err != nil {
			if err != io.EOF {
				t.Errorf("at the end: %v", err)
			}
			break
		}
		if f.Kind() == wire.KindData && !bytes.Equal(f.Payload(), payload) {
			t.Errorf("payload of %d bytes", len(f.Payload()))
		}
		got = append(got, f.Stream())
		f.Release()
	}
	if len(got) != 2 || got[0] != 7 || got[1] != 8 || deadlines < len(payload) {
		t.Errorf("streams %d after %d deadlines", got, deadlines)
	}
}
