package archtest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const dependenciesFile = "docs/dependencies.txt"

// dependencies describes the third-party modules that are linked into each program.
func dependencies(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("The third-party modules linked into each program, for linux/amd64. Written by `make docs`,\n" +
		"kept current by a test, so that a new dependency is seen in review.\n")
	for _, program := range []string{"cmd/berth", "cmd/berth-guest"} {
		out := goList(t, "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}", "./"+program)
		modules := strings.Split(strings.TrimSpace(string(out)), "\n")
		slices.Sort(modules)
		b.WriteString("\n" + program + "\n")
		for _, m := range slices.Compact(modules) {
			if m != "" {
				b.WriteString("  " + m + "\n")
			}
		}
	}
	return b.String()
}

// TestDependencies keeps docs/dependencies.txt current. BERTH_WRITE_DOCS=1 writes it.
func TestDependencies(t *testing.T) {
	want := dependencies(t)
	file := filepath.Join(openRepo(t).root, dependenciesFile)
	if os.Getenv("BERTH_WRITE_DOCS") == "1" {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; run `make docs`", err)
	}
	if string(got) != want {
		t.Errorf("%s is not current; run `make docs` and look at what changed.\ngot:\n%s\nwant:\n%s", dependenciesFile, got, want)
	}
}
