package archtest

import (
	"fmt"
	"go/ast"
	"regexp"
	"strings"
	"testing"
)

// sleepReason is the comment that allows a sleep: "//sleep: why time itself is meant here".
var sleepReason = regexp.MustCompile(`//\s?sleep: \S+ \S+`)

// sleeps returns a problem for every time.Sleep in f without a reason on its line.
func sleeps(f goFile) (problems []string) {
	local := "" // the name of package time in this file
	for _, spec := range f.file.Imports {
		if spec.Path.Value == `"time"` {
			local = "time"
			if spec.Name != nil {
				local = spec.Name.Name
			}
		}
	}
	ast.Inspect(f.file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok || sel.Sel.Name != "Sleep" {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); !ok || x.Name != local {
			return true
		}
		line := f.set.Position(sel.Pos()).Line
		if !sleepReason.MatchString(f.line(line)) {
			problems = append(problems, fmt.Sprintf("%s:%d: a test synchronises on a fact, not on time.Sleep; where time itself is meant, say why on the line: //sleep: reason", f.name, line))
		}
		return true
	})
	return problems
}

// TestNoSleepInTests covers test files and the suites.
func TestNoSleepInTests(t *testing.T) {
	for _, f := range openRepo(t).goFiles(t) {
		if f.isTest() || isSuite(f.dir) {
			report(t, sleeps(f))
		}
	}
}

func TestSleeps(t *testing.T) {
	f := mustParse(t, "a_test.go", strings.Join([]string{
		"package a",
		`import "time"`,
		"func f(x interface{ Sleep(int) }) {",
		"time.Sleep(1)",
		"time.Sleep(1) //sleep: polls a file another process writes",
		"time.Sleep(1) // sleep: polls a file",
		"time.Sleep(1) //sleep: x",
		"x.Sleep(1)",
		"defer time.Sleep(1)",
		"g := time.Sleep",
		"}",
	}, "\n"))
	got := sleeps(f)
	if len(got) != 4 {
		t.Fatalf("sleeps() found %d, want lines 4, 7, 9, 10: %q", len(got), got)
	}
	for i, line := range []string{":4:", ":7:", ":9:", ":10:"} {
		if !strings.Contains(got[i], line) {
			t.Errorf("problem %d = %q, want line %s", i, got[i], line)
		}
	}
	renamed := mustParse(t, "b_test.go", "package b\nimport clock \"time\"\nfunc f() { clock.Sleep(1) }\n")
	if got := sleeps(renamed); len(got) != 1 {
		t.Errorf("a renamed import hid the sleep: %q", got)
	}
}
