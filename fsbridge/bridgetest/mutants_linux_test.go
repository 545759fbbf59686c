package bridgetest_test

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/bridgetest"
	"github.com/workberth/workberth/fsbridge/local"
)

// mutantVariable selects a broken bridge in the process that TestMutants starts.
const mutantVariable = "BERTH_TEST_MUTANT"

// mutant is a bridge with one deliberate fault, and the checks that must find it.
type mutant struct {
	name string
	// options may change what the environment is made with.
	options func(o *bridgetest.Options)
	// mounts may change the bridge's table.
	mounts func(t fsbridge.MountTable) fsbridge.MountTable
	// wrap puts the fault into a correct bridge; ws is the host path of the workspace.
	wrap func(b *local.Bridge, ws string) fsbridge.Bridge
	// environment may change the rest.
	environment func(e *bridgetest.Environment)
	// found are checks that must fail, passes are checks that must not.
	found, passes []string
	// says is text that must be in the output.
	says string
}

// TestMutant is the suite over a broken bridge. It runs in processes that TestMutants starts.
func TestMutant(t *testing.T) {
	name := os.Getenv(mutantVariable)
	if name == "" {
		t.Skip("runs in processes of TestMutants only")
	}
	all := mutants()
	i := slices.IndexFunc(all, func(m mutant) bool { return m.name == name })
	if i < 0 {
		t.Fatalf("no mutant %q", name)
	}
	m := all[i]
	ops := 20_000 // enough to hit a window of a microsecond for certain
	if len(m.found) == 0 {
		ops = 1000
	}
	bridgetest.Run(t, bridgetest.Target{
		Name: "mutant-" + name, Declared: fsbridge.AllCapabilities(), AttackOps: ops,
		New: func(t testing.TB, o bridgetest.Options) *bridgetest.Environment {
			dirs := bridgetest.NewHostDirs(t, o)
			if m.options != nil {
				m.options(&o)
			}
			table := dirs.Mounts(o)
			if m.mounts != nil {
				table = m.mounts(table)
			}
			b, err := local.New(local.Options{Mounts: table, ReadLimit: o.ReadLimit, Assert: o.Guard})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := b.Close(); err != nil {
					t.Error(err)
				}
			})
			e := dirs.Environment(b)
			if m.wrap != nil {
				e.Bridge = m.wrap(b, dirs.Workspace)
			}
			if m.environment != nil {
				m.environment(e)
			}
			return e
		},
	})
}

// runMutant runs some checks over a mutant in a process of its own.
func runMutant(t *testing.T, name string, checks []string) (output string, failed bool) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var themes, names []string
	for _, c := range checks {
		th, n, _ := strings.Cut(c, "/")
		themes, names = append(themes, regexp.QuoteMeta(th)), append(names, regexp.QuoteMeta(n))
	}
	run := "^TestMutant$/^(" + strings.Join(themes, "|") + ")$/^(" + strings.Join(names, "|") + ")$"
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := mutantCommand(ctx, t, self, name, run)
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		t.Fatalf("mutant %s did not end:\n%s", name, out)
	}
	return string(out), err != nil
}

// mutantCommand is the command that runs the selected tests over a mutant, in a directory of its own.
func mutantCommand(ctx context.Context, t *testing.T, program, name, run string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(ctx, program, "-test.run", run, "-test.v", "-test.count=1")
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), mutantVariable+"="+name, "BERTH_CAPABILITY_REPORT=", "BERTH_ATTACK_OPS=")
	return cmd
}

// TestMutants proves that the suite can fail: for each deliberate fault, the checks that are made
// for it find it, and find nothing in the bridge without the fault.
func TestMutants(t *testing.T) {
	unharmed(t)
	known := bridgetest.Checks()
	var all []string
	for _, m := range mutants() {
		for _, c := range m.found {
			if !hasCheck(known, c) {
				t.Fatalf("mutant %s: there is no check %q", m.name, c)
			}
			if !slices.Contains(all, c) {
				all = append(all, c)
			}
		}
	}
	for _, m := range mutants() {
		if m.name == "none" {
			m.passes = all
		}
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			if len(m.passes) > 0 {
				if out, failed := runMutant(t, m.name, m.passes); failed {
					t.Errorf("the suite fails where there is no fault:\n%s", out)
				}
			}
			if len(m.found) == 0 {
				return
			}
			var missed string
			for range 5 { // to meet a race takes luck on a busy machine
				if missed = m.missed(t); missed == "" {
					return
				}
			}
			t.Error(missed)
		})
	}
}

// missed runs the checks that must find the fault and says what they have missed.
func (m mutant) missed(t *testing.T) string {
	t.Helper()
	out, failed := runMutant(t, m.name, m.found)
	if !failed || !strings.Contains(out, m.says) {
		return "the suite passes over a broken bridge, or does not say \"" + m.says + "\":\n" + out
	}
	for _, c := range m.found {
		switch {
		case m.says != "": // the fault shows outside the check itself
		case strings.Contains(out, "--- FAIL: TestMutant/"+c+" "):
		case strings.Contains(out, "--- SKIP: TestMutant/"+c+" "):
			t.Logf("check %s could not run here", c)
		default:
			return "check " + c + " did not find the fault:\n" + out
		}
	}
	return ""
}

// unharmed demands, at the end of t, that files of this machine which the attacks name are as they
// were: a bridge that lets everything happen must not make the suite a danger.
func unharmed(t *testing.T) {
	t.Helper()
	look := func() (out []string) {
		for _, p := range []string{"/etc/hostname", "/absent", "/etc/absent", "absent"} {
			data, err := os.ReadFile(p)
			out = append(out, p+": "+string(data))
			if err != nil {
				out = append(out, err.Error())
			}
		}
		return out
	}
	before := look()
	t.Cleanup(func() {
		if after := look(); !slices.Equal(before, after) {
			t.Errorf("the suite did harm:\nbefore %q\nafter  %q", before, after)
		}
	})
}

func hasCheck(known map[string][]string, name string) bool {
	_, ok := known[name]
	return ok
}
