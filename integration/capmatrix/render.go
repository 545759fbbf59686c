package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/workberth/workberth/fsbridge"
)

const preamble = `# Capabilities

Written by ` + "`make docs`" + ` from what the suites found out on the machine that ran them; do not edit. A capability is an optional operation
of a bridge; asking for one that is missing is an error that names it. What a suite has not seen work is not claimed here.

`

// render writes the document.
func render(b *strings.Builder, reports []report, stated, named map[string][]string) {
	b.WriteString(preamble)
	var bridges, backends []report
	for _, r := range reports {
		if r.Capabilities != nil {
			bridges = append(bridges, r)
		}
		if r.Features != nil {
			backends = append(backends, r)
		}
	}
	renderBridges(b, bridges)
	renderBackends(b, backends)
	renderRuns(b, reports)
	renderRows(b, reports, stated, named)
}

// renderBridges is the table of capabilities.
func renderBridges(b *strings.Builder, bridges []report) {
	b.WriteString("## Bridges\n\n`yes`: declared, and every check of it passed. `–`: not offered, and refused by name. Every bridge also has the core: stat, read, write.\n" +
		"The columns `sandbox-NAME` are the bridges that the sandboxes of backend NAME give; the others are packages below `fsbridge`.\n\n")
	header := []string{"Capability"}
	for _, r := range bridges {
		header = append(header, r.Target)
	}
	var lines [][]string
	for _, c := range fsbridge.AllCapabilities() {
		line := []string{"`" + string(c) + "`"}
		for _, r := range bridges {
			line = append(line, word(r.Capabilities[string(c)]))
		}
		lines = append(lines, line)
	}
	table(b, header, lines)
}

// word is a state of a capability in the table.
func word(status string) string {
	switch status {
	case "proved":
		return "yes"
	case "missing":
		return "–"
	case "failed":
		return "**FAILED**"
	case "untested":
		return "declared, not tested"
	}
	return "?"
}

// renderBackends is the table of features.
func renderBackends(b *strings.Builder, backends []report) {
	b.WriteString("\n## Backends\n\nWhat each backend can do on the machine the suite ran on; `berth doctor` tells about yours.\n\n")
	header := []string{"Feature"}
	for _, r := range backends {
		header = append(header, r.Target)
	}
	var lines [][]string
	for _, f := range features() {
		line := []string{f.name}
		for _, r := range backends {
			line = append(line, f.value(r))
		}
		lines = append(lines, line)
	}
	table(b, header, lines)
}

// renderRuns tells how each target fared.
func renderRuns(b *strings.Builder, reports []report) {
	b.WriteString("\n## Runs of the suites\n\n")
	var lines [][]string
	var notes []string
	for _, r := range reports {
		complete := "yes"
		if !r.Complete {
			complete = "no"
		}
		lines = append(lines, []string{r.label(), fmt.Sprint(len(r.Passed)), fmt.Sprint(len(r.Failed)), fmt.Sprint(len(r.Skipped)), fmt.Sprint(len(r.Waived)), complete})
		for _, name := range r.Failed {
			notes = append(notes, fmt.Sprintf("%s **failed** %s.", r.label(), name))
		}
		for _, w := range r.Waived.grouped() {
			notes = append(notes, fmt.Sprintf("%s is known not to pass %s: %s.", r.label(), list(w.names), w.why))
		}
		for _, w := range r.Skipped.grouped() {
			why := w.why
			if why == "" {
				why = "a capability, or means to check it, are missing"
			}
			notes = append(notes, fmt.Sprintf("%s skipped %s: %s.", r.label(), list(w.names), why))
		}
	}
	table(b, []string{"Target", "Passed", "Failed", "Skipped", "Waived", "Whole suite"}, lines)
	if len(notes) > 0 {
		b.WriteString("\n")
		for _, n := range notes {
			b.WriteString("- " + n + "\n")
		}
	}
}

// renderRows tells which tests hold the module to which row.
func renderRows(b *strings.Builder, reports []report, stated, named map[string][]string) {
	b.WriteString("\n## Rows of the contract\n\nWhich checks of the suites prove a row, on which targets they passed, and which other tests name it.\n")
	for _, file := range contractFiles() {
		fmt.Fprintf(b, "\n### [%s](contract/%s)\n\n", strings.TrimSuffix(file, ".md"), file)
		var lines [][]string
		var open []string
		for _, row := range stated[file] {
			checks, targets := proofs(reports, row)
			if len(checks)+len(named[row]) == 0 {
				open = append(open, row)
				continue
			}
			lines = append(lines, []string{row, list(checks), list(targets), list(named[row])})
		}
		table(b, []string{"Row", "Checks of the suites", "Passed on", "Tests"}, lines)
		if len(open) > 0 {
			fmt.Fprintf(b, "\nNo test of this version names %s.\n", strings.Join(open, ", "))
		}
	}
}

// proofs collects the checks that proved a row, and on which targets.
func proofs(reports []report, row string) (checks, targets []string) {
	for _, r := range reports {
		names := r.Rows[row]
		if len(names) > 0 {
			targets = append(targets, r.label())
		}
		for _, name := range names {
			if !slices.Contains(checks, name) {
				checks = append(checks, name)
			}
		}
	}
	slices.Sort(checks)
	return checks, targets
}

// list is a cell with several entries.
func list(entries []string) string {
	if len(entries) == 0 {
		return "–"
	}
	return strings.Join(entries, ", ")
}

// table writes a table.
func table(b *strings.Builder, header []string, lines [][]string) {
	write := func(cells []string) {
		for _, c := range cells {
			b.WriteString("| " + strings.ReplaceAll(c, "|", `\|`) + " ")
		}
		b.WriteString("|\n")
	}
	write(header)
	b.WriteString(strings.Repeat("| --- ", len(header)) + "|\n")
	for _, l := range lines {
		write(l)
	}
}
