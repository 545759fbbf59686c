package libpod

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/workberth/workberth/internal/container"
)

// frame makes a frame of a multiplexed stream.
func frame(stream byte, text string) string {
	n := len(text)
	return string([]byte{stream, 0, 0, 0, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}) + text
}

func TestDemultiplex(t *testing.T) {
	long := strings.Repeat("x", 70_000)
	for _, tc := range []struct {
		name, in, want string
		err            error // any streamError for errTooLong
	}{
		{"nothing", "", "", nil},
		{"both streams", frame(1, "a\n") + frame(2, "b\n") + frame(1, "") + frame(1, "c"), "a\nb\nc", nil},
		{"long", frame(1, long) + frame(2, long), long + long, nil},
		{"binary", frame(1, "\x00\xff\x01"), "\x00\xff\x01", nil},
		{"cut in a header", frame(1, "a") + "\x01\x00", "", io.ErrUnexpectedEOF},
		{"cut in a frame", frame(1, "abc")[:10], "", io.ErrUnexpectedEOF},
		{"cut after a header", frame(1, "abc")[:8], "", io.ErrUnexpectedEOF},
		{"no header", "plain text\n", "", errTooLong},
		{"unknown stream", frame(4, "a"), "", errTooLong},
		{"too long", "\x01\x00\x00\x00\xff\xff\xff\xff", "", errTooLong},
		{"too long together", strings.Repeat(frame(1, long), 3), "", errTooLong},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, from := range []io.Reader{strings.NewReader(tc.in), iotest.OneByteReader(strings.NewReader(tc.in))} {
				got, err := demultiplex(from, 150_000)
				var fault *streamError
				if tc.err == errTooLong {
					if !errors.As(err, &fault) {
						t.Errorf("err = %v", err)
					}
				} else if string(got) != tc.want || !errors.Is(err, tc.err) {
					t.Errorf("demultiplex = %.50q, %v; want %.50q, %v", got, err, tc.want, tc.err)
				}
			}
		})
	}
}

func FuzzDemultiplex(f *testing.F) {
	f.Add([]byte(frame(1, "a\n") + frame(2, "b")))
	f.Add([]byte("\x01\x00\x00\x00\xff\xff\xff\xff"))
	f.Add([]byte("plain"))
	f.Fuzz(func(t *testing.T, in []byte) {
		got, err := demultiplex(bytes.NewReader(in), 1000)
		if len(got) > 1000 || err == nil && len(got) > len(in) {
			t.Errorf("%d bytes of %d, %v", len(got), len(in), err)
		}
	})
}

func TestLastLines(t *testing.T) {
	for _, tc := range []struct {
		text  string
		lines int
		want  string
	}{
		{"", 3, ""}, {"a", 1, "a"}, {"a\n", 1, "a\n"}, {"a\nb\n", 1, "b\n"}, {"a\nb", 1, "b"}, {"a\nb\n", 2, "a\nb\n"},
		{"a\nb\n", 9, "a\nb\n"}, {"a\n\n\n", 2, "\n\n"}, {"\n", 1, "\n"}, {"a\nb", 0, ""}, {"a", -1, ""},
	} {
		if got := lastLines([]byte(tc.text), tc.lines); string(got) != tc.want {
			t.Errorf("lastLines(%q, %d) = %q, want %q", tc.text, tc.lines, got, tc.want)
		}
	}
}

func TestLogs(t *testing.T) {
	c := serve(t, map[string]http.HandlerFunc{
		"GET /containers/x/logs":      say(200, frame(1, "one\n")+frame(2, "two\n")),
		"GET /containers/plain/logs":  say(200, "one\ntwo\n"),
		"GET /containers/gone/logs":   say(404, `{"message":"no such container"}`),
		"GET /containers/broken/logs": say(200, frame(1, "one\n")[:9]),
	})
	if got, err := c.Logs(t.Context(), "x", 1, time.Time{}); err != nil || string(got) != "two\n" {
		t.Errorf("Logs = %q, %v", got, err)
	}
	if got, err := c.Logs(t.Context(), "plain", 1, time.Time{}); err == nil || errors.Is(err, container.ErrUnreachable) {
		t.Errorf("Logs of a plain stream = %q, %v", got, err)
	}
	if _, err := c.Logs(t.Context(), "gone", 1, time.Time{}); !errors.Is(err, container.ErrNotFound) {
		t.Errorf("Logs = %v", err)
	}
	if _, err := c.Logs(t.Context(), "broken", 1, time.Time{}); !errors.Is(err, container.ErrUnreachable) {
		t.Errorf("Logs cut off = %v", err)
	}
}
