package sshhost

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
)

// client opens an sftp session.
func (r *rig) client(t testing.TB, opts ...sftp.ClientOption) *sftp.Client {
	t.Helper()
	c, err := sftp.NewClient(r.dial(t), opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// content reads a file of the workspace on the host.
func (r *rig) content(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(r.ws, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// A path names the same file in a command and over sftp, and the session begins where
// commands do.
func TestSFTPSamePaths(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.client(t)
	if wd, err := c.Getwd(); err != nil || wd != "/workspace" {
		t.Errorf("begins in %q, %v", wd, err)
	}
	for _, p := range []string{"a", "/workspace/b", "/tmp/c"} {
		f, err := c.Create(p)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(f, "by sftp "+p); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if out, _, _ := run(t, r.dial(t), "cat "+p, nil); out != "by sftp "+p {
			t.Errorf("%s holds %q for a command", p, out)
		}
	}
	if _, _, exit := run(t, r.dial(t), "echo by command > /tmp/d", nil); exit != "0" {
		t.Fatal(exit)
	}
	f, err := c.Open("/tmp/d")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if data, err := io.ReadAll(f); err != nil || string(data) != "by command\n" {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := c.Stat("/usr/bin/env"); err != nil {
		t.Errorf("a file of the system: %v", err)
	}
}

// What leaves the sandbox is refused by every operation, and nothing outside changes. C181
func TestSFTPContainment(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	outside := filepath.Join(filepath.Dir(r.ws), "outside")
	if err := os.MkdirAll(outside, 0o755); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(outside, "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"abs": outside, "rel": "../outside", "file": secret, "up": "..", "proc": "/proc/self/root"} {
		if err := os.Symlink(target, filepath.Join(r.ws, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(r.ws, "mine"), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	c := r.client(t)
	paths := []string{
		"abs/secret", "rel/secret", "file", "up/outside/secret", "../outside/secret", "/../../outside/secret", secret, "proc" + secret,
		"/proc/self/root" + secret, "/proc/1/root" + secret, strings.Repeat("../", 50) + secret[1:],
	}
	for _, p := range paths {
		for op, do := range map[string]func() error{
			"read": func() error {
				f, err := c.Open(p)
				if err == nil {
					defer f.Close()
					_, err = io.ReadAll(f)
				}
				return err
			},
			"write": func() error {
				f, err := c.OpenFile(p, os.O_WRONLY|os.O_TRUNC)
				if err == nil {
					_, _ = f.Write([]byte("x"))
					err = f.Close()
				}
				return err
			},
			"stat":     func() error { _, err := c.Stat(p); return err },
			"chmod":    func() error { return c.Chmod(p, 0o600) },
			"times":    func() error { return c.Chtimes(p, time.Unix(0, 0), time.Unix(0, 0)) },
			"truncate": func() error { return c.Truncate(p, 0) },
			"rename":   func() error { return c.Rename(p+"x/y", "taken") },
			"onto":     func() error { return c.PosixRename("mine", p+"/x") },
			"link":     func() error { return c.Link(p, "hard") },
			"list":     func() error { _, err := c.ReadDir(filepath.Dir(p) + "/secret"); return err },
		} {
			if err := do(); err == nil {
				t.Errorf("%s %s was permitted", op, p)
			} else if strings.Contains(err.Error(), outside) && !strings.Contains(p, outside) {
				t.Errorf("%s %s tells %q", op, p, err)
			}
		}
	}
	for _, target := range []string{"../outside", "../../etc/x", "/proc/self/root/etc", "/etc/shadow"} {
		if err := c.Symlink(target, "new"); err == nil {
			t.Errorf("a link to %s was made", target)
		}
	}
	for name, err := range map[string]error{
		"rename over the root": c.PosixRename("mine", "/"), "rename the workspace": c.PosixRename("/workspace", "/tmp/w"),
		"rename over the workspace": c.PosixRename("mine", "/workspace"), "remove the workspace": c.RemoveDirectory("/workspace"),
		"remove the root": c.RemoveDirectory("/"), "write to the system": c.Mkdir("/usr/x"), "long name": c.Mkdir(strings.Repeat("n", 5000)),
		"chown": c.Chown("mine", 12345, 12345),
	} {
		if err == nil {
			t.Errorf("%s was permitted", name)
		}
	}
	if data, err := os.ReadFile(secret); err != nil || string(data) != "secret" {
		t.Errorf("outside: %q, %v", data, err)
	}
	if entries, _ := os.ReadDir(outside); len(entries) != 1 {
		t.Errorf("outside has %v", entries)
	}
	if info, err := os.Stat(secret); err != nil || info.Mode().Perm() != 0o644 || info.ModTime().Unix() == 0 {
		t.Errorf("outside: %v %v", info, err)
	}
	if r.content(t, "mine") != "mine" {
		t.Error("the file that was to be moved has changed")
	}
}

// A file appears as a whole: the old content stays until the new one is complete, and a
// client that vanishes changes nothing.
func TestSFTPAtomic(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if err := os.WriteFile(filepath.Join(r.ws, "old"), []byte("old"), 0o751); err != nil {
		t.Fatal(err)
	}
	conn := r.dial(t)
	c, err := sftp.NewClient(conn)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"old", "new"} {
		f, err := c.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(bytes.Repeat([]byte("half"), 50_000)); err != nil {
			t.Fatal(err)
		}
	}
	if r.content(t, "old") != "old" {
		t.Error("half a file is visible")
	}
	if info, err := c.Stat("old"); err != nil || info.Size() != 200_000 {
		t.Errorf("the session does not see what it wrote: %v %v", info, err)
	}
	conn.Close()
	eventually(t, "the record", func() bool { return len(linesWith(r.audit.String(), `"kind":"write"`)) == 2 })
	if r.content(t, "old") != "old" {
		t.Error("half a file took the place of the old one")
	}
	entries, err := os.ReadDir(r.ws)
	if err != nil || len(entries) != 1 {
		t.Errorf("left: %v %v", entries, err)
	}
	c = r.client(t)
	f, err := c.Create("old")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("whole")); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(r.ws, "old")); err != nil || info.Mode().Perm() != 0o751 || r.content(t, "old") != "whole" {
		t.Errorf("%v %v", info, err)
	}
}

// What was sent in full is done, though the client leaves without waiting for an answer.
func TestSFTPLastFile(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	// A socket that keeps what was sent before it was closed, also when its owner has unread data.
	l, err := net.Listen("unix", filepath.Join(filepath.Dir(r.ws), "socket"))
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- r.Serve(l) }()
	t.Cleanup(func() { l.Close(); <-served })
	conn, err := ssh.Dial("unix", l.Addr().String(), &ssh.ClientConfig{
		User: "one", Auth: []ssh.AuthMethod{ssh.PublicKeys(r.key)}, HostKeyCallback: ssh.FixedHostKey(r.host.PublicKey()),
	})
	if err != nil {
		t.Fatal(err)
	}
	ch, reqs, err := conn.OpenChannel("session", nil)
	if err != nil {
		t.Fatal(err)
	}
	go ssh.DiscardRequests(reqs)
	if ok, err := ch.SendRequest("subsystem", true, ssh.Marshal(struct{ N string }{"sftp"})); !ok || err != nil {
		t.Fatal(ok, err)
	}
	packet := func(kind byte, fields any) []byte {
		body := ssh.Marshal(fields)
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(body)+1)), append([]byte{kind}, body...)...)
	}
	answer := func() {
		t.Helper()
		size := make([]byte, 4)
		if _, err := io.ReadFull(ch, size); err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(io.Discard, ch, int64(binary.BigEndian.Uint32(size))); err != nil {
			t.Fatal(err)
		}
	}
	data := strings.Repeat("x", 30_000)
	if _, err := ch.Write(packet(1, struct{ Version uint32 }{3})); err != nil {
		t.Fatal(err)
	}
	answer() // the session has begun
	if _, err := ch.Write(packet(3, struct {
		ID            uint32
		Path          string
		Flags, Nobody uint32
	}{1, "last", 0x1a, 0})); err != nil {
		t.Fatal(err)
	}
	answer() // the file has the handle "1"
	var all []byte
	for i := range 10 {
		all = append(all, packet(6, struct {
			ID     uint32
			Handle string
			Offset uint64
			Data   string
		}{2, "1", uint64(i * len(data)), data})...)
	}
	all = append(all, packet(4, struct {
		ID     uint32
		Handle string
	}{3, "1"})...)
	if _, err := ch.Write(all); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	eventually(t, "the record", func() bool { return len(linesWith(r.audit.String(), `"event":"logout"`)) == 1 })
	if got := r.content(t, "last"); len(got) != 10*len(data) {
		t.Errorf("%d bytes arrived: %s", len(got), r.audit.String())
	}
}

// The ways to write that are no stream: elsewhere, over, with holes, appended, cut, read back.
func TestSFTPRandomAccess(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.client(t)
	write := func(f *sftp.File, text string, at int64) {
		t.Helper()
		if _, err := f.WriteAt([]byte(text), at); err != nil {
			t.Fatal(err)
		}
	}
	open := func(name string, flags int) *sftp.File {
		t.Helper()
		f, err := c.OpenFile(name, flags)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	closed := func(f *sftp.File, name, want string) {
		t.Helper()
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if got := r.content(t, name); got != want {
			t.Errorf("%s holds %q, want %q", name, got, want)
		}
	}
	f := open("stream", os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	write(f, "abc", 0)
	write(f, "ghi", 6)
	write(f, "def", 3)
	closed(f, "stream", "abcdefghi")

	f = open("hole", os.O_WRONLY|os.O_CREATE)
	write(f, "b", 3)
	closed(f, "hole", "\x00\x00\x00b")

	f = open("back", os.O_WRONLY|os.O_CREATE)
	write(f, "abcdef", 0)
	write(f, "XY", 1)
	closed(f, "back", "aXYdef")

	f = open("stream", os.O_WRONLY) // in the middle of what is there
	write(f, "XX", 4)
	closed(f, "stream", "abcdXXghi")

	f = open("stream", os.O_RDWR)
	got := make([]byte, 4)
	if _, err := f.ReadAt(got, 3); err != nil || string(got) != "dXXg" {
		t.Errorf("read %q, %v", got, err)
	}
	write(f, "YY", 4)
	if _, err := f.ReadAt(got, 3); err != nil || string(got) != "dYYg" {
		t.Errorf("read back %q, %v", got, err)
	}
	closed(f, "stream", "abcdYYghi")

	f = open("stream", os.O_RDWR|os.O_TRUNC)
	write(f, "new", 0)
	if _, err := f.ReadAt(got[:3], 0); err != nil || string(got[:3]) != "new" {
		t.Errorf("read %q, %v", got[:3], err)
	}
	write(f, "er", 3)
	closed(f, "stream", "newer")

	f = open("stream", os.O_WRONLY|os.O_APPEND)
	write(f, "!", 0)
	write(f, "?", 0)
	closed(f, "stream", "newer!?")

	f = open("stream", os.O_WRONLY|os.O_TRUNC)
	closed(f, "stream", "")

	f = open("stream", os.O_WRONLY)
	write(f, "0123456789", 0)
	if err := f.Truncate(4); err != nil {
		t.Fatal(err)
	}
	closed(f, "stream", "0123")
	if err := c.Truncate("stream", 6); err != nil || r.content(t, "stream") != "0123\x00\x00" {
		t.Errorf("%v %q", err, r.content(t, "stream"))
	}
	if err := c.Truncate("stream", 2); err != nil || r.content(t, "stream") != "01" {
		t.Errorf("%v %q", err, r.content(t, "stream"))
	}
	if _, err := c.OpenFile("stream", os.O_WRONLY|os.O_CREATE|os.O_EXCL); err == nil {
		t.Error("an existing file was created")
	}
	if _, err := c.OpenFile("none", os.O_WRONLY); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

// A file that is renamed or removed while it is written: the content follows the name, and what
// has none is gone.
func TestSFTPRenameWhileOpen(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.client(t)
	for _, ways := range []struct {
		name     string
		existing bool
	}{{"new", false}, {"old", true}} {
		if ways.existing {
			if err := os.WriteFile(filepath.Join(r.ws, ways.name), []byte("0123456789"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		f, err := c.OpenFile(ways.name, os.O_WRONLY|os.O_CREATE)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte("abc"), 0); err != nil {
			t.Fatal(err)
		}
		if err := c.PosixRename(ways.name, ways.name+"2"); err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte("def"), 3); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if got := r.content(t, ways.name+"2"); !strings.HasPrefix(got, "abcdef") || (len(got) == 10) != ways.existing {
			t.Errorf("%s: %q", ways.name, got)
		}
		if f, err = c.OpenFile(ways.name+"2", os.O_WRONLY|os.O_TRUNC); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte("gone")); err != nil {
			t.Fatal(err)
		}
		if err := c.Remove(ways.name + "2"); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte("more")); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if entries, err := os.ReadDir(r.ws); err != nil || len(entries) != 0 {
		t.Errorf("left: %v %v", entries, err)
	}
}

// Large files in constant memory, many requests under way, and out of order.
func TestSFTPLarge(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	data := make([]byte, 24<<20)
	_, _ = rand.Read(data)
	before := heap()
	c := r.client(t, sftp.UseConcurrentWrites(true), sftp.UseConcurrentReads(true))
	f, err := c.Create("large")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.ReadFrom(bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if r.content(t, "large") != string(data) {
		t.Fatal("other bytes arrived")
	}
	if f, err = c.Open("large"); err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var back bytes.Buffer
	back.Grow(len(data))
	if _, err := f.WriteTo(&back); err != nil || !bytes.Equal(back.Bytes(), data) {
		t.Fatalf("other bytes came back: %v", err)
	}
	part := make([]byte, 1000)
	for _, at := range []int64{20 << 20, 5, 11 << 20, int64(len(data)) - 1000, 0} {
		if _, err := f.ReadAt(part, at); err != nil || !bytes.Equal(part, data[at:at+1000]) {
			t.Errorf("at %d: %v", at, err)
		}
	}
	if n, err := f.ReadAt(part, int64(len(data))); n != 0 || err != io.EOF {
		t.Errorf("at the end: %d %v", n, err)
	}
	back = bytes.Buffer{}
	if grown := heap() - before; grown > 40<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
}

// A reader gets one file, never parts of two.
func TestSFTPReplacedWhileRead(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	path := filepath.Join(r.ws, "f")
	if err := os.WriteFile(path, bytes.Repeat([]byte("a"), 4<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := r.client(t).Open("f")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	buf := make([]byte, 1000)
	if _, err := f.ReadAt(buf, 0); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".new", bytes.Repeat([]byte("b"), 4<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	if _, err := f.ReadAt(buf, 1000); err != nil || buf[0] != 'a' { // in order: the file that was opened
		t.Errorf("%q %v", buf[:1], err)
	}
	if _, err := f.ReadAt(buf, 3<<20); err == nil || !strings.Contains(err.Error(), "replaced") {
		t.Errorf("%q %v", buf[:1], err)
	}
}

// Changes of the tree: names, links, permissions, times, and what the record says.
func TestSFTPTree(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.client(t)
	for name, err := range map[string]error{
		"mkdir": c.Mkdir("d"), "mkdir deep": c.MkdirAll("d/e/f"),
	} {
		if err != nil {
			t.Fatal(name, err)
		}
	}
	for _, name := range []string{"a", "b", "-dash", "new\nline", "  spaces  ", "\xff\xfe", strings.Repeat("n", 255)} {
		f, err := c.Create("d/" + name)
		if err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := c.ReadDir("d")
	if err != nil || len(entries) != 8 {
		t.Errorf("%d entries, %v", len(entries), err)
	}
	if err := c.Rename("d/a", "d/b"); err == nil {
		t.Error("rename replaced a file") // protocol version 3
	}
	if err := c.PosixRename("d/a", "d/b"); err != nil {
		t.Error(err)
	}
	if err := c.Symlink("b", "d/l"); err != nil {
		t.Fatal(err)
	}
	if text, err := os.Readlink(filepath.Join(r.ws, "d/l")); err != nil || text != "b" { // C115
		t.Errorf("the link says %q, %v", text, err)
	}
	if text, err := c.ReadLink("d/l"); err != nil || text != "b" {
		t.Errorf("the link says %q, %v", text, err)
	}
	if info, err := c.Lstat("d/l"); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("%v %v", info, err)
	}
	if err := c.Chmod("d/b", 0o640); err != nil {
		t.Fatal(err)
	}
	then := time.Unix(1_500_000_000, 0)
	if err := c.Chtimes("d/b", then, then); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(r.ws, "d/b")); err != nil || info.Mode().Perm() != 0o640 || !info.ModTime().Equal(then) {
		t.Errorf("%v %v %v", info.Mode(), info.ModTime(), err)
	}
	if v, err := c.StatVFS("d"); err != nil || v.TotalSpace() == 0 || v.FreeSpace() > v.TotalSpace() || v.Namemax < 100 {
		t.Errorf("space: %+v %v", v, err)
	}
	if _, err := c.StatVFS("/none"); err == nil {
		t.Error("space of what does not exist")
	}
	if err := c.Remove("d/l"); err != nil {
		t.Error(err)
	}
	if err := c.RemoveDirectory("d"); err == nil {
		t.Error("a directory with content was removed")
	}
	if err := c.RemoveDirectory("d/e/f"); err != nil {
		t.Error(err)
	}
	if got := linesWith(r.audit.String(), `"event":"file"`); len(linesWith(strings.Join(got, ""), `"kind":"rename"`)) != 2 || !strings.Contains(got[0], "/workspace/d") {
		t.Errorf("the record: %s", got)
	}
}
