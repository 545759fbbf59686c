//go:build linux

package reaper

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/workberth/workberth/internal/guest/proc"
)

// repeats is how often a test repeats what failed elsewhere one time in many. The
// race detector makes every process it is in many times larger and slower.
func repeats(n int) int {
	if testing.Short() || raceEnabled {
		return max(n/10, 3)
	}
	return n
}

// C067: a big output is complete, every time, and the exit code with it.
func TestOutputIsComplete(t *testing.T) {
	r := newRunner(t)
	var sum [32]byte
	for i := range repeats(50) {
		got := run(t, r, script("yes 0123456789 | head -c 500003 | dd bs=1k 2>/dev/null"), nil)
		if len(got.stdout) != 500003 || got.status.Code != 0 {
			t.Fatalf("round %d: %d bytes, %+v", i, len(got.stdout), got.status)
		}
		now := sha256.Sum256([]byte(got.stdout))
		if i > 0 && now != sum {
			t.Fatalf("round %d: other bytes", i)
		}
		sum = now
		got = run(t, r, script("head -c 70001 /dev/zero; exit 3"), nil)
		if len(got.stdout) != 70001 || got.status.Code != 3 {
			t.Fatalf("round %d: %d bytes, %+v", i, len(got.stdout), got.status)
		}
	}
}

// slowWriter takes its time over every piece.
type slowWriter struct {
	w     io.Writer
	pause time.Duration
}

func (s slowWriter) Write(b []byte) (int, error) {
	time.Sleep(s.pause) //sleep: this writer is slow, that is its purpose
	return s.w.Write(b)
}

// A slow reader of the output holds the command up and loses nothing. C067
func TestSlowConsumer(t *testing.T) {
	r := newRunner(t)
	var out, errOut bytes.Buffer
	p, err := r.Start(testContext(t), script("head -c 300000 /dev/zero; head -c 200000 /dev/zero >&2; exit 4"),
		proc.IO{Stdout: slowWriter{&out, 5 * time.Millisecond}, Stderr: slowWriter{&errOut, 5 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := p.Wait(testContext(t))
	if err != nil || s.Code != 4 || out.Len() != 300000 || errOut.Len() != 200000 {
		t.Errorf("%+v, %v, %d and %d bytes", s, err, out.Len(), errOut.Len())
	}
}

// A writer that blocks holds the command up: it never gets far ahead.
func TestBackpressure(t *testing.T) {
	r := newRunner(t)
	gate := make(chan struct{})
	out := newBuffer()
	p, err := r.Start(testContext(t), script("head -c 4194304 /dev/zero; echo done >&2"),
		proc.IO{Stdout: gatedWriter{gate, out}, Stderr: out})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := p.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the command ended though nobody took its output: %v", err)
	}
	if strings.Contains(out.String(), "done") {
		t.Error("the command wrote everything though nobody took it")
	}
	close(gate)
	s, err := p.Wait(testContext(t))
	if err != nil || s.Code != 0 || len(out.String()) != 4194304+len("done\n") {
		t.Errorf("%+v, %v, %d bytes", s, err, len(out.String()))
	}
}

// gatedWriter writes nothing before its gate is open.
type gatedWriter struct {
	gate <-chan struct{}
	w    io.Writer
}

func (g gatedWriter) Write(b []byte) (int, error) {
	<-g.gate
	return g.w.Write(b)
}

// C069: no byte is added, lost or interpreted.
func TestOutputIsExact(t *testing.T) {
	r := newRunner(t)
	for _, tc := range []struct{ name, script, want string }{
		{"twelve bytes", `printf abcdefghijkl`, "abcdefghijkl"},
		{"eight bytes", `printf abcdefgh`, "abcdefgh"},
		{"like a frame header", `printf '\001\000\000\000\000\000\000\005'`, "\x01\x00\x00\x00\x00\x00\x00\x05"},
		{"not UTF-8", `printf '\377\376\200'`, "\xff\xfe\x80"},
		{"nothing", `:`, ""},
	} {
		for _, tty := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s tty %t", tc.name, tty), func(t *testing.T) {
				spec := script(tc.script)
				if tty {
					spec.TTY = &proc.Size{Rows: 24, Cols: 80}
				}
				if got := run(t, r, spec, nil); got.stdout != tc.want || got.status != (proc.Status{}) {
					t.Errorf("%q %+v, want %q", got.stdout, got.status, tc.want)
				}
			})
		}
	}
}

