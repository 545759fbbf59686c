package backendtest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/workberth/workberth/sandbox"
)

func setupChecks() []check {
	return []check{
		{name: "once", run: setupOnce},
		{name: "failure", rows: []string{"C055"}, run: setupFailure},
	}
}

// needShell skips where the place has no /bin/sh: the setup command needs one.
func (k *kit) needShell() {
	k.Helper()
	x := k.ensure(func(s *sandbox.Spec) { s.Session = "shell" })
	res, err := sandbox.Run(k.ctx, x.Sandbox, sandbox.Command{Argv: []string{"/bin/sh", "-c", "exit 5"}}, nil, sandbox.RunOptions{})
	if err != nil || res.Status.Code != 5 {
		k.skip("there is no /bin/sh inside (%v)", err)
	}
	k.must(k.backend.Remove(k.ctx, x.id))
}

// setupOnce: the setup command runs when the sandbox is made, and not again.
func setupOnce(k *kit) {
	k.needShell()
	set := func(s *sandbox.Spec) {
		s.Config.SetupCommand = `echo "run in $(pwd) with $WITH" >> setup.log`
		s.Config.Env = map[string]string{"WITH": "a value"}
	}
	x := k.ensure(set)
	k.ensure(set)
	k.must(k.backend.Stop(k.ctx, x.id))
	k.ensure(set)
	data, err := os.ReadFile(filepath.Join(k.ws, "setup.log"))
	if want := "run in " + x.root + " with a value\n"; err != nil || string(data) != want {
		k.Errorf("%q, %v; want %q once", data, err, want)
	}
	k.must(k.backend.Remove(k.ctx, x.id))
	k.ensure(set)
	if data, _ := os.ReadFile(filepath.Join(k.ws, "setup.log")); strings.Count(string(data), "\n") != 2 {
		k.Errorf("after the removal: %q", data)
	}
}

// setupFailure: a failing setup command says what it said, and leaves no sandbox.
func setupFailure(k *kit) {
	k.needShell()
	before := k.snapshot(k.ws)
	set := func(command string) func(*sandbox.Spec) {
		return func(s *sandbox.Spec) { s.Config.SetupCommand = command }
	}
	for name, command := range map[string]string{
		"code": `echo "the reason of the suite" >&2; sleep 1000 & exit 3`, "no such program": "absent-" + k.word,
	} {
		_, err := k.tryEnsure(k.backend, k.spec(set(command)))
		if err == nil {
			k.Errorf("%s: accepted", name)
			continue
		}
		if name == "code" && (!strings.Contains(err.Error(), "the reason of the suite") || !strings.Contains(err.Error(), "3")) {
			k.Errorf("%s: %q tells neither output nor code", name, err)
		}
		var p *sandbox.Problem
		if !errors.As(err, &p) || p.Field != "setupCommand" {
			k.Errorf("%s: %v does not name the field", name, err)
		}
		if infos, err := k.backend.List(k.ctx); err != nil || len(infos) > 0 {
			k.Errorf("%s: left behind: %+v, %v", name, infos, err)
		}
	}
	k.wantSnapshot("failed setup", k.ws, before)
	k.ensure(set("true")).works()
}
