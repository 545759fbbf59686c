package bench

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// example has one row of each kind.
func example() *Report {
	rows := []Row{
		{Measured: "stat", Ours: q(Seconds, 50e-6, 80e-6), Peer: "echo", Theirs: q(Seconds, 40e-6, 60e-6), Sense: Cost, Budget: Budget{MaxRatio: 1.6}},
		{Measured: "true", Ours: q(Seconds, 3e-3, 4e-3), Peer: "docker", Theirs: q(Seconds, 30e-3, 40e-3), Sense: Speed, Budget: Budget{MinRatio: 20}},
		{Measured: "a|b", Ours: q(BytesPerSecond, 1e9, 5e8), Peer: "cat", Sense: Speed, Note: "no engine here"},
		{Measured: "run", Peer: "docker", Sense: Speed, Budget: Budget{MinRatio: 15}, Note: "no engine here"},
		{Measured: "failed", Ours: tally(2, 200), Budget: Budget{Zero: true}, Note: "exit 1"},
		{Measured: "resident", Ours: q(Bytes, 5<<20, 6<<20), Budget: Budget{MaxWorst: 12 << 20}},
	}
	for i := range rows {
		rows[i] = rows[i].judged()
	}
	return &Report{
		Machine: Machine{
			Date: "2026-01-31", CPUs: 2, CPU: "Some CPU", Memory: 24 << 30, Kernel: "6.1 x86_64", System: "Some Linux",
			Filesystem: "ext4", Go: "go1", Program: "berth v1", Bubblewrap: "bubblewrap 1", Docker: "engine 1, client 2", Podman: "no engine here",
		},
		Short: true, Load: [2]float64{0.5, 1.25},
		Parts: []Part{
			{Backend: "bubblewrap", Sections: []Section{
				{Name: "one", Title: "The first", How: "So it was done." + strings.Repeat(" And so on.", 20), Rows: rows},
				{Name: "two", Title: "The second", How: "It broke.", Err: "some\nreason"},
			}},
			{Backend: "docker", Sections: []Section{{Name: "one", Title: "The first", How: "In the same way.", Rows: rows[:1]}}},
			{Backend: "podman", Missing: "no engine here"},
		},
	}
}

// TestMarkdown compares with a golden file, which BERTH_WRITE_DOCS=1 writes.
func TestMarkdown(t *testing.T) {
	var got bytes.Buffer
	if err := example().WriteMarkdown(&got); err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "report.md.golden")
	if os.Getenv("BERTH_WRITE_DOCS") == "1" {
		if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("the document changed; got:\n%s", &got)
	}
	for i, line := range strings.Split(got.String(), "\n") {
		if !strings.HasPrefix(line, "|") {
			continue
		}
		cells := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|")
		if cells != 3 && cells != 11 {
			t.Errorf("line %d has %d bars: %s", i+1, cells, line)
		}
	}
}

func TestBusyMachineIsTold(t *testing.T) {
	for load, want := range map[float64]bool{0.5: false, 1.5: true} {
		r := example()
		r.Load[0] = load
		var b bytes.Buffer
		if err := r.WriteMarkdown(&b); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(b.String(), "The machine was busy"); got != want {
			t.Errorf("load %v of two processors: told %t, want %t", load, got, want)
		}
	}
}

func TestFailuresAreNotSlowness(t *testing.T) {
	got := example().Failures()
	want := []string{"bubblewrap: one: failed: 2, and it has to be 0", "bubblewrap: two: some\nreason"}
	if !slices.Equal(got, want) {
		t.Errorf("failures %q, want %q", got, want)
	}
}

func TestJSONKeepsEverything(t *testing.T) {
	var b bytes.Buffer
	want := example()
	if err := want.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var got Report
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	var again bytes.Buffer
	if err := got.WriteJSON(&again); err != nil {
		t.Fatal(err)
	}
	if b.String() != again.String() || got.Parts[0].Sections[0].Rows[0].Verdict != Met {
		t.Errorf("reading back what was written gave:\n%s", &again)
	}
}
