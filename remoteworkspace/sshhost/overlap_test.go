package sshhost

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pkg/sftp"
)

// What is written last wins, wherever it lies and whatever came before it in which order.
func TestSFTPLastWriteWins(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.client(t)
	type part struct {
		text string
		at   int64
	}
	for name, tc := range map[string]struct {
		parts []part
		want  string
	}{
		"over-what-waits":      {[]part{{"bbbb", 4}, {"aaaaaa", 0}}, "aaaaaabb"},
		"over-all-that-waits":  {[]part{{"bb", 2}, {"aaaaaa", 0}}, "aaaaaa"},
		"waiting-over-waiting": {[]part{{"bbbb", 4}, {"cccc", 2}, {"dddd", 6}, {"ee", 5}, {"aa", 0}}, "aaccceeddd"},
		"nothing-adds-nothing": {[]part{{"aaaa", 0}, {"", 100}, {"", 2}}, "aaaa"},
		"nothing-at-all":       {[]part{{"", 100}}, ""},
	} {
		f, err := c.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range tc.parts {
			if _, err := f.WriteAt([]byte(p.text), p.at); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := r.content(t, name); got != tc.want {
			t.Errorf("%s holds %q, want %q", name, got, tc.want)
		}
	}
}

// A client that writes single bytes, none of them the next, cannot make the server hold a part for each.
func TestSFTPManySmallParts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	f := &files{s: &session{conn: &conn{srv: r.Server}}, writers: map[string]*writer{}}
	w := &writer{f: f, path: "/workspace/x"}
	for i := range int64(4 * maxAhead) {
		if _, err := w.WriteAt([]byte("x"), 2+2*i); err != nil {
			t.Fatal(err)
		}
		if len(w.ahead) > maxAhead {
			t.Fatalf("%d parts wait", len(w.ahead))
		}
	}
	if w.copy == nil || w.size != 8*maxAhead+1 {
		t.Fatalf("copy %v, size %d", w.copy, w.size)
	}
	w.copy.close()
	if m, d := r.spool.memory.Load(), r.spool.disk.Load(); m != 0 || d != 0 {
		t.Errorf("%d bytes of memory and %d of disk are still counted", m, d)
	}
}

// An upload of which a part was lost does not end well, and its rest does not become the file.
func TestSFTPFailureStays(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.client(t)
	for name, fault := range map[string]func(*sftp.File) error{
		"read":     func(f *sftp.File) error { _, err := f.ReadAt(make([]byte, 1), 0); return err },
		"truncate": func(f *sftp.File) error { return f.Truncate(2) },
		"rename":   func(f *sftp.File) error { return c.Rename(f.Name(), f.Name()+"2") },
	} {
		f, err := c.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte("first"), 0); err != nil {
			t.Fatal(err)
		}
		r.breakSpool(t, func() {
			if err := fault(f); err == nil {
				t.Errorf("%s: nothing failed", name)
			}
		})
		if _, err := f.WriteAt([]byte("rest"), 5); err == nil {
			t.Errorf("%s: the upload goes on", name)
		}
		if err := f.Close(); err == nil {
			t.Errorf("%s: the upload ends well", name)
		}
		if got := r.content(t, name); got == "rest" {
			t.Errorf("%s: the file holds the rest alone", name)
		}
	}
}

// breakSpool does something while the server has no disk to spare.
func (r *rig) breakSpool(t *testing.T, do func()) {
	t.Helper()
	s := r.spool
	if !reserve(&s.disk, s.maxDisk, s.maxDisk) {
		t.Fatal("the spool is in use")
	}
	defer s.disk.Add(-s.maxDisk)
	do()
}

// Appended data stays, whatever else is asked of the file.
func TestSFTPAppend(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.client(t)
	appendTo := func(name string, flags int, between func(*sftp.File)) {
		t.Helper()
		f, err := c.OpenFile(name, os.O_WRONLY|os.O_APPEND|flags)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"new", "er"} {
			if _, err := f.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
			if between != nil {
				between(f)
				between = nil
			}
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(r.ws, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	is := func(name, want string) {
		t.Helper()
		if got := r.content(t, name); got != want {
			t.Errorf("%s holds %q, want %q", name, got, want)
		}
	}
	put("plain", "old ")
	appendTo("plain", 0, nil)
	is("plain", "old newer")

	put("truncated", "old ")
	appendTo("truncated", os.O_TRUNC, nil)
	is("truncated", "newer")

	put("cut", "old ")
	appendTo("cut", 0, func(f *sftp.File) {
		if err := f.Truncate(2); err != nil {
			t.Error(err)
		}
	})
	is("cut", "oler")

	put("grown", "old ")
	appendTo("grown", 0, func(f *sftp.File) {
		put("grown", "written by others ")
		if info, err := f.Stat(); err != nil || info.Size() != 18 {
			t.Errorf("the size of a file that others write, too: %v, %v", info, err)
		}
	})
	is("grown", "written by others er")

	put("removed", "old ")
	appendTo("removed", 0, func(*sftp.File) {
		if err := c.Remove("removed"); err != nil {
			t.Error(err)
		}
	})
	if _, err := os.Lstat(filepath.Join(r.ws, "removed")); err == nil {
		t.Error("a file that was removed while it was written is there again")
	}
}

// A file that takes the name of one that is being written stays.
func TestSFTPRenameOntoOpen(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.client(t)
	if err := os.WriteFile(filepath.Join(r.ws, "new"), []byte("new"), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := c.OpenFile("name", os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("overtaken")); err != nil {
		t.Fatal(err)
	}
	if err := c.PosixRename("new", "name"); err != nil {
		t.Fatal(err)
	}
	if info, err := c.Stat("name"); err != nil || info.Size() != 3 {
		t.Errorf("it is shown as %v, %v", info, err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if got := r.content(t, "name"); got != "new" {
		t.Errorf("it holds %q", got)
	}
}

// tornWriter writes half of what it is given while it is full, as a disk does.
type tornWriter struct {
	bytes.Buffer
	full bool
}

func (w *tornWriter) Write(p []byte) (int, error) {
	if !w.full {
		return w.Buffer.Write(p)
	}
	n, _ := w.Buffer.Write(p[:len(p)/2])
	return n, errors.New("no space left")
}

// A line that was cut, by a disk without room, spoils no line that comes after it.
func TestAuditTornLine(t *testing.T) {
	t.Parallel()
	w := &tornWriter{}
	a := &auditor{w: w, log: slog.New(slog.DiscardHandler)}
	a.record(Event{Event: "login", Outcome: "first"})
	w.full = true
	a.record(Event{Event: "login", Outcome: "lost"})
	w.full = false
	a.record(Event{Event: "login", Outcome: "third"})
	a.record(Event{Event: "login", Outcome: "fourth"})
	var got []string
	for line := range strings.Lines(w.String()) {
		var e Event
		if json.Unmarshal([]byte(line), &e) == nil {
			got = append(got, e.Outcome)
		}
	}
	if strings.Join(got, " ") != "first third fourth" {
		t.Errorf("whole lines: %q of\n%s", got, w.String())
	}
}
