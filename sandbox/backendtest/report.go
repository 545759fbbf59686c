package backendtest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/workberth/workberth/sandbox"
)

// Report is the result of one run of the suite, from which tables of features are generated.
type Report struct {
	// Target is the name of the implementation.
	Target string `json:"target"`
	// Complete is false when only a part of the suite was selected.
	Complete bool `json:"complete"`
	// Features is what the backend declared.
	Features sandbox.Features `json:"features"`
	// Rows maps a row of the contract or a case to the checks that proved it.
	Rows map[string][]string `json:"rows"`
	// Passed and Failed are names of checks.
	Passed []string `json:"passed"`
	Failed []string `json:"failed"`
	// Skipped maps a check that did not run to the reason.
	Skipped map[string]string `json:"skipped"`
	// Waived maps a check that was not run to the target's documented reason.
	Waived map[string]string `json:"waived"`
}

func newReport(target Target) *Report {
	return &Report{
		Target: target.Name, Rows: map[string][]string{}, Passed: []string{}, Failed: []string{},
		Skipped: map[string]string{}, Waived: map[string]string{},
	}
}

// features notes what the backend declares.
func (r *Report) features(f sandbox.Features) { r.Features = f }

// record notes the outcome of a check that has just ended.
func (r *Report) record(name string, c check, k *kit, waived string) {
	switch {
	case k.Failed():
		r.Failed = append(r.Failed, name)
	case k.Skipped() && waived != "":
		r.Waived[name] = waived
	case k.Skipped():
		r.Skipped[name] = k.skipped
	default:
		r.Passed = append(r.Passed, name)
		for _, row := range c.rows {
			r.Rows[row] = append(r.Rows[row], name)
		}
	}
}

// finish writes the file that BERTH_CAPABILITY_REPORT asks for.
func (r *Report) finish(t *testing.T) {
	t.Helper()
	r.Complete = len(r.Passed)+len(r.Failed)+len(r.Skipped)+len(r.Waived) == len(Checks())
	dir := os.Getenv("BERTH_CAPABILITY_REPORT")
	if dir == "" {
		return
	}
	slices.Sort(r.Passed)
	slices.Sort(r.Failed)
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Errorf("backendtest: report: %v", err)
		return
	}
	file := filepath.Join(dir, "backend-"+strings.ReplaceAll(r.Target, "/", "-")+".json")
	if err := os.WriteFile(file, append(data, '\n'), 0o644); err != nil {
		t.Errorf("backendtest: report: %v", err)
	}
}
