package backendtest

import (
	"fmt"
	"strings"

	"github.com/workberth/workberth/sandbox"
)

func statusChecks() []check {
	return []check{
		{name: "codes", rows: []string{"C073"}, run: statusCodes},
		{name: "signals", rows: []string{"C073"}, run: statusSignals},
		{name: "held-output", rows: []string{"C085"}, run: statusHeldOutput},
		{name: "leftover", rows: []string{"C085"}, run: statusLeftover},
		{name: "kept", run: statusKept},
		{name: "zombies", rows: []string{"C089"}, needs: withProcessNamespace, run: statusZombies},
		{name: "stopped-sandbox", rows: []string{"C063"}, run: statusStoppedSandbox},
	}
}

func withProcessNamespace(f sandbox.Features) string {
	return unless(f.ProcessNamespace, "a process namespace of its own")
}

// statusCodes: exit codes are the command's own.
func statusCodes(k *kit) {
	x := k.ensure()
	for _, code := range []int{0, 1, 2, 3, 44, 99, 125, 126, 127, 128, 130, 137, 143, 254, 255, 300, 256, -1} {
		res, err := sandbox.Run(k.ctx, x.Sandbox, x.role("exit", fmt.Sprint(code)), nil, sandbox.RunOptions{})
		if want := (sandbox.ExitStatus{Code: code & 255}); err != nil || res.Status != want {
			k.Errorf("exit %d: %+v, %v; want %+v", code, res.Status, err, want)
		}
	}
}

// statusSignals: a death by signal is none by exit.
func statusSignals(k *kit) {
	x := k.ensure()
	for _, sig := range []int{1, 2, 9, 15} {
		res, err := sandbox.Run(k.ctx, x.Sandbox, x.role("suicide", fmt.Sprint(sig)), nil, sandbox.RunOptions{})
		if want := (sandbox.ExitStatus{Code: 128 + sig, Signal: sig}); err != nil || res.Status != want {
			k.Errorf("signal %d: %+v, %v; want %+v", sig, res.Status, err, want)
		}
	}
}

// statusHeldOutput: a descendant that holds the output open delays nothing.
func statusHeldOutput(k *kit) {
	x := k.ensure()
	res, err := sandbox.Run(k.ctx, x.Sandbox, x.role("linger", x.witness("l")), nil, sandbox.RunOptions{})
	if err != nil || string(res.Stdout.Bytes()) != "out1\n" || res.Status.Code != 0 || res.TimedOut {
		k.Errorf("result %+v, %q, %v", res.Status, res.Stdout.Bytes(), err)
	}
	k.eventually("what was left behind is ended", func() bool { return len(k.alive("l")) == 0 })
}

// statusLeftover: what remains is counted and ended, unless it was to be kept.
func statusLeftover(k *kit) {
	x := k.ensure()
	for _, role := range []string{"daemon", "linger"} {
		res, err := sandbox.Run(k.ctx, x.Sandbox, x.role(role, x.witness(role)), nil, sandbox.RunOptions{})
		if err != nil || res.Status.Code != 0 || res.Status.Leftover < 1 {
			k.Errorf("%s: %+v, %v; want a leftover", role, res.Status, err)
		}
		k.eventually("what "+role+" left behind is ended", func() bool { return len(k.alive(role)) == 0 })
	}
	if got := x.run("print", `"x"`); got != "x" {
		k.Errorf("wrote %q", got)
	}
}

// statusKept: who asks for it may leave processes behind; custody still ends them, and so does
// the end of the sandbox.
func statusKept(k *kit) {
	x := k.ensure()
	cmd := x.role("daemon", x.witness("kept"))
	cmd.KeepDescendants = true
	s := x.startCommand(cmd, nil)
	if status := s.ended(); status.Code != 0 || status.Leftover < 1 {
		k.Errorf("status %+v", status)
	}
	x.works()
	if len(k.alive("kept")) != 1 {
		k.Fatal("what was to be kept is gone")
	}
	if k.features.ProcessCleanup {
		s.terminate(0)
		k.allDead("terminated", "kept")
	}
	cmd = x.role("daemon", x.witness("stays"))
	cmd.KeepDescendants = true
	x.startCommand(cmd, nil).ended()
	if len(k.alive("stays")) != 1 {
		k.Error("what was to be kept is gone")
	}
	k.must(k.backend.Stop(k.ctx, x.id))
	k.allDead("the sandbox was stopped", "")
}

// statusZombies: processes that end are reaped, whoever their parent was.
func statusZombies(k *kit) {
	x := k.ensure()
	for range k.rounds(200, 30) {
		cmd := x.role("litter", "1")
		cmd.KeepDescendants = true
		res, err := sandbox.Run(k.ctx, x.Sandbox, cmd, nil, sandbox.RunOptions{})
		if err != nil || res.Status.Code != 0 {
			k.Fatalf("%+v, %v", res.Status, err)
		}
	}
	type process struct {
		Pid   int
		State string
		Args  []string
	}
	var seen []process
	k.eventually("everything that ended is reaped", func() bool {
		seen = decode[[]process](k, x.run("procs"))
		for _, p := range seen {
			if p.State == "Z" || strings.Contains(strings.Join(p.Args, " "), "late") {
				return false
			}
		}
		return true
	})
}

// statusStoppedSandbox: a sandbox that is stopped under a command takes it along, truthfully:
// the output so far is there, the end is no success and not a bare number.
func statusStoppedSandbox(k *kit) {
	for name, stop := range map[string]func(x *box) error{
		"stop":   func(x *box) error { return k.backend.Stop(k.ctx, x.id) },
		"remove": func(x *box) error { return k.backend.Remove(k.ctx, x.id) },
	} {
		x := k.ensure(func(s *sandbox.Spec) { s.Session = name })
		s := x.start("wait", x.witness(name)).ready()
		if err := stop(x); err != nil {
			k.Errorf("%s: %v", name, err)
		}
		status := s.ended()
		if status.Code == 0 && !status.Unknown || status.Unknown && status.Reason == "" {
			k.Errorf("%s: status %+v", name, status)
		}
		if !strings.HasPrefix(s.output(), "ready") {
			k.Errorf("%s: output %q", name, s.output())
		}
		k.allDead(name, name)
		if res, err := s.Terminate(k.ctx, 0); err != nil || res.Outcome != sandbox.TerminationGone {
			k.Errorf("%s: Terminate afterwards = %+v, %v", name, res, err)
		}
	}
}
