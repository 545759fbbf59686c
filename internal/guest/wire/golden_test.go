package wire_test

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/workberth/workberth/fsbridge/guestfs"
	"github.com/workberth/workberth/internal/guest/client"
	"github.com/workberth/workberth/internal/guest/guesttest"
	"github.com/workberth/workberth/internal/guest/server"
	"github.com/workberth/workberth/internal/guest/wire"
)

var update = flag.Bool("update", false, "write the transcripts anew")

// TestTranscripts lets a real client and a real server talk and compares every
// byte with the transcript. A difference is a change of the protocol: raise
// wire.Version, and record the transcripts anew with -update.
func TestTranscripts(t *testing.T) {
	known := map[string]bool{}
	for _, s := range scenarios() {
		known[s.name+".txt"] = true
		t.Run(s.name, func(t *testing.T) {
			got := "# " + s.about + "\n" + record(t, s)
			file := filepath.Join("testdata", "golden", s.name+".txt")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("the conversation differs from %s:\n%s", file, got)
			}
		})
	}
	files, err := os.ReadDir(filepath.Join("testdata", "golden"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !known[f.Name()] {
			t.Errorf("%s belongs to no scenario", f.Name())
		}
	}
}

// scenario is a conversation.
type scenario struct {
	name, about string
	files       *guesttest.Files
	talk        func(t *testing.T, c *client.Conn, b *guestfs.Bridge)
}

// record plays a scenario and renders what was said.
func record(t *testing.T, s scenario) string {
	t.Helper()
	host, guest := guesttest.MemoryPair()
	said, heard := &tap{ReadWriteCloser: host}, &tap{ReadWriteCloser: guest}
	if s.files == nil {
		s.files = &guesttest.Files{}
	}
	served := make(chan error, 1)
	go func() {
		served <- server.Serve(t.Context(), heard, server.Config{
			Files: s.files, Runner: &guesttest.Runner{Commands: guesttest.Commands()}, Sweep: sweep, Call: control,
			Build: "v1.2.3-guest", Tag: "session-7",
		})
	}()
	conn, err := client.New(t.Context(), said, client.Options{Build: "v1.2.3-host"})
	if err != nil {
		t.Fatal(err)
	}
	s.talk(t, conn, guestfs.New(conn, guestfs.Options{}))
	// An answered call proves that all before it has been handled.
	if _, err := conn.Echo(t.Context(), []byte("the end")); err != nil {
		t.Error(err)
	}
	heard.await(t, func(b []byte) bool { return answers(b) == questions(said.bytes()) })
	_ = conn.Close()
	if err := guesttest.Within(t, "Serve returns", served); err != nil {
		t.Errorf("Serve: %v", err)
	}
	magic, ok := bytes.CutPrefix(heard.bytes(), []byte(wire.Magic))
	if !ok {
		t.Error("the server did not begin with the magic")
	}
	return "\n> from client to server\n\n" + render(t, said.bytes(), s.name == "hello") +
		"\n< from server to client, after the magic " + hexed([]byte(wire.Magic)) + "\n\n" +
		render(t, magic, s.name == "hello")
}

// answers counts the calls that are over, questions those that were begun.
func answers(said []byte) int {
	return count(bytes.TrimPrefix(said, []byte(wire.Magic)), wire.KindDone, wire.KindFail)
}

func questions(said []byte) int { return count(said, wire.KindOpen) }

func count(said []byte, kinds ...wire.Kind) int {
	n := 0
	for r := wire.NewReader(bytes.NewReader(said)); ; {
		f, err := r.Next()
		if err != nil {
			return n
		}
		if slices.Contains(kinds, f.Kind()) {
			n++
		}
		f.Release()
	}
}

// tap remembers what is written.
type tap struct {
	io.ReadWriteCloser
	mu      sync.Mutex
	written []byte
	more    chan struct{} // closed at the next write
}

func (t *tap) Write(p []byte) (int, error) {
	t.mu.Lock()
	t.written = append(t.written, p...)
	if t.more != nil {
		close(t.more)
		t.more = nil
	}
	t.mu.Unlock()
	return t.ReadWriteCloser.Write(p)
}

// await waits until what was written is as it should be.
func (t *tap) await(tb testing.TB, enough func(written []byte) bool) {
	tb.Helper()
	for {
		t.mu.Lock()
		if enough(t.written) {
			t.mu.Unlock()
			return
		}
		if t.more == nil {
			t.more = make(chan struct{})
		}
		more := t.more
		t.mu.Unlock()
		guesttest.Within(tb, "the conversation goes on", more)
	}
}

func (t *tap) bytes() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return bytes.Clone(t.written)
}

// render writes frames as text, one stream after the other: calls that run at the
// same time may be answered in any order. Greetings are the same everywhere and
// shown once, with a process id that does not change.
func render(t *testing.T, said []byte, greetings bool) string {
	t.Helper()
	type line struct {
		stream uint64
		text   string
	}
	var lines []line
	r := wire.NewReader(bytes.NewReader(said))
	for {
		f, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("what was said is malformed: %v", err)
		}
		if f.Kind() == wire.KindHello {
			if !greetings {
				continue
			}
			h, err := wire.DecodeHello(f.Payload())
			if err != nil {
				t.Fatal(err)
			}
			h.Pid = 4242
			f.B = h.Append(f.B[:wire.HeaderSize])
		}
		b, _ := f.Bytes()
		lines = append(lines, line{f.Stream(), fmt.Sprintf("%v, stream %d\n%s", f.Kind(), f.Stream(), dump(b))})
	}
	slices.SortStableFunc(lines, func(a, b line) int { return int(a.stream) - int(b.stream) })
	var out strings.Builder
	for _, l := range lines {
		out.WriteString(l.text)
	}
	return out.String()
}

// dump shows a frame: header, then payload, in hexadecimal with text beside it.
// Of a long payload the beginning and the hash are shown.
func dump(b []byte) string {
	const width, most = 24, 480
	var out strings.Builder
	fmt.Fprintf(&out, "    %s\n", hexed(b[:wire.HeaderSize]))
	p := b[wire.HeaderSize:]
	shown := p[:min(len(p), most)]
	for part := range slices.Chunk(shown, width) {
		text := strings.Map(func(r rune) rune {
			if r < ' ' || r > '~' {
				return '.'
			}
			return r
		}, latin(part))
		fmt.Fprintf(&out, "    %-*s |%s|\n", 3*width-1, hexed(part), text)
	}
	if len(p) > most {
		fmt.Fprintf(&out, "    ... %d bytes, sha256 %x\n", len(p), sha256.Sum256(p))
	}
	return out.String()
}

func hexed(b []byte) string { return fmt.Sprintf("% x", b) }

// latin makes one character of each byte.
func latin(b []byte) string {
	r := make([]rune, len(b))
	for i, c := range b {
		r[i] = rune(c)
	}
	return string(r)
}
