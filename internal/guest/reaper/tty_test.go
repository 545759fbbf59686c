//go:build linux

package reaper

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/workberth/workberth/internal/guest/proc"
)

func ttySpec(text string, rows, cols uint16) proc.Spec {
	spec := script(text)
	spec.TTY = &proc.Size{Rows: rows, Cols: cols}
	return spec
}

// C079: the size is right from the first moment, and after a resize.
func TestTerminalSize(t *testing.T) {
	r := newRunner(t)
	for i := range repeats(50) {
		in, w := io.Pipe()
		spec := ttySpec("stty size; read -r x; stty size", 43, 132)
		spec.Stdin = true
		p, stdout, _ := begin(t, r, spec, in)
		stdout.awaitText(t, "43 132")
		if err := p.Resize(t.Context(), proc.Size{Rows: 20, Cols: 50}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, "\n"); err != nil {
			t.Fatal(err)
		}
		s, err := p.Wait(testContext(t))
		if err != nil || s.Code != 0 {
			t.Fatalf("round %d: %+v, %v", i, s, err)
		}
		got := strings.ReplaceAll(stdout.String(), "\r", "")
		if !strings.HasPrefix(got, "43 132\n") || !strings.HasSuffix(got, "\n20 50\n") {
			t.Fatalf("round %d: output %q", i, got)
		}
		if err := p.Resize(t.Context(), proc.Size{Rows: 1, Cols: 1}); err != nil {
			t.Fatalf("resize after the end: %v", err)
		}
		_ = w.Close()
	}
}

// A program is told of a resize by SIGWINCH.
func TestTerminalResizeSignal(t *testing.T) {
	r := newRunner(t)
	p, stdout, _ := begin(t, r, ttySpec(`trap 'stty size; exit 0' WINCH; echo ready; while :; do sleep 0.01; done`, 10, 20), nil)
	stdout.awaitText(t, "ready")
	if err := p.Resize(t.Context(), proc.Size{Rows: 30, Cols: 90}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(stdout.String(), "30 90") {
		t.Errorf("output %q", stdout.String())
	}
}

func TestTerminal(t *testing.T) {
	r := newRunner(t)
	for _, tc := range []struct {
		name, script string
		env          []string
		stdin        string
		want         string
	}{
		{"all three are the terminal", "for n in 0 1 2; do test -t $n && echo $n; done", nil, "", "0\n1\n2\n"},
		{"it is the controlling terminal", "echo here > /dev/tty", nil, "", "here\n"},
		{"job control works", "set -m; sleep 0.01 & wait; echo fine", nil, "", "fine\n"},
		{"TERM is set when it is not", "echo $TERM", nil, "", "xterm-256color\n"},
		{"TERM is kept when it is", "echo $TERM", []string{"TERM=vt100"}, "", "vt100\n"},
		{"an empty TERM is kept", `echo "[$TERM]"`, []string{"TERM="}, "", "[]\n"},
		{"error output is output", "echo a; echo b >&2", nil, "", "a\nb\n"},
		{"the size is never zero", "stty size", nil, "", "24 80\n"},
		{"empty input", "cat; echo end", nil, "", "end\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			spec := ttySpec(tc.script, 0, 0)
			spec.Env = append(spec.Env, tc.env...)
			got := run(t, r, spec, nil)
			if s := strings.ReplaceAll(got.stdout, "\r", ""); s != tc.want || got.stderr != "" {
				t.Errorf("output %q, %q; want %q", s, got.stderr, tc.want)
			}
		})
	}
}

