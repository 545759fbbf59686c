package guestfs_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/guestfs"
	"github.com/workberth/workberth/internal/guest/client"
	"github.com/workberth/workberth/internal/guest/guesttest"
	"github.com/workberth/workberth/internal/guest/wire"
)

// withPeer is a bridge to a scripted helper that offers everything. The script runs
// on a goroutine of its own, and the connection is closed when it returns.
func withPeer(t testing.TB, opts guestfs.Options, script func(p *guesttest.Peer)) (*guestfs.Bridge, *client.Conn) {
	t.Helper()
	host, guest := guesttest.SocketPair(t)
	over := make(chan struct{})
	go func() {
		defer close(over)
		defer guest.Close()
		p := guesttest.NewPeer(t, guest)
		p.Greet(guesttest.FullHello())
		script(p)
	}()
	conn, err := client.New(t.Context(), host, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		<-over
	})
	return guestfs.New(conn, opts), conn
}

// calls is every method once, with a use of each result that could mislead.
func calls() map[string]func(ctx context.Context, b *guestfs.Bridge) error {
	return map[string]func(ctx context.Context, b *guestfs.Bridge) error{
		"stat":  func(ctx context.Context, b *guestfs.Bridge) error { _, err := b.Stat(ctx, "f"); return err },
		"lstat": func(ctx context.Context, b *guestfs.Bridge) error { _, err := b.Lstat(ctx, "f"); return err },
		"read":  func(ctx context.Context, b *guestfs.Bridge) error { _, err := b.ReadFile(ctx, "f"); return err },
		"source": func(ctx context.Context, b *guestfs.Bridge) error {
			_, err := b.ReadFileWithSource(ctx, "f")
			return err
		},
		"range": func(ctx context.Context, b *guestfs.Bridge) error {
			_, err := b.ReadRange(ctx, "f", 0, 100)
			return err
		},
		"open": func(ctx context.Context, b *guestfs.Bridge) error {
			r, _, err := b.OpenReader(ctx, "f")
			if err != nil {
				return err
			}
			defer r.Close()
			_, err = io.Copy(io.Discard, r)
			return err
		},
		"readlink": func(ctx context.Context, b *guestfs.Bridge) error { _, err := b.ReadLink(ctx, "f"); return err },
		"hash":     func(ctx context.Context, b *guestfs.Bridge) error { _, err := b.HashFile(ctx, "f"); return err },
		"list":     func(ctx context.Context, b *guestfs.Bridge) error { _, err := b.ReadDirectory(ctx, "d"); return err },
		"stream": func(ctx context.Context, b *guestfs.Bridge) error {
			for _, err := range b.StreamDirectory(ctx, "d") {
				if err != nil {
					return err
				}
			}
			return nil
		},
		"walk": func(ctx context.Context, b *guestfs.Bridge) error {
			return b.Walk(ctx, "d", fsbridge.WalkOptions{}, func(fsbridge.WalkEntry) error { return nil })
		},
		"glob": func(ctx context.Context, b *guestfs.Bridge) error {
			_, err := b.Glob(ctx, "d/*", fsbridge.GlobOptions{})
			return err
		},
		"watch": func(ctx context.Context, b *guestfs.Bridge) error {
			w, err := b.Watch(ctx, "d", fsbridge.WatchOptions{})
			if err != nil {
				return err
			}
			for range w.Events() {
			}
			return w.Err()
		},
		"write": func(ctx context.Context, b *guestfs.Bridge) error { return b.WriteFile(ctx, "f", []byte("x")) },
		"write stream": func(ctx context.Context, b *guestfs.Bridge) error {
			_, err := b.WriteStream(ctx, "f", strings.NewReader("x"), fsbridge.WriteOptions{})
			return err
		},
		"write large": func(ctx context.Context, b *guestfs.Bridge) error {
			_, err := b.WriteStream(ctx, "f", bytes.NewReader(make([]byte, 5<<20)), fsbridge.WriteOptions{})
			return err
		},
		"create": func(ctx context.Context, b *guestfs.Bridge) error {
			return b.CreateFileExclusive(ctx, "f", []byte("x"))
		},
		"append": func(ctx context.Context, b *guestfs.Bridge) error { return b.AppendFile(ctx, "f", []byte("x")) },
		"mkdir":  func(ctx context.Context, b *guestfs.Bridge) error { return b.Mkdir(ctx, "d", fsbridge.MkdirOptions{}) },
		"remove": func(ctx context.Context, b *guestfs.Bridge) error {
			return b.Remove(ctx, "f", fsbridge.RemoveOptions{})
		},
		"rename": func(ctx context.Context, b *guestfs.Bridge) error {
			return b.Rename(ctx, "f", "g", fsbridge.RenameOptions{})
		},
		"copy": func(ctx context.Context, b *guestfs.Bridge) error {
			return b.Copy(ctx, "f", "g", fsbridge.CopyOptions{})
		},
		"symlink": func(ctx context.Context, b *guestfs.Bridge) error {
			return b.Symlink(ctx, "f", "l", fsbridge.SymlinkOptions{})
		},
		"chmod": func(ctx context.Context, b *guestfs.Bridge) error { return b.Chmod(ctx, "f", 0o600) },
	}
}

