package backendtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/workberth/workberth/fsbridge/bridgetest"
	"github.com/workberth/workberth/sandbox"
)

// check is one entry of the suite.
type check struct {
	// name is unique within its theme.
	name string
	// rows are the rows of the contract and the cases it proves.
	rows []string
	// needs tells which feature is missing that the check cannot do without; "" means none.
	// Nil needs nothing.
	needs func(f sandbox.Features) string
	// long leaves it out under -short.
	long bool
	run  func(k *kit)
}

// theme is a group of checks about one thing.
type theme struct {
	name   string
	checks []check
}

// suite lists everything, in the order in which it runs.
func suite() []theme {
	return []theme{
		{"declared", declaredChecks()},
		{"launch", launchChecks()},
		{"streams", streamChecks()},
		{"exec", execChecks()},
		{"status", statusChecks()},
		{"time", timeChecks()},
		{"tty", ttyChecks()},
		{"trees", treeChecks()},
		{"custody", custodyChecks()},
		{"background", backgroundChecks()},
		{"revoke", revokeChecks()},
		{"files", fileChecks()},
		{"access", accessChecks()},
		{"walls", wallChecks()},
		{"limits", limitChecks()},
		{"life", lifeChecks()},
		{"setup", setupChecks()},
		{"crowd", crowdChecks()},
		{"crash", crashChecks()},
	}
}

// Run holds the target to the whole suite. Each check is a subtest "theme/name" with a state
// directory and a workspace of its own; the files are held to package bridgetest in the subtest
// "bridge". It must not run in parallel with other tests, and its backend must not be used by
// others meanwhile.
//
// Run starts the test program again to play an owner that is killed: code before it in the
// same test function runs there too.
func Run(t *testing.T, target Target) {
	t.Helper()
	if target.New == nil || target.Name == "" {
		t.Fatal("backendtest: the target needs a name and a constructor")
	}
	if playChild(t, &target) {
		return
	}
	prog := buildProgram(t)
	before := goleak.IgnoreCurrent()
	rep := newReport(target)
	themes := suite()
	checkWaivers(t, target, themes)
	for _, th := range themes {
		t.Run(th.name, func(t *testing.T) {
			for _, c := range th.checks {
				full := th.name + "/" + c.name
				t.Run(c.name, func(t *testing.T) {
					k := &kit{T: t, target: &target, prog: prog, name: full}
					defer func() { rep.record(full, c, k, target.Waive[full]) }()
					runCheck(k, c, rep)
				})
			}
		})
	}
	t.Run("bridge", func(t *testing.T) { runBridgetest(t, &target, prog) })
	if !t.Failed() {
		// No goroutine may outlive its sandbox.
		goleak.VerifyNone(t, before)
	}
	rep.finish(t)
}

// runCheck prepares one check, runs it, and looks at what it must leave behind.
func runCheck(k *kit, c check, rep *Report) {
	if reason := k.target.Waive[k.name]; reason != "" {
		k.skip("waived: %s", reason)
	}
	if c.long && testing.Short() {
		k.skip("long: left out under -short")
	}
	k.prepare()
	rep.features(k.features)
	if c.needs != nil {
		if missing := c.needs(k.features); missing != "" {
			k.skip("%s does not declare %s", k.target.Name, missing)
		}
	}
	c.run(k)
}

// checkWaivers refuses a waiver for a check that does not exist.
func checkWaivers(t *testing.T, target Target, themes []theme) {
	t.Helper()
	known := map[string]bool{}
	for _, th := range themes {
		for _, c := range th.checks {
			known[th.name+"/"+c.name] = true
		}
	}
	for name := range bridgetest.Checks() {
		known["bridge/"+name] = true
	}
	for name, reason := range target.Waive {
		if !known[name] {
			t.Errorf("backendtest: waiver for %q, which is no check of the suite", name)
		}
		if strings.TrimSpace(reason) == "" {
			t.Errorf("backendtest: waiver for %q without a reason", name)
		}
	}
}

// Checks lists the names of all checks, "theme/name", with the rows and cases each one proves. Those
// of package bridgetest are not among them.
func Checks() map[string][]string {
	out := map[string][]string{}
	for _, th := range suite() {
		for _, c := range th.checks {
			name := th.name + "/" + c.name
			if _, twice := out[name]; twice {
				panic(fmt.Sprintf("backendtest: two checks are called %q", name))
			}
			out[name] = slices.Clone(c.rows)
		}
	}
	return out
}

// Needs for the tables of checks.
func confined(f sandbox.Features) string { return unless(f.Confined, "confinement") }
func withTTY(f sandbox.Features) string  { return unless(f.TTY, "terminals") }
func withBinds(f sandbox.Features) string {
	return unless(f.Binds && f.Confined, "binds")
}

func unless(ok bool, missing string) string {
	if ok {
		return ""
	}
	return missing
}

// withAccess needs an access to the workspace that can be kept.
func withAccess(a sandbox.Access) func(sandbox.Features) string {
	return func(f sandbox.Features) string {
		return unless(slices.Contains(f.Access, a), "access "+string(a))
	}
}
