package wire_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/guestfs"
	"github.com/workberth/workberth/internal/guest/client"
	"github.com/workberth/workberth/internal/guest/guesttest"
	"github.com/workberth/workberth/internal/guest/proc"
	"github.com/workberth/workberth/internal/guest/server"
	"github.com/workberth/workberth/internal/guest/wire"
)

func sweep(_ context.Context, tag string) (int, error) { return len(tag), nil }

func control(_ context.Context, method string, body []byte, s server.Streams) ([]byte, error) {
	if method != "upper" {
		return nil, &wire.RemoteError{Code: "no-such-method", Text: "unknown method", Hint: "update the owner"}
	}
	in, err := io.ReadAll(s.In)
	if err != nil {
		return nil, err
	}
	if _, err := s.Out.Write(bytes.ToUpper(in)); err != nil {
		return nil, err
	}
	_, err = io.WriteString(s.Err, "upper: done\n")
	return body, err
}

// files with some content.
func files(content ...string) *guesttest.Files {
	f := &guesttest.Files{}
	for i := 0; i+1 < len(content); i += 2 {
		f.Put(content[i], content[i+1])
	}
	return f
}

const someDigest = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func scenarios() []scenario {
	return slicesOf(readScenarios(), writeScenarios(), errorScenarios(), commandScenarios())
}