// The end of the input ends a program that reads from its terminal, after a
// complete and after an incomplete line.
func TestTerminalInputEnds(t *testing.T) {
	r := newRunner(t)
	for _, in := range []string{"a\n", "a", "", "a\nb"} {
		spec := ttySpec("stty -echo; echo ready; cat; echo end", 24, 80)
		spec.Stdin = true
		gate := make(chan struct{})
		p, stdout, _ := begin(t, r, spec, io.MultiReader(gatedReader{gate}, strings.NewReader(in)))
		stdout.awaitText(t, "ready")
		close(gate)
		if s, err := p.Wait(testContext(t)); err != nil || s.Code != 0 {
			t.Fatalf("%q: %+v, %v", in, s, err)
		}
		want := "ready\n" + in + "end\n"
		if got := strings.ReplaceAll(stdout.String(), "\r", ""); got != want {
			t.Errorf("input %q: output %q, want %q", in, got, want)
		}
	}
}

// gatedReader is empty once its gate is open.
type gatedReader struct{ gate <-chan struct{} }

func (g gatedReader) Read([]byte) (int, error) {
	<-g.gate
	return 0, io.EOF
}

// Ctrl-C typed into the terminal interrupts what runs in its foreground.
func TestTerminalInterrupt(t *testing.T) {
	r := newRunner(t)
	in, w := io.Pipe()
	spec := ttySpec("trap 'echo interrupted; exit 4' INT; echo ready; while :; do sleep 0.01; done", 24, 80)
	spec.Stdin = true
	p, stdout, _ := begin(t, r, spec, in)
	stdout.awaitText(t, "ready")
	if _, err := w.Write([]byte{3}); err != nil {
		t.Fatal(err)
	}
	if s, err := p.Wait(testContext(t)); err != nil || s.Code != 4 {
		t.Errorf("%+v, %v; want code 4", s, err)
	}
	_ = w.Close()
}

// Big output through a terminal is complete.
func TestTerminalOutputIsComplete(t *testing.T) {
	r := newRunner(t)
	for i := range repeats(20) {
		got := run(t, r, ttySpec("stty -opost; yes 0123456789 | head -c 300003; exit 3", 24, 80), nil)
		if len(got.stdout) != 300003 || got.status.Code != 3 {
			t.Fatalf("round %d: %d bytes, %+v", i, len(got.stdout), got.status)
		}
	}
}

// On a terminal, terminating hangs up: an interactive shell ignores SIGTERM.
func TestTerminalHangup(t *testing.T) {
	r := newRunner(t)
	p, stdout, _ := begin(t, r, ttySpec("trap '' TERM; trap 'exit 5' HUP; echo ready; while :; do sleep 0.01; done", 24, 80), nil)
	stdout.awaitText(t, "ready")
	terminate(t, p, deadline)
	if s, err := p.Wait(testContext(t)); err != nil || s.Code != 5 {
		t.Errorf("%+v, %v; want code 5", s, err)
	}
}

// An interactive shell and its jobs end with their terminal.
func TestTerminalShell(t *testing.T) {
	r := newRunner(t)
	id := newTracer(t)
	in, w := io.Pipe()
	defer w.Close()
	spec := ttySpec("", 24, 80)
	spec.Argv = []string{"bash", "--norc", "-i"}
	spec.Env = append(spec.Env, "PS1=prompt>")
	spec.Stdin = true
	p, stdout, _ := begin(t, r, spec, in)
	stdout.awaitText(t, "prompt>")
	if _, err := fmt.Fprintf(w, "sleep %s & sleep %s | cat\n", id, id); err != nil {
		t.Fatal(err)
	}
	id.awaitCount(t, 2)
	terminate(t, p, 500*time.Millisecond)
	id.mustBeGone(t)
	if s, err := p.Wait(testContext(t)); err != nil || s.Code == 0 {
		t.Errorf("%+v, %v; want a failure", s, err)
	}
}

// A command without a terminal cannot be resized.
func TestResizeWithoutTerminal(t *testing.T) {
	r := newRunner(t)
	p, _, _ := begin(t, r, script("exit 0"), nil)
	if err := p.Resize(t.Context(), proc.Size{Rows: 1, Cols: 1}); !errors.Is(err, syscall.ENOTTY) {
		t.Errorf("error %v, want ENOTTY", err)
	}
	if _, err := p.Wait(testContext(t)); err != nil {
		t.Error(err)
	}
}
