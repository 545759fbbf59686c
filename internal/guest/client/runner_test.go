package client_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/workberth/workberth/internal/guest/client"
	"github.com/workberth/workberth/internal/guest/guesttest"
	"github.com/workberth/workberth/internal/guest/proc"
	"github.com/workberth/workberth/internal/guest/server"
	"github.com/workberth/workberth/internal/guest/wire"
)

// withRunner is a connection to a server that runs functions.
func withRunner(t *testing.T) (*guesttest.Runner, *client.Conn) {
	t.Helper()
	r := &guesttest.Runner{Commands: guesttest.Commands()}
	return r, connect(t, server.Config{Runner: r}, client.Options{})
}

func start(t *testing.T, conn *client.Conn, spec proc.Spec, streams proc.IO) proc.Process {
	t.Helper()
	p, err := conn.Runner().Start(t.Context(), spec, streams)
	if err != nil {
		t.Fatalf("start %q: %v", spec.Argv, err)
	}
	return p
}

func TestExitStatus(t *testing.T) { // C073
	_, conn := withRunner(t)
	for name, want := range map[string]proc.Status{
		"true": {}, "false": {Code: 1}, "die": {Code: 137, Signal: 9},
	} {
		p := start(t, conn, proc.Spec{Argv: []string{name}}, proc.IO{})
		status, err := p.Wait(t.Context())
		if status != want || err != nil {
			t.Errorf("%s: %+v, %v, want %+v", name, status, err, want)
		}
		if p.Pid() <= 100 {
			t.Errorf("%s: pid %d", name, p.Pid())
		}
	}
}

// A specification arrives as it was given, bytes that are no UTF-8 included. C071
func TestSpecArrives(t *testing.T) {
	runner, conn := withRunner(t)
	want := proc.Spec{
		Argv: []string{"true", "", "-x", "a\nb", "\xff\xfe", strings.Repeat("long", 50_000)},
		Env:  []string{"K=-----A\nB\nC-----\n", "E=", "Q=a\"b'c$HOME`id`", "U=é\xff", "S=  x  ", "P=a=b=c"},
		Dir:  "some/\xffdir", TTY: &proc.Size{Rows: 33, Cols: 111}, Stdin: true,
		Limits:          proc.Limits{OpenFiles: 1, FileSize: 1 << 60, AddressSpace: 3, Processes: 4, CPUSeconds: 5, CoreFileBytes: 6},
		Marker:          strings.Repeat("0123456789abcdef", 2),
		KeepDescendants: true, Grace: 1234567,
	}
	p := start(t, conn, want, proc.IO{Stdin: strings.NewReader("")})
	if _, err := p.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	got := runner.Started()[0].Spec
	size := *got.TTY
	got.TTY = want.TTY
	if !equalSpecs(got, want) || size != *want.TTY {
		t.Errorf("specification\n%+v\nwant\n%+v", got, want)
	}
}

func equalSpecs(a, b proc.Spec) bool {
	join := func(s []string) string { return strings.Join(s, "\x00") }
	return join(a.Argv) == join(b.Argv) && join(a.Env) == join(b.Env) && a.Dir == b.Dir && a.TTY == b.TTY &&
		a.Stdin == b.Stdin && a.Limits == b.Limits && a.Marker == b.Marker &&
		a.KeepDescendants == b.KeepDescendants && a.Grace == b.Grace
}

// Every command can be found again, so one without a marker gets one, each its own.
func TestMarkers(t *testing.T) { // SBX-07
	runner, conn := withRunner(t)
	for range 3 {
		p := start(t, conn, proc.Spec{Argv: []string{"true"}}, proc.IO{})
		if _, err := p.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	}
	seen := map[string]bool{}
	for _, p := range runner.Started() {
		if seen[p.Spec.Marker] || len(p.Spec.Marker) != 32 {
			t.Errorf("marker %q", p.Spec.Marker)
		}
		seen[p.Spec.Marker] = true
	}
}

// Why a command could not be started crosses with reason and errno.
func TestStartErrors(t *testing.T) {
	runner, conn := withRunner(t)
	huge := make([]string, wire.MaxArgs+1)
	huge[0] = "true"
	for name, c := range map[string]struct {
		spec  proc.Spec
		want  proc.StartReason
		errno error
	}{
		"no command":       {proc.Spec{Argv: []string{"nowhere"}}, proc.NoCommand, syscall.ENOENT},
		"empty":            {proc.Spec{}, proc.BadSpec, nil},
		"2 MiB argument":   {proc.Spec{Argv: []string{"true", strings.Repeat("x", 2<<20)}}, proc.LimitReached, syscall.E2BIG},
		"2 MiB variable":   {proc.Spec{Argv: []string{"true"}, Env: []string{"A=" + strings.Repeat("x", 2<<20)}}, proc.LimitReached, syscall.E2BIG},
		"many arguments":   {proc.Spec{Argv: huge}, proc.LimitReached, syscall.E2BIG},
		"many variables":   {proc.Spec{Argv: []string{"true"}, Env: huge}, proc.LimitReached, syscall.E2BIG},
		"long directory":   {proc.Spec{Argv: []string{"true"}, Dir: strings.Repeat("d", 5000)}, proc.BadSpec, syscall.ENAMETOOLONG},
		"long marker":      {proc.Spec{Argv: []string{"true"}, Marker: strings.Repeat("m", 5000)}, proc.BadSpec, nil},
		"name is a screen": {proc.Spec{Argv: []string{"\x1b[2J\xff"}}, proc.NoCommand, syscall.ENOENT},
	} {
		_, err := conn.Runner().Start(t.Context(), c.spec, proc.IO{})
		var failed *proc.StartError
		if !errors.As(err, &failed) || failed.Reason != c.want {
			t.Errorf("%s: %v, want reason %q", name, err, c.want)
		} else if c.errno != nil && !errors.Is(err, c.errno) {
			t.Errorf("%s: %v matches not %v", name, err, c.errno)
		}
	}
	if n := len(runner.Started()); n != 0 {
		t.Errorf("%d commands were started", n)
	}
	if conn.Err() != nil {
		t.Errorf("the connection ended: %v", conn.Err())
	}
}