func slicesOf(lists ...[]scenario) []scenario {
	var all []scenario
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// must fails the test when a call that should succeed does not.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

func readScenarios() []scenario {
	return []scenario{
		{"hello", "the two greetings", nil, func(*testing.T, *client.Conn, *guestfs.Bridge) {}},
		{"stat", "a file and a link described", files("notes.txt", "hello"), func(t *testing.T, _ *client.Conn, b *guestfs.Bridge) {
			_, err := b.Stat(t.Context(), "notes.txt")
			must(t, err)
			_, err = b.Lstat(t.Context(), "notes.txt")
			must(t, err)
		}},
		{"read", "a small file read whole, with its location, in part, and as a stream", files("notes.txt", "hello"), func(t *testing.T, _ *client.Conn, b *guestfs.Bridge) {
			_, err := b.ReadFile(t.Context(), "notes.txt")
			must(t, err)
			_, err = b.ReadFileWithSource(t.Context(), "notes.txt")
			must(t, err)
			_, err = b.ReadRange(t.Context(), "notes.txt", 1, 3)
			must(t, err)
			r, _, err := b.OpenReader(t.Context(), "notes.txt")
			must(t, err)
			must(t, r.Close())
		}},
		{"read-large", "a file that does not fit into one frame", files("big", strings.Repeat("0123456789abcdef", 20<<10)), func(t *testing.T, _ *client.Conn, b *guestfs.Bridge) {
			_, err := b.ReadFile(t.Context(), "big")
			must(t, err)
		}},
		{"list", "a directory listed, at once and as a stream", files("a", "1", "\xffb\n", "22"), func(t *testing.T, _ *client.Conn, b *guestfs.Bridge) {
			_, err := b.ReadDirectory(t.Context(), ".")
			must(t, err)
			for _, err := range b.StreamDirectory(t.Context(), ".") {
				must(t, err)
			}
		}},
		{"walk", "a tree walked, with something that could not be read", &guesttest.Files{Walks: []fsbridge.WalkEntry{
			{Path: "d", Info: fsbridge.FileInfo{Name: "d", Type: fsbridge.TypeDir, Mode: 0o755, Nlink: 2}},
			{Path: "d/f", Info: fsbridge.FileInfo{Name: "f", Type: fsbridge.TypeRegular, Mode: 0o644, Size: 9, ModTime: guesttest.Then()}, Digest: someDigest},
			{Path: "locked", Info: fsbridge.FileInfo{Name: "locked", Type: fsbridge.TypeDir}, Err: &fsbridge.PathError{Op: "walk", Path: "locked", Err: syscall.EACCES}},
		}}, func(t *testing.T, _ *client.Conn, b *guestfs.Bridge) {
			must(t, b.Walk(t.Context(), ".", fsbridge.WalkOptions{MaxDepth: 3, MaxEntries: 100, Hash: true, SkipDirs: []string{".git"}},
				func(fsbridge.WalkEntry) error { return nil }))
		}},
		{"glob", "a pattern expanded", &guesttest.Files{Matches: []string{"a.go", "b/c.go"}}, func(t *testing.T, _ *client.Conn, b *guestfs.Bridge) {
			_, err := b.Glob(t.Context(), "**/*.go", fsbridge.GlobOptions{MaxMatches: 5})
			must(t, err)
		}},
		{"links", "a link made and read, and a file hashed", files("notes.txt", "hello"), func(t *testing.T, _ *client.Conn, b *guestfs.Bridge) {
			must(t, b.Symlink(t.Context(), "notes.txt", "l", fsbridge.SymlinkOptions{Replace: true}))
			_, err := b.ReadLink(t.Context(), "l")
			must(t, err)
			_, err = b.HashFile(t.Context(), "notes.txt")
			must(t, err)
		}},
		{"watch", "an event of a watch, which is then closed", &guesttest.Files{Changes: event()}, func(t *testing.T, _ *client.Conn, b *guestfs.Bridge) {
			w, err := b.Watch(t.Context(), ".", fsbridge.WatchOptions{Recursive: true, MaxDirs: 7})
			must(t, err)
			<-w.Events()
			must(t, w.Close())
		}},
	}
}

func event() chan fsbridge.Event {
	c := make(chan fsbridge.Event, 1)
	c <- fsbridge.Event{Kind: fsbridge.EventCreate, Path: "d/new", Dir: true, Time: guesttest.Then()}
	return c
}

func writeScenarios() []scenario {
	return []scenario{
		{"write", "a file written plainly and with every option", files(), func(t *testing.T, _ *client.Conn, b *guestfs.Bridge) {
			must(t, b.WriteFile(t.Context(), "notes.txt", []byte("hello")))
			_, err := b.WriteStream(t.Context(), "notes.txt", strings.NewReader("hello again"), fsbridge.WriteOptions{
				Mode: 0o4750, AllowSetID: true, NoParents: true, Sync: true, Size: 11,
				If: fsbridge.Precondition{Hash: "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"},
			})
			must(t, err)
		}},
		{"write-in-parts", "content that follows its request, and one that is broken off", files("kept", "old"), func(t *testing.T, c *client.Conn, _ *guestfs.Bridge) {
			for _, whole := range []bool{true, false} {
				f := wire.NewOpen(wire.OpWrite, 64)
				f.B = append(wire.WriteRequest{Path: "kept"}.Append(f.B), "one "...)
				call, err := c.Start(t.Context(), f, client.Shape{Content: true})
				must(t, err)
				_, err = call.Room(t.Context(), 4)
				must(t, err)
				d := call.Data(4)
				d.B = append(d.B, "two "...)
				must(t, call.Send(t.Context(), d))
				if whole {
					must(t, call.End(t.Context()))
					_, err = call.Answer(t.Context())
					must(t, err)
				} else if _, err = call.Settle(context.Canceled); !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			}
		}},
		{"create-append", "a file created, and extended", files(), func(t *testing.T, _ *client.Conn, b *guestfs.Bridge) {
			must(t, b.CreateFileExclusive(t.Context(), "new", []byte("hello")))
			must(t, b.AppendFile(t.Context(), "new", []byte(" again")))
		}},
		{"change", "directories and names changed", files("a", "x"), func(t *testing.T, _ *client.Conn, b *guestfs.Bridge) {
			must(t, b.Mkdir(t.Context(), "d/e", fsbridge.MkdirOptions{Parents: true, Mode: 0o700}))
			must(t, b.Copy(t.Context(), "a", "b", fsbridge.CopyOptions{Recursive: true, NoReplace: true}))
			must(t, b.Rename(t.Context(), "b", "c", fsbridge.RenameOptions{NoReplace: true, Parents: true}))
			must(t, b.Chmod(t.Context(), "c", 0o600))
			must(t, b.Remove(t.Context(), "c", fsbridge.RemoveOptions{Recursive: true, IgnoreMissing: true}))
		}},
	}
}

// worded is an error whose text does not change when other packages choose a better
// one.
type worded struct{ error }

func (worded) Error() string   { return "in these words" }
func (w worded) Unwrap() error { return w.error }

func errorScenarios() []scenario {
	refuse := func(err error) *guesttest.Files {
		return &guesttest.Files{Hook: func(context.Context, string, string) error { return err }}
	}
	stat := func(want error) func(t *testing.T, _ *client.Conn, b *guestfs.Bridge) {
		return func(t *testing.T, _ *client.Conn, b *guestfs.Bridge) {
			if _, err := b.Stat(t.Context(), "f"); !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
		}
	}
	return []scenario{
		{"error-missing", "a file that is not there", files(), stat(fs.ErrNotExist)},
		{"error-errno", "an errno", refuse(syscall.ENOSPC), stat(syscall.ENOSPC)},
		{"error-limit", "a limit", refuse(worded{&fsbridge.LimitError{What: "file size", Limit: 1000, Actual: 1001}}), stat(fsbridge.ErrTooLarge)},
		{"error-conflict", "a precondition that does not hold", refuse(worded{&fsbridge.ConflictError{Current: someDigest, Expected: someDigest}}), stat(fsbridge.ErrConflict)},
		{"error-unsupported", "a capability that is missing", refuse(worded{&fsbridge.UnsupportedError{Capability: fsbridge.CapCopy}}), stat(errors.ErrUnsupported)},
		{"error-second-path", "an error about the second path, with advice", files("a", "x"), func(t *testing.T, _ *client.Conn, b *guestfs.Bridge) {
			err := b.Rename(t.Context(), "a", "/etc/a", fsbridge.RenameOptions{})
			var pe *fsbridge.PathError
			if !errors.As(err, &pe) || pe.Path != "/etc/a" || pe.Hint == "" || !errors.Is(err, syscall.EROFS) {
				t.Error(err)
			}
		}},
	}
}

func commandScenarios() []scenario {
	start := func(t *testing.T, c *client.Conn, spec proc.Spec, streams proc.IO) proc.Process {
		t.Helper()
		p, err := c.Runner().Start(t.Context(), spec, streams)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	marker := strings.Repeat("0123456789abcdef", 2)
	return []scenario{
		{"exec", "a command with input and output", nil, func(t *testing.T, c *client.Conn, _ *guestfs.Bridge) {
			p := start(t, c, proc.Spec{
				Argv: []string{"cat", "-"}, Env: []string{"PATH=/bin", "A=\xff"}, Dir: "d", Stdin: true, Marker: marker,
				Limits: proc.Limits{OpenFiles: 64, FileSize: 1 << 30, CoreFileBytes: 1},
			}, proc.IO{Stdin: strings.NewReader("hello"), Stdout: io.Discard, Stderr: io.Discard})
			_, err := p.Wait(t.Context())
			must(t, err)
		}},
		{"exec-terminal", "a command on a terminal, resized, signalled and terminated", nil, func(t *testing.T, c *client.Conn, _ *guestfs.Bridge) {
			p := start(t, c, proc.Spec{
				Argv: []string{"sleep"}, TTY: &proc.Size{Rows: 24, Cols: 80}, Marker: marker, KeepDescendants: true, Grace: time.Second,
			}, proc.IO{Stdout: io.Discard})
			must(t, p.Resize(t.Context(), proc.Size{Rows: 33, Cols: 111}))
			must(t, p.Signal(t.Context(), 2))
			_, err := p.Terminate(t.Context(), time.Second)
			must(t, err)
			_, err = p.Wait(t.Context())
			must(t, err)
		}},
		{"exec-missing", "a command that is not there", nil, func(t *testing.T, c *client.Conn, _ *guestfs.Bridge) {
			if _, err := c.Runner().Start(t.Context(), proc.Spec{Argv: []string{"nowhere"}, Marker: marker}, proc.IO{}); !errors.Is(err, syscall.ENOENT) {
				t.Error(err)
			}
		}},
		{"sweep", "leftovers ended", nil, func(t *testing.T, c *client.Conn, _ *guestfs.Bridge) {
			_, err := c.Sweep(t.Context(), "session-6")
			must(t, err)
			_, err = c.Runner().Terminate(t.Context(), marker, time.Second)
			must(t, err)
		}},
		{"call", "a control call with streams, and one that fails", nil, func(t *testing.T, c *client.Conn, _ *guestfs.Bridge) {
			var out map[string]int
			must(t, c.Call(t.Context(), "upper", map[string]int{"n": 1}, &out, client.Streams{
				In: strings.NewReader("hello"), Out: io.Discard, Err: io.Discard,
			}))
			if err := c.Call(t.Context(), "lower", nil, nil, client.Streams{}); err == nil {
				t.Error("an unknown method was called")
			}
		}},
	}
}
