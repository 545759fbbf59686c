package bridgetest

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/workberth/workberth/fsbridge"
)

// check is one entry of the suite.
type check struct {
	// name is unique within its theme.
	name string
	// rows are the rows of the contract and the cases it proves.
	rows []string
	// needs are the capabilities without which it makes no sense.
	needs []fsbridge.Capability
	// opts is the environment it wants.
	opts Options
	// long leaves it out under -short.
	long bool
	// messy leaves the search for temporaries to another check.
	messy bool
	run   func(k *kit)
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
		{"core", coreChecks()},
		{"bytes", bytesChecks()},
		{"paths", pathChecks()},
		{"links", linkChecks()},
		{"attack", attackChecks()},
		{"names", nameChecks()},
		{"special", specialChecks()},
		{"limits", limitChecks()},
		{"pinned", pinnedChecks()},
		{"range", rangeChecks()},
		{"hash", hashChecks()},
		{"stream", streamChecks()},
		{"atomic", atomicChecks()},
		{"mode", modeChecks()},
		{"if", preconditionChecks()},
		{"create", createChecks()},
		{"dir", dirChecks()},
		{"remove", removeChecks()},
		{"rename", renameChecks()},
		{"copy", copyChecks()},
		{"list", listChecks()},
		{"walk", walkChecks()},
		{"glob", globChecks()},
		{"watch", watchChecks()},
		{"guard", guardChecks()},
		{"ctx", ctxChecks()},
		{"readonly", readOnlyChecks()},
		{"diskfull", diskFullChecks()},
		{"mounts", mountChecks()},
		{"transport", transportChecks()},
		{"concurrent", concurrentChecks()},
		{"race", raceChecks()},
	}
}

// Run holds the target to the whole suite. Each check is a subtest "theme/name" with an
// environment of its own. It must not run in parallel with other tests: it sets the umask.
func Run(t *testing.T, target Target) {
	t.Helper()
	if target.New == nil || target.Name == "" {
		t.Fatal("bridgetest: the target needs a name and a constructor")
	}
	before := goleak.IgnoreCurrent()
	rep := newReport(target)
	themes := suite()
	checkWaivers(t, target, themes)
	for _, th := range themes {
		t.Run(th.name, func(t *testing.T) {
			for _, c := range th.checks {
				full := th.name + "/" + c.name
				t.Run(c.name, func(t *testing.T) {
					defer func() { rep.record(full, c, t, target.Waive[full]) }()
					runCheck(t, &target, full, c, rep)
				})
			}
		})
	}
	if !t.Failed() {
		// No goroutine may outlive its environment.
		goleak.VerifyNone(t, before)
	}
	rep.finish(t)
}

// runCheck prepares one check, runs it, and looks at what it must leave behind.
func runCheck(t *testing.T, target *Target, full string, c check, rep *Report) {
	if reason := target.Waive[full]; reason != "" {
		t.Skipf("waived: %s", reason)
	}
	if c.long && testing.Short() {
		t.Skip("long: left out under -short")
	}
	setUmask(t, c.opts.umask())
	k := newKit(t, target, c.opts)
	rep.declared(fsbridge.CapabilitiesOf(k.b))
	for _, need := range c.needs {
		k.need(need)
	}
	k.sealOut()
	c.run(k)
	k.verifyOut()
	if !c.messy {
		k.verifyNoTemporaries()
	}
}

// umask is the mask asked for; the suite always sets one.
func (o Options) umask() fsbridge.Mode {
	if o.Umask == 0 {
		return 0o022
	}
	return o.Umask
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
	for name, reason := range target.Waive {
		if !known[name] {
			t.Errorf("bridgetest: waiver for %q, which is no check of the suite", name)
		}
		if strings.TrimSpace(reason) == "" {
			t.Errorf("bridgetest: waiver for %q without a reason", name)
		}
	}
}

// attackOps is the number of operations of a racing attack.
func (target *Target) attackOps(t testing.TB) int {
	t.Helper()
	if s := os.Getenv("BERTH_ATTACK_OPS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			t.Fatalf("BERTH_ATTACK_OPS=%q is not a positive number", s)
		}
		return n
	}
	if target.AttackOps > 0 {
		return target.AttackOps
	}
	return 3000
}

// maxFile is the largest file the environment takes.
func (target *Target) maxFile() int64 {
	if target.MaxFile > 0 {
		return target.MaxFile
	}
	return 256 << 20
}

// isTemporary recognises the name of a temporary.
func (target *Target) isTemporary(name string) bool {
	if target.IsTemporary != nil {
		return target.IsTemporary(name)
	}
	return strings.HasPrefix(name, ".berth-")
}

// Checks lists the names of all checks, "theme/name", with the rows and cases each one proves.
func Checks() map[string][]string {
	out := map[string][]string{}
	for _, th := range suite() {
		for _, c := range th.checks {
			out[th.name+"/"+c.name] = slices.Clone(c.rows)
		}
	}
	return out
}
