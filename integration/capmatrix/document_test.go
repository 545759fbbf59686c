package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/workberth/workberth/fsbridge"
)

const root = "../.."

// section returns the text below a heading, up to the next one of its level or above.
func section(t *testing.T, doc, heading string) string {
	t.Helper()
	_, rest, ok := strings.Cut(doc, "\n"+heading+"\n")
	if !ok {
		t.Fatalf("there is no section %q", heading)
	}
	text, _, _ := strings.Cut(rest, "\n## ")
	return text
}

// grid returns the cells of the first table in a text, header first.
func grid(text string) (lines [][]string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			if lines != nil {
				return lines
			}
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), " | ")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if !strings.HasPrefix(cells[0], "---") {
			lines = append(lines, cells)
		}
	}
	return lines
}

// column returns the cells of a column without its header.
func column(lines [][]string, i int) (out []string) {
	for _, l := range lines[min(1, len(lines)):] {
		out = append(out, l[i])
	}
	return out
}

// TestCapabilitiesDocument keeps docs/capabilities.md complete: every capability there is, every
// backend there is, every row of the contract, and nothing that failed. `make docs` writes it.
func TestCapabilitiesDocument(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(root, "docs", "capabilities.md"))
	if err != nil {
		t.Fatalf("%v; run `make docs`", err)
	}
	doc := string(data)
	for _, p := range malformed(doc) {
		t.Errorf("malformed table, %s", p)
	}
	for _, bad := range []string{"**FAILED**", "**failed**", "not tested", "| ? |"} {
		if strings.Contains(doc, bad) {
			t.Errorf("the document says %q; look at the suite, then run `make docs`", bad)
		}
	}

	bridges := grid(section(t, doc, "## Bridges"))
	var want []string
	for _, c := range fsbridge.AllCapabilities() {
		want = append(want, "`"+string(c)+"`")
	}
	if got := column(bridges, 0); !slices.Equal(got, want) {
		t.Errorf("capabilities %q, want %q; run `make docs`", got, want)
	}

	backends := grid(section(t, doc, "## Backends"))
	want = nil
	for _, f := range features() {
		want = append(want, f.name)
	}
	if got := column(backends, 0); !slices.Equal(got, want) {
		t.Errorf("features %q, want %q; run `make docs`", got, want)
	}
	for _, name := range backendPackages(t) {
		if !slices.Contains(backends[0][1:], name) {
			t.Errorf("backend %s has no column; hand it to backendtest and run `make docs`", name)
		}
		if !slices.Contains(bridges[0][1:], "sandbox-"+name) {
			t.Errorf("the bridge of backend %s has no column; hand it to backendtest and run `make docs`", name)
		}
	}

	stated, err := statedRows(root)
	if err != nil {
		t.Fatal(err)
	}
	rows := section(t, doc, "## Rows of the contract")
	for file, ids := range stated {
		for _, id := range ids {
			if !strings.Contains(rows, id) {
				t.Errorf("row %s of %s is not mentioned; run `make docs`", id, file)
			}
		}
	}
}

// backendPackages are the directories below sandbox that hold a backend.
func backendPackages(t *testing.T) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(root, "sandbox"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() && e.Name() != "backendtest" && e.Name() != "testdata" {
			names = append(names, e.Name())
		}
	}
	return names
}
