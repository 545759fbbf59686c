package bridgetest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/workberth/workberth/fsbridge"
)

// Status is what a run found out about a capability.
type Status string

// The states of a capability.
const (
	// Proved: declared, and every check that needs it passed.
	Proved Status = "proved"
	// Failed: declared, and a check that needs it failed.
	Failed Status = "failed"
	// Missing: not declared, and asking for it is refused by name.
	Missing Status = "missing"
	// Untested: declared, but no check that needs it ran.
	Untested Status = "untested"
)

// Report is the result of one run of the suite, from which capability tables are generated.
type Report struct {
	// Target is the name of the implementation.
	Target string `json:"target"`
	// Complete is false when only a part of the suite was selected.
	Complete bool `json:"complete"`
	// Capabilities has an entry for every capability there is.
	Capabilities map[fsbridge.Capability]Status `json:"capabilities"`
	// Rows maps a row of the contract or a case to the checks that proved it.
	Rows map[string][]string `json:"rows"`
	// Passed and Failed are names of checks.
	Passed []string `json:"passed"`
	Failed []string `json:"failed"`
	// Skipped are checks the environment had no means for, or whose capability is missing.
	Skipped []string `json:"skipped"`
	// Waived maps a check that was not run to the target's documented reason.
	Waived map[string]string `json:"waived"`

	has  map[fsbridge.Capability]bool
	good map[fsbridge.Capability]int
	bad  map[fsbridge.Capability]int
}

func newReport(target Target) *Report {
	return &Report{
		Target:       target.Name,
		Capabilities: map[fsbridge.Capability]Status{},
		Rows:         map[string][]string{},
		Passed:       []string{}, Failed: []string{}, Skipped: []string{},
		Waived: map[string]string{},
		has:    map[fsbridge.Capability]bool{},
		good:   map[fsbridge.Capability]int{}, bad: map[fsbridge.Capability]int{},
	}
}

// declared notes what the bridge declares.
func (r *Report) declared(caps []fsbridge.Capability) {
	for _, c := range caps {
		r.has[c] = true
	}
}

// record notes the outcome of a check that has just ended.
func (r *Report) record(name string, c check, t *testing.T, waived string) {
	switch {
	case t.Failed():
		r.Failed = append(r.Failed, name)
		for _, n := range c.needs {
			r.bad[n]++
		}
	case t.Skipped() && waived != "":
		r.Waived[name] = waived
	case t.Skipped():
		r.Skipped = append(r.Skipped, name)
	default:
		r.Passed = append(r.Passed, name)
		for _, row := range c.rows {
			r.Rows[row] = append(r.Rows[row], name)
		}
		for _, n := range c.needs {
			r.good[n]++
		}
	}
}

// finish computes the states and writes the file that BERTH_CAPABILITY_REPORT asks for.
func (r *Report) finish(t *testing.T) {
	t.Helper()
	for _, c := range fsbridge.AllCapabilities() {
		switch {
		case !r.has[c]:
			r.Capabilities[c] = Missing
		case r.bad[c] > 0:
			r.Capabilities[c] = Failed
		case r.good[c] > 0:
			r.Capabilities[c] = Proved
		default:
			r.Capabilities[c] = Untested
		}
	}
	ran := len(r.Passed) + len(r.Failed) + len(r.Skipped) + len(r.Waived)
	r.Complete = ran == len(Checks())
	if r.Complete {
		for c, s := range r.Capabilities {
			if s == Untested {
				t.Errorf("bridgetest: capability %q is declared but no check of it ran", c)
			}
		}
	}
	dir := os.Getenv("BERTH_CAPABILITY_REPORT")
	if dir == "" {
		return
	}
	for _, l := range [][]string{r.Passed, r.Failed, r.Skipped} {
		slices.Sort(l)
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Errorf("bridgetest: report: %v", err)
		return
	}
	file := filepath.Join(dir, strings.ReplaceAll(r.Target, "/", "-")+".json")
	if err := os.WriteFile(file, append(data, '\n'), 0o644); err != nil {
		t.Errorf("bridgetest: report: %v", err)
	}
}
