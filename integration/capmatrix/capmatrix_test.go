package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// tree writes files and returns their root.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// source is a small repository with every way to name a row.
func source(t *testing.T) string {
	return tree(t, map[string]string{
		"docs/contract/fsbridge.md": "| ID | Requirement |\n| --- | --- |\n| FSB-01 | it is. |\n| FSB-02 | as FSB-01. |\n",
		"docs/contract/sandbox.md":  "| SBX-01 | it runs. |\n| SBX-02 | it ends. |\n",
		"docs/contract/gitenv.md":   "| GIT-01 | it is pure. |\n",
		"a/a_test.go": "package a\n\n// TestOne proves it. FSB-01\nfunc TestOne(t *testing.T) {\n\tbridgetest.Run(t, x) // SBX-01\n}\n\n" +
			"func TestOther(t *testing.T) { t.Run(``, func() { middle(t) }) }\n\nfunc middle() { middle(); helper() }\n\nfunc TestAlone() { Run(); other.Run() }\n\n" +
			"// helper is for FSB-02.\nfunc helper() { bridgetest.Run(nil, x) }\n\nfunc (x y) TestNot() {} // FSB-02\n",
		"a/b/b_test.go":                    "package b\n\nfunc FuzzB(f *F) {} // after\n\n// FSB-01\nfunc TestMain(m *M) {}\n\nfunc TestRun(t *T) { t.Run(`x`, func() { backendtest.Run(t, y) }) }\n\nfunc TestRunOrdinaryUser(t *T) { backendtest.Run(t, y) }\n",
		"sandbox/backendtest/self_test.go": "package backendtest\n\nfunc TestSelf(t *T) { backendtest.Run(t, z) }\n",
		"a/a.go":                           "package a // FSB-01 in code that is no test\n",
		"a/testdata/s.txtar":               "# GIT-01\n",
		"internal/archtest/x_test.go":      "package archtest\n\nfunc TestX(t *T) { _ = \"SBX-02\" }\n",
		".git/x_test.go":                   "broken",
	})
}

func TestStatedRows(t *testing.T) {
	got, err := statedRows(source(t))
	want := map[string][]string{"fsbridge.md": {"FSB-01", "FSB-02"}, "sandbox.md": {"SBX-01", "SBX-02"}, "gitenv.md": {"GIT-01"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	if _, err := statedRows(t.TempDir()); err == nil {
		t.Error("no contract, no error")
	}
}

func TestNamedRows(t *testing.T) {
	got, err := namedRows(source(t))
	want := map[string][]string{
		"FSB-01": {"a.TestOne", "a/b/b_test.go"},
		"FSB-02": {"a/a_test.go"},
		"SBX-01": {"a.TestOne"},
		"GIT-01": {"a/testdata/s.txtar"},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}

func TestSuiteTests(t *testing.T) {
	got, err := suiteTests(source(t))
	want := []suiteTest{{"a", "TestOne"}, {"a", "TestOther"}, {"a/b", "TestRun"}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}

func TestGenerate(t *testing.T) {
	reports := tree(t, map[string]string{
		"x.json": `{"target":"zeta","complete":true,"capabilities":{"lstat":"proved","watch":"missing","walk":"failed","glob":"untested"},` +
			`"rows":{"FSB-01":["core/b","core/a"]},"passed":["core/a","core/b"],"failed":["walk/x"],"skipped":["s/1"],"waived":{"w/1":"be|cause"}}`,
		"y.json": `{"target":"alpha","capabilities":{"lstat":"proved"},"rows":{"FSB-01":["core/a"]}}`,
		"z.json": `{"target":"box","complete":true,"features":{"confined":true,"networks":["none","host"],"access":["rw"]},"rows":{"SBX-01":["run/x"]},"skipped":{"b/2":"no root.","a/1":"no root.","c/3":"slow"}}`,
	})
	doc, err := generate(source(t), reports)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| Capability | alpha | zeta |\n",
		"| `lstat` | yes | yes |\n",
		"| `watch` | ? | – |\n",
		"| `walk` | ? | **FAILED** |\n",
		"| `glob` | ? | declared, not tested |\n",
		"| Feature | box |\n",
		"| confined | yes |\n",
		"| networks | none, host |\n",
		"| process cleanup | – |\n",
		"| alpha | 0 | 0 | 0 | 0 | no |\n",
		"| zeta | 2 | 1 | 1 | 1 | yes |\n",
		"- zeta **failed** walk/x.\n",
		"- zeta is known not to pass w/1: be|cause.\n",
		"- zeta skipped s/1: a capability, or means to check it, are missing.\n",
		"- box (backend) skipped a/1, b/2: no root.\n",
		"- box (backend) skipped c/3: slow.\n",
		"| FSB-01 | core/a, core/b | alpha, zeta | a.TestOne, a/b/b_test.go |\n",
		"| FSB-02 | – | – | a/a_test.go |\n",
		"| SBX-01 | run/x | box (backend) | a.TestOne |\n",
		"No test of this version names SBX-02.\n",
		"| GIT-01 | – | – | a/testdata/s.txtar |\n",
	} {
		if !strings.Contains(doc, want) {
			t.Errorf("the document lacks %q", want)
		}
	}
	if again, err := generate(source(t), reports); err != nil || again != doc {
		t.Errorf("the same input gave another document, %v", err)
	}
	if problems := malformed(doc); len(problems) > 0 {
		t.Errorf("malformed: %q", problems)
	}
}

func TestReportsMustMakeSense(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"none":      {},
		"no JSON":   {"x.json": "{"},
		"no target": {"x.json": "{}"},
	} {
		if _, err := loadReports(tree(t, files)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestWords(t *testing.T) {
	for name, want := range map[string]string{
		"Confined": "confined", "ReadOnlyRoot": "read only root", "TTY": "TTY", "CPULimit": "CPU limit", "PidsLimit": "pids limit",
	} {
		if got := words(name); got != want {
			t.Errorf("words(%s) = %q, want %q", name, got, want)
		}
	}
}

// malformed lists the lines of tables that do not have as many cells as their header.
func malformed(doc string) (problems []string) {
	cells := 0
	for i, line := range strings.Split(doc, "\n") {
		if !strings.HasPrefix(line, "|") {
			cells = 0
			continue
		}
		n := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|") - 1
		if cells == 0 {
			cells = n
		}
		if n != cells || !strings.HasSuffix(line, " |") && !strings.HasSuffix(line, "- |") {
			problems = append(problems, fmt.Sprintf("line %d: %s", i+1, line))
		}
	}
	return problems
}
