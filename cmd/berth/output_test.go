package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/guest/proc"
	"github.com/workberth/workberth/sandbox"
)

// With a limit the head passes at once, the tail at the end, and the number of bytes
// between them is exact, however the output is cut into writes. C075 C077
func TestLimitedOutput(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		limit := rapid.Int64Range(2, 64).Draw(rt, "limit")
		parts := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 50), 0, 12).Draw(rt, "parts")
		whole := bytes.Join(parts, nil)
		var got bytes.Buffer
		o := newOutput(&got, limit)
		for _, p := range parts {
			if n, err := o.Write(p); err != nil || n != len(p) {
				rt.Fatalf("Write = %d, %v", n, err)
			}
		}
		if err := o.finish(); err != nil {
			rt.Fatal(err)
		}
		if int64(len(whole)) <= limit {
			if !bytes.Equal(got.Bytes(), whole) {
				rt.Fatalf("got %q, want %q", got.Bytes(), whole)
			}
			return
		}
		out := o.keep.Output()
		notice := fmt.Sprintf("\n[berth: %d bytes left out]\n", out.Dropped)
		head, tail, ok := bytes.Cut(got.Bytes(), []byte(notice))
		if !ok || !bytes.HasPrefix(whole, head) || !bytes.HasSuffix(whole, tail) || int64(len(head)+len(tail))+out.Dropped != int64(len(whole)) {
			rt.Fatalf("got %q of %q", got.Bytes(), whole)
		}
	})
}

func TestUnlimitedOutputKeepsNothing(t *testing.T) {
	var got bytes.Buffer
	o := newOutput(&got, 0)
	for range 3 {
		if _, err := o.Write([]byte("abc")); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.finish(); err != nil || got.String() != "abcabcabc" || o.keep != nil {
		t.Errorf("%q %v", got.String(), err)
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// C191: a disk that is full is an error, also for output that is kept to the end.
func TestOutputThatCannotBeWritten(t *testing.T) {
	o := newOutput(fullDisk{}, 0)
	if _, err := o.Write([]byte("x")); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Write: %v", err)
	}
	if err := o.finish(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("finish: %v", err)
	}
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		err    error
		code   int
		remedy string
	}{
		{commandExit(44), 44, ""},
		{&proc.StartError{Reason: proc.NoCommand, What: "x"}, 127, "installed where the command runs"},
		{&proc.StartError{Reason: proc.NotExecutable, What: "x"}, 126, "execute bit"},
		{&proc.StartError{Reason: proc.NoDirectory, What: "x"}, 125, "--workdir"},
		{&proc.StartError{Reason: proc.LimitReached, What: "x"}, 126, "limits"},
		{&sandbox.Problem{What: "x", Remedy: "do this", Err: sandbox.ErrRefused}, 125, "do this"},
		{&usageError{errors.New("x")}, 125, "--help"},
		{&fsbridge.PathError{Op: "read", Path: "x", Err: fsbridge.ErrOutsideRoot}, 1, "explain x"},
		{&fsbridge.PathError{Op: "write", Path: "x", Err: &fsbridge.ConflictError{}}, 1, "read the file again"},
		{&fsbridge.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, 1, "make room"},
		{fmt.Errorf("x: %w", sandbox.ErrGone), 125, "again"},
		{context.DeadlineExceeded, 124, "--timeout"},
		{context.Canceled, 130, ""},
		{errors.New("x"), 1, ""},
	} {
		var stderr strings.Builder
		a := &app{stderr: &stderr}
		if got := a.report(c.err); got != c.code {
			t.Errorf("%v: exit code %d, want %d", c.err, got, c.code)
		}
		if !strings.Contains(stderr.String(), c.remedy) {
			t.Errorf("%v: %q does not say %q", c.err, stderr.String(), c.remedy)
		}
		if n := strings.Count(stderr.String(), "\n"); n > 2 {
			t.Errorf("%v: %d lines: %q", c.err, n, stderr.String())
		}
	}
}

// C127: what is printed cannot act on the terminal.
func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"plain ü 日本":            "plain ü 日本",
		"\x1b[31mred\a":         `\x1b[31mred\x07`,
		"memo\u202egpj.sh":      `memo\xe2\x80\xaegpj.sh`,
		"zero\u200bwidth\ufeff": `zero\xe2\x80\x8bwidth\xef\xbb\xbf`,
		`back\slash`:            `back\slash`,
		"line\nbreak":           `line\x0abreak`,
	} {
		if got := printable(in); got != want {
			t.Errorf("printable(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestParseMode(t *testing.T) {
	for in, want := range map[string]fsbridge.Mode{"644": 0o644, "0644": 0o644, "0755": 0o755, "4755": 0o4755} {
		if got, err := parseMode(in); err != nil || got != want {
			t.Errorf("parseMode(%q) = %o, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "7", "64", "0o644", "648", "-644", "rwx", "77777", "177777"} {
		if got, err := parseMode(in); err == nil {
			t.Errorf("parseMode(%q) = %o, want an error", in, got)
		}
	}
}

func TestParseSignal(t *testing.T) {
	for in, want := range map[string]int{"TERM": 15, "sigkill": 9, "SIGHUP": 1, "10": 10, "64": 64} {
		if got, err := parseSignal(in); err != nil || got != want {
			t.Errorf("parseSignal(%q) = %d, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "0", "-1", "65", "NOSUCH", "SIG"} {
		if got, err := parseSignal(in); err == nil {
			t.Errorf("parseSignal(%q) = %d, want an error", in, got)
		}
	}
}

func TestLongMode(t *testing.T) {
	for _, c := range []struct {
		info fsbridge.FileInfo
		want string
	}{
		{fsbridge.FileInfo{Type: fsbridge.TypeRegular, Mode: 0o644}, "-rw-r--r--"},
		{fsbridge.FileInfo{Type: fsbridge.TypeDir, Mode: 0o1777}, "drwxrwxrwt"},
		{fsbridge.FileInfo{Type: fsbridge.TypeRegular, Mode: 0o6711}, "-rws--s--x"},
		{fsbridge.FileInfo{Type: fsbridge.TypeRegular, Mode: 0o4600}, "-rwS------"},
		{fsbridge.FileInfo{Type: fsbridge.TypeFIFO, Mode: 0}, "p---------"},
		{fsbridge.FileInfo{Type: fsbridge.TypeUnknown}, "?---------"},
	} {
		if got := longMode(c.info); got != c.want {
			t.Errorf("longMode(%+v) = %s, want %s", c.info, got, c.want)
		}
	}
}
