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
	"github.com/workberth/workberth/sandbox/docker"
	"github.com/workberth/workberth/sandbox/podman"
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
	args := []string{"-short", "-bin", bin, "-out", doc, "-json", data, "-image", "berth-busybox"}
	for _, name := range []string{docker.Name, podman.Name} {
		if address := os.Getenv("BERTH_TEST_" + strings.ToUpper(name)); address != "" {
			args = append(args, "-"+name, address)
		}
	}
	err := run(t.Context(), args, t.Output(), &log)
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
	written, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := len(report.Parts), len(bench.Backends()); got != want {
		t.Errorf("%d parts, want %d", got, want)
	}
	for _, p := range report.Parts {
		if !strings.Contains(string(written), "\n## Backend `"+p.Backend+"`\n") {
			t.Errorf("the document has no part for %s", p.Backend)
		}
		if p.Missing != "" {
			t.Logf("%s was not measured: %s", p.Backend, p.Missing)
			continue
		}
		if got, want := len(p.Sections), len(bench.Names(p.Backend)); got != want {
			t.Errorf("%s: %d sections, want %d", p.Backend, got, want)
		}
		for _, s := range p.Sections {
			if !strings.Contains(string(written), "\n### "+s.Title+"\n") {
				t.Errorf("%s: the document has no section %q", p.Backend, s.Title)
			}
			for _, r := range s.Rows {
				if r.Verdict == bench.NotMeasured && r.Note != "no engine here" {
					t.Errorf("%s, %s: %s was not measured: %s", p.Backend, s.Name, r.Measured, r.Note)
				}
			}
		}
	}
}

func TestMisuse(t *testing.T) {
	bin := t.TempDir()
	for _, name := range []string{"berth", "berth-guest"} {
		if err := os.WriteFile(filepath.Join(bin, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, args := range map[string][]string{
		"argument":   {"x"},
		"expression": {"-only", "("},
		"flag":       {"-nonsense"},
		"programs":   {"-bin", t.TempDir()},
		"backend":    {"-backend", "bubblewrap,nothing"},
		"engine":     {"-bin", bin, "-docker", filepath.Join(t.TempDir(), "socket")},
		"nothing":    {"-bin", bin, "-backend", "podman"},
	} {
		if err := run(t.Context(), args, t.Output(), t.Output()); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