// Bytes are exact, in and out, in sizes around every boundary.
func TestStreamsAreExact(t *testing.T) { // C069
	_, conn := withRunner(t)
	for _, n := range []int{0, 1, 8, 32 << 10, wire.InitialWindow - 1, wire.InitialWindow + 1, wire.StreamWindow, 5<<20 + 3} {
		in := make([]byte, n)
		for i := range in {
			in[i] = byte(i * 7)
		}
		var out bytes.Buffer
		p := start(t, conn, proc.Spec{Argv: []string{"cat"}, Stdin: true}, proc.IO{Stdin: bytes.NewReader(in), Stdout: &out})
		if status, err := p.Wait(t.Context()); status.Code != 0 || err != nil {
			t.Errorf("%d bytes: %+v, %v", n, status, err)
		}
		if !bytes.Equal(out.Bytes(), in) {
			t.Errorf("%d bytes came back as %d", n, out.Len())
		}
	}
}

// Closing the input ends it; output goes on.
func TestHalfClose(t *testing.T) {
	_, conn := withRunner(t)
	r, w := io.Pipe()
	var out bytes.Buffer
	p := start(t, conn, proc.Spec{Argv: []string{"cat"}, Stdin: true}, proc.IO{Stdin: r, Stdout: &out})
	for _, s := range []string{"one ", "two ", "three"} {
		if _, err := io.WriteString(w, s); err != nil {
			t.Fatal(err)
		}
	}
	_ = w.Close()
	if status, err := p.Wait(t.Context()); status != (proc.Status{}) || err != nil {
		t.Errorf("%+v, %v", status, err)
	}
	if out.String() != "one two three" {
		t.Errorf("output %q", out.String())
	}
}

var errBroken = errors.New("the source is broken")

// An input that fails ends the command, and Wait says why.
func TestBrokenInput(t *testing.T) {
	runner, conn := withRunner(t)
	p := start(t, conn, proc.Spec{Argv: []string{"sleep"}, Stdin: true}, proc.IO{
		Stdin: io.MultiReader(strings.NewReader("some"), brokenReader{}),
	})
	status, err := p.Wait(t.Context())
	if !errors.Is(err, errBroken) || status.Signal == 0 {
		t.Errorf("%+v, %v", status, err)
	}
	if runner.Started()[0].Kills() == 0 {
		t.Error("the command was not terminated")
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errBroken }

// An output that fails ends the command, as a closed pipe would.
func TestBrokenOutput(t *testing.T) {
	_, conn := withRunner(t)
	p := start(t, conn, proc.Spec{Argv: []string{"yes"}}, proc.IO{Stdout: &limitedWriter{left: 10_000}})
	status, err := p.Wait(t.Context())
	if !errors.Is(err, errBroken) || status.Signal == 0 {
		t.Errorf("%+v, %v", status, err)
	}
}

type limitedWriter struct{ left int }

func (w *limitedWriter) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, errBroken
	}
	return len(p), nil
}

// A consumer that stops holds up its own command and nobody else, and the command
// writes no more than the window ahead.
func TestSlowConsumer(t *testing.T) {
	runner, conn := withRunner(t)
	gate := make(chan struct{})
	out := &gated{gate: gate}
	slow := start(t, conn, proc.Spec{Argv: []string{"yes"}}, proc.IO{Stdout: out})
	for range 50 {
		var got bytes.Buffer
		p := start(t, conn, proc.Spec{Argv: []string{"cat"}, Stdin: true}, proc.IO{
			Stdin: strings.NewReader(strings.Repeat("x", 300_000)), Stdout: &got,
		})
		if _, err := p.Wait(t.Context()); err != nil || got.Len() != 300_000 {
			t.Fatalf("beside a slow consumer: %d bytes, %v", got.Len(), err)
		}
	}
	if n := out.n.Load(); n > wire.DataChunk {
		t.Errorf("%d bytes passed a closed gate", n)
	}
	close(gate)
	res, err := slow.Terminate(t.Context(), 0)
	if res.Outcome != proc.Gone || err != nil {
		t.Errorf("terminate: %+v, %v", res, err)
	}
	if status, err := slow.Wait(t.Context()); status.Signal == 0 || err != nil {
		t.Errorf("%+v, %v", status, err)
	}
	if runner.Started()[0].Kills() != 1 {
		t.Errorf("terminated %d times", runner.Started()[0].Kills())
	}
}

type gated struct {
	gate <-chan struct{}
	n    atomic.Int64
}

func (g *gated) Write(p []byte) (int, error) {
	<-g.gate
	g.n.Add(int64(len(p)))
	return len(p), nil
}