// 200 commands at once, each with 1 MiB of its own.
func TestManyAtOnce(t *testing.T) {
	r := newRunner(t)
	n := repeats(200)
	const size = 1 << 20
	var wg sync.WaitGroup
	var bad atomic.Int32
	for i := range n {
		wg.Go(func() {
			line := fmt.Sprintf("%07d\n", i)
			h := &checker{want: line}
			p, err := r.Start(context.Background(), script(fmt.Sprintf("yes %07d | head -c %d", i, size)), proc.IO{Stdout: h})
			if err != nil {
				t.Errorf("command %d: %v", i, err)
				return
			}
			s, err := p.Wait(context.Background())
			if err != nil || s.Code != 0 || h.n != size || h.wrong {
				bad.Add(1)
				t.Errorf("command %d: %+v, %v, %d bytes, wrong bytes: %t", i, s, err, h.n, h.wrong)
			}
		})
	}
	wg.Wait()
}

// checker checks that what is written to it is a line again and again.
type checker struct {
	want  string
	n     int
	wrong bool
}

func (c *checker) Write(b []byte) (int, error) {
	for _, x := range b {
		if x != c.want[c.n%len(c.want)] {
			c.wrong = true
		}
		c.n++
	}
	return len(b), nil
}

// C085: a descendant that holds the output open delays nothing, and what the
// command itself wrote is complete.
func TestDescendantHoldsOutput(t *testing.T) {
	r := newRunner(t)
	for _, tty := range []bool{false, true} {
		t.Run(fmt.Sprintf("tty %t", tty), func(t *testing.T) {
			id := newTracer(t)
			spec := script("(trap '' HUP TERM; exec sleep " + string(id) + ") & echo out1; head -c 60000 /dev/zero; exit 3")
			spec.Grace = 100 * time.Millisecond
			if tty {
				spec.TTY = &proc.Size{Rows: 24, Cols: 80}
			}
			p, stdout, _ := begin(t, r, spec, nil)
			s, err := p.Wait(testContext(t))
			if err != nil || s.Code != 3 || s.Leftover != 1 {
				t.Errorf("status %+v, %v; want code 3 and one process left", s, err)
			}
			if got := strings.TrimPrefix(strings.TrimPrefix(stdout.String(), "out1"), "\r"); len(got) != 60001 {
				t.Errorf("%d bytes, want 60001", len(got))
			}
			// Without being asked, the leftover is ended.
			id.awaitCount(t, 0)
		})
	}
}

// A descendant that goes on writing for ever neither delays the end nor blocks the
// Runner.
func TestDescendantFloodsOutput(t *testing.T) {
	r := newRunner(t)
	id := newTracer(t)
	spec := script("(trap '' TERM PIPE; while :; do echo noise " + string(id) + "; done) & sleep 0.05; echo mine; exit 2")
	spec.Grace = 50 * time.Millisecond
	p, stdout, _ := begin(t, r, spec, nil)
	s, err := p.Wait(testContext(t))
	if err != nil || s.Code != 2 || !strings.Contains(stdout.String(), "mine\n") {
		t.Errorf("status %+v, %v, mine: %t", s, err, strings.Contains(stdout.String(), "mine\n"))
	}
	terminate(t, p, 0)
}

// failingWriter fails after some bytes.
type failingWriter struct{ left int }

var errFull = errors.New("full")

func (f *failingWriter) Write(b []byte) (int, error) {
	if f.left < len(b) {
		return 0, errFull
	}
	f.left -= len(b)
	return len(b), nil
}

