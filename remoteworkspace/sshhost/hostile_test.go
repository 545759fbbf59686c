package sshhost

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
)

// Garbage instead of a handshake, from thousands of connections: memory stays bounded, and a
// session that is open goes on.
func TestGarbageHandshakes(t *testing.T) {
	t.Parallel()
	rounds := 10_000
	if testing.Short() {
		rounds = 500
	}
	r := newRig(t)
	c := r.dial(t)
	rng := rand.New(rand.NewPCG(1, 2))
	garbage := [][]byte{
		[]byte("GET / HTTP/1.1\r\n\r\n"), []byte("SSH-2.0-x\r\n\xff\xff\xff\xff"), bytes.Repeat([]byte("A"), 4096), {},
		[]byte("SSH-1.5-old\r\n"), append([]byte("SSH-2.0-x\r\n"), make([]byte, 1024)...),
	}
	for range 20 {
		b := make([]byte, rng.IntN(600))
		for i := range b {
			b[i] = byte(rng.UintN(256))
		}
		garbage = append(garbage, append([]byte("SSH-2.0-fuzz\r\n"), b...))
	}
	before := heap()
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			for i := range rounds / 16 {
				nc, err := net.Dial("tcp", r.addr)
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = nc.Write(garbage[(i+w)%len(garbage)])
				nc.Close()
			}
		})
	}
	wg.Wait()
	if out, _, exit := run(t, c, "echo still here", nil); out != "still here\n" || exit != "0" {
		t.Errorf("the session that was open: %q %s", out, exit)
	}
	eventually(t, "the end of the garbage", func() bool { return len(r.connections()) == 1 })
	if grown := heap() - before; grown > 16<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Clients that connect and say nothing keep nobody out, also not from their own address, and
// are ended when their time is over.
func TestSlowLoris(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Limits){
		"unauthenticated": func(l *Limits) { l.Unauthenticated, l.PerAddress, l.Connections = 8, 100, 100 },
		"perAddress":      func(l *Limits) { l.Unauthenticated, l.PerAddress, l.Connections = 100, 9, 100 },
		"connections":     func(l *Limits) { l.Unauthenticated, l.PerAddress, l.Connections = 100, 100, 9 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := newFakeClock()
			r := newRig(t, func(o *Options) { o.Clock = clock; change(&o.Limits) })
			c := r.dial(t)
			run(t, c, "true", nil) // it is admitted
			var silent []net.Conn
			for range 40 {
				nc, err := net.Dial("tcp", r.addr)
				if err != nil {
					t.Fatal(err)
				}
				defer nc.Close()
				silent = append(silent, nc)
			}
			eventually(t, "only so many to wait for a login", func() bool { return len(r.connections()) == 9 })
			if out, _, _ := run(t, c, "echo old", nil); out != "old\n" {
				t.Error("the session that was open is held up")
			}
			fresh, err := r.try("one", r.key)
			if err != nil {
				t.Fatalf("a new client is kept out: %v", err)
			}
			fresh.Close()
			clock.advance(r.limits.LoginGrace)
			for _, nc := range silent {
				_ = nc.SetReadDeadline(time.Now().Add(10 * time.Second))
				if _, err := io.Copy(io.Discard, nc); err != nil && strings.Contains(err.Error(), "timeout") {
					t.Fatal("a silent client was not ended")
				}
			}
			eventually(t, "their end", func() bool { return len(r.connections()) == 1 })
		})
	}
}

// Limits of connections: for all, for an address, for a workspace. What is given back can be
// had again.
func TestConnectionLimits(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Limits){
		"connections":  func(l *Limits) { l.Connections = 3 },
		"perAddress":   func(l *Limits) { l.PerAddress = 3 },
		"perWorkspace": func(l *Limits) { l.PerWorkspace = 3 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, func(o *Options) { change(&o.Limits) })
			var held []*ssh.Client
			for range 3 {
				held = append(held, r.dial(t))
				run(t, held[len(held)-1], "true", nil) // it is admitted
			}
			c, err := r.try("one", r.key)
			if err == nil {
				if _, err = c.NewSession(); err == nil {
					t.Fatal("a fourth was let in")
				}
				c.Close()
			}
			if name == "perWorkspace" {
				c, err := r.try("two", r.other)
				if err != nil {
					t.Fatalf("another workspace: %v", err)
				}
				c.Close()
			}
			held[0].Close()
			eventually(t, "a place", func() bool {
				c, err := r.try("one", r.key)
				if err != nil {
					return false
				}
				defer c.Close()
				_, err = c.NewSession()
				return err == nil
			})
			if !strings.Contains(r.audit.String(), "limit "+name) {
				t.Errorf("audit: %s", r.audit.String())
			}
		})
	}
}

// A flood of channels, and of requests on one: bounded, and others are served.
func TestChannelFlood(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.dial(t)
	var open, refused int
	for range 500 {
		ch, reqs, err := c.OpenChannel("session", nil)
		if err != nil {
			refused++
			continue
		}
		open++
		go ssh.DiscardRequests(reqs)
		for range 20 {
			_, _ = ch.SendRequest("env", false, ssh.Marshal(struct{ N, V string }{"LC_X", strings.Repeat("v", 30<<10)}))
		}
	}
	if open != r.limits.Sessions || refused != 500-open {
		t.Errorf("%d open, %d refused; the limit is %d", open, refused, r.limits.Sessions)
	}
	if out, _, _ := run(t, r.dial(t), "echo ok", nil); out != "ok\n" {
		t.Error("another connection is held up")
	}
}

