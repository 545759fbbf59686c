package archtest

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// rows is a run of contract rows that the module claims to keep.
type rows struct {
	file        string // in docs/contract
	prefix      string
	first, last int
}

// kept lists the rows that must be named by a test. A new part of the module adds its line.
func kept() []rows {
	return []rows{
		{"fsbridge.md", "FSB", 1, 13},
		{"sandbox.md", "SBX", 1, 15}, // from SBX-16 on: host-only harnesses, with the harness runtime
		{"gitenv.md", "GIT", 1, 12},
		{"remoteworkspace.md", "RWS", 1, 23},
		{"attachments.md", "ATT", 1, 42},
		{"skills.md", "SKL", 1, 8},
	}
}

// ids returns the identifiers of the run: FSB-01, FSB-02, ...
func (r rows) ids() []string {
	var ids []string
	for n := r.first; n <= r.last; n++ {
		ids = append(ids, fmt.Sprintf("%s-%02d", r.prefix, n))
	}
	return ids
}

// statedRows returns the identifiers that a contract file defines: the first cell of a table row.
func statedRows(text string) []string {
	var ids []string
	for _, m := range regexp.MustCompile(`(?m)^\| ([A-Z]+-\d\d+) \|`).FindAllStringSubmatch(text, -1) {
		ids = append(ids, m[1])
	}
	return ids
}

// namedRows returns the identifiers with one of the prefixes that occur in a text.
func namedRows(text string, prefixes []string) []string {
	if len(prefixes) == 0 {
		return nil
	}
	return regexp.MustCompile(`\b(?:`+strings.Join(prefixes, "|")+`)-\d+\b`).FindAllString(text, -1)
}

// contract returns every row of docs/contract with the file that states it.
func contract(t *testing.T, r repo) map[string]string {
	t.Helper()
	stated := map[string]string{}
	for _, name := range r.files {
		if path.Dir(name) != "docs/contract" || path.Ext(name) != ".md" {
			continue
		}
		for _, id := range statedRows(string(r.read(t, name))) {
			if before, twice := stated[id]; twice {
				t.Errorf("%s: %s is stated in %s already", name, id, before)
			}
			stated[id] = path.Base(name)
		}
	}
	return stated
}

// TestContractRowsAreTested wants every row that is kept to be named in at least one test or
// suite, so that a search for it finds the test that would catch its loss.
func TestContractRowsAreTested(t *testing.T) {
	r := openRepo(t)
	stated := contract(t, r)
	named := map[string]bool{}
	for _, f := range r.goFiles(t) {
		if !f.isTest() && !isSuite(f.dir) || f.dir == "internal/archtest" {
			continue
		}
		for _, run := range kept() {
			for _, id := range namedRows(string(f.source), []string{run.prefix}) {
				named[id] = true
			}
		}
	}
	for _, run := range kept() {
		for _, id := range run.ids() {
			if stated[id] != run.file {
				t.Errorf("%s is not a row of docs/contract/%s", id, run.file)
			}
			if !named[id] {
				t.Errorf("%s is named by no test", id)
			}
		}
	}
}

// TestContractRowsExist finds misspelt rows: every one that is named anywhere must be stated.
func TestContractRowsExist(t *testing.T) {
	r := openRepo(t)
	stated := contract(t, r)
	var prefixes []string
	for id := range stated {
		prefix, _, _ := strings.Cut(id, "-")
		prefixes = append(prefixes, prefix)
	}
	slices.Sort(prefixes)
	prefixes = slices.Compact(prefixes)
	for _, name := range r.files {
		if ext := path.Ext(name); ext != ".go" && ext != ".md" && ext != ".txtar" && ext != ".sh" || path.Dir(name) == "internal/archtest" {
			continue
		}
		for _, id := range namedRows(string(r.read(t, name)), prefixes) {
			if stated[id] == "" {
				t.Errorf("%s: there is no row %s in docs/contract", name, id)
			}
		}
	}
}

func TestRowNames(t *testing.T) {
	if got := (rows{"", "GIT", 9, 11}).ids(); !slices.Equal(got, []string{"GIT-09", "GIT-10", "GIT-11"}) {
		t.Errorf("ids() = %q", got)
	}
	text := "| ID | Requirement |\n| --- | --- |\n| FSB-01 | x (FSB-02) |\n| Q-07 | y |\n FSB-03 |\n"
	if got := statedRows(text); !slices.Equal(got, []string{"FSB-01", "Q-07"}) {
		t.Errorf("statedRows() = %q", got)
	}
	text = "// FSB-03 FSB-05, FSB-011 xFSB-1 UTF-16 Q-07"
	if got := namedRows(text, []string{"FSB", "Q"}); !slices.Equal(got, []string{"FSB-03", "FSB-05", "FSB-011", "Q-07"}) {
		t.Errorf("namedRows() = %q", got)
	}
	if got := namedRows(text, nil); got != nil {
		t.Errorf("namedRows() without prefixes = %q", got)
	}
}
