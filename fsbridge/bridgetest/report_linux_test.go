package bridgetest_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/bridgetest"
	"github.com/workberth/workberth/fsbridge/local"
)

const reportVariable = "BERTH_TEST_REPORT"

// TestReported is a run whose report TestReport reads: a bridge that says it cannot hash, cannot
// list, and has a waiver.
func TestReported(t *testing.T) {
	if os.Getenv(reportVariable) == "" {
		t.Skip("runs in a process of TestReport only")
	}
	waive := map[string]string{"range/table": "a documented weakness"}
	if os.Getenv(reportVariable) == "bad" {
		waive = map[string]string{"range/tabel": "misspelt", "core/read": ""}
	}
	bridgetest.Run(t, bridgetest.Target{
		Name: "reported/part", Waive: waive,
		New: func(t testing.TB, o bridgetest.Options) *bridgetest.Environment {
			dirs := bridgetest.NewHostDirs(t, o)
			b, err := local.New(local.Options{Mounts: dirs.Mounts(o), ReadLimit: o.ReadLimit, Assert: o.Guard})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = b.Close() })
			return dirs.Environment(hidesHash{unsorted{base{b, dirs.Workspace}}})
		},
	})
}

// hidesHash does not declare one capability, and is wrong about the order of listings.
type hidesHash struct{ unsorted }

func (h hidesHash) Declares(c fsbridge.Capability) bool { return c != fsbridge.CapHashFile }

func runReported(t *testing.T, mode, run, dir string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", run, "-test.v", "-test.count=1", "-test.short")
	cmd.Env = append(os.Environ(), reportVariable+"="+mode, "BERTH_CAPABILITY_REPORT="+dir)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestReport reads what a run has written. A failed check, a missing capability, a waiver and an
// incomplete run are told as what they are.
func TestReport(t *testing.T) {
	dir := t.TempDir()
	out, err := runReported(t, "good", "^TestReported$/^(range|hash|limits|list)$/^(table|errors|digest|range|entries)$", dir)
	if err == nil {
		t.Fatalf("a wrong bridge passes:\n%s", out)
	}
	data, err := os.ReadFile(filepath.Join(dir, "reported-part.json"))
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var r bridgetest.Report
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	if r.Target != "reported/part" || r.Complete {
		t.Errorf("target %q, complete %t", r.Target, r.Complete)
	}
	for c, want := range map[fsbridge.Capability]bridgetest.Status{
		fsbridge.CapReadRange: bridgetest.Proved, fsbridge.CapHashFile: bridgetest.Missing,
		fsbridge.CapReadDirectory: bridgetest.Failed, fsbridge.CapWatch: bridgetest.Untested,
	} {
		if got := r.Capabilities[c]; got != want {
			t.Errorf("capability %q: %q, want %q", c, got, want)
		}
	}
	if len(r.Capabilities) != len(fsbridge.AllCapabilities()) {
		t.Errorf("%d capabilities", len(r.Capabilities))
	}
	if r.Waived["range/table"] != "a documented weakness" {
		t.Errorf("waived: %v", r.Waived)
	}
	for _, name := range []string{"hash/digest", "hash/errors"} {
		if !slices.Contains(r.Skipped, name) {
			t.Errorf("skipped: %v lacks %q", r.Skipped, name)
		}
	}
	if !slices.Contains(r.Failed, "list/entries") || !slices.Contains(r.Passed, "limits/range") {
		t.Errorf("failed: %v, passed: %v", r.Failed, r.Passed)
	}
	if l := r.Rows["FSB-07"]; !slices.Contains(l, "list/errors") || slices.Contains(l, "list/entries") {
		t.Errorf("rows: %v", r.Rows)
	}
	if !strings.Contains(out, `does not declare capability "hash"`) {
		t.Errorf("the skip does not name the capability:\n%s", out)
	}
}

// TestBadWaivers: a waiver for a check that does not exist, or without a reason, is an error.
func TestBadWaivers(t *testing.T) {
	out, err := runReported(t, "bad", "^TestReported$/^core$/^stat-dir$", "")
	if err == nil || !strings.Contains(out, `waiver for "range/tabel"`) || !strings.Contains(out, `waiver for "core/read" without a reason`) {
		t.Errorf("bad waivers were accepted: %v\n%s", err, out)
	}
}

// TestChecks: every row of the contract that a bridge can be held to is proved by some check.
func TestChecks(t *testing.T) {
	rows := map[string]bool{}
	for _, proves := range bridgetest.Checks() {
		for _, r := range proves {
			rows[r] = true
		}
	}
	for _, r := range []string{
		"FSB-01", "FSB-03", "FSB-04", "FSB-05", "FSB-06", "FSB-07", "FSB-08", "FSB-09", "FSB-10", "FSB-11", "FSB-12",
		"C001", "C003", "C005", "C007", "C009", "C013", "C015", "C019", "C021", "C023", "C025", "C027", "C029",
		"C031", "C033", "C035", "C037", "C039", "C041",
	} {
		if !rows[r] {
			t.Errorf("no check proves %s", r)
		}
	}
}
