package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/workberth/workberth/integration/bench"
)

// TestShortRun makes every measure once, short, with the programs of `make build`: the harness
// works, nothing fails, and nobody looks at a time.
func TestShortRun(t *testing.T) {
	if testing.Short() {
		t.Skip("drives real sandboxes")
	}
	bin := filepath.Join("..", "..", "bin")
	for _, need := range []func() error{
		func() error { _, err := exec.LookPath("bwrap"); return err },
		func() error { _, err := os.Stat(filepath.Join(bin, "berth")); return err },
		func() error { _, err := os.Stat(filepath.Join(bin, "berth-guest")); return err },
	} {
		if err := need(); err != nil && os.Getenv("BERTH_REQUIRE_ENGINES") == "1" {
			t.Fatal(err)
		} else if err != nil {
			t.Skip(err)
		}
	}
	dir := t.TempDir()
	doc, data := filepath.Join(dir, "benchmarks.md"), filepath.Join(dir, "bench.json")
	var log bytes.Buffer
	err := run(t.Context(), []string{"-short", "-bin", bin, "-out", doc, "-json", data}, t.Output(), &log)
	t.Logf("%s", &log)
	if err != nil {
		t.Fatal(err)
	}
	var report bench.Report
	text, err := os.ReadFile(data)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &report); err != nil {
		t.Fatal(err)
	}
	if got, want := len(report.Sections), len(bench.Names()); got != want {
		t.Errorf("%d sections, want %d", got, want)
	}
	for _, s := range report.Sections {
		for _, r := range s.Rows {
			if r.Verdict == bench.NotMeasured && r.Note != "no engine here" {
				t.Errorf("%s: %s was not measured: %s", s.Name, r.Measured, r.Note)
			}
		}
	}
	written, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range report.Sections {
		if !strings.Contains(string(written), "\n## "+s.Title+"\n") {
			t.Errorf("the document has no section %q", s.Title)
		}
	}
}

func TestMisuse(t *testing.T) {
	for name, args := range map[string][]string{
		"argument":   {"x"},
		"expression": {"-only", "("},
		"flag":       {"-nonsense"},
		"programs":   {"-bin", t.TempDir()},
	} {
		if err := run(t.Context(), args, t.Output(), t.Output()); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