// A client that reads nothing holds up its own command only, and memory stays bounded.
func TestClientThatDoesNotRead(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.dial(t)
	before := heap()
	ch, reqs, err := c.OpenChannel("session", nil)
	if err != nil {
		t.Fatal(err)
	}
	go ssh.DiscardRequests(reqs)
	if ok, err := ch.SendRequest("exec", true, ssh.Marshal(struct{ C string }{"yes"})); !ok || err != nil {
		t.Fatal(ok, err)
	}
	for range 5 {
		if out, _, _ := run(t, c, "echo ok", nil); out != "ok\n" {
			t.Error("another session of the connection is held up")
		}
	}
	if grown := heap() - before; grown > 32<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
}

// Random packets to the sftp subsystem change nothing outside the workspace and do not end
// the server.
func TestGarbageSFTP(t *testing.T) {
	t.Parallel()
	rounds := 60
	if testing.Short() {
		rounds = 15
	}
	r := newRig(t)
	c := r.dial(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range rounds {
		ch, reqs, err := c.OpenChannel("session", nil)
		if err != nil {
			t.Fatal(err)
		}
		go ssh.DiscardRequests(reqs)
		if ok, err := ch.SendRequest("subsystem", true, ssh.Marshal(struct{ N string }{"sftp"})); !ok || err != nil {
			t.Fatal(ok, err)
		}
		go func() { _, _ = io.Copy(io.Discard, ch) }()
		_, _ = ch.Write([]byte{0, 0, 0, 5, 1, 0, 0, 0, 3})
		for range 60 {
			_, _ = ch.Write(garbagePacket(rng))
		}
		ch.Close()
	}
	if out, _, exit := run(t, r.dial(t), "echo still here", nil); out != "still here\n" {
		t.Errorf("%q %s", out, exit)
	}
	if entries, err := os.ReadDir(filepath.Dir(r.ws)); err != nil || len(entries) != 3 { // one, two, state
		t.Errorf("beside the workspaces: %v %v", entries, err)
	}
}

// garbagePacket has a valid length and type, strings that may be paths, and noise.
func garbagePacket(rng *rand.Rand) []byte {
	types := []byte{3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 200, byte(rng.UintN(256))}
	body := []byte{types[rng.IntN(len(types))], 0, 0, 0, byte(rng.UintN(256))}
	str := func(s string) {
		body = append(body, byte(len(s)>>24), byte(len(s)>>16), byte(len(s)>>8), byte(len(s)))
		body = append(body, s...)
	}
	paths := []string{"a", "../../etc/passwd", "/", "", "1", "2", "\x00", "posix-rename@openssh.com", "hardlink@openssh.com", "statvfs@openssh.com", strings.Repeat("n", 5000)}
	for range rng.IntN(4) {
		str(paths[rng.IntN(len(paths))])
	}
	for range rng.IntN(24) {
		body = append(body, byte(rng.UintN(256)))
	}
	return append([]byte{0, 0, byte(len(body) >> 8), byte(len(body))}, body...)
}

// Handles, spool and buffers of an sftp session are bounded.
func TestSFTPLimits(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) {
		o.Limits.OpenFiles, o.Limits.SpoolBytes, o.Limits.BufferBytes = 8, 1<<20, 1<<20
	})
	c, err := sftp.NewClient(r.dial(t))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var open []*sftp.File
	for i := range 8 {
		f, err := c.Create(fmt.Sprintf("f%d", i))
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, f)
	}
	if _, err := c.Create("ninth"); err == nil || !strings.Contains(err.Error(), "too many") {
		t.Errorf("the ninth: %v", err)
	}
	if _, err := open[0].WriteAt(make([]byte, 32<<10), 2<<20); err != nil {
		t.Errorf("a part ahead: %v", err)
	}
	if _, err := open[1].WriteAt(make([]byte, 10), 1<<40); err == nil || !strings.Contains(err.Error(), "too much") {
		t.Errorf("a part far ahead: %v", err)
	}
	for _, f := range open {
		f.Close()
	}
	f, err := c.Create("again")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	// Readers that find no memory read by parts.
	if f, err = c.Create("whole"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(bytes.Repeat([]byte("0123456789"), 100_000)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for range 6 {
		rd, err := c.Open("whole")
		if err != nil {
			t.Fatal(err)
		}
		defer rd.Close()
		if data, err := io.ReadAll(rd); err != nil || len(data) != 1_000_000 || string(data[999_990:]) != "0123456789" {
			t.Errorf("%d bytes, %v", len(data), err)
		}
	}
	if held := r.spool.memory.Load(); held > 1<<20 {
		t.Errorf("%d bytes are held, more than the limit", held)
	}
	c.Close()
	eventually(t, "everything given back", func() bool { return r.spool.disk.Load() == 0 && r.spool.memory.Load() == 0 })
}