// changes are the calls that may change something.
func changes() []string {
	return []string{"write", "write stream", "write large", "create", "append", "mkdir", "remove", "rename", "copy", "symlink", "chmod"}
}

func isChange(name string) bool {
	return slices.Contains(changes(), name)
}

func file(name string) fsbridge.FileInfo {
	return fsbridge.FileInfo{Name: name, Type: fsbridge.TypeRegular, Mode: 0o644, Size: 3, ModTime: guesttest.Then()}
}

func entry(name string) []byte {
	return wire.AppendDirEntry(nil, fsbridge.DirEntry{Name: name, Info: file(name)})
}

func step(p string) []byte {
	return wire.AppendWalkEntry(nil, fsbridge.WalkEntry{Path: p, Info: file("x")})
}

func happening(p string) []byte {
	return wire.AppendEvent(nil, fsbridge.Event{Kind: fsbridge.EventCreate, Path: p, Time: guesttest.Then()})
}

func source(resolved, relative string, size int64, data string) []byte {
	return append(wire.AppendSource(nil, wire.Source{Resolved: resolved, Relative: relative, Info: file("f"), Size: size}), data...)
}

func text(s string) []byte { return wire.AppendString(nil, s) }

// An answer that cannot be true misleads nobody: the call fails and the connection
// ends, before anything of it is used.
func TestHostileAnswers(t *testing.T) {
	negative := wire.AppendInfo(nil, file("f"))
	dir := wire.AppendSource(nil, wire.Source{Resolved: "/ws/f", Relative: "f", Info: fsbridge.FileInfo{Name: "f", Type: fsbridge.TypeDir}})
	many := bytes.Repeat(entry("a"), 2)
	for name, c := range map[string]struct {
		call   string
		answer []byte
		want   string
	}{
		"stat: nothing":                  {"stat", nil, "malformed"},
		"stat: more than a file":         {"stat", append(negative, 0), "too many"},
		"stat: size beyond 2^63":         {"stat", sized(math.MaxUint64), "at most"},
		"stat: unknown type":             {"stat", []byte{1, 'f', 99}, "unknown file type 99"},
		"stat: mode with more bits":      {"stat", []byte{1, 'f', 0, 0xff, 0xff, 0x7f}, "at most 4095"},
		"stat: name with a separator":    {"stat", wire.AppendInfo(nil, file("../f")), `file name "../f"`},
		"stat: name of 300 bytes":        {"stat", wire.AppendInfo(nil, file(strings.Repeat("n", 300))), "at most 255"},
		"stat: time with 2e9 ns":         {"stat", []byte{1, 'f', 0, 0, 0, 1, 0, 0x80, 0xa8, 0xd6, 0xb9, 0x07}, "at most 999999999"},
		"read: no head":                  {"read", nil, "malformed"},
		"range: size beyond 2^63":        {"range", []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, "at most"},
		"source: relative":               {"source", source("ws/f", "f", 0, ""), `resolved path "ws/f"`},
		"source: empty":                  {"source", source("", "", 0, ""), `resolved path ""`},
		"source: unclean":                {"source", source("/ws/../etc/passwd", "", 0, ""), "resolved path"},
		"source: double slash":           {"source", source("/ws//f", "f", 0, ""), "resolved path"},
		"source: trailing slash":         {"source", source("/ws/f/", "f", 0, ""), "resolved path"},
		"source: dot":                    {"source", source("/.", "", 0, ""), "resolved path"},
		"source: NUL":                    {"source", source("/ws/a\x00b", "a\x00b", 0, ""), "resolved path"},
		"source: workspace left out":     {"source", source("/ws/f", "", 0, ""), `"/ws/f" with "" in the workspace`},
		"source: workspace made up":      {"source", source("/etc/passwd", "f", 0, ""), `"/etc/passwd" with "f" in the workspace`},
		"source: another file":           {"source", source("/ws/secret", "f", 0, ""), `"/ws/secret" with "f" in the workspace`},
		"source: climbing":               {"source", source("/ws/f", "../ws/f", 0, ""), "path below a directory"},
		"source: a directory":            {"source", dir, "pinned read of a dir"},
		"source: less than it says":      {"source", source("/ws/f", "f", 100, "abc"), "100 bytes with 3 bytes"},
		"source: more than it says":      {"source", source("/ws/f", "f", 1, "abc"), "1 bytes with 3 bytes"},
		"open: no description":           {"open", nil, "malformed"},
		"readlink: empty":                {"readlink", text(""), "text of a link"},
		"readlink: NUL":                  {"readlink", text("a\x00b"), "text of a link"},
		"readlink: 5000 bytes":           {"readlink", text(strings.Repeat("l", 5000)), "at most 4096"},
		"hash: none":                     {"hash", []byte{0, 0}, "without a digest"},
		"hash: words":                    {"hash", append(text("not a digest"), 0), `digest "not a digest"`},
		"hash: upper case":               {"hash", append(text(strings.Repeat("A", 64)), 0), "digest"},
		"list: empty name":               {"list", entry(""), `name of a directory entry ""`},
		"list: dot":                      {"list", entry("."), `entry "."`},
		"list: dot dot":                  {"list", entry(".."), `entry ".."`},
		"list: separator":                {"list", entry("a/b"), `"a/b"`},
		"list: root":                     {"list", entry("/"), `entry "/"`},
		"list: NUL":                      {"list", entry("a\x00"), `"a\\x00"`},
		"list: twice the same":           {"list", many, `"a" after "a"`},
		"list: out of order":             {"list", append(entry("b"), entry("a")...), `"a" after "b"`},
		"list: cut short":                {"list", entry("abc")[:10], ""},
		"list: one good, one bad":        {"list", append(entry("a"), entry("b/../../c")...), "b/../../c"},
		"stream: dot dot":                {"stream", entry(".."), `entry ".."`},
		"walk: absolute":                 {"walk", step("/etc"), `"/etc"`},
		"walk: climbing":                 {"walk", step("a/../../b"), "a/../../b"},
		"walk: only dots":                {"walk", step(".."), `".."`},
		"walk: empty":                    {"walk", step(""), `""`},
		"walk: double slash":             {"walk", step("a//b"), `"a//b"`},
		"walk: trailing slash":           {"walk", step("a/"), `"a/"`},
		"walk: 5000 bytes":               {"walk", step(strings.Repeat("a/", 2500)), "at most 4096"},
		"glob: climbing":                 {"glob", text("d/../../x"), "climbs"},
		"glob: absolute":                 {"glob", text("/etc/passwd"), "begins elsewhere"},
		"glob: empty":                    {"glob", text(""), "is no path"},
		"glob: NUL":                      {"glob", text("d/\x00"), "is no path"},
		"glob: out of order":             {"glob", append(text("d/b"), text("d/a")...), "out of order"},
		"write: an answer":               {"write", []byte{1}, "too many"},
		"write stream: no result":        {"write stream", nil, "malformed"},
		"write stream: without a digest": {"write stream", []byte{0, 0, 0}, "without a digest"},
		"write stream: wrong bool":       {"write stream", append(text(strings.Repeat("a", 64)), 1, 9), "malformed bool"},
		"mkdir: an answer":               {"mkdir", []byte{0}, "too many"},
		"remove: an answer":              {"remove", []byte{0}, "too many"},
	} {
		t.Run(name, func(t *testing.T) {
			b, conn := withPeer(t, guestfs.Options{}, func(p *guesttest.Peer) {
				stream, _ := p.Until(wire.KindOpen)
				p.Send(wire.KindDone, stream, c.answer)
				p.Drain()
			})
			err := calls()[c.call](t.Context(), b)
			if want := outcome(c.call); !errors.Is(err, want) || !errors.Is(err, wire.ErrProtocol) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %v that says %q", err, want, c.want)
			}
			guesttest.Within(t, "the connection ends", conn.Done())
		})
	}
}

// outcome is what a call without an answer must be reported as. FSB-11
func outcome(call string) error {
	if isChange(call) {
		return fsbridge.ErrOutcomeUnknown
	}
	return fsbridge.ErrUnavailable
}

// sized is the description of a file of that size.
func sized(n uint64) []byte {
	b := []byte{1, 'f', 0, 0}
	for ; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n), 0, 0, 0, 0, 0, 0)
}