// A writer that fails is like the reader of a pipe that goes away: the command gets
// SIGPIPE, and Wait tells why.
func TestWriterFails(t *testing.T) {
	r := newRunner(t)
	p, err := r.Start(testContext(t), proc.Spec{Argv: []string{"yes"}, Env: testEnv()}, proc.IO{Stdout: &failingWriter{100000}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := p.Wait(testContext(t))
	if !errors.Is(err, errFull) || !strings.Contains(err.Error(), "standard output") || s.Signal != 13 {
		t.Errorf("%+v, %v; want SIGPIPE and %v", s, err, errFull)
	}
}

// C065: the end of the input reaches the command.
func TestStdin(t *testing.T) {
	r := newRunner(t)
	random := make([]byte, 3<<20)
	for i := range random {
		random[i] = byte(rand.IntN(256))
	}
	for _, tc := range []struct {
		name, script string
		stdin        io.Reader
		want         string
		code         int
	}{
		{"count", "wc -c", strings.NewReader("hello"), "5\n", 0},
		{"empty", "cat", strings.NewReader(""), "", 0},
		{"a script", "sh -s", strings.NewReader("echo a\nexit 9\n"), "a\n", 9},
		{"3 MiB there and back", "cat", bytes.NewReader(random), string(random), 0},
		{"not read at all", "exit 6", bytes.NewReader(random), "", 6},
		{"closed early", "head -c 10; exec 0<&-; sleep 0.02; exit 7", bytes.NewReader(random), string(random[:10]), 7},
		{"no reader", "cat; echo end", nil, "end\n", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			spec := script(tc.script)
			spec.Stdin = true
			got := run(t, r, spec, tc.stdin)
			if got.stdout != tc.want || got.status.Code != tc.code {
				t.Errorf("%d bytes %.40q, %+v; want %.40q and code %d", len(got.stdout), got.stdout, got.status, tc.want, tc.code)
			}
		})
	}
	t.Run("none", func(t *testing.T) {
		got := run(t, r, script("cat; ls -l /proc/self/fd/0 | sed 's/.*-> //'"), strings.NewReader("ignored"))
		if got.stdout != "/dev/null\n" {
			t.Errorf("got %q", got.stdout)
		}
	})
}

// Input is half-closed: the command goes on writing after its input has ended.
func TestStdinHalfClose(t *testing.T) {
	r := newRunner(t)
	in, w := io.Pipe()
	spec := script("while read -r l; do echo got $l; done; echo after; sleep 0.01; echo later")
	spec.Stdin = true
	p, stdout, _ := begin(t, r, spec, in)
	for _, word := range []string{"one", "two"} {
		if _, err := io.WriteString(w, word+"\n"); err != nil {
			t.Fatal(err)
		}
		stdout.awaitText(t, "got "+word)
	}
	_ = w.Close()
	if _, err := p.Wait(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if got := stdout.String(); got != "got one\ngot two\nafter\nlater\n" {
		t.Errorf("output %q", got)
	}
}

// C065: a reader that fails half-way cancels the command and its tree.
func TestStdinFails(t *testing.T) {
	r := newRunner(t)
	id := newTracer(t)
	errLost := errors.New("lost")
	spec := script("sleep " + string(id) + " & cat; echo must not come; sleep " + string(id))
	spec.Stdin = true
	spec.Grace = time.Second
	gate := make(chan struct{})
	p, stdout, _ := begin(t, r, spec, io.MultiReader(strings.NewReader("half"), gatedReader{gate}, errReader{errLost}))
	stdout.awaitText(t, "half")
	id.awaitCount(t, 2)
	close(gate)
	s, err := p.Wait(testContext(t))
	if !errors.Is(err, errLost) {
		t.Errorf("error %v, want %v", err, errLost)
	}
	if s.Signal == 0 {
		t.Errorf("status %+v, want a signal", s)
	}
	if out := stdout.String(); out != "half" {
		t.Errorf("output %q", out)
	}
	terminate(t, p, 0)
	id.mustBeGone(t)
}

type errReader struct{ err error }

func (e errReader) Read([]byte) (int, error) { return 0, e.err }

// An input reader that never returns delays nothing; it is let go when its owner
// ends it.
func TestStdinBlocks(t *testing.T) {
	r := newRunner(t)
	in, w := io.Pipe()
	t.Cleanup(func() { _ = w.Close() })
	spec := script("exit 8")
	spec.Stdin = true
	if got := run(t, r, spec, in); got.status.Code != 8 {
		t.Errorf("got %+v", got)
	}
	_ = w.Close()
}

// Where an image has no /dev/null the input is empty all the same.
func TestNullDevice(t *testing.T) {
	fd, err := openNull(os.O_RDONLY)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "null")
	defer f.Close()
	if b, err := io.ReadAll(f); err != nil || len(b) != 0 {
		t.Errorf("read %d bytes, %v", len(b), err)
	}
}
