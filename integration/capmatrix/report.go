package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/workberth/workberth/sandbox"
)

// report is what a suite wrote about one target: of a bridge with Capabilities, of a backend with
// Features.
type report struct {
	Target       string              `json:"target"`
	Complete     bool                `json:"complete"`
	Capabilities map[string]string   `json:"capabilities"`
	Features     *sandbox.Features   `json:"features"`
	Rows         map[string][]string `json:"rows"`
	Passed       []string            `json:"passed"`
	Failed       []string            `json:"failed"`
	Skipped      reasons             `json:"skipped"`
	Waived       reasons             `json:"waived"`
}

// label tells a backend from a bridge of the same name.
func (r report) label() string {
	if r.Features != nil {
		return r.Target + " (backend)"
	}
	return r.Target
}

// reasons tells for names why; a suite that gives a list of names gives no reasons.
type reasons map[string]string

// UnmarshalJSON takes an object or a list.
func (r *reasons) UnmarshalJSON(data []byte) error {
	var names []string
	if json.Unmarshal(data, &names) == nil {
		*r = reasons{}
		for _, name := range names {
			(*r)[name] = ""
		}
		return nil
	}
	var m map[string]string
	if err := json.Unmarshal(data, &m); err != nil {
		return err
	}
	*r = m
	return nil
}

// grouped lists each reason with the names it is given for, in order.
func (r reasons) grouped() (out []reason) {
	by := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(r)) {
		by[r[name]] = append(by[r[name]], name)
	}
	for _, why := range slices.Sorted(maps.Keys(by)) {
		out = append(out, reason{by[why], strings.TrimSuffix(strings.Join(strings.Fields(why), " "), ".")})
	}
	return out
}

// reason is why some checks were not run.
type reason struct {
	names []string
	why   string
}

// loadReports reads all reports of a directory, sorted by target.
func loadReports(dir string) ([]report, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	var out []report
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var r report
		if err := json.Unmarshal(data, &r); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if r.Target == "" {
			return nil, fmt.Errorf("%s names no target", file)
		}
		out = append(out, r)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no reports in %s", dir)
	}
	slices.SortFunc(out, func(a, b report) int { return strings.Compare(a.label(), b.label()) })
	return out, nil
}
