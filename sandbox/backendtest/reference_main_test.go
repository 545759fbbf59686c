package backendtest_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/workberth/workberth/fsbridge/bridgetest"
	"github.com/workberth/workberth/internal/guest/reaper"
	"github.com/workberth/workberth/sandbox"
	"github.com/workberth/workberth/sandbox/backendtest"
)

// faultVar names the fault of the reference backend.
const faultVar = "BERTH_BACKENDTEST_FAULT"

func TestMain(m *testing.M) {
	if code, played := reaper.Main(os.Args[1:]); played {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

func referenceTarget(fault string) backendtest.Target {
	return backendtest.Target{
		Name: "reference",
		New: func(t testing.TB, o backendtest.Options) sandbox.Backend {
			b, err := newReference(o.StateDir, o.Logger, withFault(t, fault))
			if err != nil {
				t.Fatal(err)
			}
			return b
		},
		Bridge: func(_ testing.TB, _ bridgetest.Options, env *bridgetest.Environment) {
			env.Sever = nil // there is nothing between bridge and files
		},
		Waive: map[string]string{
			"trees/regicide": noOrphanage,
			"crash/runtime":  noOrphanage,
		},
	}
}

// childOfTest is set in processes that play one check for another test.
const childOfTest = "BERTH_BACKENDTEST_ONE_CHECK"

// noOrphanage is what the reference backend is too small for.
const noOrphanage = "nobody adopts what a killed reaper leaves behind: this process would have to be a subreaper"

// TestReference: a healthy backend passes. It is about the suite, not about the backend, so the
// small rounds and crowds do; BERTH_REFERENCE_FULL=1 asks for the large ones.
func TestReference(t *testing.T) {
	if testing.Short() && os.Getenv(childOfTest) == "" {
		t.Skip("long: under -short the suite shows itself on the real backends")
	}
	if os.Getenv("BERTH_REFERENCE_FULL") == "" {
		was := flag.Lookup("test.short").Value.String()
		if err := flag.Set("test.short", "true"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = flag.Set("test.short", was) })
	}
	backendtest.Run(t, referenceTarget(os.Getenv(faultVar)))
}

// caughtBy names, for each fault, a check that finds it.
func caughtBy() map[string]string {
	return map[string]string{
		"tokenLeak":            "launch/order",
		"finalizeKills":        "launch/finalize",
		"prepareAfterRevoke":   "revoke/matrix",
		"buildAfterRevoke":     "revoke/matrix",
		"assertAlways":         "revoke/between",
		"spawnAfterRevoke":     "revoke/matrix",
		"spawnAgain":           "launch/once",
		"interruptAfterRevoke": "custody/interrupt",
		"writeAfterRevoke":     "revoke/files",
		"guardIgnored":         "files/guard",
		"tornWrites":           "bridge/atomic/readers-see-whole",
		"terminateNothing":     "trees/kinds",
		"terminateDirectOnly":  "trees/kinds",
		"terminateAll":         "trees/two",
		"noGrace":              "trees/grace",
		"custodyNotPinned":     "custody/pinned",
		"leavesLeftovers":      "status/leftover",
		"closeKeeps":           "trees/close",
		"dropsStart":           "streams/bytes",
		"dropsEnd":             "streams/complete",
		"bytesMangled":         "streams/stdin",
		"stdinErrorIsEOF":      "streams/failing-stdin",
		"signalsAreCodes":      "status/signals",
		"codesAreMasked":       "status/codes",
		"failuresAreSuccess":   "status/signals",
		"envLineBased":         "exec/environment",
		"directoryFallsBack":   "exec/cannot-start",
		"untypedStartErrors":   "exec/cannot-start",
		"ttyDefaultSize":       "tty/size",
		"noValidation":         "walls/dangerous",
		"oneForAll":            "access/two-workspaces",
		"setupAgain":           "setup/once",
		"noSweep":              "crash/owner",
		"removeTakesWorkspace": "life/remove",
	}
}

// TestMutants: each fault is found by the check that is there for it, which TestReference shows to
// pass without one. The check runs in a process of its own, since it must fail.
func TestMutants(t *testing.T) {
	prog := buildTestprog(t)
	for i, fault := range wrongs() {
		if testing.Short() && i%8 != 2 {
			continue
		}
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			check := caughtBy()[fault]
			if check == "" {
				t.Fatal("no check is named that finds it")
			}
			if out, passed := runCheckOf(t, "TestReference", check, prog, faultVar+"="+fault); passed {
				t.Errorf("%s passes with the fault:\n%s", check, out)
			}
		})
	}
}

// buildTestprog builds what runs inside once for several processes.
func buildTestprog(t *testing.T) string {
	t.Helper()
	prog := t.TempDir() + "/testprog"
	build := exec.Command("go", "build", "-o", prog, "./testprog")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return prog
}

// runCheckOf runs one check of a test of this package in a process of its own.
func runCheckOf(t *testing.T, test, check, prog, env string) (output string, passed bool) {
	t.Helper()
	pattern := "^" + test + "$/^" + strings.ReplaceAll(check, "/", "$/^") + "$"
	cmd := exec.Command(os.Args[0], "-test.run="+pattern, "-test.short", "-test.v", "-test.timeout=2m")
	tmp := t.TempDir()
	cmd.Env = append(os.Environ(), env, childOfTest+"=1", "BERTH_TESTPROG="+prog, "TMPDIR="+tmp)
	cmd.WaitDelay = time.Second // what a fault leaves running holds the output open
	out, err := cmd.CombinedOutput()
	endAll(tmp)
	if !strings.Contains(string(out), "=== RUN   "+test+"/"+check) {
		t.Fatalf("there is no check %s:\n%s", check, out)
	}
	return string(out), err == nil
}

// endAll ends what a fault has left running: the processes with a path below dir in an argument.
func endAll(dir string) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		data, err := os.ReadFile(f)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		if err == nil && pid > 1 && pid != os.Getpid() && strings.Contains(string(data), dir+"/") {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// TestChecksAreNamed: every check has a name of its own, and the theme of the files is not one.
func TestChecksAreNamed(t *testing.T) {
	checks := backendtest.Checks()
	if len(checks) < 60 {
		t.Errorf("%d checks", len(checks))
	}
	proved := map[string]bool{}
	for name, rows := range checks {
		if strings.HasPrefix(name, "bridge/") || strings.Count(name, "/") != 1 {
			t.Errorf("check %q", name)
		}
		for _, r := range rows {
			proved[r] = true
		}
	}
	for i := 1; i <= 13; i++ {
		if row := fmt.Sprintf("SBX-%02d", i); !proved[row] {
			t.Errorf("no check proves %s", row)
		}
	}
}
