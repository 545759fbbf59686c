package backendtest

import (
	"fmt"
	"strings"

	"github.com/workberth/workberth/sandbox"
)

func ttyChecks() []check {
	return []check{
		{name: "size", rows: []string{"C079"}, needs: withTTY, run: ttySize},
		{name: "none", run: ttyNone},
		{name: "hangup", needs: withTTY, run: ttyHangup},
	}
}

// ttySize: the size is right from the first moment and after a change.
func ttySize(k *kit) {
	x := k.ensure()
	for i := range k.rounds(50, 8) {
		cmd := x.role("tty")
		cmd.TTY = &sandbox.TTYSize{Rows: 43, Cols: 132}
		env := sandbox.Env{"SECRET": secretValue}
		if i%2 == 0 {
			env["TERM"] = "dumb"
		}
		s := x.startCommand(cmd, env)
		s.waitFor("size ")
		out := s.waitFor("\n")
		for !strings.Contains(out, "size 43 132\r\n") {
			if strings.Contains(out, "size 0 0") || strings.Contains(out, "size 24 80") || strings.Contains(out, "none") {
				k.Fatalf("round %d: %q", i, out)
			}
			out = s.waitFor("size 43 132\r\n")
		}
		if !strings.Contains(out, "tty true") || strings.Contains(out, `term ""`) || i%2 == 0 && !strings.Contains(out, `term "dumb"`) {
			k.Errorf("round %d: %q", i, out)
		}
		k.must(s.Resize(k.ctx, sandbox.TTYSize{Rows: 20, Cols: 50}))
		fmt.Fprint(s.stdin, "x\n")
		s.waitFor("size 20 50\r\n")
		fmt.Fprint(s.stdin, "end\n")
		if status := s.ended(); status != (sandbox.ExitStatus{}) {
			k.Errorf("round %d: %+v", i, status)
		}
		if err := s.Resize(k.ctx, sandbox.TTYSize{Rows: 1, Cols: 1}); err != nil {
			k.Errorf("round %d: resize after the end: %v", i, err)
		}
	}
	// A command that ends at once.
	cmd := x.role("true")
	cmd.TTY = &sandbox.TTYSize{Rows: 43, Cols: 132}
	if status := x.startCommand(cmd, nil).ended(); status != (sandbox.ExitStatus{}) {
		k.Errorf("%+v", status)
	}
}

// ttyNone: without being asked for, there is no terminal.
func ttyNone(k *kit) {
	x := k.ensure()
	if out := x.run("tty"); !strings.Contains(out, "tty false") {
		k.Errorf("%q", out)
	}
}

// ttyHangup: a command on a terminal is ended with its whole tree like any other.
func ttyHangup(k *kit) {
	x := k.ensure()
	cmd := x.role("tree", x.witness("t"), "8")
	cmd.TTY = &sandbox.TTYSize{Rows: 24, Cols: 80}
	s := x.startCommand(cmd, nil).ready()
	s.terminate(0)
	s.ended()
	k.allDead("terminated", "t")
	cmd = x.role("on-signal", "2", x.inside("came"))
	cmd.TTY = &sandbox.TTYSize{Rows: 24, Cols: 80}
	s = x.startCommand(cmd, nil).ready()
	fmt.Fprint(s.stdin, "\x03") // the terminal turns it into SIGINT
	if status := s.ended(); status.Code != 7 {
		k.Errorf("Ctrl-C: %+v", status)
	}
}
